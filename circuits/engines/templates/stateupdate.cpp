{# One pass over the elements of a group. For all-to-all synapses the two ends are the row and the
   column of the loop, not looked up, so that the compiler can use vector instructions. #}
{# USES_VARIABLES { N } #}
{# ALLOWS_SCALAR_WRITE #}
{% extends 'common_group.cpp' %}
{% import 'dense.cpp' as dense with context %}

{% block maincode %}
    const size_t _vectorisation_idx = -1;
    {{scalar_code|autoindent}}
    {% if owner.all_to_all is defined %}
    for (int _row = 0; _row < {{owner.target.N}}; _row++)
    {
        {{dense.ends_of_row()}}
        #pragma GCC ivdep
        for (int _column = 0; _column < {{owner.source.N}}; _column++)
        {
            {{dense.synapse(vector_code)|autoindent}}
        }
    }
    {% else %}
    const int _N = {{constant_or_scalar('N', variables['N'])}};
    {% if owner.source is not defined %}
    #pragma GCC ivdep
    {% endif %}
    for (int _idx = 0; _idx < _N; _idx++)
    {
        const size_t _vectorisation_idx = _idx;
        {{vector_code|autoindent}}
    }
    {% endif %}
{% endblock %}

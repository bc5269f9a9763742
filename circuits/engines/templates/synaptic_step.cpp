{# One pass over all-to-all synapses: sums over rows and over columns, and the synapses' own step.
   Several rows are done at once, so that what belongs to a column is read and written once for all
   of them. #}
{# USES_VARIABLES { N } #}
{% extends 'common_group.cpp' %}
{% import 'dense.cpp' as dense with context %}

{% block maincode %}
    {% set at_once = 4 %}
    {% set at_first = (owner.target.N - 1) % at_once + 1 %}
    const size_t _vectorisation_idx = -1;
    {{scalar_code|autoindent}}
    {
        const int _first = 0;
        {{dense.rows(at_first, true)}}
    }
    for (int _first = {{at_first}}; _first < {{owner.target.N}}; _first += {{at_once}})
    {
        {{dense.rows(at_once, false)}}
    }
{% endblock %}

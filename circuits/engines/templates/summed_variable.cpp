{# Sum a synaptic expression over the synapses of each target cell. #}
{# USES_VARIABLES { N } #}
{% extends 'common_group.cpp' %}
{% import 'dense.cpp' as dense with context %}

{% block maincode %}
    {% set _target = get_array_name(_target_var) %}
    {% set _ends = get_array_name(_index_var) %}
    const int _target_size = {{constant_or_scalar(_target_size_name, variables[_target_size_name])}};
    const size_t _vectorisation_idx = -1;
    {{scalar_code|autoindent}}
    {% if owner.all_to_all is defined and _index_var.name == '_synaptic_post' %}
    for (int _row = 0; _row < {{owner.target.N}}; _row++)
    {
        {{dense.ends_of_row()}}
        double _sum = 0;
        for (int _column = 0; _column < {{owner.source.N}}; _column++)
        {
            {{dense.synapse(vector_code)|autoindent}}
            _sum += _synaptic_var;
        }
        {{_target}}[_row + {{_target_start}}] = _sum;
    }
    {% else %}
    for (int _i = 0; _i < _target_size; _i++)
        {{_target}}[_i + {{_target_start}}] = 0;
    {% if owner.all_to_all is defined %}
    for (int _row = 0; _row < {{owner.target.N}}; _row++)
    {
        {{dense.ends_of_row()}}
        #pragma GCC ivdep
        for (int _column = 0; _column < {{owner.source.N}}; _column++)
        {
            {{dense.synapse(vector_code)|autoindent}}
            {{_target}}[_column + {{_target_start}}] += _synaptic_var;
        }
    }
    {% else %}
    for (int _idx = 0; _idx < {{N}}; _idx++)
    {
        const size_t _vectorisation_idx = _idx;
        {{vector_code|autoindent}}
        {{_target}}[{{_ends}}[_idx]] += _synaptic_var;
    }
    {% endif %}
    {% endif %}
{% endblock %}

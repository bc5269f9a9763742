{# Record the state. The rows go to their file as they come, so that memory does not grow with the
   length of a run; a program's main opens the files and closes them. #}
{# USES_VARIABLES { t, _clock_t, _indices, N } #}
{# WRITES_TO_READ_ONLY_VARIABLES { t, N } #}
{% extends 'common_group.cpp' %}
{% import 'columns.cpp' as columns with context %}

{% block maincode %}
    {{_dynamic_t}}.push_back({{_clock_t}});
    {{N}} = {{_dynamic_t}}.size();
    const size_t _vectorisation_idx = -1;
    {{scalar_code|autoindent}}
    {% for varname, var in _recorded_variables | dictsort %}
    {{columns.type(var)}} *const _row_{{varname}} = {{columns.name(varname)}}.row(_num_indices);
    {% endfor %}
    for (int _i = 0; _i < (int)_num_indices; _i++)
    {
        const size_t _idx = {{_indices}}[_i];
        const size_t _vectorisation_idx = _idx;
        {{vector_code|autoindent}}
        {% for varname, var in _recorded_variables | dictsort %}
        _row_{{varname}}[_i] = _to_record_{{varname}};
        {% endfor %}
    }
{% endblock %}

{% block extra_functions_cpp %}
{% for varname, var in _recorded_variables | dictsort %}
Column<{{columns.type(var)}}> {{columns.name(varname)}};
{% endfor %}
{% endblock %}

{% block extra_functions_h %}
#include "network.h"
{% for varname, var in _recorded_variables | dictsort %}
extern Column<{{columns.type(var)}}> {{columns.name(varname)}};
{% endfor %}
{% endblock %}

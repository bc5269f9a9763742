{# Parts of the loops over all-to-all synapses, which are numbered [post, pre] in row-major order. #}
{% macro ends_of_row() %}
const int32_t _postsynaptic_idx = _row;
{% endmacro %}

{% macro synapse(lines) %}
const size_t _idx = (size_t)_row*{{owner.source.N}} + _column;
const size_t _vectorisation_idx = _idx;
const int32_t _presynaptic_idx = _column;
{% for line in lines if 'synaptic_idx = ' not in line %}
{{line}}
{% endfor %}
{% endmacro %}

{% macro rows(n, starts_columns) %}
        {% for sum in sums if sum.of_row %}
        {% for r in range(n) %}
        double {{sum.name}}_{{r}} = 0;
        {% endfor %}
        {% endfor %}
        #pragma GCC ivdep
        for (int _column = 0; _column < {{owner.source.N}}; _column++)
        {
            {% for sum in sums if not sum.of_row %}
            double {{sum.name}}_all = {{'0' if starts_columns else get_array_name(sum.target) ~ '[_column + ' ~ sum.start ~ ']'}};
            {% endfor %}
            {% for r in range(n) %}
            {
                const int _row = _first + {{r}};
                {{ends_of_row()}}
                {{synapse(vector_code)|autoindent}}
                {% for sum in sums %}
                {{sum.name}}_{{r if sum.of_row else 'all'}} += {{sum.name}};
                {% endfor %}
            }
            {% endfor %}
            {% for sum in sums if not sum.of_row %}
            {{get_array_name(sum.target)}}[_column + {{sum.start}}] = {{sum.name}}_all;
            {% endfor %}
        }
        {% for sum in sums if sum.of_row %}
        {% for r in range(n) %}
        {{get_array_name(sum.target)}}[_first + {{r + sum.start}}] = {{sum.name}}_{{r}};
        {% endfor %}
        {% endfor %}
{% endmacro %}

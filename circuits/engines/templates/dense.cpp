{# Parts of the loops over all-to-all synapses, which are numbered [post, pre] in row-major order. #}
{% macro ends_of_row() %}
const int32_t _postsynaptic_idx = _row;
{% endmacro %}

{% macro synapse(lines) %}
const size_t _idx = (size_t)_row*{{owner.source.N}} + _column;
const size_t _vectorisation_idx = _idx;
const int32_t _presynaptic_idx = _column;
{% for line in lines if '__synaptic_pre[' not in line and '__synaptic_post[' not in line %}
{{line}}
{% endfor %}
{% endmacro %}

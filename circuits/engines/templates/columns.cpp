{# What a monitor's columns are called, and what they hold; a vector of bool has no elements. #}
{% macro name(varname) -%}
_column_{{varname}}_of_{{codeobj_name}}
{%- endmacro %}

{% macro type(var) -%}
{{'char' if c_data_type(var.dtype) == 'bool' else c_data_type(var.dtype)}}
{%- endmacro %}

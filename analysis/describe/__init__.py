"""The model description that Nordlie et al. (2009, PLoS Comput Biol 5:e1000456) ask for.

Sizes, equations, updates and their order are read from the Brian2 objects of a circuit, values from
its parameters and front end: the tables cannot disagree with what is simulated. By hand come only
the remarks in `notes`.

`nordlie` makes the tables from a `view` of the circuit, `markdown` and `latex` write them.
"""

from analysis.describe.latex import to_latex
from analysis.describe.markdown import to_markdown
from analysis.describe.nordlie import tables
from analysis.describe.table import Code, Table

__all__ = ["Code", "Table", "tables", "to_latex", "to_markdown"]

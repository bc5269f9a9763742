"""One self-contained HTML page for a folder of results: claims, explorer, figures, model, origin.

Everything in the page comes from the folder (`reading`), is put into words and tables (`pieces`,
`explorer`), and is escaped where templates lay it out (`report`). The page loads nothing: its
policy allows the scripts and the style sheet in it, by their digests, and images it contains.
"""

from analysis.page.report import write_report

__all__ = ["write_report"]

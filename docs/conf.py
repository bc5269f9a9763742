"""How Sphinx makes the documentation: ``make docs``. Nothing is fetched from elsewhere."""

import re
from importlib import metadata

from sphinx.ext.napoleon import Config, NumpyDocstring

project = "manifold-circuit"
version = release = metadata.version("manifold-circuit")

extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.autosummary", "sphinx.ext.viewcode"]
# The first is what pages of the reference are made as.
source_suffix = {".rst": "restructuredtext", ".md": "myst-nb", ".ipynb": "myst-nb"}
exclude_patterns = ["measured", "templates"]
templates_path = ["templates"]

# Names in single backquotes are code, in the docstrings as in the pages.
default_role = "code"

nb_execution_mode = "off"  # the notebooks are kept with their outputs
myst_heading_anchors = 3

autosummary_generate = True
autodoc_mock_imports = ["river", "capymoa"]  # need not be there
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
autodoc_typehints_format = "short"
autodoc_type_aliases = {
    name: name for name in ("FloatArray", "ArrayLike", "Classes", "Mask", "Duration", "Progress")
}

html_theme = "furo"
html_title = "manifold-circuit"
html_show_copyright = False
html_extra_path = ["playground.html"]  # a page of its own, as it is


def as_markup(app, what, name, obj, options, lines):
    """From our docstrings to Sphinx's markup.

    They hold maths as text: |x| is a norm, x_ has an index, and indented lines are formulas or
    code. Sections are NumPy's; what documents a variable has none, and may hold a colon.
    """
    found, verbatim = [], False
    for line in lines:
        indented = line.startswith("    ")
        if indented and not verbatim and not (found and found[-1].strip()):
            found += ["::", ""]
            verbatim = True
        elif line.strip() and not indented:
            verbatim = False
        found.append(line if verbatim or line.startswith(">>>") else escaped(line))
    if what not in ("attribute", "data", "property"):
        found = NumpyDocstring(found, Config(napoleon_use_rtype=False), what=what).lines()
    lines[:] = found


def escaped(line):
    """A line in which bars and trailing underscores mean themselves, except within backquotes."""
    parts = re.split(r"(``.*?``|`.*?`)", line)
    parts[::2] = [re.sub(r"\||_(?!\w)", r"\\\g<0>", part) for part in parts[::2]]
    return "".join(parts)


def shorter(app, what, name, obj, options, signature, returns):
    """Signatures without rules, which are shown where they are documented, and with plain names."""
    alias = re.compile(r"TypeAliasForwardRef\('(\w+)'\)")
    if signature:
        signature = alias.sub(r"\1", re.sub(r"Rule\(brian2=.*?>\)", "...", signature))
    return signature, alias.sub(r"\1", returns) if returns else returns


def not_ours(app, what, name, obj, skip, options):
    """Whether to leave out a method: scikit-learn adds some to every estimator, which its own
    documentation describes."""
    return True if re.fullmatch(r"set_\w+_request", name) else skip


def setup(app):
    """Called by Sphinx."""
    app.connect("autodoc-skip-member", not_ours)
    app.connect("autodoc-process-docstring", as_markup)
    app.connect("autodoc-process-signature", shorter)

"""Tables get into the README by command."""

from __future__ import annotations

import pytest

from circuits.errors import InputError
from simulations.readme import insert


def test_what_stands_between_the_marks_is_replaced():
    text = "before\n<!-- a -->\nold\n<!-- /a -->\nafter\n"
    once = insert(text, "a", "| new |\n")
    assert once == "before\n<!-- a -->\n| new |\n<!-- /a -->\nafter\n"
    assert insert(once, "a", "| new |\n") == once
    with pytest.raises(InputError, match="no marks <!-- b -->"):
        insert(text, "b", "x")

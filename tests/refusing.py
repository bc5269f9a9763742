"""What tests of bad input share: tables of cases, and what a refusal must look like."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from circuits.errors import CircuitError


def table(names, cases):
    """A test's cases, told apart by types: values may be endless, or differ between processes."""
    return pytest.mark.parametrize(names, cases, ids=lambda value: type(value).__name__)


def refused(
    call: Callable[[], Any],
    words: str | None = None,
    error: type[CircuitError] = CircuitError,
    most: int = 300,
) -> str:
    """The one sentence, of at ``most`` so many letters, that a call is refused with."""
    with pytest.raises(error, match=words) as caught:
        call()
    message = str(caught.value)
    assert "\n" not in message
    assert 5 < len(message) < most, message
    message.encode()  # printable, whatever the value
    return message

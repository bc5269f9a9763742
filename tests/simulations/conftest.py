"""What the tests of single experiments start from; a module names its experiment as NAME."""

import pytest

from tests.simulations.small import planted, simulate


@pytest.fixture(scope="module")
def run(request):
    """A run of the least size."""
    return simulate(request.module.NAME)


@pytest.fixture(scope="module")
def registered(request, run):
    """Repeats of the registered size; each test plants its own numbers."""
    return planted(request.module.NAME, lambda seed, one: {}, run=run)

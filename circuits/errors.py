"""What the circuit refuses and what it warns of, as types a caller can catch."""


class CircuitError(Exception):
    """Base of every error this package raises on purpose."""


class ParameterError(CircuitError, ValueError):
    """A parameter that cannot work."""


class InputError(CircuitError, ValueError):
    """Points, labels or file contents that cannot be presented."""


class DivergenceError(CircuitError, FloatingPointError):
    """The rates became non-finite or huge."""


class EngineError(CircuitError, RuntimeError):
    """An engine that is not available here, or whose build or run failed."""


class UnsettledWarning(UserWarning):
    """Many presentations were still moving when they ended."""

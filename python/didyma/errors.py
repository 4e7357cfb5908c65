"""What can go wrong, by kind. Every message is a sentence that says what to change."""

__all__ = [
    "DidymaError",
    "DtypeError",
    "ExecutorError",
    "InputError",
    "InternalError",
    "NotFiniteError",
    "ProposalError",
    "RunError",
    "SamplingError",
    "ShapeError",
    "SimulatorError",
    "TrainingError",
]


class DidymaError(Exception):
    """All of them."""

    __module__ = "didyma"


class InputError(DidymaError, ValueError):
    """An argument that cannot be used."""

    __module__ = "didyma"


class ShapeError(InputError):
    """An array of the wrong shape."""

    __module__ = "didyma"


class DtypeError(InputError, TypeError):
    """An argument that is not made of real numbers."""

    __module__ = "didyma"


class NotFiniteError(InputError):
    """NaN or infinity where a number is needed."""

    __module__ = "didyma"


class ProposalError(InputError):
    """Parameters that were not drawn where a round needs them."""

    __module__ = "didyma"


class SimulatorError(DidymaError, RuntimeError):
    """A simulator that gives nothing to learn from."""

    __module__ = "didyma"


class ExecutorError(DidymaError, RuntimeError):
    """An executor that is closed or broken, or cannot be sent the simulator."""

    __module__ = "didyma"


class SamplingError(DidymaError, RuntimeError):
    """A posterior, or a part of the prior, that cannot be drawn from."""

    __module__ = "didyma"


class TrainingError(DidymaError, RuntimeError):
    """Training that came to no number, or a device that could not go on."""

    __module__ = "didyma"


class RunError(DidymaError, OSError):
    """A directory or file of a run that cannot be used."""

    __module__ = "didyma"


class InternalError(DidymaError, RuntimeError):
    """A fault of Didyma."""

    __module__ = "didyma"

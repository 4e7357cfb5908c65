"""Simulation-based Bayesian inference: a simulator, a prior and an observation in, the posterior out.

>>> import didyma
>>> prior = didyma.Uniform(low=[-1, -1], high=[1, 1], names=["a", "b"])
>>> result = didyma.infer(simulator, prior, x_o, rounds=5, seed=1)
>>> theta = result.posterior.sample((1000,))

`infer` does everything; `NPE` goes step by step; `diagnostics` checks a posterior where no truth is known; `tasks`,
`metrics` and `toys` are for comparing. `errors` has every exception. The command line comes with the package:
`didyma --help`.
"""

from didyma import diagnostics, errors, metrics, tasks, toys
from didyma._didyma import (
    NPE,
    Figure,
    Independent,
    LogNormal,
    Normal,
    Posterior,
    Prior,
    Result,
    Summary,
    Task,
    Uniform,
    __version__,
    devices,
    infer,
    load_problem,
    methods,
    plot,
    report,
    resume,
    settings,
)
from didyma.errors import (
    DidymaError,
    DtypeError,
    ExecutorError,
    InputError,
    InternalError,
    NotFiniteError,
    ProposalError,
    RunError,
    SamplingError,
    ShapeError,
    SimulatorError,
    TrainingError,
)

__all__ = [
    "NPE",
    "DidymaError",
    "DtypeError",
    "ExecutorError",
    "Figure",
    "Independent",
    "InputError",
    "InternalError",
    "LogNormal",
    "Normal",
    "NotFiniteError",
    "Posterior",
    "Prior",
    "ProposalError",
    "Result",
    "RunError",
    "SamplingError",
    "ShapeError",
    "SimulatorError",
    "Summary",
    "Task",
    "TrainingError",
    "Uniform",
    "__version__",
    "devices",
    "diagnostics",
    "errors",
    "infer",
    "load_problem",
    "methods",
    "metrics",
    "plot",
    "report",
    "resume",
    "settings",
    "tasks",
    "toys",
]

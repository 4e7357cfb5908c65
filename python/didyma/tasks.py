"""Problems with a name, whose posteriors are known: what methods are compared on.

>>> task = didyma.tasks.two_moons()
>>> result = didyma.infer(task, rounds=5, seed=1)
>>> didyma.metrics.c2st(task.reference((2000,)), result.posterior.sample((2000,)))
"""

from didyma._didyma import Task, TaskSimulator, task, task_names

__all__ = [
    "Task",
    "TaskSimulator",
    "gaussian_linear",
    "gaussian_mixture",
    "hodgkin_huxley",
    "lotka_volterra",
    "mg1",
    "sir",
    "slcp",
    "task",
    "task_names",
    "two_moons",
]


def two_moons() -> Task:
    """Two Moons: two parameters, a posterior of two crescents."""
    return task("two-moons")


def lotka_volterra() -> Task:
    """Lotka-Volterra: four rates of predators and prey, nine summaries."""
    return task("lotka-volterra")


def mg1() -> Task:
    """M/G/1 queue: three parameters of a queue, five quantiles."""
    return task("mg1")


def hodgkin_huxley() -> Task:
    """Hodgkin-Huxley: a neuron's conductances from summaries of its voltage."""
    return task("hodgkin-huxley")


def gaussian_linear() -> Task:
    """Gaussian linear: ten means, a Gaussian posterior."""
    return task("gaussian-linear")


def gaussian_mixture() -> Task:
    """Gaussian mixture: one mean, two widths."""
    return task("gaussian-mixture")


def slcp() -> Task:
    """SLCP: a simple likelihood, a posterior of four modes."""
    return task("slcp")


def sir() -> Task:
    """SIR epidemic: rates of contact and recovery."""
    return task("sir")

"""A task: a prior and a simulator as sbibm defines them, in the coordinates that didyma infers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

import didyma

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Linear:
    """Parameters θ = A z of a correlated normal prior, inferred as independent standard normal z."""

    matrix: Array

    def parameters(self, z: Array) -> Array:
        return z @ self.matrix.T

    def coordinates(self, theta: Array) -> Array:
        return np.linalg.solve(self.matrix, theta.T).T

    @property
    def log_volume(self) -> float:
        """log |det A|, by which log-densities of z exceed those of θ."""
        return float(np.linalg.slogdet(self.matrix)[1])


@dataclass(frozen=True)
class Task:
    """One of sbibm's tasks."""

    name: str
    #: Title in tables.
    title: str
    #: Prior of the parameters, or of their coordinates if the task has any.
    prior: didyma.Prior
    #: Rows of parameters to rows of x; all randomness comes from the generator.
    simulator: Callable[[Array, np.random.Generator], Array]
    #: log p(x | θ) of one x and many rows θ, up to a constant.
    log_likelihood: Callable[[Array, Array], Array]
    #: Folder of the sbibm package that holds its files.
    folder: str
    #: Name of the file that holds an observation.
    observation: str = "observation.csv"
    linear: Linear | None = None

    @property
    def dim(self) -> int:
        return self.prior.dim

    def simulate(self, inferred: Array, rng: np.random.Generator) -> Array:
        """The simulator of the inferred coordinates, for didyma."""
        return self.simulator(self.parameters(inferred), rng)

    def parameters(self, inferred: Array) -> Array:
        """sbibm's parameters of inferred coordinates."""
        return self.linear.parameters(inferred) if self.linear else inferred

    def log_prob(self, posterior: didyma.Posterior, theta: Array) -> Array:
        """Log-density of sbibm's parameters under a posterior of the inferred coordinates."""
        if self.linear is None:
            return posterior.log_prob(theta)
        return posterior.log_prob(self.linear.coordinates(theta)) - self.linear.log_volume

    def log_prior(self, theta: Array) -> Array:
        """Log-density of sbibm's parameters under the prior."""
        if self.linear is None:
            return self.prior.log_prob(theta)
        return self.prior.log_prob(self.linear.coordinates(theta)) - self.linear.log_volume

    def sample_prior(self, rows: int, seed: int) -> Array:
        return self.parameters(self.prior.sample((rows,), seed=seed))

"""Tasks whose x is the parameters with normal noise: linear, with a uniform prior, and with noise of two scales."""

from __future__ import annotations

import numpy as np

import didyma

from .base import Array, Task

#: Parameters of the linear tasks.
DIM = 10
#: Variance of the noise of the linear tasks, and of the normal prior.
VARIANCE = 0.1
#: Standard deviations of the two equally likely components of the mixture.
SCALES = np.array([1.0, 0.1])


def linear(theta: Array, rng: np.random.Generator) -> Array:
    return theta + np.sqrt(VARIANCE) * rng.normal(size=theta.shape)


def linear_log_likelihood(theta: Array, x: Array) -> Array:
    return -0.5 * ((theta - x) ** 2).sum(1) / VARIANCE


def mixture(theta: Array, rng: np.random.Generator) -> Array:
    """All numbers of a row share their component."""
    scale = SCALES[rng.integers(0, 2, size=(len(theta), 1))]
    return theta + scale * rng.normal(size=theta.shape)


def mixture_log_likelihood(theta: Array, x: Array) -> Array:
    squares = ((theta - x) ** 2).sum(1)[:, None]
    terms = -0.5 * squares / SCALES**2 - theta.shape[1] * np.log(SCALES)
    return np.logaddexp(terms[:, 0], terms[:, 1])


TASKS = [
    Task(
        name="gaussian_linear",
        title="Gaussian linear",
        prior=didyma.Normal(np.zeros(DIM), np.full(DIM, np.sqrt(VARIANCE))),
        simulator=linear,
        log_likelihood=linear_log_likelihood,
        folder="gaussian_linear",
    ),
    Task(
        name="gaussian_linear_uniform",
        title="Gaussian linear uniform",
        prior=didyma.Uniform(np.full(DIM, -1.0), np.full(DIM, 1.0)),
        simulator=linear,
        log_likelihood=linear_log_likelihood,
        folder="gaussian_linear_uniform",
    ),
    Task(
        name="gaussian_mixture",
        title="Gaussian mixture",
        prior=didyma.Uniform(np.full(2, -10.0), np.full(2, 10.0)),
        simulator=mixture,
        log_likelihood=mixture_log_likelihood,
        folder="gaussian_mixture",
    ),
]

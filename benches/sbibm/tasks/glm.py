"""Bernoulli GLM: a neuron that fires or not at a hundred moments, driven by a filtered noise that is known.

x is the firing itself (raw), or the ten numbers that are sufficient. The stimulus is sbibm's: a hundred standard normal
numbers of numpy's old generator with seed 42.
"""

from __future__ import annotations

import numpy as np

import didyma

from .base import Array, Linear, Task

MOMENTS, FILTER = 100, 9


def design() -> Array:
    """A column of ones for the offset, then the stimulus delayed by 0, 1, …, 8 moments."""
    stimulus = np.random.RandomState(42).randn(MOMENTS).astype(np.float32)
    matrix = np.zeros((MOMENTS, 1 + FILTER))
    matrix[:, 0] = 1.0
    for delay in range(FILTER):
        matrix[delay:, 1 + delay] = stimulus[: MOMENTS - delay]
    return matrix


def precision() -> Array:
    """Inverse covariance of the prior: a wide offset, and a filter whose second differences are small."""
    steps = np.eye(FILTER) - np.eye(FILTER, k=-1)
    smooth = steps @ steps + np.diag(np.sqrt(np.arange(FILTER) / FILTER))
    matrix = np.zeros((1 + FILTER, 1 + FILTER))
    matrix[0, 0] = 0.5
    matrix[1:, 1:] = smooth.T @ smooth
    return matrix


DESIGN = design()


def fire(theta: Array, rng: np.random.Generator) -> Array:
    chance = 1 / (1 + np.exp(-theta @ DESIGN.T))
    return (rng.random(chance.shape) < chance).astype(np.float64)


def summarise(theta: Array, rng: np.random.Generator) -> Array:
    """The number of spikes, and the sums of the stimulus at each delay before them."""
    return fire(theta, rng) @ DESIGN


def log_likelihood(theta: Array, x: Array) -> Array:
    """Of the sufficient numbers, up to a constant."""
    drive = theta @ DESIGN.T
    return theta @ x - np.logaddexp(0, drive).sum(1)


def log_likelihood_raw(theta: Array, x: Array) -> Array:
    return log_likelihood(theta, x @ DESIGN)


PRIOR = didyma.Normal(np.zeros(1 + FILTER), np.ones(1 + FILTER))
LINEAR = Linear(np.linalg.cholesky(np.linalg.inv(precision())))

TASKS = [
    Task(
        name="bernoulli_glm",
        title="Bernoulli GLM",
        prior=PRIOR,
        simulator=summarise,
        log_likelihood=log_likelihood,
        folder="bernoulli_glm",
        linear=LINEAR,
    ),
    Task(
        name="bernoulli_glm_raw",
        title="Bernoulli GLM raw",
        prior=PRIOR,
        simulator=fire,
        log_likelihood=log_likelihood_raw,
        folder="bernoulli_glm",
        observation="observation_raw.csv",
        linear=LINEAR,
    ),
]

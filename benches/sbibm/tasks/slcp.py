"""SLCP: four points of a normal law whose five parameters give a simple likelihood and a complex posterior.

With distractors, 92 numbers that say nothing are shuffled among the eight: draws of a mixture of twenty Student laws.
sbibm drew the mixture and the order once, by numpy's old generator with seed 42.
"""

from __future__ import annotations

from functools import cache

import numpy as np

import didyma

from .base import Array, Task

POINTS = 4
#: Added to both variances.
NUGGET = 1e-6
DISTRACTORS, COMPONENTS = 92, 20


def factor(theta: Array) -> tuple[Array, Array, Array]:
    """Cholesky factor of each row's covariance: its first, mixed and last number."""
    first, second = theta[:, 2] ** 2, theta[:, 3] ** 2
    mixed = np.tanh(theta[:, 4]) * first * second
    a = np.sqrt(first**2 + NUGGET)
    b = mixed / a
    return a, b, np.sqrt(second**2 + NUGGET - b**2)


def simulate(theta: Array, rng: np.random.Generator) -> Array:
    a, b, c = factor(theta)
    u, v = rng.normal(size=(2, POINTS, len(theta)))
    points = np.stack([theta[:, 0] + a * u, theta[:, 1] + b * u + c * v])
    return points.transpose(2, 1, 0).reshape(len(theta), 2 * POINTS)


def log_likelihood(theta: Array, x: Array) -> Array:
    a, b, c = factor(theta)
    u = (x[0::2, None] - theta[:, 0]) / a
    v = (x[1::2, None] - theta[:, 1] - b * u) / c
    return -0.5 * (u**2 + v**2).sum(0) - POINTS * np.log(a * c)


@cache
def noise() -> tuple[Array, Array, np.ndarray]:
    """Locations and scales of the Student laws, and the order of the hundred numbers."""
    rng = np.random.RandomState(42)
    locations = 15 * rng.normal(size=(COMPONENTS, DISTRACTORS))
    scales = np.empty((COMPONENTS, DISTRACTORS, DISTRACTORS))
    for scale in scales:
        scale[:] = 3 * np.tril(rng.normal(size=scale.shape))
        scale[np.diag_indices(DISTRACTORS)] += 3 * np.exp(rng.normal(size=DISTRACTORS))
    return locations, scales, rng.permutation(DISTRACTORS + 2 * POINTS)


def simulate_distractors(theta: Array, rng: np.random.Generator) -> Array:
    """Student's law has two degrees of freedom: a normal draw over the root of a standard exponential one."""
    locations, scales, order = noise()
    component = rng.integers(0, COMPONENTS, size=len(theta))
    draws = np.empty((len(theta), DISTRACTORS))
    for k in range(COMPONENTS):
        rows = component == k
        heavy = rng.exponential(size=(int(rows.sum()), 1)) ** -0.5
        draws[rows] = locations[k] + heavy * rng.normal(size=(len(heavy), DISTRACTORS)) @ scales[k].T
    return np.hstack([simulate(theta, rng), draws])[:, order]


def log_likelihood_distractors(theta: Array, x: Array) -> Array:
    """The distractors' density does not depend on θ."""
    return log_likelihood(theta, x[np.argsort(noise()[2])[: 2 * POINTS]])


PRIOR = didyma.Uniform(np.full(5, -3.0), np.full(5, 3.0))

TASKS = [
    Task(
        name="slcp",
        title="SLCP",
        prior=PRIOR,
        simulator=simulate,
        log_likelihood=log_likelihood,
        folder="slcp",
    ),
    Task(
        name="slcp_distractors",
        title="SLCP distractors",
        prior=PRIOR,
        simulator=simulate_distractors,
        log_likelihood=log_likelihood_distractors,
        folder="slcp",
        observation="observation_distractors.csv",
    ),
]

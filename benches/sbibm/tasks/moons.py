"""Two Moons: a crescent that two places of the prior can have made."""

from __future__ import annotations

import numpy as np

import didyma

from .base import Array, Task

RADIUS, WIDTH, OFFSET = 0.1, 0.01, 0.25


def centre(theta: Array) -> Array:
    """Where the crescent of a parameter begins; the sign of θ₁ + θ₂ does not show."""
    root = np.sqrt(0.5)
    return np.column_stack([-np.abs(theta[:, 0] + theta[:, 1]) * root, (theta[:, 1] - theta[:, 0]) * root])


def simulate(theta: Array, rng: np.random.Generator) -> Array:
    angle = rng.uniform(-np.pi / 2, np.pi / 2, size=len(theta))
    radius = rng.normal(RADIUS, WIDTH, size=len(theta))
    return centre(theta) + np.column_stack([radius * np.cos(angle) + OFFSET, radius * np.sin(angle)])


def log_likelihood(theta: Array, x: Array) -> Array:
    """In the plane the density of (radius, angle) is divided by the radius."""
    across, along = (x - centre(theta)).T
    across = across - OFFSET
    radius = np.hypot(across, along)
    inside = across >= 0
    return np.where(inside, -0.5 * ((radius - RADIUS) / WIDTH) ** 2 - np.log(radius), -np.inf)


TASKS = [
    Task(
        name="two_moons",
        title="Two Moons",
        prior=didyma.Uniform([-1.0, -1.0], [1.0, 1.0]),
        simulator=simulate,
        log_likelihood=log_likelihood,
        folder="two_moons",
    )
]

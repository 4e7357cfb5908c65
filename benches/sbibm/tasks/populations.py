"""Populations that obey differential equations: an epidemic (SIR), and predators with their prey (Lotka-Volterra)."""

from __future__ import annotations

import numpy as np

import didyma

from .base import Array, Task
from .ode import solve

#: Largest error of a step, in logarithms.
TOLERANCE = 1e-7

PEOPLE, TESTED = 1e6, 1000
#: Standard deviation of the logarithm of a count of animals.
NOISE = 0.1


def epidemic(logs: Array, theta: Array) -> Array:
    """Logarithms of the shares of people who are susceptible and infected."""
    susceptible, infected = np.exp(logs)
    contact, recovery = theta
    return np.stack([-contact * infected, contact * susceptible - recovery])


def infected(theta: Array, tolerance: float = TOLERANCE) -> Array:
    """Share of infected people on days 0, 17, …, 153, one row of parameters each."""
    start = np.log(np.array([PEOPLE - 1, 1]) / PEOPLE)
    return np.exp(solve(epidemic, start, theta.T, 17.0, 10, tolerance)[:, 1].T).clip(0.0, 1.0)


def simulate_epidemic(theta: Array, rng: np.random.Generator) -> Array:
    """Infected people among a thousand who are tested."""
    return rng.binomial(TESTED, infected(theta)).astype(np.float64)


def epidemic_log_likelihood(theta: Array, x: Array) -> Array:
    share = infected(theta)
    return (x * np.log(share) + (TESTED - x) * np.log1p(-share)).sum(1)


def animals(logs: Array, theta: Array) -> Array:
    """Logarithms of the numbers of prey and of predators."""
    prey, predators = np.exp(logs)
    birth, eaten, death, grown = theta
    return np.stack([birth - eaten * predators, grown * prey - death])


def log_animals(theta: Array, tolerance: float = TOLERANCE) -> Array:
    """Logarithms of prey, then of predators, at times 0, 2.1, …, 18.9, as sbibm limits them."""
    values = solve(animals, np.log([30.0, 1.0]), theta.T, 2.1, 10, tolerance)
    return values.transpose(2, 1, 0).reshape(len(theta), 20).clip(np.log(1e-10), np.log(1e4))


def simulate_animals(theta: Array, rng: np.random.Generator) -> Array:
    means = log_animals(theta)
    return np.exp(means + NOISE * rng.normal(size=means.shape))


def animals_log_likelihood(theta: Array, x: Array) -> Array:
    return -0.5 * (((np.log(x) - log_animals(theta)) / NOISE) ** 2).sum(1)


TASKS = [
    Task(
        name="sir",
        title="SIR",
        prior=didyma.LogNormal(np.log([0.4, 0.125]), [0.5, 0.2]),
        simulator=simulate_epidemic,
        log_likelihood=epidemic_log_likelihood,
        folder="sir",
    ),
    Task(
        name="lotka_volterra",
        title="Lotka-Volterra",
        prior=didyma.LogNormal([-0.125, -3.0, -0.125, -3.0], np.full(4, 0.5)),
        simulator=simulate_animals,
        log_likelihood=animals_log_likelihood,
        folder="lotka_volterra",
    ),
]

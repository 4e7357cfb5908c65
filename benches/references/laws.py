"""Laws that simulations are drawn from, and coordinates in which flows are easy to train.

A law draws parameters near the posterior. `z` are the coordinates of the posterior's flow, which may depend on x, and `y` those
of the likelihood's flow, which may depend on θ.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

import didyma.tasks

from .normal_scores import Array, Mask

#: Standard deviation of a normal law's draws, in posterior standard deviations.
WIDTH = 2.0
#: Mean and covariance of an ABC sample of Lotka-Volterra's posterior (`didyma abc lotka-volterra --simulations 36000000 --particles
#: 12000 --acceptance 0 -n 10000 --seed 1`), around which its simulations are drawn.
MEAN = np.array([-4.590362950229645, -0.6116226900368928, -0.08227305234237538, -4.695697401285171])
COVARIANCE = np.array(
    [
        [0.0073353563617501154, 0.006892320789968645, 0.0005302347949969951, 0.0006992671587904831],
        [0.006892320789968645, 0.008136610400382414, 0.00040290175394825143, 0.0005711012678634268],
        [0.0005302347949969951, 0.00040290175394825143, 0.010600055772219142, 0.009215598721775332],
        [0.0006992671587904831, 0.0005711012678634268, 0.009215598721775332, 0.009420000405298288],
    ]
)


class Law(Protocol):
    """Draws of parameters, and coordinates."""

    def draw(self, count: int, rng: np.random.Generator) -> Array: ...
    def z(self, theta: Array, x: Array) -> Array: ...
    def theta(self, z: Array, x: Array) -> Array: ...
    def log_prior(self, z: Array) -> Array:
        """log of the prior's density in z at a fixed x, up to a constant."""
        ...

    def log_weight(self, z: Array) -> Array:
        """log of the prior's density over that of the draws, up to a constant."""
        ...

    def given(self, theta: Array) -> Array:
        """θ as the likelihood's flow reads it."""
        ...

    def y(self, x: Array, theta: Array) -> Array: ...
    def log_slope(self, x: Array, theta: Array) -> Array:
        """log |dy/dx|."""
        ...


class NormalLaw:
    """A normal law around the posterior, cut off at the bounds of a uniform prior: z are its standardised coordinates, y is x.

    Lotka-Volterra's last parameter is three posterior standard deviations above its lower bound, so that 6 % of the draws are
    cut off. It is the first to be standardised: the bound is then one of z₁ alone, which normal scores put at infinity.
    """

    def __init__(self, mean: Array, covariance: Array, support: Array) -> None:
        self.mean = mean
        self.root = np.asarray(WIDTH * np.linalg.cholesky(covariance[::-1, ::-1])[::-1], dtype=np.float64)
        self.low: Array = support[0]
        self.high: Array = support[1]

    def inside(self, theta: Array) -> Mask:
        return np.asarray(((theta > self.low) & (theta < self.high)).all(axis=1))

    def draw(self, count: int, rng: np.random.Generator) -> Array:
        found = np.empty((0, len(self.mean)))
        while len(found) < count:
            theta = self.mean + rng.normal(size=(count, len(self.mean))) @ self.root.T
            found = np.vstack([found, theta[self.inside(theta)]])
        return found[:count]

    def z(self, theta: Array, x: Array) -> Array:
        return np.asarray(np.linalg.solve(self.root, (theta - self.mean).T).T)

    def theta(self, z: Array, x: Array) -> Array:
        return np.asarray(self.mean + z @ self.root.T)

    def log_prior(self, z: Array) -> Array:
        return np.where(self.inside(self.theta(z, z)), 0.0, -np.inf)

    def log_weight(self, z: Array) -> Array:
        return np.asarray(self.log_prior(z) + 0.5 * (z**2).sum(axis=1))

    def given(self, theta: Array) -> Array:
        return self.z(theta, theta)

    def y(self, x: Array, theta: Array) -> Array:
        return x

    def log_slope(self, x: Array, theta: Array) -> Array:
        return np.zeros(len(theta))


class QueueLaw:
    """The part of M/G/1's prior whose simulations come near the observation.

    No time between departures is shorter than the shortest service θ₁. That edge moves with x, and with θ, where a flow would
    have to follow it: z₁ = θ₁ / exp(x₁) has it at 1, and y₁ = log(exp(x₁) − θ₁) has none.

    θ₁ reaches half as far again as the observation allows, so that x on both sides of x_o is simulated; rates below the lowest one
    are four posterior standard deviations away.
    """

    #: Lower and upper bounds of the draws.
    low = np.array([0.0, 0.0, 0.03])
    high = np.array([1.6, 10.0, 1 / 3])

    def draw(self, count: int, rng: np.random.Generator) -> Array:
        return rng.uniform(self.low, self.high, (count, 3))

    def z(self, theta: Array, x: Array) -> Array:
        return np.column_stack([theta[:, 0] / np.exp(x[:, 0]), theta[:, 1:]])

    def theta(self, z: Array, x: Array) -> Array:
        return np.column_stack([z[:, 0] * np.exp(x[:, 0]), z[:, 1:]])

    def log_prior(self, z: Array) -> Array:
        edge = np.append(1.0, self.high[1:])
        return np.where(((z > self.low) & (z < edge)).all(axis=1), 0.0, -np.inf)

    def log_weight(self, z: Array) -> Array:
        return self.log_prior(z)

    def given(self, theta: Array) -> Array:
        return theta

    def y(self, x: Array, theta: Array) -> Array:
        return np.column_stack([np.log(np.exp(x[:, 0]) - theta[:, 0]), x[:, 1:]])

    def log_slope(self, x: Array, theta: Array) -> Array:
        return np.asarray(x[:, 0] - self.y(x, theta)[:, 0])


def law(task: didyma.tasks.Task) -> Law:
    """The law of a task."""
    if task.name == "mg1":
        return QueueLaw()
    if task.name == "lotka-volterra":
        return NormalLaw(MEAN, COVARIANCE, np.asarray(task.prior.support).T)
    raise SystemExit(f"error: there is no law for {task.name}: choose lotka-volterra or mg1")

"""References by flows in benches/references: normal scores, the laws' coordinates, weights, both routes."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("scipy", reason="scipy is not installed: references by flows were not tested")

import didyma.tasks  # noqa: E402

# The benchmarks are no part of the package: they lie in the repository.
sys.path.append(str(Path(__file__).parents[2]))

from benches.references.laws import Law, law  # noqa: E402
from benches.references.normal_scores import Array, NormalScores  # noqa: E402
from benches.references.routes import LikelihoodRoute, PosteriorRoute, Training, resample  # noqa: E402


def slopes_by_differences(scores: NormalScores, rows: Array, step: float) -> Array:
    """log |dg/dv| of each row by central differences: one column depends on one column only."""
    ahead, behind = scores(rows + step)[0], scores(rows - step)[0]
    return np.asarray(np.log((ahead - behind) / (2 * step)).sum(axis=1))


def test_normal_scores_have_their_law_slope_and_inverse() -> None:
    rng = np.random.default_rng(1)
    draw = lambda: np.column_stack([rng.exponential(size=20_000), rng.uniform(-3, 5, 20_000)])  # noqa: E731
    scores, rows = NormalScores(draw()), draw()
    found, log_slope = scores(rows)
    # Fresh rows: the map and the rows have 20,000 draws each. Standard errors √2/√20,000 = .01 of a mean and .007 of a deviation, four of them.
    assert np.abs(found.mean(axis=0)).max() < 0.04
    assert np.abs(found.std(axis=0) - 1).max() < 0.03
    # Far out in both tails, too. Scores are of size 5, slopes up to 1e4: rounding is 5 · 2e-16 over the smallest slope, about .1.
    far = np.vstack([rows, [[-1.0, -4.0], [30.0, 6.0]]])
    assert np.abs(scores.inverse(scores(far)[0]) - far).max() < 1e-10
    # Central differences err by the second derivative's leap where a knot lies within the step, in about 800 · 2e-7 of the rows.
    step = 1e-7
    errors = np.abs(slopes_by_differences(scores, rows, step) - log_slope)
    assert np.quantile(errors, 0.99) < 1e-5


@pytest.mark.parametrize("name", ["lotka-volterra", "mg1"])
def test_laws_have_coordinates_that_go_back_and_weights_inside_only(name: str) -> None:
    task = didyma.tasks.task(name)
    chosen, rng = law(task), np.random.default_rng(2)
    theta = chosen.draw(5000, rng)
    x = task.simulator(theta, seed=2)
    z = chosen.z(theta, x)
    # Rounding of a solve with a condition number of about 100, on numbers of size 10.
    assert np.abs(chosen.theta(z, x) - theta).max() < 1e-11
    support = np.asarray(task.prior.support)
    beyond = np.where(rng.random(len(theta)) < 0.5, support[-1, 0] - 0.01, support[-1, 1] + 0.01)
    outside = chosen.z(np.column_stack([theta[:, :-1], beyond]), x)
    assert (chosen.log_prior(outside) == -np.inf).all() and (chosen.log_weight(outside) == -np.inf).all()
    # dy/dx of the first column by central differences, with the other columns fixed. θ₁ comes as near as 1e-4 to exp(x₁): the third
    # derivative of the logarithm makes an error of (step/distance)², here 1e-6.
    step = 1e-7 * np.exp(chosen.y(x, theta)[:, 0]) if name == "mg1" else 1e-6
    ahead, behind = x.copy(), x.copy()
    ahead[:, 0] += step
    behind[:, 0] -= step
    slope = (chosen.y(ahead, theta) - chosen.y(behind, theta))[:, 0] / (2 * step)
    assert np.abs(np.log(slope) - chosen.log_slope(x, theta)).max() < 1e-4


def test_the_edge_of_the_queue_does_not_move() -> None:
    task = didyma.tasks.mg1()
    theta = law(task).draw(20_000, np.random.default_rng(3))
    z = law(task).z(theta, task.simulator(theta, seed=3))
    # The shortest of 50 times is close to the shortest service in a good part of the simulations.
    assert z[:, 0].max() < 1 < z[:, 0].max() + 1e-3


def test_a_task_without_a_law_is_refused() -> None:
    with pytest.raises(SystemExit, match="there is no law for two-moons"):
        law(didyma.tasks.two_moons())


def test_weights_make_one_law_of_another() -> None:
    rng = np.random.default_rng(3)
    rows = rng.normal(size=(40_000, 1))
    # N(0, 1) weighted to N(1, 1/2): the ratio is a normal density again, so that weights are bounded.
    log_weights = 0.5 * rows[:, 0] ** 2 - (rows[:, 0] - 1) ** 2
    found, share = resample(rows, log_weights, 10_000, rng)
    # E[w]² / E[w²] = √3/2 · exp(−2/3): both integrals are Gaussian. It is a mean of 40,000 weights between 0 and e: ± .003, four of them.
    assert share == pytest.approx(np.sqrt(3) / 2 * np.exp(-2 / 3), abs=0.012)
    # Four standard errors of 40,000 · share draws with a deviation of .71: .0056 of the mean, .0056 of the variance.
    assert found.mean() == pytest.approx(1.0, abs=0.025)
    assert found.var() == pytest.approx(0.5, abs=0.025)


class Shifted:
    """θ uniform on (0, 2), x = log(θ + e) with e exponential of rate 4, simulated at θ = 2 u⁴: an edge, and weights that matter."""

    def draw(self, count: int, rng: np.random.Generator) -> Array:
        return np.asarray(2 * rng.random((count, 1)) ** 4)

    def z(self, theta: Array, x: Array) -> Array:
        return np.asarray(theta / np.exp(x))

    def theta(self, z: Array, x: Array) -> Array:
        return np.asarray(z * np.exp(x))

    def log_prior(self, z: Array) -> Array:
        return np.where((z[:, 0] > 0) & (z[:, 0] < 1), 0.0, -np.inf)

    def log_weight(self, z: Array) -> Array:
        # The density of 2 u⁴ is in proportion to θ^(−3/4).
        return np.asarray(self.log_prior(z) + 0.75 * np.log(np.maximum(z[:, 0], 1e-300)))

    def given(self, theta: Array) -> Array:
        return theta

    def y(self, x: Array, theta: Array) -> Array:
        return np.asarray(np.log(np.exp(x) - theta))

    def log_slope(self, x: Array, theta: Array) -> Array:
        return np.asarray((x - self.y(x, theta))[:, 0])


def test_both_routes_find_a_posterior_that_is_known() -> None:
    """At x_o = 0 the posterior is in proportion to exp(4 θ) on (0, 1): its mean is .769, its median .831.

    Wrong weights are seen: without the first route's the mean is .550, that of exp(4 θ) θ^(−3/4); without the slope of y the second route's
    is that of exp(4 θ)(1 − θ), .581.
    """
    chosen: Law = Shifted()
    rng, x_o = np.random.default_rng(4), np.array([0.0])
    theta = chosen.draw(20_000, rng)
    x = np.log(theta + rng.exponential(1 / 4, theta.shape))
    training = Training(steps=600, members=1, seed=4, threads=1)
    first = PosteriorRoute.train(chosen, theta, x, x_o, training)
    second = LikelihoodRoute.train(chosen, theta, x, x_o, training)
    one, two = first.sample(4000, 4)[0], second.sample(first, 2000, 5)[0]
    for found in (one, two):
        # Standard errors of 2000 draws and of training on some 5000 simulations near x_o are .005 each; five of their sum.
        assert found.mean() == pytest.approx(0.769, abs=0.05)
        assert np.median(found) == pytest.approx(0.831, abs=0.05)
    # The routes' samples are compared with each other: they may share no draws. Two of 2^23 numbers in (½, 1) may be equal by chance,
    # one pair of 4000 · 2000; a shared stream gave a fifth of the rows.
    assert len(set(one[:, 0]) & set(two[:, 0])) < 20

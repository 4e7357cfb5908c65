"""References by flows in benches/references: normal scores, the laws' coordinates, weights."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

import didyma.tasks

# The benchmarks are no part of the package: they lie in the repository.
sys.path.append(str(Path(__file__).parents[2]))

from benches.references.laws import Law, NormalLaw, QueueLaw, law  # noqa: E402
from benches.references.routes import Length, LikelihoodRoute, PosteriorRoute, resample  # noqa: E402
from benches.references.scores import Scores  # noqa: E402


def test_scores_are_normal_and_have_their_slope() -> None:
    rng = np.random.default_rng(1)
    rows = np.column_stack([rng.exponential(size=20_000), rng.uniform(-3, 5, 20_000)])
    scores = Scores(rows)
    found, log_slope = scores(rows)
    # Moments of 20,000 draws: standard errors of .007 (mean) and .005 (sd), four of them.
    assert np.abs(found.mean(axis=0)).max() < 0.03
    assert np.abs(found.std(axis=0) - 1).max() < 0.02
    inside = (np.abs(found) < 4).all(axis=1)
    assert np.allclose(scores.inverse(found[inside]), rows[inside], atol=1e-9)
    # Central differences, away from the knots, where the second derivative leaps.
    step = 1e-6
    slope = np.ones(len(rows))
    for k in range(2):
        ahead, behind = rows.copy(), rows.copy()
        ahead[:, k] += step
        behind[:, k] -= step
        slope *= (scores(ahead)[0] - scores(behind)[0])[:, k] / (2 * step)
    assert np.median(np.abs(np.log(slope) - log_slope)) < 1e-6


@pytest.mark.parametrize("name", ["lotka-volterra", "mg1"])
def test_laws_have_coordinates_that_go_back(name: str) -> None:
    task = didyma.tasks.task(name)
    chosen, rng = law(task), np.random.default_rng(2)
    theta = chosen.draw(500, rng)
    x = task.simulator(theta, seed=2)
    assert np.allclose(chosen.theta(chosen.z(theta, x), x), theta, rtol=0, atol=1e-10)
    assert np.isfinite(chosen.log_weight(chosen.z(theta, x))).all()
    # dy/dx of the column that moves, by central differences of the others held.
    ahead, behind = x.copy(), x.copy()
    ahead[:, 0] += 1e-7
    behind[:, 0] -= 1e-7
    slope = (chosen.y(ahead, theta) - chosen.y(behind, theta))[:, 0] / 2e-7
    assert np.median(np.abs(np.log(slope) - chosen.log_slope(x, theta))) < 1e-5


def test_a_task_with_an_exact_reference_is_refused() -> None:
    with pytest.raises(SystemExit, match="needs no such reference"):
        law(didyma.tasks.two_moons())


def test_weights_make_one_law_of_another() -> None:
    rng = np.random.default_rng(3)
    rows = rng.normal(size=(40_000, 1))
    # N(0, 1) weighted to N(1/2, 1/2): the ratio is a normal density again, so that weights are bounded.
    log_weights = 0.5 * rows[:, 0] ** 2 - (rows[:, 0] - 0.5) ** 2
    found, share = resample(rows, log_weights, 10_000, rng)
    # The worth of weights is E[w]² / E[w²] = √3/2 · exp(−1/6): both integrals are Gaussian.
    assert share == pytest.approx(np.sqrt(3) / 2 * np.exp(-1 / 6), abs=0.02)
    # Five standard errors of 10,000 draws with a standard deviation of .71, and of its square.
    assert found.mean() == pytest.approx(0.5, abs=0.035)
    assert found.var() == pytest.approx(0.5, abs=0.035)


def test_both_routes_find_a_posterior_that_is_known() -> None:
    """θ uniform on (−5, 5)², x = θ + noise of deviation .3: the posterior is normal around x_o."""
    rng, x_o = np.random.default_rng(4), np.array([0.4, -0.2])
    chosen: Law = NormalLaw(x_o, 0.09 * np.eye(2), np.array([[-5.0, -5.0], [5.0, 5.0]]))
    theta = chosen.draw(20_000, rng)
    x = theta + 0.3 * rng.normal(size=theta.shape)
    length = Length(steps=600, members=1, seed=4, threads=1)
    first = PosteriorRoute.train(chosen, theta, x, x_o, length)
    second = LikelihoodRoute.train(chosen, theta, x, x_o, length)
    for found, share in [first.sample(4000, 4), second.sample(first, 1000, 4)]:
        # A fifth of a deviation: so far 600 steps come. Quantiles, since flows that are trained so briefly have wide tails.
        low, middle, high = np.quantile(found, [0.16, 0.5, 0.84], axis=0)
        assert np.abs(middle - x_o).max() < 0.06, middle
        assert np.abs((high - low) / 0.6 - 1).max() < 0.15, high - low
        assert share > 0.3


def test_the_edge_of_the_queue_is_where_the_coordinates_say() -> None:
    theta = np.array([[1.0, 4.0, 0.2], [0.5, 2.0, 0.1]])
    x = didyma.tasks.mg1().simulator(theta, seed=1)
    z = QueueLaw().z(theta, x)
    assert (z[:, 0] < 1).all() and (z[:, 0] > 0).all()

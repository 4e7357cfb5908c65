"""Built-in tasks, metrics and toys."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest

import didyma
from conftest import QUICK


def test_tasks_have_a_name_and_all_parts() -> None:
    for name in didyma.tasks.task_names():
        task = getattr(didyma.tasks, name.replace("-", "_"))()
        assert task.name == name and task.about in repr(task)
        theta = task.prior.sample((5,), seed=1)
        x = task.simulator(theta, seed=1)
        assert x.shape == (5, len(task.x_o)) and len(task.summaries) == len(task.x_o)
        np.testing.assert_array_equal(x, pickle.loads(pickle.dumps(task.simulator))(theta, seed=1))
        assert task.truth is None or len(task.truth) == task.prior.dim
    with pytest.raises(didyma.InputError, match="there is no task \"moons\": there are two-moons"):
        didyma.tasks.task("moons")


def test_references_and_densities() -> None:
    task = didyma.tasks.gaussian_linear()
    theta = task.reference((2000,), seed=1)
    assert theta.shape == (2000, 10) and task.normalised
    # E[log p] of a normal law of dimension 10 is its constant minus 5, with a standard deviation of sqrt(5) a draw.
    found = task.log_prob(theta)
    peak = task.log_prob([theta.mean(axis=0)])[0]
    assert found.mean() == pytest.approx(peak - 5, abs=4 * np.sqrt(5 / 2000) + 0.02)
    with pytest.raises(didyma.InputError, match="not known"):
        didyma.tasks.lotka_volterra().log_prob([[0.01, 0.5, 1.0, 0.01]])
    with pytest.raises(didyma.InputError, match="no reference"):
        didyma.tasks.hodgkin_huxley().reference((10,))


def test_a_problem_file(tmp_path: Path) -> None:
    path = tmp_path / "moons.toml"
    path.write_text(
        """
        [parameters]
        a = { uniform = [-1, 1] }
        b = { uniform = [-1, 1] }
        [observation]
        x = [0.1, 0.2]
        [simulator]
        task = "two-moons"
        [inference]
        simulations = 100
        """
    )
    problem = didyma.load_problem(path)
    assert problem.prior.names == ["a", "b"]
    call = {key: value for key, value in QUICK.items() if key != "simulations"}
    assert len(didyma.infer(problem, **call).simulations()[0]) == 200
    with pytest.raises(didyma.RunError, match="could not read"):
        didyma.load_problem(tmp_path / "none.toml")
    path.write_text("[parameters]\na = 3\n")
    with pytest.raises(didyma.InputError, match="moons.toml, line 1: simulator is missing"):
        didyma.load_problem(path)


def test_metrics() -> None:
    rng = np.random.default_rng(1)
    a, b = rng.normal(size=(1000, 2)), rng.normal(size=(1000, 2))
    far = b + 3
    # The accuracy of guessing has a standard deviation of 1/(2 sqrt(2000)); the classifier's folds share rows.
    assert didyma.metrics.c2st(a, b) == pytest.approx(0.5, abs=6 / (2 * np.sqrt(2000)))
    assert didyma.metrics.c2st(a, far) > 0.95 and didyma.metrics.c2st(a, far[:500]) > 0.95
    mean, error = didyma.metrics.c2st_with_error(a, b)
    assert mean == didyma.metrics.c2st(a, b) == didyma.metrics.c2st(a, b, seeds=4)
    assert 0 < error < 0.05 and didyma.metrics.c2st(a, b, seeds=1) != mean
    with pytest.raises(didyma.InputError, match="seeds is 1: an error needs 2 or more"):
        didyma.metrics.c2st_with_error(a, b, seeds=1)
    with pytest.raises(didyma.InputError, match="seeds is 0: give a number from 1"):
        didyma.metrics.c2st(a, b, seeds=0)
    assert abs(didyma.metrics.mmd(a, b)) < 0.01 < didyma.metrics.mmd2(a, far)
    # A shift by (3, 3) is 3 sqrt(2) |cos| along a line, of which the mean is 3 sqrt(2) 2/pi.
    assert didyma.metrics.sliced_wasserstein(a, far) == pytest.approx(6 * np.sqrt(2) / np.pi, rel=0.1)
    assert didyma.metrics.median_distance([[3.0, 4.0]] * 3, [0.0, 0.0]) == 5.0
    with pytest.raises(didyma.ShapeError, match=r"samples has the shape \(1000, 1\), but \(N, 2\)"):
        didyma.metrics.c2st(a, a[:, :1])
    with pytest.raises(didyma.NotFiniteError, match="samples holds NaN"):
        didyma.metrics.mmd(a, a * np.nan)


def test_toys_and_rates() -> None:
    assert didyma.toys.toy_names() == ["benign", "mild", "sharp", "four-d"]
    toy = didyma.toys.Toy("benign")
    found = toy.estimate("rr", settings={"top": 10})
    # Unbiased: within four standard errors of the exact loss and gradient.
    assert abs(found["loss"] - toy.loss) < 4 * found["loss_se"]
    for mean, error, exact in zip(found["gradient"], found["gradient_se"], toy.gradient):
        assert abs(mean - exact) < 4 * error
    levels = toy.levels(budget=20_000)
    assert levels["r2"] > 1 and len(levels["levels"]) == 7
    law = didyma.toys.alpha("tgrr", 1.8)
    assert law["recipe"]["variance_times_cost"] <= law["paper"]["variance_times_cost"]
    assert law["recipe"]["alpha"] == pytest.approx(1.4)
    with pytest.raises(didyma.InputError, match="batch is 1000000000000000: give a number from 1"):
        toy.estimate("rr", batch=10**15)
    with pytest.raises(didyma.InputError, match="seed is -1: give a whole number"):
        didyma.metrics.c2st([[1.0]], [[1.0]], seed=-1)
    with pytest.raises(didyma.InputError, match="there is no toy"):
        didyma.toys.Toy("boring")
    with pytest.raises(didyma.InputError, match="method is \"tgr\""):
        toy.estimate("tgr")

"""The benchmark in benches/sbibm: its tasks, its cases and their files."""

from __future__ import annotations

import bz2
import json
import multiprocessing
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import didyma

# The benchmark is no part of the package: it lies in the repository.
sys.path.append(str(Path(__file__).parents[2]))

from benches.sbibm import case, data, forest, pool, run  # noqa: E402
from benches.sbibm.case import Case, Variant  # noqa: E402
from benches.sbibm.data import OBSERVATIONS, Refusal  # noqa: E402
from benches.sbibm.pool import Clock, Job, Outcome  # noqa: E402
from benches.sbibm.tasks import TASKS  # noqa: E402
from benches.sbibm.tasks.gaussian import SCALES, VARIANCE  # noqa: E402
from benches.sbibm.tasks.populations import animals, infected, log_animals  # noqa: E402
from benches.sbibm.tasks.ode import solve  # noqa: E402

#: Parameters and numbers of x, as sbibm's paper gives them.
SHAPES = {
    "gaussian_linear": (10, 10),
    "gaussian_linear_uniform": (10, 10),
    "slcp": (5, 8),
    "slcp_distractors": (5, 100),
    "bernoulli_glm": (10, 10),
    "bernoulli_glm_raw": (10, 100),
    "gaussian_mixture": (2, 2),
    "two_moons": (2, 2),
    "sir": (2, 10),
    "lotka_volterra": (4, 20),
}
VARIANT = Variant("quick", None, None, 2, {})


def simulations(name: str, theta: list[float], rows: int = 4000) -> np.ndarray:
    return TASKS[name].simulator(np.tile(theta, (rows, 1)), np.random.default_rng(1))


@pytest.mark.parametrize("name", TASKS)
def test_simulators_have_sbibms_shapes(name: str) -> None:
    task = TASKS[name]
    theta = task.sample_prior(20, seed=1)
    x = task.simulator(theta, np.random.default_rng(1))
    assert (theta.shape, x.shape) == ((20, SHAPES[name][0]), (20, SHAPES[name][1]))
    assert np.isfinite(x).all() and np.isfinite(task.log_prior(theta)).all()
    assert task.log_likelihood(theta, x[0]).shape == (20,)
    np.testing.assert_array_equal(x, task.simulator(theta, np.random.default_rng(1)))


def test_moments_are_those_of_the_definitions() -> None:
    x = simulations("gaussian_linear", [0.3] * 10)
    np.testing.assert_allclose(x.mean(0), 0.3, atol=0.03)
    np.testing.assert_allclose(np.cov(x.T), VARIANCE * np.eye(10), atol=0.01)
    # Both numbers of a row are of one component: their squares go together.
    x = simulations("gaussian_mixture", [1.0, -1.0]) - [1.0, -1.0]
    np.testing.assert_allclose((x**2).mean(0), (SCALES**2).mean(), atol=0.05)
    assert np.corrcoef(x.T**2)[0, 1] > 0.1
    # Two Moons: half a circle of radius 0.1 around a place that (-θ₂, -θ₁) gives as well.
    x = simulations("two_moons", [0.2, -0.6])
    np.testing.assert_allclose(x.mean(0), [-0.4 * np.sqrt(0.5) + 0.25 + 0.2 / np.pi, -0.8 * np.sqrt(0.5)], atol=0.01)
    np.testing.assert_array_equal(x, simulations("two_moons", [0.6, -0.2]))
    # SLCP: deviations are squares of parameters, the correlation is a tanh.
    x = simulations("slcp", [0.5, -0.5, 1.2, -0.8, 0.4])[:, :2]
    np.testing.assert_allclose(x.mean(0), [0.5, -0.5], atol=0.1)
    np.testing.assert_allclose(x.std(0), [1.44, 0.64], rtol=0.05)
    assert np.corrcoef(x.T)[0, 1] == pytest.approx(np.tanh(0.4), abs=0.05)


def test_the_posterior_of_the_linear_task_is_conjugate() -> None:
    task, rng = TASKS["gaussian_linear"], np.random.default_rng(2)
    x, theta = rng.normal(size=10), rng.normal(size=(50, 10))
    ours = task.log_prior(theta) + task.log_likelihood(theta, x)
    exact = -0.5 * ((theta - x / 2) ** 2).sum(1) / (VARIANCE / 2)
    np.testing.assert_allclose(ours - ours[0], exact - exact[0], rtol=1e-10, atol=1e-10)


def test_correlated_parameters_have_the_density_of_their_coordinates() -> None:
    task = TASKS["bernoulli_glm"]
    assert task.linear is not None
    covariance = task.linear.matrix @ task.linear.matrix.T
    theta = task.sample_prior(5, seed=1)
    exact = -0.5 * np.einsum("ni,ij,nj->n", theta, np.linalg.inv(covariance), theta)
    exact -= 0.5 * np.linalg.slogdet(2 * np.pi * covariance)[1]
    np.testing.assert_allclose(task.log_prior(theta), exact)


def test_the_solver_keeps_what_lotka_and_volterra_keep() -> None:
    theta = TASKS["lotka_volterra"].sample_prior(20, seed=1)
    birth, eaten, death, grown = theta.T
    logs = solve(animals, np.log([30.0, 1.0]), theta.T, 2.1, 10, 1e-7)
    prey, predators = np.exp(logs).transpose(1, 0, 2)
    kept = grown * prey - death * logs[:, 0] + eaten * predators - birth * logs[:, 1]
    assert np.abs(kept / kept[0] - 1).max() < 1e-5
    np.testing.assert_array_equal(log_animals(theta)[:, 0], np.log(30.0))


def test_an_epidemic_without_recovery_is_logistic() -> None:
    theta = np.array([[0.1, 0.0], [0.2, 0.0]])
    days = 17.0 * np.arange(10)
    exact = 1 / (1 + (1e6 - 1) * np.exp(-theta[:, :1] * days))
    np.testing.assert_allclose(infected(theta), exact, rtol=1e-5)


def table(rows: np.ndarray) -> bytes:
    lines = [",".join(f"n{i}" for i in range(rows.shape[1])), *(",".join(map(str, row)) for row in rows.tolist())]
    return "\n".join(lines).encode()


@pytest.fixture(scope="module")
def packed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What `prepare` makes of a folder that looks like sbibm's, with twenty rows a reference."""
    root = tmp_path_factory.mktemp("sbibm")
    for task in TASKS.values():
        for number in OBSERVATIONS:
            folder = root / "tasks" / task.folder / "files" / f"num_observation_{number}"
            folder.mkdir(parents=True, exist_ok=True)
            theta = task.sample_prior(21, seed=number)
            x = task.simulator(theta[:1], np.random.default_rng(number))
            (folder / task.observation).write_bytes(table(x))
            (folder / "true_parameters.csv").write_bytes(table(theta[:1]))
            (folder / "reference_posterior_samples.csv.bz2").write_bytes(bz2.compress(table(theta[1:])))
    file = root / "data.npz"
    data.prepare(root, file)
    return file


def test_what_is_packed_is_what_is_read(packed: Path) -> None:
    task = TASKS["slcp_distractors"]
    truth = data.load(task, 3, packed)
    theta = task.sample_prior(21, seed=3)
    assert truth.x_o.shape == (100,)
    np.testing.assert_array_equal(truth.theta, theta[0].astype(np.float32))
    np.testing.assert_array_equal(truth.reference, theta[1:].astype(np.float32))


@dataclass
class Bomb:
    """Would write a file if it were unpickled."""

    path: Path

    def __reduce__(self) -> Any:
        return Path.touch, (self.path,)


def test_data_files_run_no_code(tmp_path: Path) -> None:
    file, mark = tmp_path / "data.npz", tmp_path / "mark"
    np.savez(file, **{"two_moons.1": np.array([Bomb(mark)], dtype=object)})
    with pytest.raises(Refusal, match="is no file of `prepare`"):
        data.load(TASKS["two_moons"], 1, file)
    assert not mark.exists()


def test_missing_or_broken_data_is_told(tmp_path: Path, packed: Path) -> None:
    with pytest.raises(Refusal, match="does not exist: make it by"):
        data.load(TASKS["sir"], 1, tmp_path / "none.npz")
    (tmp_path / "cut.npz").write_bytes(packed.read_bytes()[:1000])
    with pytest.raises(Refusal, match="is no file of `prepare`"):
        data.load(TASKS["sir"], 1, tmp_path / "cut.npz")
    with pytest.raises(Refusal, match="no observation 11"):
        data.load(TASKS["sir"], 11, packed)
    with pytest.raises(Refusal, match="no tasks of sbibm in"):
        data.prepare(tmp_path, tmp_path / "out.npz")


class Stub:
    """A run that was not made: result, posterior and summary at once."""

    warnings = ["a warning"]

    def __init__(self, dim: int) -> None:
        self.posterior, self.dim = self, dim

    def sample(self, shape: tuple[int], seed: int) -> np.ndarray:
        return np.random.default_rng(seed).normal(size=(*shape, self.dim))

    def log_prob(self, theta: np.ndarray) -> np.ndarray:
        return np.where(theta[:, 0] > 0, -1.0, -np.inf)

    def summary(self) -> Stub:
        return self

    def to_dict(self) -> dict[str, Any]:
        return {"seed": 1, "epochs": 7}


@pytest.fixture
def begun(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Jobs are done in this process, and no run is made; the cases that were begun are noted."""
    noted: list[str] = []

    def infer(case: Case, truth: data.Truth, device: str) -> Stub:
        noted.append(case.key)
        return Stub(TASKS[case.task].dim)

    def execute(jobs: list[Job], slots: int, minutes: float | None, clock: Clock) -> Outcome:
        for job in jobs:
            job.work(*job.arguments)
        return Outcome(len(jobs))

    monkeypatch.setattr(case, "infer", infer)
    monkeypatch.setattr(run, "execute", execute)
    return noted


def test_finished_cases_are_not_done_again(begun: list[str], packed: Path, tmp_path: Path) -> None:
    def go(seeds: list[int]) -> Outcome:
        cases = run.expand([VARIANT], ["two_moons"], [1000], [1, 2], seeds)
        return run.run(cases, packed, tmp_path, (0, 5), True, "cpu", 1, None)

    assert go([1]).done == 2
    first = (tmp_path / "quick" / "two_moons-1000-1-1.json").read_bytes()
    assert go([1, 2]).done == 2
    assert begun == ["two_moons-1000-1-1", "two_moons-1000-2-1", "two_moons-1000-1-2", "two_moons-1000-2-2"]
    assert (tmp_path / "quick" / "two_moons-1000-1-1.json").read_bytes() == first
    record = json.loads(first)
    assert record["nlq"] == 1.0 and 0 < record["nlq_without_density"] < 20
    assert record["run"] == {"epochs": 7} and record["warnings"] == ["a warning"]
    draws = case.kept(tmp_path / "quick" / "two_moons-1000-1-1.json")
    assert draws.shape == (case.DRAWS, 2)


def test_every_seed_of_the_classifier_is_kept() -> None:
    rng = np.random.default_rng(1)
    reference, draws = rng.normal(size=(100, 2)), rng.normal(0.7, 1.0, size=(100, 2))
    found = case.classified(reference, draws, 3, 5)
    each = [didyma.metrics.c2st(reference, draws, seeds=1, seed=seed) for seed in (1, 2, 3)]
    assert found["c2st_each"] == each and found["c2st"] == np.mean(each) and found["c2st_folds"] == 5
    quick = case.classified(reference, draws, 3, 1)
    assert quick["c2st_folds"] == 1 and quick["c2st_each"] != each
    with pytest.raises(didyma.InputError, match="folds is 6: give a number from 1 to 5"):
        didyma.metrics.c2st(reference, draws, folds=6)
    # Equal values would say nothing of seeds.
    assert len(set(each)) > 1


def test_a_folder_holds_one_variant(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    run.claim(VARIANT, tmp_path)
    # The same by another word: the profile that is the default.
    run.claim(Variant("quick", None, "default", 2, {}), tmp_path)
    for other, difference in (
        (Variant("quick", None, None, 3, {}), "rounds: 2, now 3"),
        (Variant("quick", None, None, 2, {"ensemble.members": "7"}), "ensemble.members: ., now 7"),
    ):
        with pytest.raises(Refusal, match=rf"quick holds other settings \({difference}\): choose another --name"):
            run.claim(other, tmp_path)
    with pytest.raises(Refusal, match="are not 10 equal rounds"):
        run.expand([Variant("default", None, None, None, {})], ["sir"], [1005], [1], [1])
    # Another version of the package, with another default.
    known = didyma.settings()
    monkeypatch.setattr(didyma, "settings", lambda *_: {**known, "train.rate": ("7.0", "")})
    with pytest.raises(Refusal, match=r"\(train.rate: .*, now 7.0\)"):
        run.claim(VARIANT, tmp_path)
    case.write(tmp_path / "quick" / run.VARIANT, [{"name": "quick"}])
    with pytest.raises(Refusal, match="settings were not all noted"):
        run.claim(VARIANT, tmp_path)


def test_cases_without_draws_are_told(begun: list[str], packed: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run.run(run.expand([VARIANT], ["two_moons"], [1000], [1], [1]), packed, tmp_path, (0, 5), False, "cpu", 1, None)
    # An empty file is seen, and not opened.
    run.run(run.expand([VARIANT], ["two_moons"], [1000], [2], [1]), packed, tmp_path, (0, 5), False, "cpu", 1, None)
    (tmp_path / "quick" / "two_moons-1000-2-1.npz").touch()
    ready = run.scorable(tmp_path, None, lambda record: not record["c2st_each"])
    assert [path.stem for path, _ in ready] == ["two_moons-1000-2-1"]
    assert "1 cases have no draws and are left out: `run --keep` keeps them" in capsys.readouterr().out


def test_an_exception_leaves_no_process_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(pool, "finish", interrupted)
    # It is set for the jobs: the next test gets back what it was.
    monkeypatch.setenv("TMPDIR", "")
    jobs = [Job("long", "long", 60.0, time.sleep, (60.0,), False), Job("short", "short", 1.0, time.sleep, (0.0,), False)]
    with pytest.raises(KeyboardInterrupt):
        pool.execute(jobs, 2, None, Clock())
    assert not multiprocessing.active_children()


def test_the_forest_needs_scikit_learn_and_draws(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(forest.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(Refusal, match="scikit-learn is not installed: run"):
        forest.score(tmp_path, None, tmp_path, 1000, 1, None)
    rows, which = forest.in_scale(np.array([[0.0, 5.0], [2.0, 5.0]]), np.array([[1.0, 6.0]]))
    np.testing.assert_allclose(rows, [[-(0.5**0.5), 0.0], [0.5**0.5, 0.0], [0.0, 1.0]])
    assert which.tolist() == [0, 0, 1]

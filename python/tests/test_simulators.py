"""Functions of one row and of many, failures, randomness, and what a call costs."""

from __future__ import annotations

import multiprocessing
import subprocess
import sys
import time
import warnings
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import numpy as np
import pytest

import didyma
from conftest import QUICK, X_O, noisy_row, noisy_rows, prior

# Many of these draw for themselves on purpose; those that are about the warning ask for it.
pytestmark = pytest.mark.filterwarnings("ignore:the simulator's random numbers are its own")


class Counted:
    """A simulator that knows how it was called."""

    def __init__(self, function: Any) -> None:
        self.function = function
        self.shapes: list[tuple[int, ...]] = []

    def __call__(self, theta: np.ndarray) -> Any:
        self.shapes.append(theta.shape)
        return self.function(theta)


def shapes_of(function: Any, **more: Any) -> set[int]:
    """Dimensions of what the function was given in the run itself, after first calls."""
    simulator = Counted(function)
    didyma.infer(simulator, prior(), X_O, **{**QUICK, **more})
    return {len(shape) for shape in simulator.shapes[-3:]}


@pytest.mark.parametrize(
    ("function", "dimensions"),
    [
        # The commonest simulator of all: given many rows it would give all the same noise.
        (lambda theta: theta + 0.1 * np.random.randn(2), 1),
        # Both are right here, but who knows?
        (lambda theta: theta + 0.1 * np.random.randn(*theta.shape), 1),
        (lambda theta: theta[:, :] + 0.1 * np.random.randn(*theta.shape), 2),
        # Sums and coins that all rows would share.
        (lambda theta: np.exp(theta) / np.exp(theta).sum() + 0.01 * np.random.randn(*theta.shape), 1),
        (lambda theta: np.exp(theta) / np.exp(theta).sum(), 1),
        (lambda theta: theta + np.random.randint(0, 2), 1),
        # Not a number at half of the prior.
        (lambda theta: np.sqrt(theta) + 0.1 * np.random.randn(2), 1),
        (lambda theta: [theta[0], theta[1] ** 2], 1),
        (lambda theta: np.column_stack([theta[:, 0], theta[:, 1]]), 2),
        # Without noise, both are right, and many at once are quicker.
        (lambda theta: 2 * theta, 2),
        (lambda theta: np.array([theta.sum(), theta[0]]), 1),
    ],
)
def test_one_row_or_many_is_found_out(function: Any, dimensions: int) -> None:
    assert shapes_of(function) == {dimensions}


def test_a_function_of_one_row_that_fails_by_chance_is_no_function_of_many() -> None:
    calls = 0

    def unlucky_at_first(theta: np.ndarray) -> np.ndarray:
        nonlocal calls
        calls += 1
        if calls == 1:
            raise RuntimeError("no luck")
        return theta + 0.1 * np.random.randn(2)

    assert shapes_of(unlucky_at_first) == {1}


def test_or_is_said() -> None:
    assert shapes_of(lambda theta: 2 * theta, vectorized=False) == {1}
    assert shapes_of(lambda theta: theta + 0.1 * np.random.randn(2), vectorized=True) == {2}


def test_batches_have_the_size_asked_for() -> None:
    simulator = Counted(lambda theta: 2 * theta)
    didyma.infer(simulator, prior(), X_O, batch_size=50, **QUICK)
    assert [shape[0] for shape in simulator.shapes[-6:]] == [50, 50, 20, 50, 50, 20]


@pytest.mark.parametrize("simulator", [noisy_row, noisy_rows])
def test_a_generator_makes_a_run_repeatable(simulator: Any) -> None:
    one, two = (didyma.infer(simulator, prior(), X_O, **QUICK) for _ in range(2))
    for a, b in zip(one.simulations(), two.simulations()):
        np.testing.assert_array_equal(a, b)
    np.testing.assert_array_equal(one.posterior.sample((9,), seed=1), two.posterior.sample((9,), seed=1))
    assert len(np.unique(one.simulations()[1] - one.simulations()[0], axis=0)) > 230, "noise is shared"


def told_of(simulator: Any, **more: Any) -> list[warnings.WarningMessage]:
    """Warnings of a run."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        didyma.infer(simulator, prior(), X_O, device="cpu", **{**QUICK, **more})
    return told


UNREPEATABLE = (
    "the simulator's random numbers are its own, so that the same seed, or a resumed run, gives other rows: "
    "add an argument rng or seed to it"
)


def draws_for_itself(theta: np.ndarray) -> np.ndarray:
    return theta + 0.1 * np.random.randn(*theta.shape)


@pytest.mark.parametrize(
    "simulator",
    [
        draws_for_itself,
        lambda theta: theta[:, :] + 0.1 * np.random.randn(*theta.shape),
        lambda theta: theta + 0.1 * np.random.default_rng().normal(size=2),
        # Mostly the same.
        lambda theta: theta + np.random.poisson(0.2, size=2),
        # It takes any arguments, but none by that name.
        np.vectorize(lambda theta: theta + 0.1 * np.random.randn()),
    ],
)
def test_a_function_that_cannot_be_repeated_is_told_of_once(simulator: Any) -> None:
    (told,) = told_of(simulator)
    assert issubclass(told.category, UserWarning) and str(told.message) == UNREPEATABLE
    # Where the run was asked for.
    assert told.filename == __file__


def test_one_on_an_executor_too() -> None:
    with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn")) as pool:
        assert [str(told.message) for told in told_of(draws_for_itself, executor=pool)] == [UNREPEATABLE]


@pytest.mark.parametrize(
    "simulator",
    [
        noisy_row,
        noisy_rows,
        lambda theta, seed: theta + 0.1 * np.random.default_rng(seed).normal(size=2),
        # Without noise there is nothing to repeat.
        lambda theta: 2 * theta,
        lambda theta: [theta[0], np.nan if theta[1] > 0.5 else theta[1]],
    ],
)
def test_others_are_not_told_of(simulator: Any) -> None:
    assert told_of(simulator) == []


def test_a_resumed_run_is_told_of_too(tmp_path: Any) -> None:
    calls = 0

    def interrupted(theta: np.ndarray) -> np.ndarray:
        nonlocal calls
        calls += 1
        if calls > 100:
            raise KeyboardInterrupt
        return draws_for_itself(theta)

    run = tmp_path / "run"
    with pytest.warns(UserWarning, match="add an argument rng or seed"), pytest.raises(KeyboardInterrupt):
        didyma.infer(interrupted, prior(), X_O, out=run, vectorized=False, **QUICK)
    with pytest.warns(UserWarning, match="add an argument rng or seed"):
        assert didyma.resume(run, draws_for_itself, progress=False).finished


def test_seeds_are_numbers_of_53_bits() -> None:
    seen: list[Any] = []

    def simulator(theta: np.ndarray, seed: int) -> np.ndarray:
        seen.append(seed)
        return theta + 0.1 * np.random.default_rng(seed).normal(size=2)

    found = didyma.infer(simulator, prior(), X_O, **QUICK)
    seen = seen[-240:]
    assert all(isinstance(seed, int) and 0 <= seed < 2**53 for seed in seen) and len(set(seen)) == 240
    # The same generator, the same numbers.
    same = didyma.infer(noisy_row, prior(), X_O, **QUICK)
    np.testing.assert_array_equal(found.simulations()[1], same.simulations()[1])


def test_many_rows_with_a_seed_each_do_not_depend_on_batches() -> None:
    def simulator(theta: np.ndarray, seed: np.ndarray) -> np.ndarray:
        noise = [np.random.default_rng(int(s)).normal(size=2) for s in seed]
        return theta + 0.1 * np.array(noise)

    kinds = ({"batch_size": 7}, {"batch_size": 100})
    found = [didyma.infer(simulator, prior(), X_O, vectorized=True, **kind, **QUICK) for kind in kinds]
    row = didyma.infer(noisy_row, prior(), X_O, **QUICK)
    for other in found:
        np.testing.assert_array_equal(other.simulations()[1], row.simulations()[1])


def fails_sometimes(theta: np.ndarray, rng: np.random.Generator) -> Any:
    """A third each of two kinds of failures."""
    if theta[0] > 0.5:
        raise ValueError(f"too large: {theta[0]:.1f}")
    if theta[0] < -0.5:
        return [np.nan, theta[1]]
    return theta + 0.1 * rng.normal(size=2)


def test_failures_are_rows_with_their_reason() -> None:
    found = didyma.infer(fails_sometimes, prior(), X_O, **QUICK)
    failures = found.failures()
    theta = np.array([failure["theta"] for failure in failures])
    assert ((theta[:, 0] > 0.5) | (theta[:, 0] < -0.5)).all() and len(failures) > 20
    assert len(failures) + len(found.simulations()[0]) == 240
    raised = [failure["reason"] for failure in failures if failure["theta"][0] > 0.5]
    assert all(reason.startswith("ValueError: too large: 0.") or "1.0" in reason for reason in raised)
    # With its traceback, of the user's frames only.
    assert "in fails_sometimes" in raised[0] and 'raise ValueError(f"too large' in raised[0]
    assert "_worker" not in raised[0]
    nan = [failure["reason"] for failure in failures if failure["theta"][0] < -0.5]
    assert set(nan) == {"summary 1 is NaN"}
    assert f"240 simulations ({len(failures)} failed)" in str(found.summary())


def test_a_batch_that_raises_is_taken_apart() -> None:
    def simulator(theta: np.ndarray) -> np.ndarray:
        if (theta[:, 0] > 0.9).any():
            raise ValueError("too large")
        return theta + 0.1 * np.random.randn(*theta.shape)

    found = didyma.infer(simulator, prior(), X_O, vectorized=True, **QUICK)
    failed = np.array([failure["theta"] for failure in found.failures()])
    assert 0 < len(failed) < 60 and (failed[:, 0] > 0.9).all()


def test_a_batch_is_taken_apart_with_the_parameters_as_they_were() -> None:
    def simulator(theta: np.ndarray) -> np.ndarray:
        theta *= 2
        if (theta[:, 0] > 1.8).any():
            raise ValueError("too large")
        return theta

    found = didyma.infer(simulator, prior(), X_O, vectorized=True, **QUICK)
    theta, x = found.simulations()
    np.testing.assert_allclose(x, 2 * theta, rtol=1e-6)


def test_masked_numbers_are_failures() -> None:
    def simulator(theta: np.ndarray) -> Any:
        return np.ma.array(theta + 0.1 * np.random.randn(2), mask=[theta[0] > 0.5, False])

    found = didyma.infer(simulator, prior(), X_O, vectorized=False, **QUICK)
    assert found.failures() and all(failure["theta"][0] > 0.5 for failure in found.failures())
    with pytest.raises(didyma.NotFiniteError, match="x_o is a masked array"):
        didyma.infer(simulator, prior(), np.ma.array([0.1, 99.0], mask=[0, 1]), **QUICK)


def test_a_simulator_that_fails_at_random_is_no_broken_one() -> None:
    def simulator(theta: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        if rng.random() < 0.4:
            raise RuntimeError("no luck")
        return noisy_row(theta, rng)

    assert didyma.infer(simulator, prior(), X_O, **QUICK).finished


def test_slow_rows_are_stored_one_by_one(tmp_path: Any) -> None:
    calls = 0

    def simulator(theta: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        nonlocal calls
        calls += 1
        if calls > 60:
            time.sleep(0.12)
        if calls == 70:
            raise KeyboardInterrupt
        return noisy_row(theta, rng)

    with pytest.raises(KeyboardInterrupt):
        didyma.infer(simulator, prior(), X_O, out=tmp_path / "run", vectorized=False, **QUICK)
    shown = subprocess.run(
        [sys.executable, "-m", "didyma", "show", str(tmp_path / "run")], check=True, capture_output=True, text=True
    )
    # Sixty quick ones and nine slow ones, but for the first call, which was before the run.
    assert "0 of 2 rounds, 68 simulations" in shown.stdout


def test_a_run_goes_on_with_the_batches_that_it_began_with(tmp_path: Any) -> None:
    whole = didyma.infer(noisy_rows, prior(), X_O, batch_size=7, **QUICK)
    calls = 0

    def interrupted(theta: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        nonlocal calls
        calls += 1
        if calls > 9:
            raise KeyboardInterrupt
        return noisy_rows(theta, rng)

    call = {**QUICK, "vectorized": True, "name": "noisy_rows"}
    with pytest.raises(KeyboardInterrupt):
        didyma.infer(interrupted, prior(), X_O, batch_size=7, out=tmp_path / "run", **call)
    with pytest.raises(didyma.InputError, match=r"began with \(True, 7\)"):
        didyma.resume(tmp_path / "run", noisy_rows, batch_size=8)
    found = didyma.resume(tmp_path / "run", noisy_rows, progress=False)
    for a, b in zip(found.simulations(), whole.simulations()):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize(
    ("later", "words"),
    [
        (lambda theta: None, "returned None: return 2 numbers"),
        (lambda theta: ["a", "b"], "returned an array of <U1"),
        (lambda theta: [1.0, 2.0, 3.0], r"shape (3,), but (2,) is needed"),
        (lambda theta: sys.exit(3), "SystemExit: 3"),
    ],
)
def test_rubbish_is_a_failure(later: Any, words: str) -> None:
    def simulator(theta: np.ndarray) -> Any:
        return later(theta) if theta[0] > 0.8 else theta + 0.1 * np.random.randn(2)

    found = didyma.infer(simulator, prior(), X_O, vectorized=False, **QUICK)
    assert found.failures() and all(words in failure["reason"] for failure in found.failures())


def test_a_simulator_that_breaks_down_stops_the_run_and_can_be_repaired(tmp_path: Any) -> None:
    calls = 0

    def simulator(theta: np.ndarray, rng: np.random.Generator) -> Any:
        nonlocal calls
        calls += 1
        if calls > 150:
            raise RuntimeError("no licence")
        return noisy_row(theta, rng)

    with pytest.raises(didyma.SimulatorError, match="failed one after another") as raised:
        didyma.infer(simulator, prior(), X_O, out=tmp_path / "run", vectorized=False, **QUICK)
    assert "no licence" in str(raised.value) and "(retry_failed=True makes the failed ones again)" in str(raised.value)
    assert f"go on with didyma.resume(\"{tmp_path / 'run'}\", simulator)" in str(raised.value)
    with pytest.raises(didyma.InputError, match="simulator is missing"):
        didyma.resume(tmp_path / "run")
    found = didyma.resume(tmp_path / "run", noisy_row, retry_failed=True, progress=False)
    whole = didyma.infer(noisy_row, prior(), X_O, **QUICK)
    np.testing.assert_array_equal(found.posterior.sample((9,), seed=1), whole.posterior.sample((9,), seed=1))


def test_a_simulator_that_always_fails_is_told_at_once() -> None:
    def simulator(theta: np.ndarray) -> np.ndarray:
        raise FileNotFoundError("mesh.dat")

    with pytest.raises(didyma.SimulatorError, match="failed at 10 draws of the prior(?s:.*)mesh.dat(?s:.*)in simulator"):
        didyma.infer(simulator, prior(), X_O, **QUICK)


def seconds_of(function: Any, rows: int, **more: Any) -> float:
    """Seconds of CPU of simulating, the best of three: time of the clock would count the neighbours of a busy machine."""
    inference = didyma.NPE(prior(), X_O)
    theta = prior().sample((rows,), seed=1)
    found = []
    for _ in range(3):
        start = time.process_time()
        inference.simulate(function, theta, progress=False, **more)
        found.append(time.process_time() - start)
    return min(found)


def test_calls_cost_little() -> None:
    # Of a function that does nothing all of it is ours: first calls, seeds, arrays, checks.
    rows = seconds_of(lambda theta: theta, 5000, vectorized=False) / 5000
    random = seconds_of(lambda theta, rng: theta, 5000, vectorized=False) / 5000
    many = seconds_of(lambda theta: theta, 50_000, vectorized=True, batch_size=1000) / 50
    print(f"\na row {1e6 * rows:.1f} us, with a generator {1e6 * random:.1f} us; 1000 rows {1e3 * many:.2f} ms")
    assert rows < 100e-6 and random < 100e-6 and many < 2e-3


def test_other_threads_run_while_it_trains() -> None:
    import threading

    ticks = 0
    done = threading.Event()

    def tick() -> None:
        nonlocal ticks
        while not done.wait(0.005):
            ticks += 1

    thread = threading.Thread(target=tick)
    thread.start()
    start = time.monotonic()
    didyma.infer(didyma.tasks.two_moons(), rounds=1, simulations=500, progress=False, settings={"train.steps": 200})
    seconds = time.monotonic() - start
    done.set()
    thread.join()
    # Without the lock released there would be none; a busy machine may lose half of 200 a second.
    assert ticks > 50 * seconds


def test_importing_is_quick_and_loads_no_torch() -> None:
    code = (
        "import sys, time; import numpy; start = time.perf_counter(); import didyma; "
        "print(time.perf_counter() - start); "
        "assert not {'torch', 'arviz', 'dask', 'IPython', 'ray'} & set(sys.modules)"
    )
    found = [
        float(subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout)
        for _ in range(3)
    ]
    whole = "import time; start = time.perf_counter(); import didyma; print(time.perf_counter() - start)"
    with_numpy = float(
        subprocess.run([sys.executable, "-c", whole], check=True, capture_output=True, text=True).stdout
    )
    print(f"\nimport {min(found):.3f} s, with numpy {with_numpy:.3f} s")
    assert min(found) < 0.3

"""Executors: the same rows whatever runs them, lost workers, and executors that take no work."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path
from typing import Any, Callable, Iterator

import numpy as np
import pytest

import didyma
from conftest import QUICK, X_O, noisy_row, noisy_rows, prior

SPAWN = multiprocessing.get_context("spawn")


def same_rows(one: didyma.Result, other: didyma.Result) -> None:
    for a, b in zip(one.simulations(), other.simulations()):
        np.testing.assert_array_equal(a, b)
    assert [f["index"] for f in one.failures()] == [f["index"] for f in other.failures()]
    np.testing.assert_array_equal(one.posterior.sample((9,), seed=1), other.posterior.sample((9,), seed=1))


@pytest.fixture(scope="module")
def processes() -> Iterator[Executor]:
    with ProcessPoolExecutor(2, mp_context=SPAWN) as pool:
        yield pool


@pytest.mark.parametrize("simulator", [noisy_row, noisy_rows])
def test_rows_do_not_depend_on_the_executor(simulator: Any, processes: Executor) -> None:
    serial = didyma.infer(simulator, prior(), X_O, **QUICK)
    same_rows(serial, didyma.infer(simulator, prior(), X_O, executor=processes, **QUICK))
    with ThreadPoolExecutor(3) as threads:
        same_rows(serial, didyma.infer(simulator, prior(), X_O, executor=threads, **QUICK))


def test_loky() -> None:
    loky = pytest.importorskip("loky", reason="loky is not installed: it was not tried")
    serial = didyma.infer(noisy_row, prior(), X_O, **QUICK)
    same_rows(serial, didyma.infer(noisy_row, prior(), X_O, executor=loky.get_reusable_executor(2), **QUICK))


class Recording(Executor):
    """Runs everything at once and remembers how many rows each task had."""

    def __init__(self, seconds: float) -> None:
        self.sizes: list[int] = []
        self.seconds = seconds

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        x, failures, _ = fn(*args, **kwargs)
        self.sizes.append(len(x))
        future.set_result((x, failures, self.seconds * len(x)))
        return future


@pytest.mark.parametrize(("seconds", "largest"), [(1.0, 1), (0.01, 25), (1e-5, 32)])
def test_batches_are_sized_by_the_time_that_rows_take(seconds: float, largest: int) -> None:
    pool = Recording(seconds)
    call = {**QUICK, "rounds": 1, "simulations": 2000, "vectorized": False}
    found = didyma.infer(noisy_row, prior(), X_O, executor=pool, **call)
    # A quarter of a second each; and never so many that a worker (of 32, if it is not told) would be left idle.
    assert len(found.simulations()[0]) == 2000 and max(pool.sizes) <= largest
    assert max(pool.sizes) > largest / 4


MARK = "DIDYMA_TEST_MARK"


def dies_once(theta: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Takes its process with it, the first time that a certain parameter comes."""
    mark = Path(os.environ[MARK])
    if theta[0] > 0.9 and not mark.exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return noisy_row(theta, rng)


def dies_always(theta: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    if theta[0] > 0.93:
        os.kill(os.getpid(), signal.SIGKILL)
    return noisy_row(theta, rng)


def shares_generators(theta: np.ndarray) -> np.ndarray:
    return theta + 0.1 * np.random.randn(2)


def test_forked_workers_do_not_share_their_noise() -> None:
    np.random.randn()
    with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("fork")) as pool:
        found = didyma.infer(shares_generators, prior(), X_O, executor=pool, **QUICK)
    theta, x = found.simulations()
    noise = np.round(x - theta, 5)
    assert len(np.unique(noise, axis=0)) > 235


def test_forked_workers_do_not_keep_the_lock_of_a_run(tmp_path: Path) -> None:
    script = f"""
import os, sys, time, multiprocessing
sys.path.insert(0, {str(Path(__file__).parent)!r})
from concurrent.futures import ProcessPoolExecutor
import didyma
from conftest import QUICK, X_O, prior
from test_executors import slow_row
pool = ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("fork"))
call = {{**QUICK, "vectorized": False, "name": "noisy_row"}}
didyma.infer(slow_row, prior(), X_O, executor=pool, out=sys.argv[1], **call)
"""
    run = tmp_path / "run"
    process = subprocess.Popen([sys.executable, "-c", script, str(run)], start_new_session=True)
    while not (run / "run.db").exists() and process.poll() is None:
        time.sleep(0.05)
    time.sleep(0.5)
    process.kill()
    process.wait()
    try:
        # Its workers live on, as the system does not end them with it.
        found = didyma.resume(run, noisy_row, progress=False)
    finally:
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
    same_rows(didyma.infer(noisy_row, prior(), X_O, **{**QUICK, "vectorized": False}), found)


class LosesWorkers(Executor):
    """Loses the worker of every fifth task, of the same rows once, and lives on."""

    _max_workers = 4

    def __init__(self) -> None:
        self.tasks = 0
        self.lost: set[int] = set()

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        self.tasks += 1
        future: Future[Any] = Future()
        first = int(args[4][0])
        if self.tasks % 5 == 0 and first not in self.lost:
            self.lost.add(first)
            future.set_exception(RuntimeError("a worker was lost"))
        else:
            future.set_result(fn(*args, **kwargs))
        return future


@pytest.mark.parametrize("simulator", [noisy_row, noisy_rows])
def test_lost_batches_are_made_again(simulator: Any) -> None:
    call = {**QUICK, "vectorized": simulator is noisy_rows, "batch_size": 10}
    found = didyma.infer(simulator, prior(), X_O, executor=LosesWorkers(), **call)
    assert found.failures() == []
    same_rows(didyma.infer(simulator, prior(), X_O, **call), found)


def test_ray_by_its_adapter(monkeypatch: pytest.MonkeyPatch) -> None:
    """A stand-in with the calls of Ray that the adapter makes."""
    import types

    import didyma.ray

    class Remote:
        def __init__(self, function: Callable[..., Any]) -> None:
            self.function = function

        def remote(self, *args: Any) -> Any:
            future: Future[Any] = Future()
            future.set_result(self.function(*args))
            return types.SimpleNamespace(future=lambda: future)

    ray: Any = types.ModuleType("ray")
    ray.is_initialized = lambda: True
    ray.cluster_resources = lambda: {"CPU": 2.0}
    ray.remote = Remote
    monkeypatch.setitem(sys.modules, "ray", ray)
    serial = didyma.infer(noisy_row, prior(), X_O, **QUICK)
    same_rows(serial, didyma.infer(noisy_row, prior(), X_O, executor=didyma.ray.RayExecutor(), **QUICK))


def test_a_broken_pool_is_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(MARK, str(tmp_path / "died"))
    call = {**QUICK, "vectorized": False}
    made: list[Executor] = []

    def maker() -> Executor:
        made.append(ProcessPoolExecutor(2, mp_context=SPAWN))
        return made[-1]

    found = didyma.infer(dies_once, prior(), X_O, executor=maker, **call)
    assert len(made) == 2 and found.failures() == []
    same_rows(didyma.infer(noisy_row, prior(), X_O, **call), found)


def test_a_row_that_kills_its_worker_is_a_failure_and_only_that() -> None:
    call = {**QUICK, "rounds": 1, "vectorized": False}

    def maker() -> Executor:
        return ProcessPoolExecutor(2, mp_context=SPAWN)

    found = didyma.infer(dies_always, prior(), X_O, executor=maker, **call)
    failures = found.failures()
    # Of 120 draws from -1 to 1, 4.2 are above 0.93 on average: none in 1.5 % of seeds, more than 12 in 0.04 %.
    assert 1 <= len(failures) <= 12 and all(failure["theta"][0] > 0.93 for failure in failures)
    assert all("its worker was lost 2 times" in failure["reason"] for failure in failures)
    assert len(found.simulations()[0]) + len(failures) == 120


def test_a_pool_that_breaks_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(MARK, str(tmp_path / "died"))
    run, call = tmp_path / "run", {**QUICK, "vectorized": False}
    with ProcessPoolExecutor(2, mp_context=SPAWN) as pool:
        with pytest.raises(didyma.ExecutorError, match="the executor broke(?s:.*)everything so far is saved"):
            didyma.infer(dies_once, prior(), X_O, executor=pool, out=run, **call)
    found = didyma.resume(run, noisy_row, vectorized=False, progress=False)
    same_rows(didyma.infer(noisy_row, prior(), X_O, **call), found)


def test_executors_that_take_no_work() -> None:
    with ThreadPoolExecutor(1) as pool:
        pass
    with pytest.raises(didyma.ExecutorError, match=r"the executor takes no work \(.*shutdown.*give an open one"):
        didyma.infer(noisy_row, prior(), X_O, executor=pool, **QUICK)
    with pytest.raises(didyma.ExecutorError, match="executor is for Python functions"):
        didyma.infer(didyma.tasks.two_moons(), executor=pool, **QUICK)


def test_a_class_makes_executors() -> None:
    serial = didyma.infer(noisy_row, prior(), X_O, **QUICK)
    same_rows(serial, didyma.infer(noisy_row, prior(), X_O, executor=ThreadPoolExecutor, **QUICK))


def test_a_simulator_that_cannot_be_sent(processes: Executor) -> None:
    with pytest.raises(didyma.ExecutorError, match="the executor could not run the simulator") as raised:
        didyma.infer(lambda theta: theta, prior(), X_O, executor=processes, **QUICK)
    assert raised.value.__cause__ is not None


def slow_row(theta: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Takes its time, and writes on what it is given, as simulators may."""
    time.sleep(0.02)
    found = noisy_row(theta, rng)
    theta[:] = np.nan
    return found


def test_a_dask_cluster_that_loses_a_worker(tmp_path: Path) -> None:
    distributed = pytest.importorskip("distributed", reason="Dask is not installed: it was not tried")
    call = {**QUICK, "rounds": 1, "simulations": 300, "vectorized": False}
    serial = didyma.infer(noisy_row, prior(), X_O, **call)
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=":0", local_directory=str(tmp_path)
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        workers = client.run(os.getpid)
        killed: list[int] = []

        def kill() -> None:
            killed.append(next(iter(workers.values())))
            os.kill(killed[0], signal.SIGKILL)

        # In the middle: 300 rows of 20 ms on two workers take three seconds.
        timer = threading.Timer(1.5, kill)
        timer.start()
        found = didyma.infer(slow_row, prior(), X_O, executor=client.get_executor(), **call)
        timer.cancel()
        left = client.run(os.getpid)
    assert killed and killed[0] not in left.values(), "no worker was killed in the middle"
    assert found.failures() == []
    same_rows(serial, found)


def test_a_dask_client_that_is_closed(tmp_path: Path) -> None:
    distributed = pytest.importorskip("distributed", reason="Dask is not installed: it was not tried")
    client = distributed.Client(
        processes=False, n_workers=1, dashboard_address=":0", local_directory=str(tmp_path)
    )
    pool = client.get_executor()
    client.close()
    with pytest.raises(didyma.ExecutorError, match="give an open one"):
        didyma.infer(noisy_row, prior(), X_O, executor=pool, **QUICK)

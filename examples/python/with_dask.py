"""Slow simulations on many workers: any executor of concurrent.futures will do, and the rows do not depend on which.

A gene is switched on and off at random; while it is on it makes messages, each of which lasts for one unit of time on
average. Gillespie's algorithm in plain Python takes some 15 ms for 150 cells. Observed are quantiles of their messages.

    python with_dask.py                         # on a dask cluster of this machine
    python with_dask.py --executor processes    # or loky, ray, mpi, serial: what is named must be installed
    mpiexec -n 3 python -m mpi4py.futures with_dask.py --executor mpi       # one process drives, two simulate
"""

import argparse
from concurrent.futures import Executor, ProcessPoolExecutor
from contextlib import ExitStack

import didyma
import numpy as np

TRUTH = [0.8, 1.2, 20.0]


def messages(theta: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    on, off, make = (float(rate) for rate in theta)
    found = []
    for _ in range(150):
        active, count, t = False, 0, 0.0
        while True:
            total = count + (make + off if active else on)
            t += rng.exponential(1 / total)
            if t > 4:  # long enough to forget the beginning
                break
            which = rng.random() * total
            if which < count:
                count -= 1
            elif active and which < count + make:
                count += 1
            else:
                active = not active
        found.append(count)
    return np.quantile(found, [0.1, 0.3, 0.5, 0.7, 0.9])


def executor(kind: str, stack: ExitStack) -> Executor | None:
    """An executor, which the stack closes in the end. Packages are imported here, so that one of them suffices."""
    if kind == "dask":
        from dask.distributed import Client, LocalCluster

        # Processes of one thread: a simulator in plain Python would keep other threads waiting.
        cluster = stack.enter_context(LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None))
        return stack.enter_context(Client(cluster)).get_executor()
    if kind == "processes":
        # Where a simulation may kill its process, give infer a function: executor=lambda: ProcessPoolExecutor(2). Then a
        # pool that broke is replaced, and the run goes on.
        return stack.enter_context(ProcessPoolExecutor(2))
    if kind == "loky":
        return __import__("loky").get_reusable_executor(max_workers=2)
    if kind == "ray":
        return __import__("didyma.ray").ray.RayExecutor()
    if kind == "mpi":
        return stack.enter_context(__import__("mpi4py.futures").futures.MPIPoolExecutor())
    return None


def main() -> None:
    parser = argparse.ArgumentParser(description="The same run by an executor and without one.")
    parser.add_argument("--executor", choices=["dask", "processes", "loky", "ray", "mpi", "serial"], default="dask")
    rows = {}
    for kind in [parser.parse_args().executor, "serial"]:
        with ExitStack() as stack:
            prior = didyma.LogNormal(mean=np.log([1, 1, 20]), sd=[0.7, 0.7, 0.5], names=["on", "off", "make"])
            x_o = messages(np.array(TRUTH), np.random.default_rng(3))

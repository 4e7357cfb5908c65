"""Slow simulations on many workers: any executor of concurrent.futures will do, and the rows do not depend on which.

A gene is switched on and off at random; while it is on it makes messages, each of which lasts for one unit of time on
average. By Gillespie's algorithm in plain Python, 150 cells take some 15 ms. Observed are quantiles of their messages.

    python with_dask.py                         # on a dask cluster of this machine
    python with_dask.py --executor processes    # or loky, ray, serial; dask, loky and ray must be installed
"""

import argparse
from concurrent.futures import Executor, ProcessPoolExecutor
from contextlib import ExitStack

import didyma
import didyma.ray
import numpy as np


def messages(theta: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    on, off, make = (float(rate) for rate in theta)
    found = []
    for _ in range(150):
        active, count, t = False, 0, 0.0
        while True:
            total = count + (make + off if active else on)
            if (t := t + rng.exponential(1 / total)) > 4:  # long enough to forget the beginning
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
    """An executor, which the stack closes in the end. Dask and loky are imported where they are needed."""
    if kind == "dask":
        from dask.distributed import Client, LocalCluster

        # Processes of one thread: a simulator in plain Python would keep other threads waiting.
        cluster = stack.enter_context(LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None))
        return stack.enter_context(Client(cluster)).get_executor()
    if kind == "processes":
        # A function that makes pools, executor=lambda: ProcessPoolExecutor(2), replaces one that a crash has broken.
        # MPIPoolExecutor() of mpi4py.futures is used alike, and started by `mpiexec -n 3 python -m mpi4py.futures`.
        return stack.enter_context(ProcessPoolExecutor(2))
    if kind == "loky":
        from loky import get_reusable_executor

        return get_reusable_executor(max_workers=2)
    if kind == "ray":
        return didyma.ray.RayExecutor()
    return None


def main(kind: str) -> None:
    prior = didyma.LogNormal(mean=np.log([1, 1, 20]), sd=[0.7, 0.7, 0.5], names=["on", "off", "make"])
    truth, runs = [0.8, 1.2, 20.0], []
    x_o = messages(np.array(truth), np.random.default_rng(3))
    for name in [kind, "serial"]:
        with ExitStack() as stack:
            pool = executor(name, stack)
            run = didyma.infer(messages, prior, x_o, rounds=2, simulations=300, seed=1, truth=truth, executor=pool)
        seconds = sum(each["seconds_simulate"] for each in run.summary().to_dict()["rounds"])
        print(f"{name}: {seconds:.1f} s of simulating")
        runs.append(run)
    print(runs[0].summary())
    # Every simulation has random numbers of its own, so that it does not matter where it is made, nor when.
    print("identical rows:", all(map(np.array_equal, runs[0].simulations(), runs[1].simulations())))


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--executor", choices=["dask", "processes", "loky", "ray", "serial"], default="dask")
    main(parser.parse_args().executor)

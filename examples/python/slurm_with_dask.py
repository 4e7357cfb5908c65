"""Simulations by jobs of Slurm that dask submits, and a run that survives its driver. The model is that of with_dask.

The driver trains: start it in a job of its own, or where that is allowed. Everything is kept in the folder as it comes.
After a kill, a time limit or Ctrl-C the same command goes on, and ends with the numbers of a run that nothing stopped.

    pip install dask-jobqueue
    python slurm_with_dask.py out/slurm --jobs 2 50     # on a cluster: at least 2 jobs, at most 50
    python slurm_with_dask.py out/slurm --local         # the same with processes of this machine for jobs, to try it
"""

import argparse
import sys
from pathlib import Path

import didyma
import numpy as np
from dask.distributed import Client
from dask_jobqueue import SLURMCluster
from dask_jobqueue.core import JobQueueCluster
from dask_jobqueue.local import LocalCluster

import with_dask

# What a job is: so many processes of one thread each.
PROCESSES = 4


def start(local: bool) -> JobQueueCluster:
    if local:
        return LocalCluster(cores=1, processes=1, memory="1GB")
    return SLURMCluster(
        cores=PROCESSES,
        processes=PROCESSES,
        memory="8GB",
        walltime="01:00:00",
        # queue="the partition", account="the account",
        # Workers end before Slurm ends them, and not all at once: what they were doing is done by others.
        worker_extra_args=["--lifetime", "55m", "--lifetime-stagger", "4m"],
        job_extra_directives=["--job-name=didyma"],
        log_directory="out/slurm-logs",
        python=sys.executable,
    )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("run", type=Path, nargs="?", default=Path("out/slurm"))
    parser.add_argument("--local", action="store_true")
    parser.add_argument("--jobs", type=int, nargs=2, default=[1, 4], metavar=("LEAST", "MOST"))
    args = parser.parse_args()
    with start(args.local) as cluster, Client(cluster) as client:
        # Each worker that is there is given work for half a second in advance. With a target below that, dask asks
        # for more workers as long as there is work, and gives them back while the driver trains.
        least, most = args.jobs
        cluster.adapt(minimum_jobs=least, maximum_jobs=most, target_duration="200ms")
        # Jobs cannot import from this folder. A simulator that is part of the script itself needs no upload.
        client.upload_file(with_dask.__file__)
        client.wait_for_workers(1)
        result = infer(args.run, client)
    print(result.summary())


def infer(run: Path, client: Client) -> didyma.Result:
    prior = didyma.LogNormal(mean=np.log([1, 1, 20]), sd=[0.7, 0.7, 0.5], names=["on", "off", "make"])
    truth = np.array([0.8, 1.2, 20.0])
    x_o = with_dask.messages(truth, np.random.default_rng(3))
    # If the folder holds this run already, it goes on.
    return didyma.infer(
        with_dask.messages,
        prior,
        x_o,
        rounds=2,
        simulations=300,
        seed=1,
        truth=truth,
        out=run,
        resume=True,
        executor=client.get_executor(),
    )


if __name__ == "__main__":
    main()

"""Makes a reference by both routes: `python -m benches.references lotka-volterra --out FOLDER`."""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

import didyma.tasks
from didyma import metrics

from .laws import law
from .routes import LikelihoodRoute, Length, PosteriorRoute
from .scores import Array

ROWS = 10_000


def distance(a: Array, b: Array) -> str:
    """C2ST by eight classifier seeds, each judged on one fold."""
    each = [metrics.c2st(a, b, seeds=1, folds=1, seed=seed) for seed in range(1, 9)]
    return f"{np.mean(each):.3f} ± {np.std(each, ddof=1) / np.sqrt(len(each)):.3f}"


def describe(name: str, theta: Array, stored: Array) -> None:
    moments = [np.array2string(part, precision=4) for part in (theta.mean(axis=0), theta.std(axis=0))]
    print(f"{name}: mean {moments[0]}, sd {moments[1]}, C2ST to the stored {distance(stored, theta)}", flush=True)


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(prog="python -m benches.references", description=__doc__)
    top.add_argument("task", choices=["lotka-volterra", "mg1"])
    top.add_argument("--simulations", type=int, default=3_000_000)
    top.add_argument("--steps", type=int, default=40_000, help="steps of each flow, of 500 rows (40000)")
    top.add_argument("--members", type=int, default=2, help="flows of each ensemble (2)")
    top.add_argument("--seed", type=int, default=1)
    top.add_argument("--threads", type=int, default=1)
    top.add_argument("--out", type=Path, required=True, help="folder of posterior.npy, likelihood.npy and both.f32")
    return top


def main() -> None:
    arguments = parser().parse_args()
    task = didyma.tasks.task(arguments.task)
    stored = task.reference((ROWS,), seed=1)
    chosen, rng = law(task), np.random.default_rng(arguments.seed)
    theta = chosen.draw(arguments.simulations, rng)
    x = task.simulator(theta, seed=arguments.seed)
    length = Length(arguments.steps, arguments.members, arguments.seed, arguments.threads)
    arguments.out.mkdir(parents=True, exist_ok=True)

    first = PosteriorRoute.train(chosen, theta, x, task.x_o, length)
    by_posterior, share = first.sample(ROWS, arguments.seed)
    describe(f"posterior ({share:.2f} effective)", by_posterior, stored)
    np.save(arguments.out / "posterior.npy", by_posterior)

    second = LikelihoodRoute.train(chosen, theta, x, task.x_o, length)
    by_likelihood, share = second.sample(first, ROWS, arguments.seed)
    describe(f"likelihood ({share:.2f} effective)", by_likelihood, stored)
    np.save(arguments.out / "likelihood.npy", by_likelihood)
    print(f"C2ST between the routes: {distance(by_posterior, by_likelihood)}")

    half = ROWS // 2
    both = rng.permutation(np.vstack([by_posterior[:half], by_likelihood[:half]]))
    describe("half of each", both, stored)
    both.astype("<f4").tofile(arguments.out / "both.f32")


if __name__ == "__main__":
    main()

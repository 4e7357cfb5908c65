"""Makes a reference by both routes: `python -m benches.references lotka-volterra --out FOLDER`."""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

import didyma.tasks
from didyma import metrics

from .laws import law
from .normal_scores import Array
from .routes import LikelihoodRoute, PosteriorRoute, Training

ROWS = 10_000


def distance(a: Array, b: Array) -> str:
    """C2ST by eight classifier seeds, each judged on one fold."""
    each = [metrics.c2st(a, b, seeds=1, folds=1, seed=seed) for seed in range(1, 9)]
    return f"{np.mean(each):.3f} ± {np.std(each, ddof=1) / np.sqrt(len(each)):.3f}"


def samples(path: Path, dim: int) -> Array:
    """Rows of bare f32."""
    return np.fromfile(path, "<f4").reshape(-1, dim).astype(np.float64)


def describe(name: str, theta: Array, others: dict[str, Array]) -> None:
    """Prints moments, and C2ST to other samples."""
    mean, sd = (np.array2string(part, precision=4) for part in (theta.mean(axis=0), theta.std(axis=0)))
    distances = [f"C2ST to {other} {distance(rows, theta)}" for other, rows in others.items()]
    print("; ".join([f"{name}: mean {mean}, sd {sd}", *distances]), flush=True)


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(prog="python -m benches.references", description=__doc__)
    top.add_argument("task", choices=["lotka-volterra", "mg1"])
    top.add_argument("--simulations", type=int, default=3_000_000)
    top.add_argument("--steps", type=int, default=40_000, help="steps of each flow, of 500 rows (40000)")
    top.add_argument("--members", type=int, default=2, help="flows of each ensemble (2)")
    top.add_argument("--seed", type=int, default=1)
    top.add_argument("--threads", type=int, default=1)
    top.add_argument("--against", type=Path, nargs="*", default=[], help="samples to compare with, as `didyma abc` writes .f32")
    top.add_argument("--out", type=Path, required=True, help="folder of posterior.npy, likelihood.npy and both.f32")
    return top


def main() -> None:
    arguments = parser().parse_args()
    task = didyma.tasks.task(arguments.task)
    others = {path.name: samples(path, task.prior.dim) for path in arguments.against}
    chosen, rng = law(task), np.random.default_rng(arguments.seed)
    theta = chosen.draw(arguments.simulations, rng)
    x = task.simulator(theta, seed=arguments.seed)
    training = Training(arguments.steps, arguments.members, arguments.seed, arguments.threads)
    arguments.out.mkdir(parents=True, exist_ok=True)

    first = PosteriorRoute.train(chosen, theta, x, task.x_o, training)
    by_posterior, share = first.sample(ROWS, arguments.seed)
    describe(f"posterior ({share:.2f} effective)", by_posterior, others)
    np.save(arguments.out / "posterior.npy", by_posterior)

    second = LikelihoodRoute.train(chosen, theta, x, task.x_o, training)
    by_likelihood, share = second.sample(first, ROWS, arguments.seed + 1)
    describe(f"likelihood ({share:.2f} effective)", by_likelihood, {**others, "posterior": by_posterior})
    np.save(arguments.out / "likelihood.npy", by_likelihood)

    half = ROWS // 2
    both = rng.permutation(np.vstack([by_posterior[:half], by_likelihood[:half]]))
    describe("half of each", both, others)
    both.astype("<f4").tofile(arguments.out / "both.f32")


if __name__ == "__main__":
    main()

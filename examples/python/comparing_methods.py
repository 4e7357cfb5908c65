"""Several methods on a problem whose posterior is known: Two Moons, or another of didyma.tasks.

C2ST is the accuracy of a classifier that tells samples from exact ones: 0.5 if it cannot, 1 if it always can. It is a mean
over four classifier seeds, and ± its standard error over them.

    python comparing_methods.py [FOLDER]                # a minute or two; writes into out/compared
    python comparing_methods.py --task lotka-volterra --rounds 10 --simulations 1000 --methods tsnpe tgrr snse
"""

import argparse
from pathlib import Path

import didyma


def main() -> None:
    parser = argparse.ArgumentParser(formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    parser.add_argument("folder", type=Path, nargs="?", default=Path("out/compared"))
    parser.add_argument("--task", choices=didyma.tasks.task_names(), default="two-moons")
    parser.add_argument("--methods", nargs="+", choices=didyma.methods(), default=["tsnpe", "tgrr", "atomic", "npe"])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--simulations", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    args.folder.mkdir(parents=True, exist_ok=True)

    task = didyma.tasks.task(args.task)
    print(task)
    reference = task.reference((2000,), seed=1)
    results = []
    for method in args.methods:
        out = args.folder / f"{args.task}-{method}-{args.rounds}x{args.simulations}-{args.seed}"
        if (out / "run.db").exists():
            # A comparison that was stopped goes on; what is done is only read.
            result = didyma.resume(out, progress=False)
        else:
            # A task brings its prior, its observation and a simulator that runs on all cores.
            result = didyma.infer(
                task,
                method=method,
                rounds=args.rounds,
                simulations=args.simulations,
                seed=args.seed,
                out=out,
                progress=False,
            )
        samples = result.posterior.sample((2000,), seed=1)
        c2st, error = didyma.metrics.c2st_with_error(reference, samples)
        mmd2 = didyma.metrics.mmd2(reference, samples)
        seconds = result.summary().to_dict()["seconds_total"]
        print(f"{method:10} C2ST {c2st:.3f} ± {error:.3f}  MMD2 {mmd2:.4f}  {seconds:4.0f} s", flush=True)
        results.append(result)

    # One page with all of them side by side; the dashed lines are the exact posterior.
    print("report:", didyma.report(results, args.folder / "report.html"))
    didyma.plot(results, "metrics").save(args.folder / "metrics.svg")


if __name__ == "__main__":
    main()

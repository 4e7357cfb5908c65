"""A prior of different laws, and everything that can be drawn: a drug in the blood after one dose.

The dose is absorbed at a rate, is diluted in a volume, and is cleared from it. The observed concentrations come from
known parameters, so that one can see whether they are found again. ArviZ and matplotlib are used if they are there.

    python own_prior_and_plots.py [FOLDER]      # writes figures and report.html into FOLDER, or into out/drug
"""

import importlib.util
import sys
from pathlib import Path

import didyma
import numpy as np

DOSE = 320.0  # mg
HOURS = np.array([0.25, 0.5, 1, 2, 4, 7, 12, 24])
TRUTH = [0.2, 1.5, 2.8, 32.0]
NOISE = 0.1  # of the logarithm

# What is positive and known up to a factor is log-normal: an sd of 0.5 is a factor of 1.6. With low or high, a law is
# cut off there. Each part brings the names of its parameters, in the order in which theta has them.
PRIOR = didyma.Independent(
    [
        didyma.Uniform(0, 0.24, names=["lag"]),  # h
        didyma.LogNormal(mean=np.log([1.0, 3.0]), sd=[0.7, 0.5], names=["absorption", "clearance"]),  # 1/h, l/h
        didyma.Normal(mean=35, sd=10, low=10, names=["volume"]),  # l
    ]
)


def concentrations(theta: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Logarithms of the measured mg/l. Many rows at once, (n, 4) -> (n, 8), are faster than one by one."""
    lag, absorption, clearance, volume = theta.T[:, :, None]
    elimination, t = clearance / volume, HOURS - lag
    # The formula has 0/0 where both rates are equal; a difference this small changes nothing else.
    difference = np.where(np.abs(absorption - elimination) < 1e-6, 1e-6, absorption - elimination)
    mean = DOSE * absorption / volume / difference * (np.exp(-elimination * t) - np.exp(-absorption * t))
    return np.log(mean) + NOISE * rng.standard_normal(mean.shape)


def main() -> None:
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "out/drug")
    folder.mkdir(parents=True, exist_ok=True)
    print(PRIOR, PRIOR.support, sep="\n")

    x_o = concentrations(np.array([TRUTH]), np.random.default_rng(1))[0]
    summaries = [f"log mg/l at {hours:g} h" for hours in HOURS]
    result = didyma.infer(
        concentrations, PRIOR, x_o, rounds=3, simulations=1000, seed=1, truth=TRUTH, name="drug", summaries=summaries
    )
    print(result.summary())

    for kind in ["pairs", "training", "simulations", "time"]:
        figure = result.plot(kind)
        figure.save(folder / f"{kind}.svg")
        print(f"{kind}.svg: {figure.caption}")
    result.report(folder / "report.html", simulator=concentrations)

    if importlib.util.find_spec("arviz"):
        import arviz

        print(arviz.summary(result.to_arviz(4000, seed=1), kind="stats"))
    else:
        print("ArviZ is not installed, so that its table is left out: pip install arviz")

    if importlib.util.find_spec("matplotlib"):
        import matplotlib.pyplot as plt

        theta = result.posterior.sample((2000,), seed=1)
        plt.scatter(theta[:, 2], theta[:, 3], s=2)
        plt.xlabel("clearance, l/h")
        plt.ylabel("volume, l")
        plt.savefig(folder / "scatter.png")


if __name__ == "__main__":
    main()

"""The smallest whole inference: an outbreak of influenza in a boarding school, by a simulator of one's own.

In January 1978 the boys in bed were counted day by day, in a school of 763 (British Medical Journal, 4 March 1978, page
587). How many others does one of them infect, and for how many days is he ill? The model is a stochastic SIR epidemic:
its likelihood cannot be computed, but it is easily simulated.

    python first_inference.py [FOLDER]      # writes pairs.svg, pairs.png and report.html into FOLDER, or into out/first
"""

import sys
from pathlib import Path

import didyma
import numpy as np

BOYS = 763
FIRST = 3  # in bed on the first day, from which the model starts
IN_BED = [8, 26, 76, 225, 298, 258, 233, 189, 128, 68, 29, 14, 4]  # on the days that follow
STEPS = 10  # of a day


def outbreak(theta: np.ndarray, rng: np.random.Generator) -> list[int]:
    """The boys in bed on each day, for one pair of parameters.

    All randomness comes from rng. Every simulation is given a generator of its own, so that a run can be repeated to
    the bit.
    """
    infects, days = theta
    well, ill = BOYS - FIRST, FIRST
    counts = []
    for _ in IN_BED:
        for _ in range(STEPS):
            caught = rng.binomial(well, 1 - np.exp(-infects / days * ill / BOYS / STEPS))
            recovered = rng.binomial(ill, 1 - np.exp(-1 / days / STEPS))
            well, ill = well - caught, ill + caught - recovered
        counts.append(int(ill))
    return counts


def main() -> None:
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "out/first")
    folder.mkdir(parents=True, exist_ok=True)

    prior = didyma.Uniform(low=[1, 0.5], high=[10, 6], names=["infects", "days"])
    summaries = [f"day {day}" for day in range(2, 2 + len(IN_BED))]
    result = didyma.infer(outbreak, prior, IN_BED, rounds=4, simulations=500, seed=1, summaries=summaries)
    print(result.summary())

    theta = result.posterior.sample((10_000,), seed=1)
    low, high = np.quantile(theta, [0.025, 0.975], axis=0)
    for name, mean, left, right in zip(prior.names, theta.mean(axis=0), low, high):
        print(f"{name}: {mean:.2f}, between {left:.2f} and {right:.2f} with a probability of 95 %")

    # Log-densities of any parameters: minus infinity is outside the prior.
    candidates = [[3.7, 2.1], [2.0, 4.0], [11.0, 2.0]]
    for (infects, days), log_prob in zip(candidates, result.posterior.log_prob(candidates)):
        print(f"log-density at infects {infects}, days {days}: {log_prob:.1f}")

    pairs = result.plot_pairs()
    pairs.save(folder / "pairs.svg")
    pairs.save(folder / "pairs.png")
    # With the simulator, the page also shows what the posterior predicts beside what was observed.
    print("report:", result.report(folder / "report.html", simulator=outbreak))


if __name__ == "__main__":
    main()

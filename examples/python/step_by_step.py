"""The sequential loop in one's own hands: propose, simulate, append, train, and again. A neuron that fires or does not.

A leaky neuron is driven by a current with noise, and fires whenever its voltage reaches 1. Observed are the logarithm
of the mean time between two spikes, and how much this time varies. With fewer than three spikes there is neither: NaN.

    python step_by_step.py [FOLDER]      # writes report.html into FOLDER, or into out/neuron
"""

import sys
from pathlib import Path

import didyma
import numpy as np

TRUTH = np.array([1.2, 0.4])


def neuron(theta: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Two seconds of many neurons at once, in steps of 0.5 ms; the voltage decays in 20 ms."""
    current, noise = theta.T
    voltage, last = np.zeros(len(theta)), np.full(len(theta), np.nan)
    spikes, total, squares = np.zeros((3, len(theta)))
    for step in range(4000):
        voltage += (current - voltage) / 40 + noise * np.sqrt(1 / 20) * rng.standard_normal(len(theta))
        fires = voltage >= 1
        since = np.where(fires & ~np.isnan(last), step - last, 0)
        spikes, total, squares = spikes + (since > 0), total + since, squares + since**2
        voltage[fires], last[fires] = 0, step
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = total / spikes
        spread = np.sqrt(np.maximum(squares / spikes - mean**2, 0)) / mean
    x = np.stack([np.log(mean), spread], axis=1)
    x[spikes < 2] = np.nan
    return x


def main() -> None:
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "out/neuron")
    folder.mkdir(parents=True, exist_ok=True)
    prior = didyma.Uniform(low=[0, 0.05], high=[2, 1], names=["current", "noise"])
    rng = np.random.default_rng(7)
    x_o = neuron(TRUTH[None], rng)[0]

    # A neuron that keeps silent is no fault of the program, but part of the model: an outcome. Leave the setting out
    # where a simulation fails because a solver did not converge. Other methods than the default: method="tsnpe".
    settings = {"failures.meaning": "outcome"}
    inference = didyma.NPE(prior, x_o, seed=1, truth=TRUTH, name="neuron", settings=settings)
    for _ in range(3):
        theta = inference.propose(500)
        x = neuron(theta, rng)  # wherever, and however long it takes
        inference.append_simulations(theta, x)  # rows with NaN count as failed: do not leave them out
        posterior = inference.train(progress=False)
        silent = np.isnan(x).any(axis=1).sum()
        mean = posterior.sample((1000,), seed=1).mean(axis=0)
        print(f"round {inference.rounds}: {silent} of {len(x)} silent; current {mean[0]:.2f}, noise {mean[1]:.2f}")

    # Parameters from elsewhere would need another loss, and would give a wrong posterior without a word: refused.
    others = rng.uniform([1, 0.2], [1.5, 0.6], size=(500, 2))
    try:
        inference.append_simulations(others, neuron(others, rng))
    except didyma.ProposalError as error:
        print("refused:", error)
    # Draws of the prior are welcome if one says so, as simulations that were there before.
    theta = prior.sample((500,), seed=2)
    inference.append_simulations(theta, neuron(theta, rng), proposal=prior)
    inference.train(progress=False)

    print(inference.build_posterior())
    result = inference.result()
    print(result.summary())
    print("report:", result.report(folder / "report.html", simulator=neuron))


if __name__ == "__main__":
    main()

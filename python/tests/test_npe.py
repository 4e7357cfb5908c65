"""Step by step, as users of sbi know it; and proposals, which cannot be wrong."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import didyma
from conftest import QUICK, X_O, noisy_row, noisy_rows, prior

SETTINGS = QUICK["settings"]
#: Of step by step every round is trained as the last one is.
IN_FULL = {**SETTINGS, "train.early": 1, "train.cycles": 1}


def npe(**more: Any) -> didyma.NPE:
    return didyma.NPE(prior(), X_O, **{"seed": 3, "settings": SETTINGS, **more})


@pytest.mark.parametrize("method", ["tsnpe", "tgrr"])
def test_the_loop_is_the_whole_run(method: str, tmp_path: Path) -> None:
    inference = npe(method=method, settings=IN_FULL)
    for _ in range(2):
        theta = inference.propose(120)
        x = inference.simulate(noisy_row, theta, progress=False)
        inference.append_simulations(theta, x).train(progress=False)
    posterior = inference.build_posterior()
    whole = didyma.infer(noisy_row, prior(), X_O, method=method, **{**QUICK, "settings": IN_FULL})
    np.testing.assert_array_equal(posterior.sample((99,), seed=1), whole.posterior.sample((99,), seed=1))
    # And can be kept as such.
    assert inference.result().finished and inference.rounds == 2
    inference.save(tmp_path / "run")
    kept = didyma.Result.load(tmp_path / "run")
    for a, b in zip(kept.simulations(), whole.simulations()):
        np.testing.assert_array_equal(a, b)
    kept.report(tmp_path / "report.html")
    assert kept.plot("training").svg.startswith("<svg")


def test_as_in_sbi() -> None:
    rng = np.random.default_rng(1)
    inference = npe(method="npe")
    theta = prior().sample((200,), seed=1)
    x = noisy_rows(theta, rng)
    density_estimator = inference.append_simulations(theta, x).train(progress=False)
    posterior = inference.build_posterior(density_estimator)
    assert posterior.sample((10,), x=[0.0, 0.0]).shape == (10, 2)
    # More of the prior, in a round of another size.
    more = prior().sample((300,), seed=2)
    inference.append_simulations(more, noisy_rows(more, rng), proposal=prior()).train(progress=False)
    rounds = inference.result().summary().to_dict()["rounds"]
    assert [r["simulations"] for r in rounds] == [200, 300]


def test_float64_and_several_calls() -> None:
    inference = npe()
    theta = inference.propose(100).astype(np.float64)
    inference.append_simulations(theta[:60], theta[:60])
    inference.append_simulations(theta[60:], theta[60:])
    inference.train(progress=False)
    assert repr(inference) == "NPE by tgrr: 1 rounds trained, 0 simulations since"


def test_rows_of_nan_are_failures() -> None:
    inference = npe()
    theta = inference.propose(100)
    x = theta.copy()
    x[theta[:, 0] > 0.5] = np.nan
    inference.append_simulations(theta, x).train(progress=False)
    failed = inference.result().failures()
    assert len(failed) == (theta[:, 0] > 0.5).sum() and failed[0]["reason"] == "summary 1 is NaN"


def trained(**more: Any) -> didyma.NPE:
    inference = npe(**more)
    theta = inference.propose(120)
    inference.append_simulations(theta, theta).train(progress=False)
    return inference


def test_a_forgotten_proposal_is_refused() -> None:
    inference = trained(method="tgrr")
    posterior = inference.build_posterior()
    theta = posterior.sample((120,))
    with pytest.raises(didyma.ProposalError, match="round 2 was given parameters that nobody proposed"):
        inference.append_simulations(theta, theta)
    # Said, it is right: the loss corrects for it.
    inference.append_simulations(theta, theta, proposal=posterior).train(progress=False)
    assert inference.rounds == 2


def test_a_wrong_proposal_is_refused() -> None:
    inference = trained(method="tgrr")
    posterior = inference.build_posterior()
    theta = posterior.sample((500,))
    with pytest.raises(didyma.ProposalError, match="cannot be draws of the prior"):
        inference.append_simulations(0.3 * prior().sample((500,)), theta, proposal=prior())
    with pytest.raises(didyma.ProposalError, match="cannot be draws of the posterior"):
        inference.append_simulations(0.3 * prior().sample((500,)) + 0.6, theta, proposal=posterior)
    with pytest.raises(didyma.ProposalError, match="this is another one"):
        inference.append_simulations(theta, theta, proposal=trained(seed=4).build_posterior())
    with pytest.raises(didyma.ProposalError, match="another one"):
        inference.append_simulations(theta, theta, proposal=didyma.Uniform([-2, -2], 2))
    with pytest.raises(didyma.ProposalError, match="proposal is of type str"):
        inference.append_simulations(theta, theta, proposal="prior")  # type: ignore[arg-type]
    proposed = inference.propose(50)
    with pytest.raises(didyma.ProposalError, match="some are missing or out of it here: leave failed"):
        inference.append_simulations(proposed[::-1], proposed[::-1])
    truncated = trained(method="tsnpe")
    with pytest.raises(didyma.ProposalError, match="by tsnpe cannot be proposed from the posterior"):
        theta = truncated.build_posterior().sample((120,))
        truncated.append_simulations(theta, theta, proposal=truncated.build_posterior())


def test_noise_is_that_of_the_place_in_the_round() -> None:
    inference = npe()
    theta = inference.propose(40)

    def noise(part: np.ndarray) -> np.ndarray:
        return inference.simulate(noisy_row, part, progress=False) - part

    whole = noise(theta)
    np.testing.assert_array_equal(whole, np.concatenate([noise(theta[:15]), noise(theta[15:])]))
    # Others have noise of their own, each time.
    other = prior().sample((40,), seed=9)
    first, second = noise(other), noise(other)
    assert len({*first[:, 0], *second[:, 0], *whole[:, 0]}) == 120


def test_a_few_draws_at_a_time_are_looked_at_together() -> None:
    inference = npe()
    with pytest.raises(didyma.ProposalError, match="cannot be draws of the prior"):
        for i in range(20):
            five = np.full((5, 2), 0.3) + 0.001 * i
            inference.append_simulations(five, five)
    # Right ones pass.
    inference = npe()
    for seed in range(20):
        theta = prior().sample((5,), seed=seed)
        inference.append_simulations(theta, theta)


def test_some_of_the_proposed_rows_are_no_draws() -> None:
    for proposal in (None, prior()):
        inference = npe()
        theta = inference.propose(100)
        ok = theta[:, 0] < 0.5
        with pytest.raises(didyma.ProposalError, match="leave failed ones in, with NaN in x"):
            inference.append_simulations(theta[ok], theta[ok], proposal=proposal)


def test_rows_are_appended_once() -> None:
    inference = npe()
    theta = inference.propose((100,))
    inference.append_simulations(theta, theta)
    with pytest.raises(didyma.ProposalError, match="round 1 was given parameters that round 1 has already"):
        inference.append_simulations(theta, theta)
    inference.train(progress=False)
    with pytest.raises(didyma.ProposalError, match="round 2 was given parameters that round 1 has already"):
        inference.append_simulations(theta, theta)


def test_a_report_by_a_function_of_many_rows(tmp_path: Path) -> None:
    found = trained().result()
    page = Path(found.report(tmp_path / "report.html", simulator=noisy_rows, predictive=50)).read_text()
    assert "fig-predictive" in page


def test_tasks_simulate_too() -> None:
    task = didyma.tasks.two_moons()
    inference = didyma.NPE(task.prior, task.x_o, seed=3, settings=IN_FULL)
    for _ in range(2):
        theta = inference.propose(120)
        inference.append_simulations(theta, inference.simulate(task, theta, progress=False)).train(progress=False)
    whole = didyma.infer(task, **{**QUICK, "settings": IN_FULL})
    posterior = inference.build_posterior()
    np.testing.assert_array_equal(posterior.sample((9,), seed=1), whole.posterior.sample((9,), seed=1))


def test_other_threads_may_look() -> None:
    inference = npe()
    theta = inference.propose(50)
    seen: list[Any] = []

    def simulator(theta: np.ndarray) -> np.ndarray:
        seen.append((inference.rounds, repr(inference)))
        return theta

    inference.simulate(simulator, theta, vectorized=False, progress=False)
    assert seen[-1] == (0, "NPE by tgrr: 0 rounds trained, 0 simulations since")


def test_draws_are_taken_in_double_precision() -> None:
    narrow = didyma.Uniform([1000.0], [1001.0])
    theta = np.random.default_rng(0).uniform(1000, 1001, (100_000, 1))
    assert (theta.astype(np.float32) == 1001).any()
    didyma.NPE(narrow, [0.5]).append_simulations(theta, theta - 1000)


def test_a_bad_name_is_refused_before_anything_is_done() -> None:
    with pytest.raises(didyma.InputError, match="names folders too"):
        didyma.NPE(prior(), X_O, name="a/b")


def test_a_foreign_estimator_is_refused() -> None:
    with pytest.raises(didyma.ProposalError, match="not what the last train returned"):
        trained().build_posterior(trained(seed=4).build_posterior())


def test_the_first_round_must_look_like_the_prior() -> None:
    theta = np.random.default_rng(1).normal(scale=0.2, size=(400, 2))
    with pytest.raises(didyma.ProposalError, match="round 1 needs draws of the prior, and those of"):
        npe().append_simulations(theta, theta)


@pytest.mark.parametrize(
    ("theta", "x", "error", "words"),
    [
        ([[0.1, 0.2]], [[0.1]], didyma.ShapeError, r"x has the shape \(1, 1\), but \(N, 2\) is needed"),
        ([[0.1, 0.2]], [[0.1, 0.2]] * 2, didyma.ShapeError, "x has 2 rows, but 1 are needed"),
        ([[0.1, 0.2, 0.3]], [[0.1, 0.2]], didyma.ShapeError, r"theta has the shape \(1, 3\)"),
        ([[0.1, np.nan]], [[0.1, 0.2]], didyma.NotFiniteError, "theta holds NaN"),
        ([[0.1, 5.0]], [[0.1, 0.2]], didyma.InputError, "b is 5, outside of its prior"),
        ([[0.1, 0.5]], [["a", "b"]], didyma.DtypeError, "x is an array of <U1"),
    ],
)
def test_what_is_refused(theta: Any, x: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        npe().append_simulations(theta, x)


def test_steps_in_the_wrong_order() -> None:
    inference = npe()
    with pytest.raises(didyma.ProposalError, match="there is no posterior yet"):
        inference.build_posterior()
    with pytest.raises(didyma.ProposalError, match="round 1 has no simulations"):
        inference.train(progress=False)
    with pytest.raises(didyma.ProposalError, match="round 1 is not trained yet"):
        inference.result()
    theta = inference.propose(50)
    inference.append_simulations(theta[:20], theta[:20])
    with pytest.raises(didyma.ProposalError, match="already has simulations"):
        inference.propose(50)


def test_single_precision_is_taken_back_where_it_loses_nothing() -> None:
    inference = didyma.NPE(didyma.Uniform([0.0], [1.0]), [0.5], seed=1)
    theta = inference.propose(20).astype(np.float32)
    twice = [inference.simulate(lambda theta, rng: theta + rng.normal(), theta, progress=False) for _ in range(2)]
    np.testing.assert_array_equal(*twice)
    inference.append_simulations(theta, twice[0])
    date = didyma.NPE(didyma.Normal([2459000.5], [0.1]), [2459000.6], seed=1)
    theta = date.propose(20)
    assert len(np.unique(theta.astype(np.float32))) < 10
    with pytest.raises(didyma.DidymaError, match="parameters that were proposed"):
        date.append_simulations(theta.astype(np.float32), theta)

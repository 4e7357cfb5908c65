"""The comparison of members' weights and numbers in benches/members.py."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest

import didyma
import didyma.tasks

# The benchmarks are no part of the package: they lie in the repository.
sys.path.append(str(Path(__file__).parents[2]))

from benches import members  # noqa: E402


def test_members_are_those_of_the_mixture(tmp_path: Path) -> None:
    task = didyma.tasks.two_moons()
    settings = {"train.epochs": 3, "scores": "none"}
    result = didyma.infer(
        task, rounds=2, simulations=80, members=3, settings=settings, seed=1, out=tmp_path / "run", progress=False
    )
    theta = task.reference((200,), seed=1)
    each = [member.log_prob(theta) for member in members.members(tmp_path / "run" / "round-2.safetensors")]
    assert len(each) == 3 and not np.allclose(each[0], each[1])
    # Log-densities of size 10 in single precision: 10 · 6e-8 each, from another file with the same bytes.
    mixed = np.log(np.mean(np.exp(each), axis=0))
    assert np.allclose(mixed, result.posterior.log_prob(theta), rtol=0, atol=1e-5)

    name, log_q, losses = members.densities(tmp_path / "run")
    theta = task.reference((10_000,), seed=1)
    scores = members.weights(log_q, losses)
    assert name == "two-moons"
    assert scores["equal"] == pytest.approx(-result.posterior.log_prob(theta).mean(), abs=1e-5)
    # A mixture is not worse than the mean of its members: the logarithm is concave.
    assert scores["equal"] <= scores["one member"]
    last = json.loads((tmp_path / "run" / "summary.json").read_text())["rounds"][-1]
    assert [member["validation_loss"] for member in last["members"]] == list(losses)
    each = [member.log_prob(theta) for member in members.members(tmp_path / "run" / "round-2.safetensors")]
    assert scores["lowest held-out loss"] == pytest.approx(-each[int(np.argmin(losses))].mean(), abs=1e-5)
    weights = np.exp(-losses) / np.exp(-losses).sum()
    assert scores["by held-out loss"] == pytest.approx(-np.log(weights @ np.exp(each)).mean(), abs=1e-5)

    by_number = members.numbers(log_q, losses)
    assert list(by_number) == ["1", "2", "3"]
    assert by_number["1"] == pytest.approx(scores["one member"], abs=1e-9)
    assert by_number["3"] == pytest.approx(scores["equal"], abs=1e-9)
    pairs = [np.logaddexp(log_q[:, i], log_q[:, j]).mean() - np.log(2) for i, j in [(0, 1), (0, 2), (1, 2)]]
    assert by_number["2"] == pytest.approx(-np.mean(pairs), abs=1e-9)

"""The calibration of a run: by its own simulations, by new ones, and the verdict that follows."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import didyma
from conftest import QUICK, X_O, noisy_row, prior


def test_a_run_of_a_function_is_calibrated_by_new_simulations(tmp_path: Path) -> None:
    found = didyma.infer(noisy_row, prior(), X_O, members=2, out=tmp_path / "run", **QUICK)
    assert found.verdict["word"] in ("trust", "check", "do not trust")
    assert found.verdict == found.summary().to_dict()["verdict"]
    report = found.calibrate(noisy_row, simulations=60)
    calibration = report["calibration"]
    assert calibration["evidence"] == "new" and calibration["rows"] == report["new_simulations"] - report["new_failures"]
    assert {place["name"] for place in calibration["parameters"]} == {"a", "b"}
    assert 0 <= calibration["local"]["p_value"] <= 1
    assert found.verdict == report["verdict"]
    stored = json.loads((tmp_path / "run" / "summary.json").read_text())
    assert stored["verdict"] == report["verdict"]
    # Nothing new is asked for: the same, and so from the disk.
    assert found.calibrate() == report
    assert didyma.Result.load(tmp_path / "run").verdict == report["verdict"]


def test_a_task_needs_no_simulator_and_gives_conformal_levels() -> None:
    found = didyma.infer(didyma.tasks.two_moons(), method="npe", members=1, **QUICK)
    calibration = found.calibrate(simulations=40, conformal=True, local=False)["calibration"]
    levels = calibration["conformal"]
    assert levels["over"] == "prior" and levels["rows"] == 40
    assert [level["coverage"] for level in levels["levels"]] == [0.5, 0.8, 0.9, 0.95, 0.99]
    assert levels["levels"][-1]["level"] is None and "local" not in calibration


def test_bad_input_is_told_and_loses_nothing() -> None:
    found = didyma.infer(noisy_row, prior(), X_O, members=1, **QUICK)
    before = found.verdict
    with pytest.raises(didyma.InputError, match="simulator is missing"):
        found.calibrate(simulations=40)
    with pytest.raises(didyma.InputError, match="simulations is missing"):
        found.calibrate(noisy_row)
    with pytest.raises(didyma.InputError, match="simulations is 0, too few"):
        found.calibrate(noisy_row, simulations=0)
    task = didyma.infer(didyma.tasks.two_moons(), members=1, **QUICK)
    with pytest.raises(didyma.InputError, match="the run knows its own"):
        task.calibrate(noisy_row, simulations=40)
    with pytest.raises(didyma.RunError, match="0 new simulations of the 20"):
        task.calibrate(conformal=True)
    assert found.verdict == before


def test_what_a_broken_call_stored_counts(tmp_path: Path) -> None:
    found = didyma.infer(noisy_row, prior(), X_O, members=1, out=tmp_path / "run", **QUICK)
    calls = 0

    def impatient(theta: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        nonlocal calls
        calls += 1
        if calls == 90:
            raise KeyboardInterrupt
        return noisy_row(theta, rng)

    with pytest.raises(KeyboardInterrupt, match="the same call continues"):
        found.calibrate(impatient, simulations=400, local=False)
    again = found.calibrate(noisy_row, simulations=400, local=False)
    assert again["new_simulations"] == 400

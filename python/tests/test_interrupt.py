"""Ctrl-C while a function simulates, while an executor does, and while it trains; and going on after it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import numpy as np
import pytest

import didyma
from conftest import QUICK, X_O, noisy_row, prior

SCRIPT = """
import sys, time
from concurrent.futures import ThreadPoolExecutor
import numpy as np
import didyma

def simulator(theta, rng):
    open(sys.argv[2], "w").close()
    time.sleep(SLEEP)
    return theta + 0.1 * rng.normal(size=2)

print("begun", flush=True)
prior = didyma.Uniform(low=[-1, -1], high=[1, 1], names=["a", "b"])
try:
    didyma.infer(
        simulator, prior, [0.2, -0.1], rounds=2, simulations=120, seed=3, out=sys.argv[1], progress=False,
        vectorized=False, name="noisy_row", EXECUTOR settings={"train.steps": STEPS, "train.patience": STEPS, "train.epochs": STEPS, "samples": 200},
    )
except KeyboardInterrupt as interrupt:
    print("KeyboardInterrupt:", interrupt, flush=True)
"""


@pytest.mark.parametrize(
    ("sleep", "steps", "executor"),
    [
        # In the user's own function, which takes far longer than we wait.
        (30, 20, ""),
        # Between rows.
        (0.02, 20, ""),
        (0.02, 20, "executor=ThreadPoolExecutor(1),"),
        # In training.
        (0.0, 1_000_000, ""),
    ],
)
def test_ctrl_c(sleep: float, steps: int, executor: str, tmp_path: Path) -> None:
    script = textwrap.dedent(SCRIPT).replace("SLEEP", str(sleep)).replace("STEPS", str(steps))
    script = script.replace("EXECUTOR", executor)
    run = tmp_path / "run"
    command = [sys.executable, "-c", script, str(run), str(tmp_path / "called")]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None and process.stdout.readline() == "begun\n"
    # Until it is where it is to be interrupted.
    mark = {30: tmp_path / "called", 0.02: run / "run.db", 0.0: run / "checkpoint.safetensors"}[sleep]
    until = time.monotonic() + 60
    while not mark.exists() and time.monotonic() < until:
        time.sleep(0.05)
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    start = time.monotonic()
    out, err = process.communicate(timeout=60)
    # It ends at once: an epoch of training is a fraction of a second, and the function itself is interrupted.
    assert time.monotonic() - start < 10, err
    assert process.returncode == 0, err
    if sleep == 30:
        # Its first call was before the run.
        assert out.startswith("KeyboardInterrupt:") and not run.exists()
        return
    assert out.startswith("KeyboardInterrupt: stopped; everything so far is saved; go on with didyma.resume("), out
    if steps == 20:
        settings = {**QUICK["settings"], "train.patience": 20, "train.epochs": 20}
        whole = didyma.infer(noisy_row, prior(), X_O, **{**QUICK, "settings": settings})
        found = didyma.resume(run, noisy_row, progress=False)
        np.testing.assert_array_equal(found.posterior.sample((9,), seed=1), whole.posterior.sample((9,), seed=1))


def test_a_run_that_is_killed_goes_on(tmp_path: Path) -> None:
    script = textwrap.dedent(SCRIPT).replace("SLEEP", "0.01").replace("STEPS", "20").replace("EXECUTOR", "")
    run = tmp_path / "run"
    command = [sys.executable, "-c", script, str(run), str(tmp_path / "called")]
    process = subprocess.Popen(command, stdout=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.readline()
    while not (run / "run.db").exists() and process.poll() is None:
        time.sleep(0.05)
    time.sleep(0.3)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    process.stdout.close()
    found = didyma.resume(run, noisy_row, progress=False)
    settings = {**QUICK["settings"], "train.patience": 20, "train.epochs": 20}
    whole = didyma.infer(noisy_row, prior(), X_O, **{**QUICK, "settings": settings})
    np.testing.assert_array_equal(found.posterior.sample((9,), seed=1), whole.posterior.sample((9,), seed=1))


def test_the_command_line_says_where_such_a_run_goes_on(tmp_path: Path) -> None:
    def simulator(theta: np.ndarray) -> np.ndarray:
        nonlocal left
        left -= 1
        if left < 0:
            raise KeyboardInterrupt
        return noisy_row(theta, np.random.default_rng(1))

    left = 100
    with pytest.raises(KeyboardInterrupt, match="go on with didyma.resume"):
        didyma.infer(simulator, prior(), X_O, out=tmp_path / "run", vectorized=False, **QUICK)
    command = [sys.executable, "-m", "didyma", "resume", str(tmp_path / "run")]
    told = subprocess.run(command, capture_output=True, text=True)
    assert told.returncode == 2
    shown = subprocess.run([*command[:3], "show", str(tmp_path / "run")], capture_output=True, text=True)
    assert "to go on, in Python: didyma.resume(" in shown.stdout
    assert "the simulator of this run is a function of the program that began it" in told.stderr and "didyma.resume" in told.stderr
    # Nothing was counted as failed.
    found = didyma.resume(tmp_path / "run", noisy_row, progress=False)
    assert found.failures() == []

"""Where flows are trained and evaluated. What needs a GPU is tested in Rust; here is what is said where there is none."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import didyma
from conftest import QUICK, X_O, noisy_row, prior
from test_infer import COMMAND

FOUND = didyma.devices()
without_gpu = pytest.mark.skipif(any(gpu["problem"] is None for gpu in FOUND["cuda"]), reason="there is a GPU: what is said without one was not tried")


def test_devices_are_those_of_the_command_line() -> None:
    shown = subprocess.run([*COMMAND, "devices", "--json"], check=True, capture_output=True, text=True)
    theirs = json.loads(shown.stdout)
    assert FOUND["cpu"] == theirs["cpu"] and FOUND["cpu"]["cores"] > 0
    assert [gpu["name"] for gpu in FOUND["cuda"]] == [gpu["name"] for gpu in theirs["cuda"]]
    why = theirs["cuda_unavailable"]
    assert FOUND["cuda_unavailable"] == (why and why.replace("--device cpu", 'device="cpu"'))


@without_gpu
def test_auto_is_the_cpu_to_the_byte(tmp_path: Path) -> None:
    found = {}
    for device in ("auto", "cpu"):
        run = tmp_path / device
        found[device] = didyma.infer(noisy_row, prior(), X_O, device=device, out=run, **QUICK)
        assert didyma.resume(run, device=device, progress=False).posterior.device.startswith("CPU (")
    for name in ("posterior.csv", "round-1.safetensors", "round-2.safetensors"):
        assert (tmp_path / "auto" / name).read_bytes() == (tmp_path / "cpu" / name).read_bytes(), name
    assert found["auto"].posterior.device == found["cpu"].posterior.device == FOUND["cpu"]["kernels"]


def test_a_run_on_the_cpu_says_so(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with warnings.catch_warnings():
        # The CPU was asked for: nothing is to be told of GPUs.
        warnings.simplefilter("error")
        didyma.infer(noisy_row, prior(), X_O, device="cpu", out=tmp_path / "run", **{**QUICK, "progress": True})
    first = capfd.readouterr().err.splitlines()[0]
    expected = f"noisy_row by tgrr: 2 rounds of 120 simulations, seed 3, in {tmp_path / 'run'}, on {FOUND['cpu']['kernels']}"
    assert first == expected


def test_steps_on_the_cpu() -> None:
    inference = didyma.NPE(prior(), X_O, seed=3, settings=QUICK["settings"], device="cpu")
    for _ in range(2):
        theta = inference.propose(120)
        posterior = inference.append_simulations(theta, theta).train(progress=False)
    assert inference.device == posterior.device == inference.result().posterior.device == FOUND["cpu"]["kernels"]


def refused(**call: Any) -> list[str]:
    """What `infer` and `NPE` say."""
    said = []
    with pytest.raises(didyma.InputError) as raised:
        didyma.infer(noisy_row, prior(), X_O, **{**QUICK, **call})
    said.append(str(raised.value))
    with pytest.raises(didyma.InputError) as raised:
        didyma.NPE(prior(), X_O, **call)
    said.append(str(raised.value))
    assert not any("--" in text for text in said), "that is of the command line"
    return said


@without_gpu
def test_a_gpu_that_is_not_there_is_told(tmp_path: Path) -> None:
    said = refused(device="cuda")
    assert said == [f'device is "cuda", but {FOUND["cuda_unavailable"]}'] * 2
    # As CUDA_VISIBLE_DEVICES may hide a GPU of a driver that is there: one of these.
    assert any(words in said[0] for words in ("NVIDIA driver", "NVIDIA's run-time compiler", "the driver says"))
    run = tmp_path / "run"
    with pytest.raises(didyma.InputError, match='device is "cuda", but'):
        didyma.infer(noisy_row, prior(), X_O, device="cuda", out=run, **QUICK)
    assert not run.exists(), "nothing was begun"
    didyma.infer(noisy_row, prior(), X_O, out=run, **QUICK)
    with pytest.raises(didyma.InputError, match='device is "cuda", but'):
        didyma.resume(run, device="cuda", progress=False)


@without_gpu
@pytest.mark.skipif(sys.platform != "linux" or not shutil.which("cc"), reason="no C compiler: a broken driver was not tried")
def test_a_driver_that_cannot_be_used_is_worth_a_warning(tmp_path: Path) -> None:
    # A driver older than every compiler, if there is one at all.
    source = tmp_path / "driver.c"
    source.write_text("int cuDriverGetVersion(int *version) { *version = 1000; return 0; }")
    subprocess.run(["cc", "-shared", "-fPIC", "-o", str(tmp_path / "libcuda.so"), str(source)], check=True)
    script = (
        "import didyma\n"
        "for device in ('cpu', 'auto'):\n"
        "    print(didyma.NPE(didyma.Uniform([0], [1]), [0.5], device=device).device)\n"
    )
    path = f"{tmp_path}:{os.environ.get('LD_LIBRARY_PATH', '')}"
    ran = subprocess.run(
        [sys.executable, "-c", script], env={**os.environ, "LD_LIBRARY_PATH": path}, capture_output=True, text=True, check=True
    )
    assert ran.stdout.splitlines() == [FOUND["cpu"]["kernels"]] * 2
    assert ran.stderr.count("UserWarning: on the CPU, as ") == 1 and "--" not in ran.stderr
    assert 'choose device="cpu"' in ran.stderr


def test_a_score_is_trained_on_the_cpu() -> None:
    words = 'device is "cuda", but snse learns a score, which is trained on the CPU only: choose device="cpu", or another method'
    assert refused(device="cuda", method="snse") == [words] * 2
    assert didyma.NPE(prior(), X_O, method="snse").device == FOUND["cpu"]["kernels"]


@pytest.mark.parametrize("name", ["gpu", "cuda:0", ""])
def test_names_that_are_none(name: str) -> None:
    assert refused(device=name) == [f'device is "{name}": give one of auto, cpu, cuda'] * 2
    with pytest.raises(didyma.InputError, match="device is"):
        didyma.resume("nowhere", device=name)

"""The README's Python example, as written, where nothing but the wheel is installed."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

README = Path(__file__).parents[2] / "README.md"


def words(text: str) -> list[str]:
    """All but numbers, and why training stopped."""
    return re.sub(r"-?\d+(\.\d+)?|\((patience|budget)\)", "", text).split()


def moments(text: str, name: str) -> tuple[float, float]:
    found = re.search(rf"^{name} +(\S+) +(\S+)", text, re.MULTILINE)
    assert found
    return float(found[1]), float(found[2])


def test_the_example_runs_in_a_fresh_environment(tmp_path: Path) -> None:
    wheel = os.environ.get("DIDYMA_WHEEL")
    if wheel is None:
        pytest.skip("DIDYMA_WHEEL names no wheel: scripts/python-test makes one")
    found = re.search(r"```python\n(.*?)```\n.*?```text\n(.*?)```", README.read_text(), re.DOTALL)
    assert found, "the README has no Python example with its output"
    example, shown = found.groups()
    python = tmp_path / "venv" / "bin" / "python"
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "venv"], check=True)
    subprocess.run([python, "-m", "pip", "install", "--quiet", wheel], check=True)
    installed = subprocess.run([python, "-m", "pip", "freeze"], check=True, capture_output=True, text=True).stdout
    assert sorted(re.split(r"[= @]", line)[0] for line in installed.split("\n") if line) == ["didyma", "numpy"]
    (tmp_path / "example.py").write_text(example)
    ran = subprocess.run([python, "example.py"], cwd=tmp_path, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    # What it shows is what it prints, but for times, and for the last digits of arithmetic on another kind of CPU, which
    # training makes larger: as much as two seeds differ by, a third of a posterior's deviation.
    (printed, verdict), (expected, _) = (text.split("\nverdict: ") for text in (ran.stdout, shown))
    assert words(printed) == words(expected), ran.stdout
    # Which checks are doubtful may hang on these digits.
    assert verdict.split("\n")[0] in ("trust", "check") and "calibration:" in verdict, ran.stdout
    for name in ("amplitude", "rate"):
        (mean, _), (expected, sd) = moments(ran.stdout, name), moments(shown, name)
        assert abs(mean - expected) < sd / 3, ran.stdout
    assert (tmp_path / "pairs.svg").is_file() and (tmp_path / "report.html").is_file()
    help = subprocess.run([tmp_path / "venv" / "bin" / "didyma", "--help"], check=True, capture_output=True, text=True)
    assert "infer" in help.stdout

"""The types: the stub is what the compiled part is, and Python code agrees with it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import didyma

ROOT = Path(__file__).parents[2]


def run(*words: str) -> None:
    pytest.importorskip("mypy", reason="mypy is not installed: types were not checked")
    found = subprocess.run([sys.executable, "-m", *words], cwd=ROOT, capture_output=True, text=True)
    assert found.returncode == 0, found.stdout + found.stderr


def test_the_stub_is_the_compiled_module(tmp_path: Path) -> None:
    # Of both kinds: names that a Python without the decorator cannot say, and pyo3's list of all names.
    allow = tmp_path / "allowed"
    allow.write_text("didyma\\._didyma\\.__all__\n")
    run("mypy.stubtest", "didyma._didyma", "--allowlist", str(allow), "--ignore-disjoint-bases")


def test_the_package_is_typed() -> None:
    run("mypy", "python/didyma")


def test_everything_has_a_docstring() -> None:
    for name in didyma.__all__:
        thing = getattr(didyma, name)
        if name != "__version__":
            assert thing.__doc__, name
    assert "x_o: the observation" in (didyma.infer.__doc__ or "")

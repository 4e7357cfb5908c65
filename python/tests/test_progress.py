"""What is seen while a run goes on."""

from __future__ import annotations

import io
import sys
import types
from typing import Any

import pytest

import didyma
from conftest import QUICK, X_O, noisy_row, prior
from didyma import _progress


def test_plain_lines_where_there_is_no_terminal(capfd: pytest.CaptureFixture[str]) -> None:
    didyma.infer(noisy_row, prior(), X_O, **{**QUICK, "progress": True})
    told = capfd.readouterr()
    assert told.out == "" and told.err.count("\n") == 3 and "round  2/2: 120 simulations" in told.err


def test_a_line_that_changes_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    screen = Terminal()
    monkeypatch.setattr(_progress.Terminal, "BETWEEN", (0.0, 10.0))
    monkeypatch.setattr(sys, "stderr", screen)
    didyma.infer(noisy_row, prior(), X_O, **{**QUICK, "progress": True})
    told = screen.getvalue()
    assert told.count("\r\x1b[2Kround") > 4 and told.count("\n") == 3 and told.endswith("\r\x1b[2K")


def test_html_in_a_notebook(monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[str] = []

    def display(content: str, display_id: bool) -> Any:
        assert display_id
        shown.append(content)
        return types.SimpleNamespace(update=shown.append)

    shell = types.SimpleNamespace(config={"IPKernelApp": {}})
    ipython = types.ModuleType("IPython")
    ipython.get_ipython = lambda: shell  # type: ignore[attr-defined]
    displays = types.ModuleType("IPython.display")
    displays.HTML = str  # type: ignore[attr-defined]
    displays.display = display  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setitem(sys.modules, "IPython.display", displays)
    assert isinstance(_progress.make(True), _progress.Notebook)
    assert isinstance(_progress.make(False), _progress.Silent)
    didyma.infer(noisy_row, prior(), X_O, **{**QUICK, "progress": True})
    last = shown[-1]
    assert last.startswith("<pre>noisy_row by tgrr") and last.count("\n") == 2 and "epoch " not in last


def test_a_display_that_breaks_is_no_reason_to_stop(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(self: Any, *text: str) -> None:
        raise BrokenPipeError("nobody reads")

    for name in ("passing", "lasting", "finish"):
        monkeypatch.setattr(_progress.Terminal, name, broken)
    assert didyma.infer(noisy_row, prior(), X_O, **{**QUICK, "progress": True}).finished

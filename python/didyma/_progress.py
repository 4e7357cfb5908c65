"""What is seen of a run while it goes on: a line that changes on a terminal, plain lines elsewhere, HTML in a notebook."""

from __future__ import annotations

import html
import shutil
import sys
import time
from typing import Any, Protocol


class Progress(Protocol):
    """Shows the words of a run."""

    def passing(self, text: str) -> None:
        """Something that the next line replaces."""

    def lasting(self, text: str) -> None:
        """Something to stay."""

    def finish(self) -> None:
        """Nothing follows."""


class Silent:
    """Shows nothing."""

    def passing(self, text: str) -> None:
        pass

    def lasting(self, text: str) -> None:
        pass

    def finish(self) -> None:
        pass


class Terminal:
    """On stderr: a line that changes if it is a terminal, else a line now and then."""

    #: Seconds between passing lines where they can be replaced, and where they cannot.
    BETWEEN = (0.1, 10.0)

    def __init__(self) -> None:
        self.replaces = sys.stderr.isatty()
        self.told = time.monotonic()

    def passing(self, text: str) -> None:
        if time.monotonic() - self.told < self.BETWEEN[not self.replaces]:
            return
        self.told = time.monotonic()
        if self.replaces:
            # A line that wraps could not be taken back.
            width = shutil.get_terminal_size().columns - 1
            sys.stderr.write(f"\r\x1b[2K{text[:width]}")
            sys.stderr.flush()
        else:
            self._line(text)

    def lasting(self, text: str) -> None:
        self._line(f"\r\x1b[2K{text}" if self.replaces else text)

    def finish(self) -> None:
        if self.replaces:
            sys.stderr.write("\r\x1b[2K")
            sys.stderr.flush()

    def _line(self, text: str) -> None:
        sys.stderr.write(text + "\n")
        sys.stderr.flush()


class Notebook:
    """In the output of a cell, which is replaced as the run goes on."""

    #: Seconds between updates.
    BETWEEN = 0.2

    def __init__(self, display: Any, make_html: Any) -> None:
        self.make_html = make_html
        self.lines: list[str] = []
        self.last = ""
        self.told = 0.0
        self.handle = display(make_html("<pre></pre>"), display_id=True)

    def passing(self, text: str) -> None:
        self.last = text
        if time.monotonic() - self.told >= self.BETWEEN:
            self._show()

    def lasting(self, text: str) -> None:
        self.lines.append(text)
        self.last = ""
        self._show()

    def finish(self) -> None:
        self.last = ""
        self._show()

    def _show(self) -> None:
        self.told = time.monotonic()
        text = "\n".join([*self.lines, self.last] if self.last else self.lines)
        self.handle.update(self.make_html(f"<pre>{html.escape(text)}</pre>"))


def make(progress: bool) -> Progress:
    """What suits where we are."""
    if not progress or sys.stderr is None:
        return Silent()
    # Never import IPython: if we are in a notebook, it is there.
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    if shell is not None and "IPKernelApp" in shell.config:
        from IPython.display import HTML, display

        return Notebook(display, HTML)
    return Terminal()

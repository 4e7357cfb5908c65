"""Forked workers let go of the locks of runs, which they would hold for as long as they live."""

from __future__ import annotations

import os

_held: set[int] = set()


def hold(descriptor: int) -> None:
    """A run is locked by this open file."""
    _held.add(descriptor)


def release(descriptor: int) -> None:
    """It is no longer."""
    _held.discard(descriptor)


def _let_go() -> None:
    for descriptor in _held:
        os.close(descriptor)
    _held.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_let_go)

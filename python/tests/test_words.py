"""Sentences of the library in Python's words: what is replaced is still said."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2] / "crates"


def plain(source: str) -> str:
    """Rust strings without the backslashes that join their lines."""
    return re.sub(r"\\\n\s*", "", source)


def test_what_is_replaced_is_still_said() -> None:
    errors = plain((ROOT / "didyma-python/src/errors.rs").read_text())
    table = errors[errors.index("const WORDS") : errors.index("];", errors.index("const WORDS"))]
    files = [*(ROOT / "didyma/src").rglob("*.rs"), *(ROOT / "didyma-cuda/src").rglob("*.rs")]
    files.append(ROOT / "didyma-cli/src/device.rs")
    said = "".join(plain(path.read_text()) for path in files)
    pairs = re.findall(r'\(\s*"((?:[^"\\]|\\.)*)",\s*"(?:[^"\\]|\\.)*",?\s*\)', table)
    assert len(pairs) > 8
    for words in pairs:
        assert words.strip("`() ") in said, f"{words!r} is said nowhere any more"

"""Run directories compared: every row, every byte, except what this file lists."""

from __future__ import annotations

import json
import shutil
import sqlite3
import struct
import tempfile
from pathlib import Path
from typing import Any

from .cases import Case, Fault

#: Files that hold a process number, a log that belongs to the database, or a page with seconds and dates in it.
MAY_DIFFER = {"lock", "run.db-wal", "run.db-shm", "run.db-journal", "report.html"}
#: Fields that are measured: they differ between any two runs.
MEASURED = {
    "seconds", "seconds_together", "seconds_simulate", "seconds_train", "seconds_score", "seconds_total",
    "peak_rss_mb", "pairs_per_second",
}
#: Checksums over measured fields.
CHECKSUMS = {"didyma.crc32"}

#: Rows as they are stored, by place: parameters, summaries, failure.
Rows = dict[tuple, tuple[bytes, Any, Any]]


def tables(database: Path) -> dict[str, list[tuple]] | None:
    """Every table of a database, read from a copy with its log; none if nothing has begun in it."""
    if not database.is_file():
        return None
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "copy.db"
        shutil.copy(database, copy)
        log = database.with_name(database.name + "-wal")
        if log.exists():
            shutil.copy(log, copy.with_name("copy.db-wal"))
        connection = sqlite3.connect(copy)
        try:
            names = [name for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
            found = {name: connection.execute(f'SELECT * FROM "{name}"').fetchall() for name in names}
        except sqlite3.DatabaseError as error:
            raise Fault(f"{database.name} cannot be read: {error}") from None
        finally:
            connection.close()
    return found if "simulations" in found else None


def rows(database: Path) -> Rows:
    """The simulations of a run or of a shard."""
    found = tables(database) or {"simulations": []}
    return {(row[0], row[1]): row[2:5] for row in found["simulations"]}


def numbers(blob: bytes, count: int) -> tuple[float, ...]:
    """The numbers of a stored row, whichever width they have."""
    kind = {4: "f", 8: "d"}[len(blob) // count]
    return struct.unpack(f"<{count}{kind}", blob)


def expect_kept(before: Rows, after: Rows) -> None:
    """A row that was on the disk is there for ever."""
    for place, row in before.items():
        if after.get(place) != row:
            raise Fault(f"row {place} was stored, and is {'changed' if place in after else 'lost'}")


def expect_same(case: Case, found: Path, expected: Path, only: set[str] | None = None) -> None:
    """Both folders hold the same files, with the same content but for what is measured."""
    names = lambda folder: {
        str(path.relative_to(folder)) for path in folder.rglob("*")
        if path.is_file() and path.name not in MAY_DIFFER and (only is None or path.name in only)
    }
    new, old = names(found), names(expected)
    if new != old:
        raise Fault(f"files that should not be there: {sorted(new - old)}; that are missing: {sorted(old - new)}")
    for name in sorted(old):
        one, other = content(found / name), content(expected / name)
        if one != other:
            raise Fault(f"{name} differs from that of the undisturbed run")
        if name.endswith(".db"):
            case.count("rows", len(one["simulations"]))
        else:
            case.count("bytes", (found / name).stat().st_size)


def content(path: Path) -> Any:
    """What is compared of a file."""
    if path.suffix == ".db":
        found = tables(path)
        if found is None:
            raise Fault(f"{path.name} holds no run")
        # Events are a log: an interrupted run has more of them, at other times.
        found.pop("events", None)
        # Workers end in any order, and rows are appended as they come.
        found["simulations"].sort(key=lambda row: row[:2])
        found["rounds"] = [(number, masked(json.loads(text))) for number, text, *_ in found.get("rounds", [])]
        return found
    data = path.read_bytes()
    if path.suffix == ".json":
        return masked(json.loads(data))
    if path.name == "checkpoint.safetensors":
        length = struct.unpack("<Q", data[:8])[0]
        header = json.loads(data[8 : 8 + length])
        return masked(header), data[8 + length :]
    return data


def masked(value: Any) -> Any:
    """JSON without what is measured; a text that is JSON itself is read as well."""
    if isinstance(value, dict):
        return {k: masked(v) for k, v in value.items() if k not in MEASURED | CHECKSUMS}
    if isinstance(value, list):
        return [masked(item) for item in value]
    if isinstance(value, str) and value[:1] == "{":
        try:
            return masked(json.loads(value))
        except ValueError:
            return value
    return value

"""Losses of power: what was not yet on the disk is torn or gone, and going on ends with the same bytes.

A run is stopped (SIGSTOP) at several moments and its folder copied. From a copy goes away what the disk need not hold at that
moment: SQLite's shared memory, the log after its last but one transaction, pages of the database that the log still
has, and files that were not yet renamed into place. Everything else was synchronised before the run went on: a copy
without it could not occur.
"""

from __future__ import annotations

import os
import shutil
import signal
import struct
import time
from pathlib import Path

from . import runs
from .cases import Case, end
from .compare import expect_kept, expect_same, rows

SURFACES = ["infer", "seeds", "workers", "shard"]
MOMENTS = 3
#: Sizes of the log's header and of a frame's header.
LOG, FRAME = 32, 24


def play(case: Case) -> None:
    """Plays one case: one run, several moments."""
    if case.surface == "shard":
        name, words, product = shard(case)
    else:
        name, words = runs.begin(case, case.surface)
        product = "run"
    whole = runs.whole(case, name, words, product if case.surface == "shard" else None)
    copies = snapshots(case, words, whole.seconds["run"], product)
    for copy in copies:
        shutil.rmtree(case.folder / product, ignore_errors=True)
        if copy.exists():
            copy.rename(case.folder / product)
        elif case.surface == "shard":
            (case.folder / product).mkdir()
        lose(case, case.folder / product)
        before = {path: rows(path) for path in (case.folder / product).rglob("*.db")}
        case.count("resumes")
        case.run(words if case.surface == "shard" else runs.again(case, words)).expect(0)
        for path, kept in before.items():
            expect_kept(kept, rows(path))
        expect_same(case, case.folder / product, whole.folder / product)


def shard(case: Case) -> tuple[str, list[str], str]:
    """A shard of a round: `simulate` goes on with its own file."""
    problem = runs.problem(case, "workers")
    (case.folder / "shard").mkdir()
    words = ["simulate", str(problem), "--shard", "1/1", "--out", "shard/1.db", "--threads", "1"]
    return "shard", [str(case.product.binary), *words], "shard"


def snapshots(case: Case, words: list[str], seconds: float, product: str) -> list[Path]:
    """Copies of the folder at random moments of the command, which is ended after the last."""
    moments = sorted(case.random.uniform(0.02, 1) * seconds for _ in range(MOMENTS))
    child, begun, copies, stopped = case.start(words), time.monotonic(), [], 0.0
    try:
        for number, moment in enumerate(moments):
            time.sleep(max(0.0, begun + stopped + moment - time.monotonic()))
            if child.poll() is None:
                os.kill(child.pid, signal.SIGSTOP)
            halt = time.monotonic()
            copy = case.folder / f"moment-{number}"
            if (case.folder / product).exists():
                copied(case.folder / product, copy)
            copies.append(copy)
            if child.poll() is None:
                os.kill(child.pid, signal.SIGCONT)
            stopped += time.monotonic() - halt
    finally:
        end(child)
    return copies


def copied(source: Path, target: Path) -> None:
    """A copy of a folder that may still change: the signal is heard a moment after it was sent."""
    while True:
        shutil.rmtree(target, ignore_errors=True)
        time.sleep(0.002)
        try:
            before = state(source)
            shutil.copytree(source, target)
            if state(source) == before:
                return
        except (FileNotFoundError, shutil.Error):
            continue


def state(folder: Path) -> list:
    found = ((path, path.stat()) for path in sorted(folder.rglob("*")))
    return [(path, stat.st_size, stat.st_mtime_ns, stat.st_ino) for path, stat in found]


def lose(case: Case, folder: Path) -> None:
    """Takes from a folder what the disk need not hold. Logs come first: they are judged by the times of other files."""
    for path in sorted(folder.rglob("*-wal")):
        frames = log(path)
        tear_log(case, path, frames)
        if case.random.random() < 0.5:
            smudge(case, path.with_name(path.name[:-4]), path, frames)
        path.with_name(path.name[:-3] + "shm").unlink(missing_ok=True)
    for path in sorted(folder.rglob("*.part")):
        tear(case, path)


def tear(case: Case, path: Path) -> None:
    """A file whose content was on its way: cut, full of zeros, or not there."""
    size = path.stat().st_size
    how = case.random.randrange(3)
    if how == 0:
        os.truncate(path, case.random.randrange(size + 1))
    elif how == 1:
        path.write_bytes(bytes(size))
    else:
        path.unlink()


def log(path: Path) -> list[tuple[int, int, bool]]:
    """The frames of the log's newest generation: where each begins, its page, and whether a transaction ends with it."""
    data = path.read_bytes()
    if len(data) < LOG:
        return []
    page_size, salts, frames = struct.unpack(">I", data[8:12])[0], data[16:24], []
    for at in range(LOG, len(data) - FRAME - page_size + 1, FRAME + page_size):
        page, last = struct.unpack(">II", data[at : at + 8])
        if data[at + 8 : at + 16] != salts:
            break
        frames.append((at, page, last != 0))
    return frames


def tear_log(case: Case, path: Path, frames: list[tuple[int, int, bool]]) -> None:
    """Tears what came after the last but one transaction: the last may have been on its way to the disk."""
    size = path.stat().st_size
    others = [other.stat().st_mtime_ns for other in (path.parent, *path.parent.iterdir()) if other != path]
    if path.stat().st_mtime_ns <= max(others):
        # A file that is newer than the transaction was written after the disk had it.
        return
    ends = [next_at for (_, _, last), next_at in zip(frames, [at for at, *_ in frames[1:]] + [size]) if last]
    # With one transaction only, it is the one by which the run begins: before it, there is none.
    safe = ends[-2] if len(ends) > 1 else 0
    if case.random.random() < 0.5:
        os.truncate(path, case.random.randint(safe, size))
    elif size > safe:
        data = bytearray(path.read_bytes())
        at = case.random.randrange(safe, size)
        length = min(size - at, 512)
        data[at : at + length] = bytes(length)
        path.write_bytes(data)


def smudge(case: Case, database: Path, path: Path, frames: list[tuple[int, int, bool]]) -> None:
    """Spoils a page of the database that the log has: it may have been on its way from there."""
    commits = [index for index, frame in enumerate(frames) if frame[2]]
    pages = [page for _, page, _ in frames[: commits[-2] + 1]] if len(commits) > 1 else []
    if not pages or not database.exists():
        return
    page, size = case.random.choice(pages), struct.unpack(">I", path.read_bytes()[8:12])[0]
    if page * size <= database.stat().st_size:
        with database.open("r+b") as file:
            file.seek((page - 1) * size)
            file.write(bytes(size))

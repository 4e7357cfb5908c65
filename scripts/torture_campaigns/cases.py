"""A case: its name, its random numbers, its folder, and the commands that it runs under limits."""

from __future__ import annotations

import hashlib
import os
import random
import shlex
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Callable

#: Seconds after which a command counts as hanging. The longest takes a few.
LIMIT = 60.0
#: Address space of a command in bytes: a tiny run needs a tenth of it.
MEMORY = 8 << 30
#: Bytes of one stream that are kept.
KEPT = 4 << 20


class Fault(Exception):
    """The program did what it must never do."""


class Skip(Exception):
    """The case cannot run here; the text says why."""


@dataclass(frozen=True)
class Product:
    """The program under test, as a user has it."""

    binary: Path
    #: Interpreter whose `import didyma` works, if there is one.
    python: Path | None
    #: Folder that holds reference runs, made once for each program.
    references: Path
    _locks: dict[str, threading.Lock] = field(default_factory=dict)
    _guard: threading.Lock = field(default_factory=threading.Lock)

    def reference(self, name: str, make: Callable[[Path], None]) -> Path:
        """The folder `name`, made by the first who asks; one that was left unfinished is made anew."""
        with self._guard:
            lock = self._locks.setdefault(name, threading.Lock())
        folder = self.references / name
        with lock:
            if not folder.exists():
                work = self.references / f"{name}.making"
                shutil.rmtree(work, ignore_errors=True)
                work.mkdir(parents=True)
                make(work)
                work.rename(folder)
        return folder


@dataclass
class Done:
    """How a command ended."""

    words: list[str]
    code: int
    out: bytes
    err: bytes

    @property
    def told(self) -> str:
        """Everything that it said."""
        return (self.out + self.err).decode("utf-8", "replace")

    def judge(self) -> Done:
        """A fault unless it did its work, or refused it with a sentence."""
        self.expect(0, 2)
        if self.code == 2 and not any(line.startswith(b"error: ") for line in self.err.splitlines()):
            raise Fault(f"exit code 2 without a sentence of `{shlex.join(self.words)}`: {self.told.strip()[-600:]}")
        return self

    def expect(self, *codes: int) -> Done:
        """A fault unless the exit code is one of these."""
        if self.code not in codes:
            raise Fault(f"exit code {self.code} of `{shlex.join(self.words)}`: {self.told.strip()[-600:]}")
        return self


@dataclass
class Case:
    """One case of a campaign. Everything it does follows from the seed and its name."""

    product: Product
    seed: int
    campaign: str
    surface: str
    number: int
    folder: Path
    counts: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        digest = hashlib.sha256(f"{self.seed}:{self.name}".encode()).digest()
        self.random = random.Random(int.from_bytes(digest[:8], "big"))

    @property
    def name(self) -> str:
        return f"{self.campaign}:{self.surface}:{self.number}"

    def count(self, what: str, by: int = 1) -> None:
        """Adds to a column of the table: kills, resumes, rows, bytes."""
        self.counts[what] = self.counts.get(what, 0) + by

    def didyma(self, *words: str | Path, limit: float = LIMIT, memory: int | None = None) -> Done:
        """Runs a command of the program to its end."""
        return self.run([str(self.product.binary), *map(str, words)], limit=limit, memory=memory)

    def run(self, words: list[str], limit: float = LIMIT, memory: int | None = None) -> Done:
        """Runs any command to its end; one that hangs, panics or is ended by a signal is a fault."""
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            child = self.start(words, out, err, memory)
            try:
                child.wait(limit)
            except subprocess.TimeoutExpired:
                end(child)
                raise Fault(f"no end within {limit:.0f} s: `{shlex.join(words)}`") from None
            done = Done(words, child.returncode, head(out), head(err))
        if done.code < 0:
            raise Fault(f"ended by signal {-done.code}: `{shlex.join(words)}`: {done.told.strip()[-600:]}")
        if done.code == 101 or b"panicked at" in done.err:
            raise Fault(f"a panic: `{shlex.join(words)}`: {done.told.strip()[-600:]}")
        return done

    def start(self, words: list[str], out=subprocess.DEVNULL, err=subprocess.DEVNULL, memory: int | None = None):
        """Starts a command in a session of its own, so that a signal to it reaches nobody else."""
        limits = f'ulimit -c 0; ulimit -v {(memory or MEMORY) >> 10}; exec "$@"'
        environment = {k: v for k, v in os.environ.items() if not k.startswith("DIDYMA")}
        return subprocess.Popen(
            ["sh", "-c", limits, "sh", *words], stdin=subprocess.DEVNULL, stdout=out, stderr=err, cwd=self.folder,
            env=environment, start_new_session=True,
        )

    def kill_after(self, words: list[str], delay: float) -> bool:
        """Ends a command by SIGKILL after so many seconds; whether it had not ended by itself."""
        child = self.start(words)
        deadline = time.monotonic() + delay
        while (left := deadline - time.monotonic()) > 0:
            try:
                child.wait(left)
                return False
            except subprocess.TimeoutExpired:
                pass
        killed = child.poll() is None
        child.kill()
        child.wait()
        if killed:
            self.count("kills")
        return killed

    def delay(self, duration: float) -> float:
        """A moment of a command that takes so long: half of them early, where files are made one after another."""
        if self.random.random() < 0.5:
            return duration * 10 ** self.random.uniform(-2.5, 0)
        return duration * self.random.uniform(0, 1.1)


def end(child: subprocess.Popen) -> None:
    """Ends a command of `Case.start` with those of its session that are still in its group."""
    try:
        os.killpg(child.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    child.wait()


def head(stream) -> bytes:
    stream.seek(0)
    return stream.read(KEPT)

"""Damaged files of a run: the same result, or a sentence; never a panic, a hang, a flood of memory or another posterior."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from . import runs
from .cases import Case, Fault, end
from .compare import MAY_DIFFER, content, expect_same, tables

#: A finished run, one that was killed in its second round, and one of a cluster between two rounds.
SURFACES = ["finished", "killed", "between"]
#: Bytes of address space: a reader that believes a damaged length wants more.
MEMORY = 3 << 30
#: Seconds of a command, which take a tenth of one.
LIMIT = 15
#: Commands that read a run, and whether their output is its posterior.
READERS = [
    (["show", "run"], False),
    (["show", "run", "--json"], False),
    (["watch", "run"], False),
    (["report", "run", "--out", "page.html"], False),
    (["plot", "pairs", "run", "--out", "pairs.svg"], False),
    (["sample", "run", "-n", "50"], True),
    (["log-density", "run", "--theta", "theta.csv"], True),
]
#: Commands that go on with a run; all of them end at the same posterior.
WRITERS = [["resume", "run", *runs.MACHINE], ["train", "run", *runs.MACHINE], ["propose", "run"]]
TASK = ["infer", "two-moons", "--out", "run", *runs.settings(), *runs.MACHINE]


def play(case: Case) -> None:
    """Plays one case."""
    base = case.product.reference(f"damage-{case.surface}", lambda folder: make(case, folder))
    whole = case.product.reference("damage-finished", lambda folder: make(case, folder, "finished"))
    run, outside = case.folder / "run", case.folder / "outside"
    shutil.copytree(base / "run", run)
    (case.folder / "theta.csv").write_text("0.1,0.2\n-0.3,0.4\n")
    outside.write_bytes(b"not of this run\n")
    hurt = injure(case, run, outside)
    for words, is_posterior in case.random.sample(READERS, 3):
        done = case.didyma(*words, limit=LIMIT, memory=MEMORY).judge()
        if done.code == 0 and is_posterior:
            expected = (base / ("sample" if words[0] == "sample" else "density")).read_bytes()
            if done.out != expected and not any(name in done.told for name in hurt):
                raise Fault(f"{hurt}: `{' '.join(words)}` gives other numbers without a word")
    words = case.random.choice(WRITERS) if case.surface == "between" else WRITERS[0]
    done = case.didyma(*words, limit=LIMIT, memory=MEMORY).judge()
    if outside.read_bytes() != b"not of this run\n":
        raise Fault(f"{hurt}: `{' '.join(words)}` wrote through a link, into a file outside of the run")
    if done.code == 0 and words[0] == "resume":
        case.count("resumes")
        healed(case, run, whole / "run", hurt, done.told)


def healed(case: Case, run: Path, whole: Path, hurt: list[str], told: str) -> None:
    """After a resume that had no complaint, the run is the undisturbed one.

    A finished run is not trained again: there it is the posterior, its model and the rows that count. Events are a log
    without checksums, and proposals are of no use once their round is simulated.
    """
    last = f"round-{runs.TINY['rounds']}.safetensors"
    only = {"posterior.csv", "posterior.npz", "run.db", last}
    if case.surface != "finished":
        only |= {path.name for path in whole.iterdir()} - MAY_DIFFER
    named = {name for name in hurt if name in told}
    # The summary repeats the warnings.
    expect_same(case, run, whole, only - named - ({"summary.json"} if named else set()))


def injure(case: Case, run: Path, outside: Path) -> list[str]:
    """Damages one or two files of a run; their names."""
    files = sorted(path for path in run.iterdir() if path.is_file() and not path.name.endswith("-shm"))
    hurt = []
    for path in case.random.sample(files, case.random.choice([1, 1, 2])):
        kind = case.random.choice(sorted(INJURIES))
        other = INJURIES[kind](case, path, files, outside)
        (case.folder / "damage.txt").open("a").write(f"{kind}: {path.name}\n")
        hurt += [path.name, other] if other else [path.name]
    return hurt


def flip(case: Case, path: Path, *_) -> None:
    data = bytearray(path.read_bytes())
    for _ in range(case.random.choice([1, 1, 3, 50]) if data else 0):
        # Half of them in the first part, where headers, lengths and versions are.
        at = case.random.randrange(min(len(data), 4096) if case.random.random() < 0.5 else len(data))
        data[at] ^= 1 << case.random.randrange(8)
    path.write_bytes(data)


def cut(case: Case, path: Path, *_) -> None:
    size = path.stat().st_size
    os.truncate(path, case.random.choice([0, size // 2, case.random.randrange(size + 1), max(0, size - 1)]))


def zero(case: Case, path: Path, *_) -> None:
    data = bytearray(path.read_bytes())
    at = case.random.randrange(len(data) + 1)
    length = min(len(data) - at, case.random.choice([4, 64, 4096, len(data)]))
    data[at : at + length] = bytes(length)
    path.write_bytes(data)


def fill(case: Case, path: Path, *_) -> None:
    """Ones where a length may be: readers must not believe it."""
    data = bytearray(path.read_bytes())
    at = case.random.randrange(max(1, min(len(data), 256)))
    data[at : at + 8] = b"\xff" * min(8, max(0, len(data) - at))
    path.write_bytes(data)


def append(case: Case, path: Path, *_) -> None:
    with path.open("ab") as file:
        file.write(case.random.choice([b"\0" * 4096, b"\n", b"0.1,0.2\n", case.random.randbytes(999)]))


def swap(case: Case, path: Path, files: list[Path], _) -> str | None:
    """Exchanges two files; the name of the other one."""
    other = case.random.choice(files)
    if path.is_symlink() or other.is_symlink() or not other.is_file():
        return None
    one, two = path.read_bytes(), other.read_bytes()
    path.write_bytes(two)
    other.write_bytes(one)
    return other.name


def foreign(case: Case, path: Path, *_) -> None:
    """The file of the same name of another run."""
    other = case.product.reference("damage-foreign", lambda folder: make(case, folder, "foreign")) / "run" / path.name
    if other.exists():
        shutil.copy(other, path)
    else:
        path.unlink()


def delete(_, path: Path, *__) -> None:
    path.unlink()


def folder(_, path: Path, *__) -> None:
    path.unlink()
    path.mkdir()


def pipe(_, path: Path, *__) -> None:
    path.unlink()
    os.mkfifo(path)


def link(case: Case, path: Path, _, outside: Path) -> None:
    path.unlink()
    path.symlink_to(case.random.choice([outside, path, Path("/dev/zero")]))


INJURIES = {f.__name__: f for f in (flip, cut, zero, fill, append, swap, foreign, delete, folder, pipe, link)}


def make(case: Case, folder: Path, kind: str | None = None) -> None:
    """A run to damage, and what its posterior says."""
    kind = kind or case.surface
    quiet = Case(case.product, case.seed, "reference", kind, 0, folder)
    if kind == "between":
        for words in (["propose", "run", "two-moons", *runs.settings()],
                      ["simulate", "two-moons", "--proposal", "run/proposal-1.csv", "--shard", "1/1", "--out", "shard.db"],
                      ["merge", "run", "shard.db"], ["train", "run", *runs.MACHINE], ["propose", "run"]):
            quiet.didyma(*words).expect(0)
    elif kind == "killed":
        kill_in_round_two(quiet)
    else:
        quiet.didyma(*TASK, *(["--seed", "9"] if kind == "foreign" else [])).expect(0)
    (folder / "theta.csv").write_text("0.1,0.2\n-0.3,0.4\n")
    (folder / "sample").write_bytes(quiet.didyma("sample", "run", "-n", "50").expect(0).out)
    (folder / "density").write_bytes(quiet.didyma("log-density", "run", "--theta", "theta.csv").expect(0).out)


def kill_in_round_two(case: Case) -> None:
    """Leaves a run with all rows and a checkpoint of the second round's training."""
    for _ in range(50):
        shutil.rmtree(case.folder / "run", ignore_errors=True)
        child = case.start([str(case.product.binary), *TASK])
        while child.poll() is None and not training_round_two(case.folder / "run/checkpoint.safetensors"):
            pass
        end(child)
        found = tables(case.folder / "run/run.db")
        if found and len(found["rounds"]) == 1 and len(found["simulations"]) == 2 * runs.TINY["simulations"]:
            return
    raise Fault("no kill fell into the second round's training")


def training_round_two(checkpoint: Path) -> bool:
    try:
        header, _ = content(checkpoint)
    except FileNotFoundError:
        return False
    return header["__metadata__"]["didyma.checkpoint"]["round"] == 2

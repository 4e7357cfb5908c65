"""Kills at any moment: the command that goes on must end, with every row and the same bytes."""

from __future__ import annotations

import json
import time
from pathlib import Path

from . import runs
from .cases import Case
from .compare import Rows, expect_kept, expect_same, rows

SURFACES = ["infer", "resume", "seeds", "workers", "programs", "python", "propose", "simulate", "merge", "train"]
#: Commands of a round on a cluster, each of which can be killed and repeated.
CLUSTER = ("propose", "simulate", "merge", "train")
SHARDS = 2


def play(case: Case) -> None:
    """Plays one case."""
    if case.surface in CLUSTER:
        return cluster(case)
    name, words = runs.begin(case, case.surface)
    whole = runs.whole(case, name, words)
    seconds = whole.seconds["run"]
    if case.surface == "resume":
        case.kill_after(words, seconds * case.random.uniform(0.2, 0.9))
    before = stored(case.folder)
    for _ in range(case.random.randint(2, 7)):
        again = runs.again(case, words)
        case.count("resumes", again != words)
        case.kill_after(again, case.delay(seconds))
        before = kept(case.folder, before)
    case.count("resumes")
    case.run(runs.again(case, words)).expect(0)
    kept(case.folder, before)
    expect_same(case, case.folder / "run", whole.folder / "run")


def cluster(case: Case) -> None:
    """A run by shards, where each call of one command is killed several times and then repeated."""
    kind = case.random.choice(["workers", "programs", "two-moons"])
    problem = str(runs.problem(case, kind)) if kind != "two-moons" else kind
    whole = runs.read(case.product.reference(f"cluster-{kind}", lambda folder: undisturbed(case, folder, problem)))
    before: Rows = {}
    for command, words in steps(case, problem):
        if command == case.surface:
            for attempt in range(case.random.randint(1, 3)):
                case.count("resumes", attempt > 0)
                case.kill_after(words, case.delay(whole.seconds[command]))
                before = kept(case.folder, before)
            case.count("resumes")
        case.run(words).expect(0)
        # A script that was killed does not know that its command had ended: it is given again.
        if command == case.surface and case.random.random() < 0.5:
            case.count("resumes")
            case.run(words).expect(0)
    kept(case.folder, before)
    for folder in ("run", "shards"):
        expect_same(case, case.folder / folder, whole.folder / folder)


def undisturbed(case: Case, folder: Path, problem: str) -> None:
    quiet = Case(case.product, case.seed, "reference", case.surface, 0, folder)
    seconds: dict[str, float] = {}
    for command, words in steps(quiet, problem):
        begun = time.monotonic()
        quiet.run(words).expect(0)
        seconds[command] = time.monotonic() - begun
    (folder / "seconds.json").write_text(json.dumps(seconds))


def steps(case: Case, problem: str) -> list[tuple[str, list[str]]]:
    """The commands of a whole run by shards."""
    didyma, listed = str(case.product.binary), []
    (case.folder / "shards").mkdir(exist_ok=True)
    options = runs.settings() if problem == "two-moons" else []
    for number in range(1, runs.TINY["rounds"] + 1):
        first = [problem, *options] if number == 1 else []
        listed.append(("propose", [didyma, "propose", "run", *first, "--threads", "1"]))
        shards = [f"shards/{number}-{part}.db" for part in range(1, SHARDS + 1)]
        for part, shard in enumerate(shards, 1):
            given = ["--proposal", f"run/proposal-{number}.csv", "--shard", f"{part}/{SHARDS}", "--out", shard]
            listed.append(("simulate", [didyma, "simulate", problem, *given, "--threads", "1"]))
        listed.append(("merge", [didyma, "merge", "run", *shards]))
        listed.append(("train", [didyma, "train", "run", *runs.MACHINE]))
    return listed


def databases(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*.db"))


def stored(folder: Path) -> Rows:
    """The rows of every database in a folder."""
    return {
        (str(path.relative_to(folder)), *place): row for path in databases(folder) for place, row in rows(path).items()
    }


def kept(folder: Path, before: Rows) -> Rows:
    """The rows that are stored now, which must hold those from before."""
    after = stored(folder)
    expect_kept(before, after)
    return after

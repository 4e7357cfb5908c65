"""Runs the cases that are asked for and not yet there."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict
from itertools import product
from pathlib import Path

import didyma

from .case import Case, Variant, kept, rescore, work, write
from .data import Refusal
from .pool import Clock, Job, Outcome, execute
from .tasks import TASKS

#: Seconds that one C2ST of 10,000 rows takes on a core, by the number of parameters.
C2ST_SECONDS = {2: 0.5, 4: 8.0, 5: 12.0, 10: 60.0}
#: File that says which variant a folder holds.
VARIANT = "variant.json"


def claim(variant: Variant, out: Path) -> None:
    """Notes the variant in its folder; a folder that holds another one is refused."""
    path = out / variant.name / VARIANT
    wanted = asdict(variant)
    if path.is_file():
        if json.loads(path.read_text()) != wanted:
            raise Refusal(f"{path.parent} holds other settings ({path.read_text().strip()}): choose another --name")
    else:
        write(path, wanted)


def expand(
    variants: Iterable[Variant], tasks: list[str], budgets: list[int], observations: list[int], seeds: list[int]
) -> list[Case]:
    """Every combination."""
    for variant, budget in product(variants, budgets):
        variant.rounds_of(budget)
    return [Case(*parts) for parts in product(variants, tasks, budgets, observations, seeds)]


def guess(case: Case, classifiers: int) -> float:
    """Seconds of a case, about."""
    return 40 + 4e-3 * case.budget + classifiers * C2ST_SECONDS[TASKS[case.task].dim]


def run(
    cases: list[Case],
    data: Path,
    out: Path,
    classifiers: int,
    keep: bool,
    device: str,
    slots: int,
    minutes: float | None,
) -> Outcome:
    """Does the missing cases; how long finished ones took is learnt from their files."""
    clock, jobs = Clock(), []
    for case in cases:
        label = f"{case.variant.name}/{case.key}"
        kind = f"{case.variant.name}/{case.task}-{case.budget}"
        arguments = (case, data, out, classifiers, keep, device)
        job = Job(label, kind, guess(case, classifiers), work, arguments, alone=device == "cpu")
        if case.path(out).is_file():
            clock.learn(job, json.loads(case.path(out).read_text())["seconds_all"])
        else:
            jobs.append(job)
    print(f"{len(cases)} cases, {len(cases) - len(jobs)} of them there already; didyma {didyma.__version__}", flush=True)
    return execute(jobs, slots, minutes, clock)


def records(out: Path, names: list[str] | None = None) -> list[Path]:
    """Files of finished cases."""
    folders = [out / name for name in names] if names else sorted(path for path in out.iterdir() if path.is_dir())
    for folder in folders:
        if not folder.is_dir():
            raise Refusal(f"{folder} does not exist: run that variant first")
    return [path for folder in folders for path in sorted(folder.glob("*.json")) if path.name != VARIANT]


def score(out: Path, names: list[str] | None, data: Path, classifiers: int, slots: int, minutes: float | None) -> Outcome:
    """Scores kept draws that have been scored by fewer seeds."""
    jobs = []
    for path in records(out, names):
        record = json.loads(path.read_text())
        if len(record["c2st_each"]) < classifiers and kept(path) is not None:
            label = f"{path.parent.name}/{path.stem}"
            dim = TASKS[record["task"]].dim
            jobs.append(Job(label, f"{dim}", classifiers * C2ST_SECONDS[dim], rescore, (path, data, classifiers)))
    return execute(jobs, slots, minutes, Clock())

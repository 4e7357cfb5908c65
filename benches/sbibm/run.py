"""Runs the cases that are asked for and not yet there."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable
from dataclasses import asdict
from itertools import product
from pathlib import Path
from typing import Any

import didyma

from .case import Case, Variant, has_draws, rescore, work, write
from .data import Refusal
from .pool import Clock, Job, Outcome, execute
from .tasks import TASKS

#: Seconds that one C2ST of 10,000 rows takes on a core, by the number of parameters.
C2ST_SECONDS = {2: 0.5, 4: 8.0, 5: 12.0, 10: 60.0}
#: File that says which variant a folder holds.
VARIANT = "variant.json"


def claim(variant: Variant, out: Path) -> None:
    """Notes the variant with all its settings in its folder; a folder that holds others is refused."""
    path = out / variant.name / VARIANT
    wanted = variant.resolved()
    if not path.is_file():
        write(path, [{**asdict(variant), "resolved": wanted}])
        return
    held = json.loads(path.read_text()).get("resolved")
    if held is None:
        raise Refusal(f"{path.parent} holds cases whose settings were not all noted: choose another --name")
    for name in [*wanted, *held]:
        now, then = wanted.get(name, "no value"), held.get(name, "no value")
        if now != then:
            raise Refusal(f"{path.parent} holds other settings ({name}: {then}, now {now}): choose another --name")


def expand(
    variants: Iterable[Variant], tasks: list[str], budgets: list[int], observations: list[int], seeds: list[int]
) -> list[Case]:
    """Every combination."""
    for variant, budget in product(variants, budgets):
        variant.rounds_of(budget)
    return [Case(*parts) for parts in product(variants, tasks, budgets, observations, seeds)]


def networks(record: dict[str, Any]) -> int:
    """Networks that the C2ST of a case is the mean of."""
    return len(record["c2st_each"]) * int(record.get("c2st_folds", 5))


def seconds_c2st(classifiers: tuple[int, int], dim: int) -> float:
    """Seconds of a C2ST by so many seeds and folds, about."""
    seeds, folds = classifiers
    return seeds * folds / 5 * C2ST_SECONDS[dim]


def guess(case: Case, classifiers: tuple[int, int]) -> float:
    """Seconds of a case, about."""
    return 40 + 4e-3 * case.budget + seconds_c2st(classifiers, TASKS[case.task].dim)


def run(
    cases: list[Case],
    data: Path,
    out: Path,
    classifiers: tuple[int, int],
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


def scorable(
    out: Path, names: list[str] | None, wanted: Callable[[dict[str, Any]], bool]
) -> list[tuple[Path, dict[str, Any]]]:
    """Finished cases that are wanted and have draws; says how many have none."""
    found = [(path, record) for path in records(out, names) if wanted(record := json.loads(path.read_text()))]
    ready = [(path, record) for path, record in found if has_draws(path)]
    if len(ready) < len(found):
        print(f"{len(found) - len(ready)} cases have no draws and are left out: `run --keep` keeps them")
    return ready


def score(
    out: Path, names: list[str] | None, data: Path, classifiers: tuple[int, int], slots: int, minutes: float | None
) -> Outcome:
    """Scores kept draws that have been scored by fewer networks: seeds times folds."""
    jobs = []
    for path, record in scorable(out, names, lambda record: networks(record) < math.prod(classifiers)):
        label = f"{path.parent.name}/{path.stem}"
        dim = TASKS[record["task"]].dim
        jobs.append(Job(label, f"{dim}", seconds_c2st(classifiers, dim), rescore, (path, data, classifiers)))
    return execute(jobs, slots, minutes, Clock())

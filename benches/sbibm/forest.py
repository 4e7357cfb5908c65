"""C2ST by a random forest, which newer papers print, on the draws that were kept."""

from __future__ import annotations

import importlib.util
import json
import time
from pathlib import Path

import numpy as np

from .case import DRAWS, kept, write
from .data import Refusal, load
from .pool import Clock, Job, Outcome, execute
from .run import scorable
from .tasks import TASKS, Array

TREES, FOLDS, SEED = 100, 5, 1


def need_sklearn() -> None:
    """scikit-learn is no part of what didyma needs."""
    if importlib.util.find_spec("sklearn") is None:
        raise Refusal("scikit-learn is not installed: run `pip install scikit-learn`, and then this again")


def in_scale(reference: Array, draws: Array) -> tuple[Array, np.ndarray]:
    """Both sets in standard deviations of the reference, and which set each row is of."""
    middle, spread = reference.mean(0), reference.std(0, ddof=1)
    rows = (np.concatenate([reference, draws]) - middle) / np.where(spread > 0, spread, 1.0)
    return rows, np.repeat([0, 1], [len(reference), len(draws)])


def forest(reference: Array, draws: Array, seed: int = SEED) -> float:
    """Accuracy of the forest on held-out rows, the mean of five folds."""
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.model_selection import KFold, cross_val_score

    classifier = RandomForestClassifier(TREES, random_state=seed)
    folds = KFold(FOLDS, shuffle=True, random_state=seed)
    return float(np.mean(cross_val_score(classifier, *in_scale(reference, draws), cv=folds)))


def rescore(path: Path, data: Path, rows: int) -> None:
    """Scores the kept draws of a case; the record says how many rows of each set were compared."""
    record, draws = json.loads(path.read_text()), kept(path)
    reference = load(TASKS[record["task"]], record["observation"], data).reference
    began = time.perf_counter()
    record["forest"] = forest(reference[:rows], draws[:rows])
    record["forest_rows"] = min(rows, len(reference), len(draws))
    record["seconds_forest"] = time.perf_counter() - began
    write(path, [record])


def score(out: Path, names: list[str] | None, data: Path, rows: int, slots: int, minutes: float | None) -> Outcome:
    """Scores kept draws that have not been scored by as many rows."""
    need_sklearn()
    if not 2 * FOLDS <= rows <= DRAWS:
        raise Refusal(f"{rows} rows cannot be compared: choose --rows between {2 * FOLDS} and {DRAWS}")
    jobs = []
    for path, record in scorable(out, names, lambda record: record.get("forest_rows") != rows):
        dim = TASKS[record["task"]].dim
        label = f"{path.parent.name}/{path.stem}"
        jobs.append(Job(label, f"{dim}", 4.0 * dim**0.5 * rows / 1000, rescore, (path, data, rows)))
    return execute(jobs, slots, minutes, Clock())

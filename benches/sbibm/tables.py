"""Records of cases merged, averaged beside the published numbers, and compared in pairs."""

from __future__ import annotations

import csv
import json
from collections import defaultdict
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np

from .data import Refusal
from .run import records
from .tasks import TASKS

PUBLISHED = Path(__file__).parent / "published.csv"
#: The algorithms of sbibm's paper.
ALGORITHMS = ("REJ-ABC", "SMC-ABC", "NLE", "NPE", "NRE", "SNLE", "SNPE", "SNRE")

Record = dict[str, Any]
#: Name of the variant, task, budget, observation, seed.
Key = tuple[str, str, int, int, int]


def key(record: Record) -> Key:
    return (record["variant"]["name"], record["task"], record["budget"], record["observation"], record["seed"])


def read(sources: list[Path]) -> dict[Key, Record]:
    """Records of folders of cases and of collected files; of equal cases the later source counts."""
    found: dict[Key, Record] = {}
    for source in sources:
        if source.is_dir():
            lines: Iterable[str] = (path.read_text() for path in records(source))
        elif source.is_file():
            lines = source.read_text().splitlines()
        else:
            raise Refusal(f"{source} does not exist: name a folder of `run`, or a file of `collect`")
        for line in lines:
            record = json.loads(line)
            found[key(record)] = record
    return found


def collect(sources: list[Path], file: Path) -> int:
    """Merges records into one file, a line each."""
    found = read(sources)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("".join(json.dumps(found[each]) + "\n" for each in sorted(found)))
    return len(found)


def spread(values: list[float]) -> tuple[float, float]:
    """Mean and its standard error."""
    error = np.std(values, ddof=1) / np.sqrt(len(values)) if len(values) > 1 else np.nan
    return float(np.mean(values)), float(error)


def by_observation(chosen: Iterable[Record], score: str) -> list[float]:
    """Mean over the seeds of each observation: seeds of one observation are not independent evidence of a task."""
    groups: dict[int, list[float]] = defaultdict(list)
    for record in chosen:
        if record.get(score) is not None:
            groups[record["observation"]].append(record[score])
    return [float(np.mean(values)) for values in groups.values()]


def cell(mean: float, error: float, count: int | None = None) -> str:
    """Three digits, as papers print a C2ST."""
    text = f"{mean:.3f}" if np.isnan(error) else f"{mean:.3f} ± {error:.3f}"
    return text if count is None else f"{text} ({count})"


def markdown(header: list[str], rows: list[list[str]]) -> str:
    rule = ["---", *["---:"] * (len(header) - 1)]
    return "\n".join("| " + " | ".join(line) + " |" for line in (header, rule, *rows))


def published(budget: int, observations: list[int]) -> dict[str, dict[str, float]]:
    """Published mean C2ST of a budget: task, then algorithm; over all ten observations, or over these where it is known."""
    found: dict[str, dict[str, float]] = defaultdict(dict)
    with PUBLISHED.open() as file:
        rows = list(csv.DictReader(line for line in file if not line.startswith("#")))
    for wanted in ("1-10", f"{min(observations)}-{max(observations)}"):
        for row in rows:
            if int(row["budget"]) == budget and row["observations"] == wanted:
                found[row["task"]][row["algorithm"]] = float(row["c2st"])
    return found


#: Mean, standard error, and number of observations, of a task.
Column = Callable[[str], tuple[float, float, int]]
NOTHING = (np.nan, np.nan, 0)


def ours(found: dict[Key, Record], name: str, budget: int, observations: list[int], score: str) -> Column:
    """What a variant scores; `mean` is over the tasks, if it has all of them."""

    def column(task: str) -> tuple[float, float, int]:
        if task == "mean":
            means = [column(each)[0] for each in TASKS]
            return (float(np.mean(means)), np.nan, len(observations))
        chosen = [r for k, r in found.items() if k[:3] == (name, task, budget) and k[3] in observations]
        values = by_observation(chosen, score)
        return (*spread(values), len(values)) if values else NOTHING

    return column


def theirs(known: dict[str, dict[str, float]], algorithm: str | None) -> Column:
    """What an algorithm scored by its authors' account; without a name, the best of the eight, if all are known."""

    def column(task: str) -> tuple[float, float, int]:
        values = known.get(task, {})
        value = values.get(algorithm or "best")
        if algorithm is None and all(name in values for name in ALGORITHMS):
            value = min(values[name] for name in ALGORITHMS)
        return NOTHING if value is None else (value, np.nan, 0)

    return column


def table(
    found: dict[Key, Record], budget: int, names: list[str], observations: list[int], score: str, algorithms: list[str]
) -> str:
    """A score of a budget: a row a task with mean ± standard error over observations, and the mean of the tasks.

    Where some observations are missing, their number follows in brackets.
    """
    known = published(budget, observations) if score == "c2st" else {}
    columns = [ours(found, name, budget, observations, score) for name in names]
    columns += [theirs(known, algorithm) for algorithm in algorithms]
    best = ["best published"] if known else []
    if best:
        columns.append(theirs(known, None))
    rows = []
    for task, title in (*((task.name, task.title) for task in TASKS.values()), ("mean", "mean")):
        line = [title]
        for column in columns:
            value, error, count = column(task)
            missing = 0 < count < len(observations)
            line.append("" if np.isnan(value) else cell(value, error, count if missing else None))
        rows.append(line)
    return markdown([f"{budget:,} simulations", *names, *algorithms, *best], rows)


def compare(found: dict[Key, Record], first: str, second: str, score: str) -> str:
    """Second less first, over the cases that both have: by budget and task, and over all of a budget."""
    differences: dict[tuple[int, str], list[float]] = defaultdict(list)
    for each, record in found.items():
        other = found.get((second, *each[1:])) if each[0] == first else None
        if other is None or record.get(score) is None or other.get(score) is None:
            continue
        difference = other[score] - record[score]
        differences[each[2], each[1]].append(difference)
        differences[each[2], ""].append(difference)
    if not differences:
        raise Refusal(f"no case of {first} has its like in {second}: run both with equal tasks, budgets, observations, seeds")
    order = [*TASKS, ""]
    rows = []
    for budget, task in sorted(differences, key=lambda at: (at[0], order.index(at[1]))):
        values = differences[budget, task]
        mean, error = spread(values)
        text = f"{mean:+.4f}" if np.isnan(error) else f"{mean:+.4f} ± {error:.4f}"
        title = TASKS[task].title if task else "all"
        rows.append([title, f"{budget:,}", text, f"{sum(v < 0 for v in values)} of {len(values)}"])
    return markdown(["task", "simulations", f"{score}: {second} less {first}", "lower"], rows)

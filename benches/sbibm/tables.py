"""Records of cases merged, averaged beside the published numbers, and compared in pairs."""

from __future__ import annotations

import csv
import json
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from .case import write
from .data import Refusal
from .run import records
from .tasks import TASKS

PUBLISHED = Path(__file__).parent / "published.csv"
#: The algorithms of sbibm's paper.
ALGORITHMS = ("REJ-ABC", "SMC-ABC", "NLE", "NPE", "NRE", "SNLE", "SNPE", "SNRE")

#: Rows of the reference that `nlq` is not over.
WITHOUT = "nlq_without_density"

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
    """Merges records into one file, a line each, that is written whole or not at all."""
    found = read(sources)
    write(file, [found[each] for each in sorted(found)])
    return len(found)


def value(record: Record, score: str) -> float | None:
    """A score of a case; the disagreement of an ensemble is that of the run's last round."""
    if score == "disagreement":
        rounds = record.get("run", {}).get("rounds") or [{}]
        record = rounds[-1]
    return record.get(score)


def spread(values: list[float]) -> tuple[float, float]:
    """Mean and its standard error."""
    error = np.std(values, ddof=1) / np.sqrt(len(values)) if len(values) > 1 else np.nan
    return float(np.mean(values)), float(error)


def by_observation(chosen: Iterable[Record], score: str) -> list[float]:
    """Mean over the seeds of each observation: seeds of one observation are not independent evidence of a task."""
    groups: dict[int, list[float]] = defaultdict(list)
    for record in chosen:
        found = value(record, score)
        if found is not None:
            groups[record["observation"]].append(found)
    return [float(np.mean(values)) for values in groups.values()]


@dataclass(frozen=True)
class Score:
    """A cell of a table."""

    mean: float
    error: float = np.nan
    #: Observations that it is of, and those that were asked for.
    count: int = 0
    of: int = 0

    def __str__(self) -> str:
        """Three digits, as papers print a C2ST; if observations are missing, it says how many are there."""
        if np.isnan(self.mean):
            return ""
        text = f"{self.mean:.3f}" if np.isnan(self.error) else f"{self.mean:.3f} ± {self.error:.3f}"
        return text if self.count == self.of else f"{text} ({self.count} of {self.of})"


#: Gives a task's score, or that of all tasks for "mean".
Column = Callable[[str], Score]


def markdown(header: list[str], rows: list[list[str]]) -> str:
    rule = ["---", *["---:"] * (len(header) - 1)]
    return "\n".join("| " + " | ".join(line) + " |" for line in (header, rule, *rows))


def published(budget: int, observations: list[int]) -> dict[str, dict[str, float]]:
    """Published mean C2ST of a budget: task, then algorithm; over all ten observations, or over these where it is known."""
    found: dict[str, dict[str, float]] = defaultdict(dict)
    first, last = min(observations), max(observations)
    # The file has means over ranges, and a range with a gap is none.
    gap = set(observations) != {*range(first, last + 1)}
    with PUBLISHED.open() as file:
        rows = list(csv.DictReader(line for line in file if not line.startswith("#")))
    for wanted in ["1-10"] if gap else ["1-10", f"{first}-{last}"]:
        for row in rows:
            if int(row["budget"]) == budget and row["observations"] == wanted:
                found[row["task"]][row["algorithm"]] = float(row["c2st"])
    return found


def ours(found: dict[Key, Record], name: str, budget: int, observations: list[int], score: str) -> Column:
    """What a variant scores; `mean` is over the tasks, if it has all of them."""

    def column(task: str) -> Score:
        if task == "mean":
            each = [column(task) for task in TASKS]
            mean = float(np.mean([part.mean for part in each]))
            return Score(mean, np.nan, sum(part.count for part in each), sum(part.of for part in each))
        chosen = [r for k, r in found.items() if k[:3] == (name, task, budget) and k[3] in observations]
        values = by_observation(chosen, score)
        mean, error = spread(values) if values else (np.nan, np.nan)
        return Score(mean, error, len(values), len(set(observations)))

    return column


def theirs(known: dict[str, dict[str, float]], algorithm: str | None) -> Column:
    """What an algorithm scored by its authors' account; without a name, the best of the eight, if all are known."""

    def column(task: str) -> Score:
        values = known.get(task, {})
        if algorithm is None and all(name in values for name in ALGORITHMS):
            return Score(min(values[name] for name in ALGORITHMS))
        return Score(values.get(algorithm or "best", np.nan))

    return column


def table(
    found: dict[Key, Record], budget: int, names: list[str], observations: list[int], score: str, algorithms: list[str]
) -> str:
    """A score of a budget: a row a task with mean ± standard error over observations, and the mean of the tasks."""
    known = published(budget, observations) if score == "c2st" else {}
    columns = [ours(found, name, budget, observations, score) for name in names]
    columns += [theirs(known, algorithm) for algorithm in algorithms]
    best = ["best published"] if known else []
    if best:
        columns.append(theirs(known, None))
    titles = {**{task.name: task.title for task in TASKS.values()}, "mean": "mean"}
    rows = [[title, *(str(column(task)) for column in columns)] for task, title in titles.items()]
    return markdown([f"{budget:,} simulations", *names, *algorithms, *best], rows)


#: Budget, then task, then observation: differences of the seeds.
Differences = dict[int, dict[str, dict[int, list[float]]]]


def pair(found: dict[Key, Record], first: str, second: str, score: str) -> tuple[Differences, list[int]]:
    """Second less first, over the cases that both have.

    Means over other rows are not comparable: pairs of `nlq` that leave out unequal numbers of rows are no
    differences. The list has, for each of them, how many rows more the second leaves out.
    """
    differences: Differences = defaultdict(lambda: defaultdict(lambda: defaultdict(list)))
    unlike = []
    for (name, task, budget, observation, seed), record in found.items():
        other = found.get((second, task, budget, observation, seed)) if name == first else None
        if other is None:
            continue
        one, two = value(record, score), value(other, score)
        if one is None or two is None:
            continue
        more = other.get(WITHOUT, 0) - record.get(WITHOUT, 0) if score == "nlq" else 0
        if more:
            unlike.append(more)
        else:
            differences[budget][task][observation].append(two - one)
    return differences, unlike


def compare(found: dict[Key, Record], first: str, second: str, score: str) -> str:
    """Second less first: by budget and task over the observations, each the mean of its seeds; then over all tasks.

    Tasks have equal weights in the last, and its standard error is made of theirs.
    """
    differences, unlike = pair(found, first, second, score)
    if not differences and not unlike:
        raise Refusal(f"no case of {first} has its like in {second}: run both with equal tasks, budgets, observations, seeds")
    rows = []
    for budget in sorted(differences):
        tasks = {task: differences[budget][task] for task in TASKS if task in differences[budget]}
        values = {task: [float(np.mean(seeds)) for seeds in each.values()] for task, each in tasks.items()}
        spreads = [spread(each) for each in values.values()]
        rows += [line(TASKS[task].title, budget, *both, values[task]) for task, both in zip(values, spreads)]
        means, errors = np.transpose(spreads)
        error = float(np.sqrt(np.sum(errors**2)) / len(errors))
        rows.append(line("all", budget, float(np.mean(means)), error, sum(values.values(), [])))
    text = markdown(["task", "simulations", f"{score}: {second} less {first}", "lower"], rows)
    return "\n\n".join([text, *told(unlike, second)])


def line(title: str, budget: int, mean: float, error: float, values: list[float]) -> list[str]:
    text = f"{mean:+.4f}" if np.isnan(error) else f"{mean:+.4f} ± {error:.4f}"
    return [title, f"{budget:,}", text, f"{sum(each < 0 for each in values)} of {len(values)}"]


def told(unlike: list[int], second: str) -> list[str]:
    """A line on pairs that were left out, if there are any."""
    more = sum(each > 0 for each in unlike)
    where = f"{second} has more such rows in {more}, fewer in {len(unlike) - more}"
    return [f"{len(unlike)} pairs are left out, whose {WITHOUT} differ: {where}."] if unlike else []

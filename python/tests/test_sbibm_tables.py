"""The benchmark in benches/sbibm: what its tables say of cases."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import numpy as np
import pytest

# The benchmark is no part of the package: it lies in the repository.
sys.path.append(str(Path(__file__).parents[2]))

from benches.sbibm import tables  # noqa: E402
from benches.sbibm.data import OBSERVATIONS, Refusal  # noqa: E402
from benches.sbibm.tasks import TASKS  # noqa: E402


def records(name: str, scores: dict[tuple[str, int, int], float | None]) -> dict[tables.Key, tables.Record]:
    """Cases of 1000 simulations: a score of each task, observation and seed."""
    return {
        (name, task, 1000, observation, seed): {"observation": observation, "c2st": score}
        for (task, observation, seed), score in scores.items()
    }


def test_variants_are_compared_case_by_case() -> None:
    found = records("old", {("sir", 1, 1): 0.6, ("sir", 2, 1): 0.7, ("slcp", 1, 1): 0.8, ("sir", 3, 1): 0.9})
    # The third observation has no like, the fourth no score.
    found |= records("new", {("sir", 1, 1): 0.58, ("sir", 2, 1): 0.72, ("slcp", 1, 1): 0.74, ("sir", 4, 1): 0.1})
    found |= records("old", {("sir", 5, 1): None}) | records("new", {("sir", 5, 1): 0.5})
    lines = tables.compare(found, "old", "new", "c2st").splitlines()[2:]
    assert [re.split(r" *\| *", line)[1:-1] for line in lines] == [
        ["SLCP", "1,000", "-0.0600", "1 of 1"],
        ["SIR", "1,000", "+0.0000 ± 0.0200", "1 of 2"],
        # Standard deviation of -.06, -.02, .02 is .04.
        ["all", "1,000", "-0.0200 ± 0.0231", "2 of 3"],
    ]
    with pytest.raises(Refusal, match="no case of old has its like in none"):
        tables.compare(found, "old", "none", "c2st")


def test_tables_average_seeds_before_observations() -> None:
    found = records("old", {("sir", 1, 1): 0.5, ("sir", 1, 2): 0.7, ("sir", 2, 1): 0.8})
    lines = tables.table(found, 1000, ["old"], [1, 2], "c2st", ["SNPE"]).splitlines()
    assert lines[0] == "| 1,000 simulations | old | SNPE | best published |"
    assert any(line.startswith("| SIR | 0.700 ± 0.100 |") for line in lines)
    lines = tables.table(found, 1000, ["old"], [1, 2, 3], "c2st", []).splitlines()
    assert any(line.startswith("| SIR | 0.700 ± 0.100 (2) |") for line in lines)


def test_the_best_published_is_of_all_eight() -> None:
    known = {
        "sir": {"SNPE": 0.6, "NPE": 0.7},
        "slcp": {"best": 0.8, "NPE": 0.9},
        "two_moons": dict.fromkeys(tables.ALGORITHMS, 0.6),
    }
    best = tables.theirs(known, None)
    assert np.isnan(best("sir")[0]) and best("slcp")[0] == 0.8 and best("two_moons")[0] == 0.6
    assert tables.theirs(known, "NPE")("sir")[0] == 0.7


def test_published_numbers_are_accuracies_of_known_tasks() -> None:
    for budget in (1000, 10_000, 100_000):
        known = tables.published(budget, [*OBSERVATIONS])
        assert known and set(known) <= {*TASKS, "mean"}
        assert all(0.5 <= value <= 1 for values in known.values() for value in values.values())
        last = tables.published(budget, [6, 7, 8, 9, 10])
        assert {task: set(values) for task, values in last.items()} == {task: set(values) for task, values in known.items()}
        assert last["mean"] == known["mean"] and last["two_moons"] != known["two_moons"]

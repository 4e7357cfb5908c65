"""The benchmark in benches/sbibm: what its tables say of cases."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import numpy as np
import pytest

# The benchmark is no part of the package: it lies in the repository.
sys.path.append(str(Path(__file__).parents[2]))

from benches.sbibm import case, tables  # noqa: E402
from benches.sbibm.data import OBSERVATIONS, Refusal  # noqa: E402
from benches.sbibm.tasks import TASKS  # noqa: E402


def records(name: str, scores: dict[tuple[str, int, int], float | None], score: str = "c2st") -> dict[tables.Key, tables.Record]:
    """Cases of 1000 simulations: a score of each task, observation and seed."""
    return {
        (name, task, 1000, observation, seed): {"observation": observation, score: value}
        for (task, observation, seed), value in scores.items()
    }


def cells(text: str) -> list[list[str]]:
    """The rows below the header."""
    return [re.split(r" *\| *", line)[1:-1] for line in text.splitlines()[2:] if line.startswith("|")]


def test_variants_are_compared_case_by_case() -> None:
    found = records("old", {("sir", 1, 1): 0.6, ("sir", 2, 1): 0.7, ("slcp", 1, 1): 0.8, ("sir", 3, 1): 0.9})
    # The third observation has no like, the fourth neither, the fifth no score.
    found |= records("new", {("sir", 1, 1): 0.58, ("sir", 2, 1): 0.72, ("slcp", 1, 1): 0.74, ("sir", 4, 1): 0.1})
    found |= records("old", {("sir", 5, 1): None}) | records("new", {("sir", 5, 1): 0.5})
    assert cells(tables.compare(found, "old", "new", "c2st")) == [
        ["SLCP", "1,000", "-0.0600", "1 of 1"],
        ["SIR", "1,000", "+0.0000 ± 0.0200", "1 of 2"],
        # The error of SLCP is not known, and so that of both is not.
        ["all", "1,000", "-0.0300", "2 of 3"],
    ]
    with pytest.raises(Refusal, match="no case of old has its like in none"):
        tables.compare(found, "old", "none", "c2st")


def test_comparisons_average_seeds_first_and_weigh_tasks_equally() -> None:
    new = {("slcp", 1, 1): 0.03, ("slcp", 2, 1): 0.01}
    # Four seeds of one observation are one number, -.03, not four.
    new |= {("sir", 1, seed): -0.01 * seed for seed in (1, 2, 4, 5)} | {("sir", 2, 1): -0.09}
    found = records("old", dict.fromkeys(new, 0.0)) | records("new", dict(new))
    assert cells(tables.compare(found, "old", "new", "c2st")) == [
        ["SLCP", "1,000", "+0.0200 ± 0.0100", "0 of 2"],
        ["SIR", "1,000", "-0.0600 ± 0.0300", "2 of 2"],
        # The root of .01² + .03², halved.
        ["all", "1,000", "-0.0200 ± 0.0158", "2 of 4"],
    ]


def test_densities_over_other_rows_are_not_compared() -> None:
    found = records("old", {("sir", each, 1): 2.0 for each in (1, 2, 3, 4)}, "nlq")
    found |= records("new", {("sir", each, 1): 1.5 for each in (1, 2, 3, 4)}, "nlq")
    for key, record in found.items():
        record[tables.WITHOUT] = {("old", 2): 4, ("new", 2): 9, ("new", 3): 1, ("old", 4): 3}.get((key[0], key[3]), 0)
    text = tables.compare(found, "old", "new", "nlq")
    assert cells(text)[0] == ["SIR", "1,000", "-0.5000", "1 of 1"]
    assert text.splitlines()[-1] == "3 pairs are left out, whose nlq_without_density differ: new has more such rows in 2, fewer in 1."


def test_tables_average_seeds_before_observations() -> None:
    found = records("old", {("sir", 1, 1): 0.5, ("sir", 1, 2): 0.7, ("sir", 2, 1): 0.8})
    text = tables.table(found, 1000, ["old"], [1, 2], "c2st", ["SNPE"])
    assert text.startswith("| 1,000 simulations | old | SNPE | best published |")
    assert dict((row[0], row[1]) for row in cells(text))["SIR"] == "0.700 ± 0.100"


def test_missing_observations_are_told_of_tasks_and_mean() -> None:
    scores = {(task, each, 1): 0.6 for task in TASKS for each in (1, 2)} | {("sir", 2, 1): None}
    found = records("old", scores)
    shown = dict((row[0], row[1]) for row in cells(tables.table(found, 1000, ["old"], [1, 2], "c2st", [])))
    assert (shown["SIR"], shown["SLCP"], shown["mean"]) == ("0.600 (1 of 2)", "0.600 ± 0.000", "0.600 (19 of 20)")
    # Without a task there is no mean.
    found = {key: record for key, record in found.items() if key[1] != "slcp"}
    shown = dict((row[0], row[1]) for row in cells(tables.table(found, 1000, ["old"], [1, 2], "c2st", [])))
    assert shown["SLCP"] == shown["mean"] == ""


def test_disagreement_is_that_of_the_last_round() -> None:
    found = records("old", {("sir", 1, 1): 0.5, ("sir", 2, 1): 0.5})
    found["old", "sir", 1000, 1, 1]["run"] = {"rounds": [{"disagreement": 0.9}, {"disagreement": 0.25}]}
    # A run of one member has none.
    found["old", "sir", 1000, 2, 1]["run"] = {"rounds": [{}]}
    shown = dict((row[0], row[1]) for row in cells(tables.table(found, 1000, ["old"], [1, 2], "disagreement", [])))
    assert shown["SIR"] == "0.250 (1 of 2)"


def test_collected_files_are_whole_or_not_there(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    record = {"variant": {"name": "old"}, "task": "sir", "budget": 1000, "observation": 1, "seed": 1}
    case.write(tmp_path / "runs" / "old" / "one.json", [record])
    file = tmp_path / "all.jsonl"
    assert tables.collect([tmp_path / "runs"], file) == 1
    before = file.read_bytes()

    def full(path: Path, text: str) -> int:
        path.write_bytes(text.encode()[:5])
        raise OSError("no space left")

    monkeypatch.setattr(Path, "write_text", full)
    with pytest.raises(OSError, match="no space left"):
        tables.collect([tmp_path / "runs"], file)
    assert file.read_bytes() == before and {path.name for path in tmp_path.iterdir()} == {"all.jsonl", "runs"}


def test_the_best_published_is_of_all_eight() -> None:
    known = {
        "sir": {"SNPE": 0.6, "NPE": 0.7},
        "slcp": {"best": 0.8, "NPE": 0.9},
        "two_moons": dict.fromkeys(tables.ALGORITHMS, 0.6),
    }
    best = tables.theirs(known, None)
    assert np.isnan(best("sir").mean) and best("slcp").mean == 0.8 and best("two_moons").mean == 0.6
    assert tables.theirs(known, "NPE")("sir").mean == 0.7


def test_published_numbers_are_accuracies_of_known_tasks() -> None:
    for budget in (1000, 10_000, 100_000):
        known = tables.published(budget, [*OBSERVATIONS])
        assert known and set(known) <= {*TASKS, "mean"}
        assert all(0.5 <= value <= 1 for values in known.values() for value in values.values())
        last = tables.published(budget, [6, 7, 8, 9, 10])
        assert {task: set(values) for task, values in last.items()} == {task: set(values) for task, values in known.items()}
        assert last["mean"] == known["mean"] and last["two_moons"] != known["two_moons"]
        # Two observations are not the five between them.
        assert tables.published(budget, [6, 10]) == known

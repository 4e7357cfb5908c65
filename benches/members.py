"""Weights and numbers of an ensemble's members, compared on finished runs of tasks with a reference:

    python -m benches.members RUN...
    python -m benches.members --numbers RUN...

-E log q of the reference's rows, for the mixture in equal parts, for weights in proportion to exp(-held-out loss), for the
member of the lowest held-out loss alone, and for one member alone (the mean over the members). Held-out losses are means over
rows of all rounds, of another part for each member: exp(-n loss), their likelihood, would be the third way within digits.
With `--numbers`: for the mixture of k of the members, the mean over all choices of k.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import zlib
from collections.abc import Callable, Iterator
from itertools import combinations
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import didyma.tasks

Array = NDArray[np.float64]
KEY = "didyma.posterior"
#: Members whose choices are counted in seconds.
MOST = 12


def members(path: Path) -> Iterator[didyma.Posterior]:
    """The members of a posterior's file, each as a posterior of its own."""
    content = path.read_bytes()
    length = int.from_bytes(content[:8], "little")
    header, data = json.loads(content[8 : 8 + length]), content[8 + length :]
    assert set(header) == {"__metadata__", "params"}, "one tensor"
    described = json.loads(header["__metadata__"][KEY])
    count = described.pop("members", 1)
    size = len(data) // count
    for k in range(count):
        text, part = json.dumps(described), data[k * size : (k + 1) * size]
        checksum = f"{zlib.crc32(part, zlib.crc32(text.encode())):08x}"
        metadata = {**header["__metadata__"], KEY: text, "didyma.crc32": checksum}
        params = {**header["params"], "shape": [size // 4], "data_offsets": [0, size]}
        made = json.dumps({"__metadata__": metadata, "params": params}).encode()
        made = made.ljust(-(-len(made) // 8) * 8)
        with tempfile.NamedTemporaryFile(suffix=".safetensors") as file:
            file.write(len(made).to_bytes(8, "little") + made + part)
            file.flush()
            yield didyma.Posterior.load(file.name)


def mixture(log_q: Array, weights: Array) -> float:
    """-E log of the mixture's density; a column of `log_q` is a member."""
    largest = log_q.max(axis=1, keepdims=True)
    return float(-(np.log((np.exp(log_q - largest) * weights).sum(axis=1)) + largest[:, 0]).mean())


def densities(directory: Path) -> tuple[str, Array, Array]:
    """A run's task, the log-densities of the reference's rows by each member, a column each, and their held-out losses."""
    summary = json.loads((directory / "summary.json").read_text())
    task, last = didyma.tasks.task(summary["task"]), summary["rounds"][-1]
    theta = task.reference((10_000,), seed=1)
    log_q = np.column_stack([each.log_prob(theta) for each in members(directory / f"round-{last['round']}.safetensors")])
    return task.name, log_q, np.array([member["validation_loss"] for member in last["members"]])


def weights(log_q: Array, losses: Array) -> dict[str, float]:
    """Scores by the weights of the members."""
    count = len(losses)
    soft = np.exp(losses.min() - losses)
    alone = [mixture(log_q, weights) for weights in np.eye(count)]
    return {
        "equal": mixture(log_q, np.full(count, 1 / count)),
        "by held-out loss": mixture(log_q, soft / soft.sum()),
        "lowest held-out loss": alone[int(losses.argmin())],
        "one member": float(np.mean(alone)),
    }


def numbers(log_q: Array, losses: Array) -> dict[str, float]:
    """Scores by the number of members, in equal parts: means over all choices."""
    count = len(losses)
    if count > MOST:
        raise SystemExit(f"{count} members can be chosen in too many ways: take runs of {MOST} or fewer")
    return {
        str(k): float(np.mean([mixture(log_q[:, chosen], np.full(k, 1 / k)) for chosen in combinations(range(count), k)]))
        for k in range(1, count + 1)
    }


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benches.members", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("runs", nargs="+", type=Path, metavar="RUN")
    parser.add_argument("--numbers", action="store_true", help="numbers of members instead of their weights")
    arguments = parser.parse_args()
    score: Callable[[Array, Array], dict[str, float]] = numbers if arguments.numbers else weights
    found: dict[str, list[dict[str, float]]] = {}
    for directory in arguments.runs:
        task, log_q, losses = densities(directory)
        found.setdefault(task, []).append(score(log_q, losses))
    names = list(next(iter(found.values()))[0])
    if any(list(row) != names for rows in found.values() for row in rows):
        raise SystemExit("these runs have different numbers of members: compare those of one number")
    print(f"| task | runs | {' | '.join(names)} |")
    print("|---|---:|" + "---:|" * len(names))
    for task, rows in found.items():
        means = [np.mean([row[name] for row in rows]) for name in names]
        print(f"| {task} | {len(rows)} | {' | '.join(f'{mean:.3f}' for mean in means)} |")


if __name__ == "__main__":
    main()

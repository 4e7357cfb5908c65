"""Weights of an ensemble's members, compared on finished runs of tasks with a reference:

    python -m benches.members RUN...

-E log q of the reference's rows, for the mixture in equal parts, for weights in proportion to exp(-held-out loss), for the
member of the lowest held-out loss alone, and for one member alone (the mean over the members). Held-out losses are means over
rows of all rounds, of another part for each member: exp(-n loss), their likelihood, would be the third way within digits.
"""

from __future__ import annotations

import json
import sys
import tempfile
import zlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import didyma.tasks

Array = NDArray[np.float64]
KEY = "didyma.posterior"
NAMES = ["equal", "by held-out loss", "lowest held-out loss", "one member"]


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


def compare(directory: Path) -> tuple[str, list[float]]:
    """A run's task, and its scores by the ways of `NAMES`."""
    summary = json.loads((directory / "summary.json").read_text())
    task, last = didyma.tasks.task(summary["task"]), summary["rounds"][-1]
    theta = task.reference((10_000,), seed=1)
    log_q = np.column_stack([each.log_prob(theta) for each in members(directory / f"round-{last['round']}.safetensors")])
    losses = np.array([member["validation_loss"] for member in last["members"]])
    count = len(losses)
    soft = np.exp(losses.min() - losses)
    alone = [mixture(log_q, weights) for weights in np.eye(count)]
    scores = [mixture(log_q, np.full(count, 1 / count)), mixture(log_q, soft / soft.sum())]
    return task.name, [*scores, alone[int(losses.argmin())], float(np.mean(alone))]


def main() -> None:
    found: dict[str, list[list[float]]] = {}
    for directory in map(Path, sys.argv[1:]):
        task, scores = compare(directory)
        found.setdefault(task, []).append(scores)
    print(f"| task | runs | {' | '.join(NAMES)} |")
    print("|---|---:|" + "---:|" * len(NAMES))
    for task, rows in found.items():
        print(f"| {task} | {len(rows)} | {' | '.join(f'{mean:.3f}' for mean in np.mean(rows, axis=0))} |")


if __name__ == "__main__":
    main()

"""Observations, true parameters and reference posteriors of sbibm, packed from its package into one small file."""

from __future__ import annotations

import bz2
import importlib.util
import io
import zipfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from .tasks import TASKS, Array, Task

#: Where the packed file is looked for.
DEFAULT = Path(__file__).parent / "data.npz"
OBSERVATIONS = range(1, 11)


class Refusal(Exception):
    """The user asked for something that cannot be done; the text says what to do instead."""


@dataclass(frozen=True)
class Truth:
    """What sbibm knows of one observation."""

    x_o: Array
    theta: Array
    #: 10,000 draws of the posterior.
    reference: Array


def source(path: Path | None) -> Path | zipfile.Path:
    """Folder of the package's tasks: in a wheel, in a folder, or as it is installed."""
    if path is None:
        found = importlib.util.find_spec("sbibm")
        if found is None or found.origin is None:
            raise Refusal("sbibm is not installed: run `pip install --no-deps sbibm==1.1.0`, or name its wheel by --from")
        return Path(found.origin).parent / "tasks"
    if path.is_file():
        return zipfile.Path(path, "sbibm/tasks/")
    for folder in (path / "sbibm" / "tasks", path / "tasks"):
        if folder.is_dir():
            return folder
    raise Refusal(f"no tasks of sbibm in {path}: name its wheel, or the folder that it was unpacked in")


def table(content: bytes) -> np.ndarray:
    """Numbers of a CSV file with one line of names, in single precision as sbibm made them."""
    return np.loadtxt(io.BytesIO(content), delimiter=",", skiprows=1, ndmin=2).astype(np.float32)


def prepare(package: Path | None, out: Path) -> None:
    """Packs what all tasks need. Bytes of equal weight lie together, since only the high ones can be compressed."""
    root = source(package)
    arrays: dict[str, np.ndarray] = {}
    for task in TASKS.values():
        folders = [root / task.folder / "files" / f"num_observation_{number}" for number in OBSERVATIONS]
        arrays[f"{task.name}.x_o"] = np.concatenate([table((f / task.observation).read_bytes()) for f in folders])
        if f"{task.folder}.theta" in arrays:
            continue
        arrays[f"{task.folder}.theta"] = np.concatenate([table((f / "true_parameters.csv").read_bytes()) for f in folders])
        for number, folder in zip(OBSERVATIONS, folders):
            packed = (folder / "reference_posterior_samples.csv.bz2").read_bytes()
            rows = table(bz2.decompress(packed))
            arrays[f"{task.folder}.{number}"] = rows.view(np.uint8).reshape(*rows.shape, 4).transpose(2, 1, 0)
    out.parent.mkdir(parents=True, exist_ok=True)
    with out.open("wb") as file:
        np.savez_compressed(file, **arrays)


def load(task: Task, number: int, path: Path = DEFAULT) -> Truth:
    """What is known of an observation, from the packed file."""
    if not path.is_file():
        raise Refusal(f"{path} does not exist: make it by `python -m benches.sbibm prepare`, or name it by --data")
    if number not in OBSERVATIONS:
        raise Refusal(f"{task.title} has no observation {number}: choose of 1 to {OBSERVATIONS[-1]}")
    try:
        # Arrays of Python objects, whose reading could run code, are refused.
        with np.load(path, allow_pickle=False) as file:
            planes = file[f"{task.folder}.{number}"]
            rows = np.ascontiguousarray(planes.transpose(2, 1, 0)).view(np.float32)[..., 0]
            return Truth(
                x_o=file[f"{task.name}.x_o"][number - 1].astype(np.float64),
                theta=file[f"{task.folder}.theta"][number - 1].astype(np.float64),
                reference=rows.astype(np.float64),
            )
    except (ValueError, KeyError, OSError, zipfile.BadZipFile) as fault:
        raise Refusal(f"{path} is no file of `prepare` ({fault}): make it again") from None

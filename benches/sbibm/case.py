"""A case: one method on one observation of one task, by one seed; what it scores; its file."""

from __future__ import annotations

import json
import os
import time
import warnings
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

import didyma

from .data import Refusal, Truth, load
from .tasks import TASKS, Array, Task

#: Draws of a posterior that are compared with as many of the reference.
DRAWS = 10_000
#: Rows of a simulator's call; another number gives other noise.
BATCH = 1000
#: Settings that cases of one variant differ in.
OF_CASES = ("seed", "simulations")
#: Parts of a run's summary that say what the variant says, or what the draws say.
LEFT_OUT = ("config", "parameters", "task", "method", "profile", "seed", "warnings")


@dataclass(frozen=True)
class Variant:
    """A method with its settings, under a name."""

    name: str
    method: str | None
    profile: str | None
    #: None: ten, or one of the method that does not go on from its first.
    rounds: int | None
    settings: dict[str, str]

    @property
    def rounds_in_all(self) -> int:
        return self.rounds or (1 if self.method == "npe" else 10)

    def rounds_of(self, budget: int) -> int:
        rounds = self.rounds_in_all
        if budget % rounds:
            raise Refusal(f"{budget} simulations are not {rounds} equal rounds: choose another budget or --rounds")
        return rounds

    def resolved(self) -> dict[str, str]:
        """Every setting that its cases share, with the value that it has: defaults may change under a name that does not."""
        known = {name: value for name, (value, _) in didyma.settings(self.method, self.profile).items() if name not in OF_CASES}
        return {**known, "rounds": str(self.rounds_in_all), **self.settings}


@dataclass(frozen=True)
class Case:
    """One run of a variant."""

    variant: Variant
    task: str
    budget: int
    observation: int
    seed: int

    @property
    def key(self) -> str:
        return f"{self.task}-{self.budget}-{self.observation}-{self.seed}"

    def path(self, out: Path) -> Path:
        return out / self.variant.name / f"{self.key}.json"


def write(path: Path, records: Iterable[dict[str, Any]]) -> None:
    """Writes a file, a line each record, that appears whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f"{path.name}.{os.getpid()}")
    try:
        unfinished.write_text("".join(json.dumps(record) + "\n" for record in records))
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)


def keep(path: Path, draws: Array) -> None:
    """Keeps a case's draws beside its record, in single precision."""
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f"{path.stem}.{os.getpid()}.npz")
    np.savez_compressed(unfinished, draws=draws.astype(np.float32))
    unfinished.replace(path.with_suffix(".npz"))


def has_draws(path: Path) -> bool:
    """Whether draws were kept beside a record."""
    return path.with_suffix(".npz").is_file()


def kept(path: Path) -> Array:
    """The draws that were kept beside a record."""
    if not has_draws(path):
        raise Refusal(f"{path.name} has no draws: run it with --keep")
    with np.load(path.with_suffix(".npz")) as file:
        return file["draws"].astype(np.float64)


def classified(reference: Array, draws: Array, seeds: int, folds: int) -> dict[str, Any]:
    """C2ST by several seeds of the classifier, of so many of its five folds: each value, mean and standard error."""
    began = time.perf_counter()
    each = [didyma.metrics.c2st(reference, draws, seeds=1, folds=folds, seed=seed) for seed in range(1, seeds + 1)]
    error = float(np.std(each, ddof=1) / np.sqrt(seeds)) if seeds > 1 else None
    return {
        "c2st": float(np.mean(each)) if each else None,
        "c2st_se": error,
        "c2st_each": each,
        "c2st_folds": folds,
        "seconds_c2st": time.perf_counter() - began,
    }


def density_scores(task: Task, posterior: didyma.Posterior, truth: Truth) -> dict[str, Any]:
    """-E log q of the reference's rows and -log q of the true parameters; rows of no density are counted apart."""
    log_q = task.log_prob(posterior, truth.reference)
    finite = np.isfinite(log_q)
    return {
        "nlq": float(-log_q[finite].mean()) if finite.any() else None,
        "nlq_without_density": int((~finite).sum()),
        "nlq_true": float(-task.log_prob(posterior, truth.theta[None])[0]),
    }


def infer(case: Case, truth: Truth, device: str) -> didyma.Result:
    task, variant = TASKS[case.task], case.variant
    rounds = variant.rounds_of(case.budget)
    return didyma.infer(
        task.simulate,
        task.prior,
        truth.x_o,
        rounds=rounds,
        simulations=case.budget // rounds,
        method=variant.method,
        profile=variant.profile,
        seed=case.seed,
        settings=variant.settings,
        vectorized=True,
        batch_size=BATCH,
        threads=1,
        device=device,
        progress=False,
    )


def work(case: Case, data: Path, out: Path, classifiers: tuple[int, int], keep_draws: bool, device: str) -> None:
    """Does a case and writes its file."""
    task, truth = TASKS[case.task], load(TASKS[case.task], case.observation, data)
    began, busy = time.perf_counter(), time.process_time()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = infer(case, truth, device)
    seconds, cpu_seconds = time.perf_counter() - began, time.process_time() - busy
    posterior = result.posterior
    draws = task.parameters(posterior.sample((DRAWS,), seed=case.seed))
    summary = result.summary()
    record = {
        **asdict(case),
        "rounds": case.variant.rounds_of(case.budget),
        "seconds": seconds,
        "cpu_seconds": cpu_seconds,
        "warnings": [*summary.warnings, *(str(warning.message) for warning in caught)],
        **density_scores(task, posterior, truth),
        **classified(truth.reference, draws, *classifiers),
        "run": {name: value for name, value in summary.to_dict().items() if name not in LEFT_OUT},
        "version": didyma.__version__,
    }
    record["seconds_all"] = time.perf_counter() - began
    record["cpu_seconds_all"] = time.process_time() - busy
    path = case.path(out)
    if keep_draws:
        keep(path, draws)
    write(path, [record])


def rescore(path: Path, data: Path, classifiers: tuple[int, int]) -> None:
    """Scores the kept draws of a case by more seeds of the classifier."""
    record = json.loads(path.read_text())
    draws = kept(path)
    truth = load(TASKS[record["task"]], record["observation"], data)
    record.update(classified(truth.reference, draws, *classifiers))
    write(path, [record])

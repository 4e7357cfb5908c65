"""Jobs side by side: one process each, longest first, within a time limit."""

from __future__ import annotations

import multiprocessing
import os
import statistics
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from multiprocessing.connection import wait
from multiprocessing.process import BaseProcess
from typing import Any


@dataclass(frozen=True)
class Job:
    """A function with its arguments, in a process of its own."""

    label: str
    #: Jobs of one kind take about equally long.
    kind: str
    #: Seconds that it may take, on some machine: only ratios count once a job has ended.
    guess: float
    work: Callable[..., None]
    arguments: tuple[Any, ...]
    #: Whether it has a core of its own, where nothing that it calls uses several threads.
    alone: bool = True


@dataclass
class Clock:
    """How long jobs take, learnt from those that ended."""

    seconds: dict[str, float] = field(default_factory=dict)
    ratios: list[float] = field(default_factory=list)

    def learn(self, job: Job, seconds: float) -> None:
        self.seconds[job.kind] = max(seconds, self.seconds.get(job.kind, 0.0))
        self.ratios.append(seconds / job.guess)

    def expected(self, job: Job) -> float:
        scale = statistics.median(self.ratios) if self.ratios else 1.0
        return self.seconds.get(job.kind, job.guess * scale)


@dataclass
class Running:
    job: Job
    process: BaseProcess
    began: float
    core: int


@dataclass
class Outcome:
    done: int = 0
    failed: list[str] = field(default_factory=list)
    #: Jobs that were not begun, or not ended in time.
    missing: int = 0


def begin(core: int, job: Job) -> None:
    """Runs in the new process."""
    if job.alone and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {core})
    try:
        job.work(*job.arguments)
    except Exception:
        traceback.print_exc()
        sys.exit(1)


def cores() -> list[int]:
    return sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else list(range(os.cpu_count() or 1))


def execute(jobs: list[Job], slots: int, minutes: float | None, clock: Clock) -> Outcome:
    """Does the jobs; those that run at the time limit are killed, and none begins that would not end in time."""
    deadline = time.monotonic() + 60 * minutes if minutes else float("inf")
    outcome, waiting, running = Outcome(), list(jobs), list[Running]()
    available = cores()
    free = [available[slot % len(available)] for slot in range(slots)][::-1]
    with tempfile.TemporaryDirectory() as scratch:
        # Runs that are killed leave nothing behind.
        os.environ["TMPDIR"] = scratch
        try:
            while waiting or running:
                left = deadline - time.monotonic()
                fill(waiting, running, free, left, clock)
                if not running or left <= 0:
                    break
                wait([each.process.sentinel for each in running], timeout=None if left == float("inf") else max(left, 0.0))
                for each in [each for each in running if not each.process.is_alive()]:
                    running.remove(each)
                    free.append(each.core)
                    finish(each, outcome, clock, len(waiting) + len(running))
        finally:
            # An interruption must leave no process behind either.
            for each in running:
                each.process.kill()
                each.process.join()
        outcome.missing = len(waiting) + len(running)
    return outcome


def fill(waiting: list[Job], running: list[Running], free: list[int], left: float, clock: Clock) -> None:
    """Begins jobs on the free cores, the longest first that ends in time."""
    waiting.sort(key=clock.expected)
    while free and waiting:
        fitting = [job for job in waiting if clock.expected(job) <= left]
        if not fitting:
            break
        job = fitting[-1]
        waiting.remove(job)
        core = free.pop()
        process = multiprocessing.get_context("spawn").Process(target=begin, args=(core, job))
        process.start()
        running.append(Running(job, process, time.monotonic(), core))


def finish(each: Running, outcome: Outcome, clock: Clock, left: int) -> None:
    """Notes how a job ended."""
    each.process.join()
    seconds = time.monotonic() - each.began
    if each.process.exitcode == 0:
        outcome.done += 1
        clock.learn(each.job, seconds)
        print(f"{each.job.label}: {seconds:.0f} s, {left} left", flush=True)
    else:
        outcome.failed.append(each.job.label)
        print(f"{each.job.label}: failed after {seconds:.0f} s", file=sys.stderr, flush=True)

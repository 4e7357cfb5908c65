"""Calls of a user's simulator: in this process, or wherever an executor runs them."""

from __future__ import annotations

import concurrent.futures
import inspect
import os
import queue
import random as python_random
import sys
import time
import traceback
from typing import Any, Callable

import numpy as np

#: Characters of a traceback that are kept.
LONGEST = 4000

Answer = tuple[np.ndarray, list[tuple[int, str]], float]


def randomness(simulator: Callable[..., Any]) -> str:
    """What the simulator asks for besides theta: "rng", "seed", or nothing."""
    try:
        names = inspect.signature(simulator).parameters
    except (TypeError, ValueError):
        return ""
    return next((name for name in ("rng", "seed") if name in names), "")


def simulate(
    simulator: Callable[..., Any],
    random: str,
    batch: int,
    theta: np.ndarray,
    seeds: np.ndarray,
    x_dim: int,
    patience: float = float("inf"),
    token: int = 0,
    home: int = 0,
) -> Answer:
    """Summaries of each row of theta, reasons of rows that failed, and seconds.

    ``batch`` is 0 for a simulator of single rows, else how many rows a call is given. After ``patience`` seconds, what
    there is by then is returned, the first rows. The token only tells one attempt from another, for executors that
    remember what they have computed; ``home`` is the process of whoever asks.
    """
    del token
    start = time.perf_counter()
    if home and home != os.getpid() and not random:
        _seed(int(seeds[0]))
    # As aligned as any, also where it came over a network.
    theta = np.require(theta, requirements=["C", "A"])
    x = np.full((len(theta), x_dim), np.nan)
    failures: list[tuple[int, str]] = []
    for first in range(0, len(theta), batch or 1):
        if first and time.perf_counter() - start > patience:
            return x[:first], failures, time.perf_counter() - start
        rows = slice(first, min(first + (batch or 1), len(theta)))
        try:
            # A copy: what the simulator writes on it must not be there when it is called again.
            x[rows] = _call(simulator, random, batch > 0, theta[rows].copy(), seeds[rows], x_dim)
        except (Exception, SystemExit) as error:
            if batch > 1 and rows.stop - rows.start > 1:
                # Which of them is it?
                alone, failed, _ = simulate(simulator, random, 1, theta[rows], seeds[rows], x_dim)
                x[rows] = alone
                failures += [(first + row, why) for row, why in failed]
            else:
                failures.append((first, words(error)))
    return x, failures, time.perf_counter() - start


def _seed(seed: int) -> None:
    """Seeds the generators that all of a process share: forked workers would begin with the same numbers."""
    np.random.seed(seed % 2**32)
    python_random.seed(seed)
    torch = sys.modules.get("torch")
    if torch is not None:
        torch.manual_seed(seed)


class Unusable(TypeError):
    """What the simulator returned is no array of the right shape."""


def _call(
    simulator: Callable[..., Any],
    random: str,
    vectorized: bool,
    theta: np.ndarray,
    seeds: np.ndarray,
    x_dim: int,
) -> np.ndarray:
    more: dict[str, Any] = {}
    if random == "rng":
        more["rng"] = np.random.default_rng(int(seeds[0]))
    elif random == "seed":
        more["seed"] = seeds if vectorized else int(seeds[0])
    found = simulator(theta if vectorized else theta[0], **more)
    if found is None:
        raise Unusable(f"the simulator returned None: return {x_dim} numbers")
    if isinstance(found, np.ma.MaskedArray):
        found = np.ma.filled(found.astype(float), np.nan)
    array = np.asarray(found)
    if array.dtype.kind not in "fiub":
        raise Unusable(f"the simulator returned {_described(found, array)}: return {x_dim} numbers")
    expected = (len(theta), x_dim)
    fits = array.shape == expected
    if not vectorized:
        fits = fits or array.shape == (x_dim,) or (x_dim == 1 and array.size == 1)
    elif x_dim == 1:
        fits = fits or array.shape == (len(theta),)
    if not fits:
        wanted = f"(n, {x_dim}) for n = {len(theta)} rows" if vectorized else f"({x_dim},)"
        raise Unusable(
            f"the simulator returned an array of shape {array.shape}, but {wanted} is needed, as x_o has {x_dim} numbers"
        )
    return array.reshape(expected)


def _described(found: Any, array: np.ndarray) -> str:
    if isinstance(found, str):
        return f"the text {found[:40]!r}"
    return f"an array of {array.dtype}" if array.dtype.kind != "O" else f"a {type(found).__name__}"


def words(error: BaseException) -> str:
    """The exception in one line, then its traceback without our own frames."""
    short = "".join(traceback.format_exception_only(type(error), error)).strip()
    if isinstance(error, Unusable):
        return str(error)
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if frame.filename != __file__]
    told = "".join(traceback.format_list(own))
    return f"{short}\n{told[-LONGEST:]}".rstrip() if told else short


def workers(executor: Any) -> int | None:
    """How many tasks the executor runs at once, where it tells."""
    client = getattr(executor, "_client", None)
    if client is not None and hasattr(client, "nthreads"):
        return int(sum(client.nthreads().values()))
    found = (getattr(executor, name, None) for name in ("_max_workers", "num_workers"))
    return next((number for number in found if isinstance(number, int)), None)


def submit(executor: Any, done: queue.SimpleQueue[Any], token: int, arguments: tuple[Any, ...]) -> Any:
    """Hands a call of `simulate` to the executor; the future goes to the queue when it is done."""
    future = executor.submit(simulate, *arguments, token, os.getpid())
    future.add_done_callback(lambda future: done.put((token, future)))
    return future


def take(done: queue.SimpleQueue[Any], seconds: float) -> tuple[int, Answer | None, Exception | None] | None:
    """The next call that is done, with its answer or why there is none; nothing if none is in time."""
    try:
        token, future = done.get(timeout=seconds)
    except queue.Empty:
        return None
    try:
        return token, future.result(), None
    except Exception as error:
        return token, None, error


def is_broken(error: BaseException) -> bool:
    """Whether the executor itself is lost with what it was running."""
    return isinstance(error, concurrent.futures.BrokenExecutor)

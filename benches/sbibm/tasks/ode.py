"""Ordinary differential equations of many rows at once, by Dormand and Prince's method with steps of each row's own."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .base import Array

#: Weights of the stages' derivatives, one row a stage; the last row is the step of order five.
STAGES = [
    np.array([1 / 5]),
    np.array([3 / 40, 9 / 40]),
    np.array([44 / 45, -56 / 15, 32 / 9]),
    np.array([19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729]),
    np.array([9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656]),
    np.array([35 / 384, 0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84]),
]
#: The step of order five less that of order four.
ERROR = np.array([71 / 57600, 0, -71 / 16695, 71 / 1920, -17253 / 339200, 22 / 525, -1 / 40])
#: A step is at most this many times the last.
GROWTH = 5.0

#: Derivatives (V, n) of values (V, n) with parameters (D, n), at any time.
Derivative = Callable[[Array, Array], Array]


def solve(derivative: Derivative, start: Array, theta: Array, every: float, count: int, tolerance: float) -> Array:
    """Values (count, V, n) at times 0, every, 2 every, …, of an equation without explicit time.

    A step's error is at most `tolerance` in every value; use logarithms of values whose relative error matters.
    """
    rows = theta.shape[1]
    saved = np.empty((count, len(start), rows))
    saved[0] = start[:, None]
    active, y = np.arange(rows), saved[0].copy()
    time, number = np.zeros(rows), np.ones(rows, dtype=int)
    step = np.full(rows, 1e-3 * every)
    first = derivative(y, theta)
    while active.size:
        left = number * every - time
        ends = step >= left
        size = np.where(ends, left, step)
        stages = [first]
        for weights in STAGES:
            ahead = y + size * sum(w * k for w, k in zip(weights, stages) if w)
            stages.append(derivative(ahead, theta))
        error = size * sum(w * k for w, k in zip(ERROR, stages) if w)
        worst = np.maximum(np.abs(error).max(0) / tolerance, 1e-10)
        kept = worst <= 1
        time = np.where(kept & ends, number * every, time + np.where(kept, size, 0.0))
        y, first = np.where(kept, ahead, y), np.where(kept, stages[-1], first)
        # A step that was cut at a time of saving does not make the next one small.
        wanted = size * np.clip(0.9 * worst**-0.2, 0.2, GROWTH)
        step = np.where(kept & ends, np.maximum(step, wanted), wanted)
        reached = np.flatnonzero(kept & ends)
        if reached.size:
            saved[number[reached], :, active[reached]] = y[:, reached].T
            number[reached] += 1
            going = number < count
            if not going.all():
                active, y, first, theta = active[going], y[:, going], first[:, going], theta[:, going]
                time, number, step = time[going], number[going], step[going]
    return saved

"""Checks of the tasks against sbibm's files: the observations are possible, and the references have our likelihoods."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from .data import Refusal, Truth, load
from .tables import markdown
from .tasks import TASKS, Array, Task
from .tasks.populations import animals, epidemic, infected, log_animals


def ranks(task: Task, truths: list[Truth], rows: int, rng: np.random.Generator) -> Array:
    """Ranks, between 0 and 1, of each observation's numbers among simulations of its true parameters; ties are split."""
    found = []
    for truth in truths:
        x = task.simulator(np.repeat(truth.theta[None], rows, axis=0), rng)
        found.append((x < truth.x_o).mean(0) + rng.random(truth.x_o.shape) * (x == truth.x_o).mean(0))
    return np.array(found)


def moved(task: Task, truth: Truth, rows: int, steps: int, rng: np.random.Generator) -> tuple[float, float]:
    """Moves rows of the reference by a Markov chain that keeps our posterior: share of moves, and largest z.

    Had the reference another law than ours, moments would drift. Proposals are differences of two reference rows, which
    are as likely as their opposites. The z-scores are of parameters, their squares, and the log-density.
    """
    start = truth.reference[rng.permutation(len(truth.reference))[:rows]]
    density = lambda theta: task.log_prior(theta) + task.log_likelihood(theta, truth.x_o)
    theta, height = start.copy(), density(start)
    first, accepted = height.copy(), 0.0
    spread = truth.reference.std(0)
    for step in range(steps):
        one, other = truth.reference[rng.integers(0, len(truth.reference), size=(2, rows))]
        # A factor of one jumps between modes.
        factor = 1.0 if step % 5 == 4 else 1.7 / np.sqrt(2 * task.dim) * rng.random((rows, 1))
        ahead = theta + factor * (one - other) + 1e-3 * spread * rng.normal(size=theta.shape)
        inside = np.isfinite(task.log_prior(ahead))
        new = np.full(rows, -np.inf)
        new[inside] = density(ahead[inside])
        taken = np.log(rng.random(rows)) < new - height
        theta[taken], height[taken] = ahead[taken], new[taken]
        accepted += taken.mean() / steps
    middle = truth.reference.mean(0)
    change = np.column_stack([theta - start, (theta - middle) ** 2 - (start - middle) ** 2, height - first])
    z = change.mean(0) / (change.std(0) / np.sqrt(rows) + 1e-300)
    return accepted, float(np.abs(z).max())


def check_tasks(names: list[str], observations: list[int], data: Path, rows: int, steps: int) -> str:
    """One line a task. With few numbers ranks lie between .3 and .7 on average; z beyond 4 is no chance."""
    lines = []
    for name in names:
        task, rng = TASKS[name], np.random.default_rng(1)
        truths = [load(task, number, data) for number in observations]
        rank = ranks(task, truths, rows, rng)
        moves = [moved(task, truth, rows, steps, rng) for truth in truths]
        lines.append([
            task.title,
            f"{rank.mean():.2f}",
            f"{rank.std() * np.sqrt(12):.2f}",
            f"{min(share for share, _ in moves):.2f}",
            " ".join(f"{z:.1f}" for _, z in moves),
        ])
    return markdown(["task", "mean rank", "spread of ranks", "moves", "largest z of each observation"], lines)


def check_solver(rows: int) -> str:
    """Largest error of the differential equations' solver at draws of the prior, beside scipy's."""
    try:
        from scipy.integrate import solve_ivp
    except ImportError:
        raise Refusal("scipy is not installed: the solver cannot be compared with it") from None

    lines = []
    for name, derivative, start, end, ours in (
        ("sir", epidemic, np.log([1 - 1e-6, 1e-6]), 153.0, lambda theta: np.log(infected(theta))),
        ("lotka_volterra", animals, np.log([30.0, 1.0]), 18.9, log_animals),
    ):
        theta = TASKS[name].sample_prior(rows, seed=1)
        worst = []
        for row, found in zip(theta, ours(theta)):
            times = np.linspace(0.0, end, 10)
            exact = solve_ivp(
                lambda _, y: derivative(y, row), (0.0, end), start, "DOP853", times, rtol=1e-12, atol=1e-12
            ).y
            exact = exact[1] if name == "sir" else exact.ravel().clip(np.log(1e-10), np.log(1e4))
            worst.append(np.abs(found - exact).max())
        lines.append([TASKS[name].title, f"{np.median(worst):.1e}", f"{np.max(worst):.1e}"])
    return markdown(["task", "error of logarithms, median row", "worst row"], lines)

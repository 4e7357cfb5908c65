"""Our C2ST beside scikit-learn's network, set up as sbibm sets it up, on pairs of sets whose best accuracy is known."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import didyma

from .data import load
from .forest import FOLDS, forest, in_scale, need_sklearn
from .tables import markdown, spread
from .tasks import TASKS, Array

#: Makes two sets of as many rows.
Draw = Callable[[int, np.random.Generator], tuple[Array, Array]]


@dataclass(frozen=True)
class Pair:
    title: str
    draw: Draw
    #: Accuracy of the best classifier; None: not known.
    best: float | None


def sbibm_c2st(reference: Array, draws: Array, seed: int) -> float:
    """C2ST by scikit-learn, with sbibm's choices."""
    from sklearn.model_selection import KFold, cross_val_score
    from sklearn.neural_network import MLPClassifier

    units = 10 * reference.shape[1]
    network = MLPClassifier((units, units), activation="relu", solver="adam", max_iter=10_000, random_state=seed)
    folds = KFold(FOLDS, shuffle=True, random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return float(np.mean(cross_val_score(network, *in_scale(reference, draws), cv=folds)))


def normal(dim: int, shift: float, scale: float) -> Draw:
    """Standard normal rows, and rows of another scale that are shifted along the first axis."""

    def draw(rows: int, rng: np.random.Generator) -> tuple[Array, Array]:
        one, other = rng.normal(size=(2, rows, dim))
        other *= scale
        other[:, 0] += shift
        return one, other

    return draw


def shifted(shift: float) -> float:
    """Φ(δ/2): the best classifier asks which mean is nearer."""
    return 0.5 * math.erfc(-shift / 2 / math.sqrt(2))


def chi_square(x: float, dim: int) -> float:
    """Distribution function of χ² with an even number of degrees of freedom."""
    terms = [math.exp(-x / 2) * (x / 2) ** k / math.factorial(k) for k in range(dim // 2)]
    return 1 - sum(terms)


def widened(dim: int, scale: float) -> float:
    """The best classifier asks whether |z|² exceeds where both densities are equal."""
    limit = dim * math.log(scale**2) / (1 - scale**-2)
    return 0.5 * (chi_square(limit, dim) + 1 - chi_square(limit / scale**2, dim))


def halves(task: str, data: Path, factor: float) -> Draw:
    """Two disjoint parts of a reference, one of them stretched around its mean, as a posterior that is a little wide."""
    reference = load(TASKS[task], 1, data).reference

    def draw(rows: int, rng: np.random.Generator) -> tuple[Array, Array]:
        chosen = reference[rng.permutation(len(reference))[: 2 * rows]]
        middle = reference.mean(0)
        return chosen[:rows], middle + factor * (chosen[rows:] - middle)

    return draw


def pairs(data: Path) -> list[Pair]:
    return [
        Pair("equal normal laws, D = 2", normal(2, 0.0, 1.0), 0.5),
        Pair("means 1 apart, D = 2", normal(2, 1.0, 1.0), shifted(1.0)),
        Pair("scale 1.2, D = 4", normal(4, 0.0, 1.2), widened(4, 1.2)),
        Pair("Two Moons, stretched by 1.05", halves("two_moons", data, 1.05), None),
        Pair("SLCP, stretched by 1.1", halves("slcp", data, 1.1), None),
    ]


def check_classifiers(data: Path, rows: int, seeds: int) -> str:
    """One line a pair: means over seeds, each with sets of its own, and our classifier less sbibm's on equal sets."""
    need_sklearn()
    lines = []
    for pair in pairs(data):
        found = []
        for seed in range(1, seeds + 1):
            one, other = pair.draw(rows, np.random.default_rng(seed))
            found.append([
                didyma.metrics.c2st(one, other, seeds=1, seed=seed),
                sbibm_c2st(one, other, seed),
                forest(one, other, seed),
            ])
        ours, network, trees = np.array(found).T
        best = "" if pair.best is None else f"{pair.best:.3f}"
        cells = [f"{mean:.3f} ± {error:.3f}" for mean, error in map(spread, (ours, network, trees))]
        mean, error = spread(ours - network)
        lines.append([pair.title, best, *cells, f"{mean:+.3f} ± {error:.3f}"])
    return markdown(["pair", "best possible", "didyma", "scikit-learn", "random forest", "didyma less scikit-learn"], lines)

"""Normal scores: a smooth map of each column to a standard normal law."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import PchipInterpolator
from scipy.special import ndtri

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

#: Quantiles that the map goes through, beside those of the tails.
KNOTS = 400
TAIL = np.array([1e-5, 1e-4, 5e-4])
#: Halvings of an interval: the width of a column over 2^60 is below the last digit.
HALVINGS = 60


class Column:
    """g = Φ⁻¹(F(v)), with F by monotone interpolation of empirical quantiles, and along the outermost secants beyond them."""

    def __init__(self, values: Array) -> None:
        levels = np.sort(np.concatenate([TAIL, (np.arange(KNOTS) + 0.5) / KNOTS, 1 - TAIL]))
        quantiles, scores = np.quantile(values, levels), ndtri(levels)
        self.inner = PchipInterpolator(quantiles, scores)
        self.ends = quantiles[[0, -1]]
        self.at_ends = scores[[0, -1]]
        self.slopes = np.diff(scores)[[0, -1]] / np.diff(quantiles)[[0, -1]]

    def __call__(self, values: Array) -> tuple[Array, Array]:
        """Scores of values, and the slopes there."""
        inside = np.clip(values, *self.ends)
        scores, slopes = self.inner(inside), self.inner(inside, 1)
        for k, beyond in enumerate([values <= self.ends[0], values >= self.ends[1]]):
            slopes = np.where(beyond, self.slopes[k], slopes)
        return scores + slopes * (values - inside), slopes

    def inverse(self, scores: Array) -> Array:
        """The values that have these scores."""
        low, high = np.full(len(scores), self.ends[0]), np.full(len(scores), self.ends[1])
        for _ in range(HALVINGS):
            middle = 0.5 * (low + high)
            above = self.inner(middle) < scores
            low, high = np.where(above, middle, low), np.where(above, high, middle)
        values = 0.5 * (low + high)
        for k, beyond in enumerate([scores <= self.at_ends[0], scores >= self.at_ends[1]]):
            values = np.where(beyond, self.ends[k] + (scores - self.at_ends[k]) / self.slopes[k], values)
        return np.asarray(values, dtype=np.float64)


class NormalScores:
    """The maps of all columns."""

    def __init__(self, rows: Array) -> None:
        self.columns = [Column(column) for column in rows.T]

    def __call__(self, rows: Array) -> tuple[Array, Array]:
        """Scores of rows, and the logarithm of |dg/dv| of each row."""
        each = [column(values) for column, values in zip(self.columns, rows.T, strict=True)]
        log_slope = np.sum([np.log(slopes) for _, slopes in each], axis=0)
        return np.column_stack([scores for scores, _ in each]), log_slope

    def inverse(self, scores: Array) -> Array:
        """The rows that have these scores."""
        return np.column_stack([column.inverse(values) for column, values in zip(self.columns, scores.T, strict=True)])

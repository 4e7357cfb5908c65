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


class Scores:
    """g = Φ⁻¹(F(v)) for each column, with F by monotone interpolation of empirical quantiles; straight beyond the outermost."""

    def __init__(self, rows: Array) -> None:
        levels = np.sort(np.concatenate([TAIL, (np.arange(KNOTS) + 0.5) / KNOTS, 1 - TAIL]))
        quantiles = np.quantile(rows, levels, axis=0).T
        self.maps = [PchipInterpolator(column, ndtri(levels)) for column in quantiles]

    def __call__(self, rows: Array) -> tuple[Array, Array]:
        """Scores of rows, and the logarithm of |dg/dv| of each row."""
        scores, log_slope = np.empty(rows.shape), np.zeros(len(rows))
        for k, each in enumerate(self.maps):
            inside = np.clip(rows[:, k], each.x[0], each.x[-1])
            slope = np.maximum(each(inside, 1), 1e-9)
            scores[:, k] = each(inside) + slope * (rows[:, k] - inside)
            log_slope += np.log(slope)
        return scores, log_slope

    def inverse(self, scores: Array) -> Array:
        """Rows of scores; scores beyond the outermost quantile stop there."""
        rows = np.empty(scores.shape)
        for k, each in enumerate(self.maps):
            low, high = np.full(len(scores), each.x[0]), np.full(len(scores), each.x[-1])
            for _ in range(HALVINGS):
                middle = 0.5 * (low + high)
                above = each(middle) < scores[:, k]
                low, high = np.where(above, middle, low), np.where(above, high, middle)
            rows[:, k] = 0.5 * (low + high)
        return rows

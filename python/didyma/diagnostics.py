"""Do the probabilities that a posterior states come true? Checks by simulations whose parameters are known.

>>> theta = prior.sample((500,)); x = simulate(theta)  # not those that the posterior was trained on
>>> didyma.diagnostics.sbc(posterior, theta, x)       # marginals: too narrow, too wide, biased
>>> didyma.diagnostics.coverage(posterior, theta, x)  # regions of highest density
>>> didyma.diagnostics.tarp(posterior, theta, x)      # balls around random points
>>> didyma.diagnostics.lc2st(posterior, theta, x, x_o)  # at one observation
>>> didyma.diagnostics.misspecification(x, x_o)       # is the observation like the simulations?

A posterior is anything with `sample((n,), x=…)` and, where densities are needed, `log_prob(theta, x=…)`: one of this
package, one of sbi, or your own. None of the first three can see a posterior that ignores x and is the prior.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from didyma import _didyma
from didyma.errors import InputError, NotFiniteError, ShapeError

__all__ = [
    "SBC",
    "TARP",
    "Bands",
    "Coverage",
    "LocalTest",
    "Misspecification",
    "coverage",
    "lc2st",
    "misspecification",
    "sbc",
    "tarp",
]

_Floats: TypeAlias = NDArray[np.float64]

#: Fewest pairs (theta, x), as in the compiled part: looked at before anything is drawn.
_LEAST_ROWS = 20


@dataclass(frozen=True, eq=False)
class Bands:
    """Shares that the distribution function of uniform numbers keeps at all points at once, with probability 0.95."""

    points: _Floats
    low: _Floats
    high: _Floats


@dataclass(frozen=True, eq=False, repr=False)
class SBC:
    """Ranks of true parameters among draws of their posteriors (simulation-based calibration)."""

    #: Draws below each parameter, (n, D), as sbi's.
    ranks: NDArray[np.int64]
    #: Draws whose log-density is below that of the true parameters, (n,); None without `log_prob`.
    log_prob_ranks: NDArray[np.int64] | None
    #: Randomised ranks between 0 and 1, (n, D): uniform if the posterior is right.
    values: _Floats
    #: Exact p-values of their uniformity, (D,), and that of the ranks of log-densities.
    p_values: _Floats
    log_prob_p_value: float | None
    #: P-values of sbi's `check_sbc`.
    ks_p_values: _Floats
    #: Mean (0.5) and relative deviation (1: below is too wide, above too narrow) of the randomised ranks, (D,).
    means: _Floats
    spreads: _Floats
    #: For the distribution function of each column of `values`.
    bands: Bands
    names: list[str]
    draws: int

    def __repr__(self) -> str:
        lines = [f"ranks of {len(self.ranks)} rows among {self.draws} draws each"]
        width = max(len(name) for name in [*self.names, "log_prob"])
        for i, name in enumerate(self.names):
            fault = _fault(self.p_values[i], self.means[i], self.spreads[i])
            lines.append(f"  {name:{width}}  p = {self.p_values[i]:.3g}  {fault}")
        if self.log_prob_p_value is not None:
            fault = "unremarkable" if self.log_prob_p_value > 0.05 else "its ranks are not uniform"
            lines.append(f"  {'log_prob':{width}}  p = {self.log_prob_p_value:.3g}  {fault}")
        return "\n".join(lines)


@dataclass(frozen=True, eq=False, repr=False)
class Coverage:
    """How often regions of highest density have the true parameters inside."""

    levels: _Floats
    #: Share of the rows whose region of each level has the truth inside.
    covered: _Floats
    #: Shares that a right posterior has at all levels at once, with probability 0.95.
    bands: Bands
    #: Of the uniformity of `region_levels`, exact.
    p_value: float
    #: Area between curve and diagonal: below 0 too narrow, above 0 too wide.
    signed_area: float
    #: "unremarkable", "too narrow" or "too wide".
    size: str
    #: Level of the smallest region that has the truth inside, (n,).
    region_levels: _Floats

    def level(self, coverage: float) -> float:
        """The nominal level whose regions have this coverage over pairs (theta, x), however wrong the posterior is."""
        return _didyma.calibration_level(self.region_levels, coverage)

    def __repr__(self) -> str:
        lines = [
            f"coverage of {len(self.region_levels)} rows: {self.size}, p = {self.p_value:.3g}, "
            f"signed area {self.signed_area:+.3f}"
        ]
        places = zip(self.levels, self.covered, self.bands.low, self.bands.high, strict=True)
        for level, covered, low, high in places:
            mark = "" if low <= covered <= high else "  outside"
            lines.append(f"  {level:.2f}  {covered:.3f}  ({low:.3f} to {high:.3f}){mark}")
        return "\n".join(lines)


@dataclass(frozen=True, eq=False, repr=False)
class TARP:
    """Coverage of balls around points of reference."""

    #: Expected coverage at each credibility `alpha`, as sbi's `run_tarp` returns them.
    ecp: _Floats
    alpha: _Floats
    #: sbi's `check_tarp`: area to the curve above 0.5, and a p-value that is near 1 for all but the worst.
    atc: float
    ks_p_value: float
    #: Share of draws nearer to the point of reference than the truth, (n,).
    credibility: _Floats
    #: Of the uniformity of the credibilities, exact.
    p_value: float

    def __repr__(self) -> str:
        side = "too wide" if self.atc > 0 else "too narrow or biased"
        fault = "unremarkable" if self.p_value > 0.05 else side
        rows = len(self.credibility)
        return f"TARP of {rows} rows: {fault}, p = {self.p_value:.3g}, area to curve {self.atc:+.3f}"


@dataclass(frozen=True, eq=False, repr=False)
class LocalTest:
    """The local classifier two-sample test (L-C2ST) at one observation."""

    statistic: float
    #: The statistic of every trial under the null hypothesis.
    null: _Floats
    #: (1 + trials with a statistic as large) / (1 + trials).
    p_value: float
    #: Draws of the posterior at the observation, (draws, D), and the probability that a classifier gives them of being
    #: true parameters: above 0.5 where the posterior is too low, below where too high.
    theta: _Floats
    probabilities: _Floats

    def __repr__(self) -> str:
        fault = "unremarkable" if self.p_value > 0.05 else "the posterior is wrong here"
        return (
            f"local test: {fault}, p = {self.p_value:.3g} of {len(self.null)} trials, "
            f"statistic {self.statistic:.4f} (null {self.null.mean():.4f})"
        )


def sbc(
    posterior: Any, theta: ArrayLike, x: ArrayLike, draws: int = 1000, seed: int | None = None
) -> SBC:
    """Ranks the true `theta` (n, D) of simulations `x` (n, S) among draws of their posteriors."""
    pairs = _Pairs(posterior, theta, x)
    drawn = pairs.draw(draws, seed)
    found = _didyma.calibration_ranks(pairs.theta, drawn, seed=seed)
    shape = pairs.theta.shape
    values = np.reshape(found["randomised"], shape)
    tests = [_didyma.calibration_uniformity(column) for column in values.T]
    density = pairs.log_prob_ranks(drawn, seed) if hasattr(posterior, "log_prob") else None
    of_density = _didyma.calibration_uniformity(density["randomised"]) if density else None
    bands = _didyma.calibration_bands(len(values), min(len(values), 100))
    return SBC(
        ranks=np.reshape(np.asarray(found["below"], dtype=np.int64), shape),
        log_prob_ranks=np.asarray(density["below"], dtype=np.int64) if density else None,
        values=values,
        p_values=np.array([test["p_value"] for test in tests]),
        log_prob_p_value=of_density["p_value"] if of_density else None,
        ks_p_values=np.array(found["ks_p_values"]),
        means=np.array([test["mean"] for test in tests]),
        spreads=np.array([test["spread"] for test in tests]),
        bands=_bands(bands),
        names=pairs.names(),
        draws=draws,
    )


def coverage(
    posterior: Any,
    theta: ArrayLike,
    x: ArrayLike,
    draws: int = 1000,
    levels: Sequence[float] | _Floats | None = None,
    seed: int | None = None,
) -> Coverage:
    """Coverage of regions of highest density at these levels (0.05, 0.1, …, 0.95)."""
    if not hasattr(posterior, "log_prob"):
        raise InputError("the posterior has no log_prob: use sbc or tarp, which need samples alone")
    pairs = _Pairs(posterior, theta, x)
    found = pairs.log_prob_ranks(pairs.draw(draws, seed), seed)
    region_levels = 1 - np.array(found["randomised"])
    found = _didyma.calibration_coverage(region_levels, levels)
    return Coverage(
        levels=np.array(found["levels"]),
        covered=np.array(found["covered"]),
        bands=_bands(found["bands"]),
        p_value=found["uniformity"]["p_value"],
        signed_area=found["signed_area"],
        size=found["size"],
        region_levels=region_levels,
    )


def tarp(
    posterior: Any,
    theta: ArrayLike,
    x: ArrayLike,
    references: ArrayLike | None = None,
    draws: int = 1000,
    bins: int | None = None,
    seed: int | None = None,
) -> TARP:
    """Coverage of balls around `references` (n, D), by default even over the box of `theta`."""
    pairs = _Pairs(posterior, theta, x)
    points = None if references is None else _array("references", references)
    drawn = pairs.draw(draws, seed)
    found = _didyma.calibration_tarp(pairs.theta, drawn, points, bins=bins, seed=seed)
    return TARP(
        ecp=np.array(found["ecp"]),
        alpha=np.array(found["alpha"]),
        atc=found["area"],
        ks_p_value=found["ks_p_value"],
        credibility=np.array(found["credibility"]),
        p_value=found["uniformity"]["p_value"],
    )


def lc2st(
    posterior: Any,
    theta: ArrayLike,
    x: ArrayLike,
    x_o: ArrayLike,
    draws: int = 1000,
    trials: int = 100,
    folds: int = 1,
    ensemble: int = 1,
    seed: int | None = None,
) -> LocalTest | list[LocalTest]:
    """Is the posterior right at `x_o`? Of several observations (M, S), a test of each by the same classifiers."""
    pairs = _Pairs(posterior, theta, x)
    observed = _array("x_o", x_o)
    several = np.atleast_2d(observed)
    if observed.ndim > 2 or several.shape[1] != pairs.x.shape[1]:
        wanted = pairs.x.shape[1]
        raise ShapeError(
            f"x_o has the shape {observed.shape}, but x has {wanted} columns: give ({wanted},) or (M, {wanted})"
        )
    _finite("x_o", several)
    one_each = pairs.draw(1, seed)[:, 0]
    evaluation = _draws(posterior, draws, several, seed, pairs.tensors, stream=1)
    findings = _didyma.calibration_local(
        pairs.theta, pairs.x, one_each, several, evaluation,
        folds=folds, ensemble=ensemble, trials=trials, seed=seed,
    )  # fmt: skip
    tests = [
        LocalTest(
            statistic=found["statistic"],
            null=np.array(found["null"]),
            p_value=found["p_value"],
            theta=drawn,
            probabilities=np.array(found["probabilities"]),
        )
        for found, drawn in zip(findings, evaluation, strict=True)
    ]
    return tests if observed.ndim == 2 else tests[0]


class _Pairs:
    """True parameters with their simulations, and the posterior that is asked about them."""

    def __init__(self, posterior: Any, theta: ArrayLike, x: ArrayLike) -> None:
        if not hasattr(posterior, "sample"):
            name = type(posterior).__name__
            raise InputError(
                f"the posterior is of type {name}, without sample: give an object with sample((n,), x=…)"
            )
        self.posterior = posterior
        # A caller with tensors has a posterior that wants them.
        self.tensors = hasattr(x, "detach") or type(posterior).__module__.split(".")[0] == "sbi"
        self.theta, self.x = _matrix("theta", theta), _matrix("x", x)
        rows = len(self.theta)
        if len(self.x) != rows:
            raise ShapeError(f"x has {len(self.x)} rows, but theta has {rows}: give one x for each theta")
        if rows < _LEAST_ROWS:
            raise ShapeError(f"theta has {rows} rows, but {_LEAST_ROWS} are needed: simulate more (hundreds tell most)")
        _finite("theta", self.theta)
        _finite("x", self.x)

    def names(self) -> list[str]:
        names = getattr(self.posterior, "names", None)
        dim = self.theta.shape[1]
        fits = isinstance(names, (list, tuple)) and len(names) == dim
        return [str(name) for name in names] if fits and names else [f"theta[{i}]" for i in range(dim)]

    def draw(self, count: int, seed: int | None) -> _Floats:
        """Draws (n, L, D), as the compiled part takes them."""
        found = _draws(self.posterior, count, self.x, seed, self.tensors, stream=0)
        if found.shape[2] != self.theta.shape[1]:
            raise ShapeError(
                f"the posterior draws {found.shape[2]} parameters, but theta has {self.theta.shape[1]} columns: "
                "give the theta that it is about"
            )
        return found

    def log_prob_ranks(self, drawn: _Floats, seed: int | None) -> dict[str, Any]:
        """Ranks of the log-density of the true parameters among those of draws."""
        scores = np.empty((len(drawn), drawn.shape[1] + 1))
        for i, (theta, row) in enumerate(zip(drawn, self.x, strict=True)):
            points = np.concatenate([self.theta[i : i + 1], theta])
            found = self.posterior.log_prob(_give(points, self.tensors), x=_give(row, self.tensors))
            scores[i] = _array("log_prob", found).reshape(-1)
        return _didyma.calibration_score_ranks(scores[:, 0], scores[:, 1:], seed=seed)


def _draws(
    posterior: Any, count: int, x: _Floats, seed: int | None, tensors: bool, stream: int
) -> _Floats:
    """Draws of the posterior for each row of x: (rows, count, D)."""
    if not isinstance(count, int) or count < 1:
        raise InputError(f"draws is {count!r}: give a whole number from 1 (1000 is usual)")
    options: dict[str, Any] = {}
    if type(posterior).__module__.split(".")[0] == "sbi":
        options["show_progress_bars"] = False
    seeded = isinstance(posterior, _didyma.Posterior) and seed is not None
    together = _together(posterior, count, _give(x, tensors), options | _seed(seeded, seed, stream, 0))
    if together is not None:
        if together.ndim != 3 or together.shape[:2] != (count, len(x)):
            text = f"sample_batched gave the shape {together.shape}: it must be ({count}, {len(x)}, D)"
            raise ShapeError(text)
        return np.ascontiguousarray(together.transpose(1, 0, 2))
    rows = []
    for i, row in enumerate(x):
        own = options | _seed(seeded, seed, stream, i)
        found = _array("samples", posterior.sample((count,), x=_give(row, tensors), **own))
        if found.ndim != 2 or len(found) != count:
            raise ShapeError(f"sample gave the shape {found.shape}: it must be ({count}, D)")
        rows.append(found)
    return np.stack(rows)


def _together(posterior: Any, count: int, x: Any, options: dict[str, Any]) -> _Floats | None:
    """Draws for all rows of x at once, (count, rows, D); None where the posterior takes one x at a time."""
    if hasattr(posterior, "sample_batched"):
        return _array("samples", posterior.sample_batched((count,), x=x, **options))
    if not isinstance(posterior, _didyma.Posterior) or len(x) == 1:
        return None
    try:
        found = _array("samples", posterior.sample((count,), x=x, **options))
    except ShapeError:
        # One x at a time, or rows of the wrong width, of which each will say so.
        return None
    return found if found.ndim == 3 else None


def _seed(seeded: bool, seed: int | None, stream: int, row: int) -> dict[str, int]:
    """A seed for each row and each use, of a posterior that takes one."""
    if not seeded or seed is None:
        return {}
    words = np.random.SeedSequence([seed, stream, row]).generate_state(1, np.uint32)
    return {"seed": int(words[0])}


def _give(values: _Floats, tensors: bool) -> Any:
    """As the posterior wants them."""
    if not tensors:
        return values
    torch: Any = sys.modules["torch"]
    return torch.as_tensor(values, dtype=torch.get_default_dtype())


def _array(name: str, value: Any) -> _Floats:
    """Numbers, of a tensor too."""
    if hasattr(value, "detach"):
        value = value.detach().cpu()
    try:
        return np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError) as cause:
        raise InputError(f"{name} cannot be made an array: give numbers") from cause


def _matrix(name: str, value: Any) -> _Floats:
    found = _array(name, value)
    if found.ndim != 2 or found.shape[1] == 0:
        raise ShapeError(f"{name} has the shape {found.shape}: give a row for each simulation, (n, columns)")
    return found


def _finite(name: str, values: _Floats) -> None:
    places = np.argwhere(~np.isfinite(values))
    if len(places):
        row, column = places[0]
        text = f"{name} holds {values[row, column]} in row {row}, column {column}: leave out failed simulations"
        raise NotFiniteError(text)


def _bands(found: dict[str, Any]) -> Bands:
    return Bands(*(np.array(found[name]) for name in ("points", "low", "high")))


def _fault(p_value: float, mean: float, spread: float) -> str:
    if p_value > 0.05:
        return "unremarkable"
    # Of uniform numbers, both are in units of their errors at one row: √(1/12) and about √(1/5).
    if abs(mean - 0.5) / 0.289 > abs(spread - 1) / 0.447:
        return "the posterior is too low" if mean > 0.5 else "the posterior is too high"
    return "too narrow" if spread > 1 else "too wide"


@dataclass(frozen=True)
class Misspecification:
    """How surprising an observation is among simulations."""

    #: Share of all points, the observation among them, that are at least as far out: small if no simulation resembles it.
    p_value: float
    #: How far out it is: the logarithm of the mean of 1/p over three views.
    statistic: float
    #: Numbers of the summaries that contribute most, the first one most.
    foremost: list[int]


def misspecification(x: Any, x_o: Any) -> Misspecification:
    """Joint test of an observation among simulations `x`, (n, S): at the prior, or better at the posterior.

    Rows with NaN, which failed, are left out. The p-value is exact for any law of the simulations.
    """
    p_value, statistic, foremost = _didyma.misspecification(_array("x", x), _array("x_o", x_o))
    return Misspecification(p_value, statistic, foremost)

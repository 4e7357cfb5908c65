"""What the tests share: a small problem, and settings that end in a second."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import didyma

#: Enough for shapes, errors and bytes; not for a good posterior.
QUICK: dict[str, Any] = {
    "rounds": 2,
    "simulations": 120,
    "seed": 3,
    "progress": False,
    "settings": {"train.steps": 20, "samples": 200},
}

X_O = [0.2, -0.1]


def prior() -> didyma.Prior:
    return didyma.Uniform(low=[-1, -1], high=[1, 1], names=["a", "b"])


def noisy_row(theta: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """One row, with noise of its own generator."""
    assert theta.shape == (2,) and theta.dtype == np.float64
    return theta + 0.1 * rng.normal(size=2)


def noisy_rows(theta: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Many rows."""
    assert theta.ndim == 2
    return theta + 0.1 * rng.normal(size=theta.shape)


@pytest.fixture(scope="session")
def result() -> didyma.Result:
    """A finished run."""
    return didyma.infer(noisy_row, prior(), X_O, truth=[0.2, -0.1], **QUICK)

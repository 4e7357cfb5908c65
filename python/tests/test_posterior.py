"""Samples and densities of a posterior, its files, and arrays of all kinds."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest

import didyma
from conftest import QUICK, X_O, prior


def test_shapes_and_seeds(result: didyma.Result) -> None:
    posterior = result.posterior
    theta = posterior.sample((300,), seed=2)
    assert theta.shape == (300, 2) and theta.dtype == np.float64
    np.testing.assert_array_equal(theta, posterior.sample((300,), seed=2))
    assert (posterior.sample((300,)) != posterior.sample((300,))).any()
    even = posterior.sample((300,), seed=2, points="sobol")
    np.testing.assert_array_equal(even, posterior.sample((300,), seed=2, points="Sobol"))
    assert even.shape == (300, 2) and (even != theta).any()
    with pytest.raises(ValueError, match='points is "even": give one of random, sobol'):
        posterior.sample((300,), points="even")
    found = posterior.log_prob(theta)
    assert found.shape == (300,) and found.dtype == np.float64 and np.isfinite(found).all()
    assert posterior.log_prob([[5.0, 0.0]])[0] == -np.inf
    assert posterior.log_prob(theta[0]).shape == (1,)
    np.testing.assert_array_equal(posterior.x_o, X_O)
    assert posterior.prior == prior() and posterior.names == ["a", "b"] and posterior.dim == 2


def test_the_density_integrates_to_one(result: didyma.Result) -> None:
    # A midpoint rule: the flow is smooth on the scale of a cell of 1/200.
    centres = (np.arange(400) + 0.5) / 200 - 1
    grid = np.stack(np.meshgrid(centres, centres), axis=-1).reshape(-1, 2)
    mass = np.exp(result.posterior.log_prob(grid)).sum() / 200**2
    assert mass == pytest.approx(1, abs=2e-3)


def test_another_observation(result: didyma.Result) -> None:
    posterior = result.posterior
    here = posterior.sample((2000,), seed=1).mean(axis=0)
    there = posterior.sample((2000,), x=[-0.5, 0.5], seed=1).mean(axis=0)
    assert there[0] < here[0] and there[1] > here[1]
    assert (posterior.log_prob([[0.0, 0.0]], x=[-0.5, 0.5]) != posterior.log_prob([[0.0, 0.0]])).all()
    with pytest.raises(didyma.ShapeError, match="x has 3 numbers, but 2 are needed"):
        posterior.sample((1,), x=[1, 2, 3])
    with pytest.raises(didyma.NotFiniteError, match="x holds NaN at place 1"):
        posterior.sample((1,), x=[1, np.nan])


def test_files_and_pickles(result: didyma.Result, tmp_path: Path) -> None:
    posterior = result.posterior
    path = tmp_path / "posterior.safetensors"
    posterior.save(path)
    expected = posterior.sample((100,), seed=5)
    for again in (didyma.Posterior.load(path), pickle.loads(pickle.dumps(posterior))):
        np.testing.assert_array_equal(again.sample((100,), seed=5), expected)
        np.testing.assert_array_equal(again.log_prob(expected), posterior.log_prob(expected))
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(didyma.RunError, match="it is truncated"):
        didyma.Posterior.load(path)
    with pytest.raises(didyma.RunError, match="could not read"):
        didyma.Posterior.load(tmp_path / "nothing")


class Wrapped:
    """Anything with `__array__`."""

    def __init__(self, data: list[list[float]]) -> None:
        self.data = data

    def __array__(self, dtype: object = None, copy: object = None) -> np.ndarray:
        return np.array(self.data, dtype=np.float32)


def test_any_array_will_do(result: didyma.Result) -> None:
    expected = result.posterior.log_prob(np.array([[0.25, -0.5], [0.5, 0.125]]))
    for theta in (
        [[0.25, -0.5], [0.5, 0.125]],
        np.array([[0.25, -0.5], [0.5, 0.125]], dtype=np.float32),
        np.asfortranarray([[0.25, -0.5], [0.5, 0.125]]),
        np.array([[0.25, 9, -0.5], [0.5, 9, 0.125]])[:, ::2],
        Wrapped([[0.25, -0.5], [0.5, 0.125]]),
    ):
        np.testing.assert_array_equal(result.posterior.log_prob(theta), expected)  # type: ignore[arg-type]
    with pytest.raises(didyma.DtypeError, match="theta is an array of object"):
        result.posterior.log_prob([[None, 1.0]])  # type: ignore[list-item]


def test_torch_tensors_are_accepted_and_torch_is_never_loaded() -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed: its tensors were not tried")
    low, high = torch.tensor([-1.0, -1.0]), torch.tensor([1.0, 1.0])

    def simulator(theta: np.ndarray) -> object:
        return torch.as_tensor(theta) + 0.1 * torch.randn(theta.shape)

    found = didyma.infer(simulator, didyma.Uniform(low, high), torch.tensor(X_O), **QUICK)
    theta = torch.as_tensor(found.posterior.sample((10,)))
    assert found.posterior.log_prob(theta).shape == (10,)

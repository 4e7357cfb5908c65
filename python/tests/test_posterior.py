"""Samples and densities of a posterior, its files, and arrays of all kinds."""

from __future__ import annotations

import pickle
import warnings
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


def test_many_observations(result: didyma.Result) -> None:
    posterior = result.posterior
    x = np.array([[0.2, -0.1], [0.0, 0.1], [0.3, 0.2]])
    theta = posterior.sample((50,), x=x, seed=4)
    assert theta.shape == (50, 3, 2) and theta.dtype == np.float64
    np.testing.assert_array_equal(theta, posterior.sample_batched((50,), x=x, seed=4))
    # Draws of a row are its own: the first has those that it has alone, and the others do not matter.
    np.testing.assert_array_equal(theta[:, 0], posterior.sample((50,), x=x[0], seed=4))
    np.testing.assert_array_equal(theta[:, :2], posterior.sample((50,), x=x[:2], seed=4))
    assert (posterior.sample((50,), x=x[[1, 1]], seed=4)[:, 0] != theta[:, 1]).any()
    # One row is one observation, but where the name says otherwise.
    assert posterior.sample((50,), x=x[:1]).shape == (50, 2)
    assert posterior.sample_batched((50,), x=x[:1]).shape == (50, 1, 2)
    assert posterior.sample_batched((50,), x=x[0]).shape == (50, 1, 2)


def test_densities_at_many_observations(result: didyma.Result) -> None:
    posterior = result.posterior
    x = np.array([[0.2, -0.1], [0.0, 0.1], [0.3, 0.2]])
    theta = posterior.sample((50,), x=x, seed=4)
    found = posterior.log_prob(theta, x=x)
    assert found.shape == (50, 3)
    np.testing.assert_array_equal(found, posterior.log_prob_batched(theta, x=x))
    for b in range(3):
        np.testing.assert_array_equal(found[:, b], posterior.log_prob(theta[:, b], x=x[b]))
    # Row by row, and one row for all.
    np.testing.assert_array_equal(posterior.log_prob(theta[7], x=x), found[7])
    np.testing.assert_array_equal(posterior.log_prob(theta[:, 1], x=x[1:2]), found[:, 1])
    assert posterior.log_prob(theta[:, :1]).shape == (50, 1)
    # At its own draws q is larger than at draws for another observation, by the mean of the logarithms.
    other = posterior.log_prob(theta[:, [1, 2, 0]], x=x)
    assert (found.mean(axis=0) > other.mean(axis=0)).all()


def test_observations_that_cannot_be_used(result: didyma.Result) -> None:
    posterior = result.posterior
    x = [[0.2, -0.1], [0.0, 0.1], [0.3, 0.2]]
    with pytest.raises(didyma.ShapeError, match=r"x has the shape \(2, 3\), but \(2,\) or \(B, 2\) is needed"):
        posterior.sample((5,), x=np.zeros((2, 3)))
    with pytest.raises(didyma.ShapeError, match=r"x has the shape \(0, 2\)"):
        posterior.sample((5,), x=np.zeros((0, 2)))
    with pytest.raises(didyma.NotFiniteError, match="x holds NaN in row 1, column 0"):
        posterior.sample((5,), x=[[0.0, 0.0], [np.nan, 0.0]])
    with pytest.raises(didyma.InputError, match="x holds 1e200"):
        posterior.sample((5,), x=[[0.0, 0.0], [1e200, 0.0]])
    with pytest.raises(didyma.ShapeError, match="theta has 5 rows and x has 3: give x of one row"):
        posterior.log_prob(np.zeros((5, 2)), x=x)
    with pytest.raises(didyma.ShapeError, match=r"theta has the shape \(5, 2, 2\), but \(n, 3, 2\) is needed"):
        posterior.log_prob(np.zeros((5, 2, 2)), x=x)
    with pytest.raises(didyma.ShapeError, match=r"theta of shape \(n, 3, 2\) is needed"):
        posterior.log_prob_batched(np.zeros((5, 2)), x=x)
    with pytest.raises(didyma.InputError, match="sample_shape asks for 120000000 rows"):
        posterior.sample((60_000_000,), x=x[:2])


def test_far_observations_are_warned_of(result: didyma.Result, tmp_path: Path) -> None:
    path = tmp_path / "posterior.safetensors"
    result.posterior.save(path)
    for posterior in (result.posterior, didyma.Posterior.load(path), pickle.loads(pickle.dumps(result.posterior))):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            posterior.sample((5,), x=X_O)
            posterior.sample((5,), x=[X_O, [0.0, 0.1]])
        with pytest.warns(UserWarning, match="of this observation summary 1 is 50, where all simulations") as told:
            posterior.sample((5,), x=[50, 0])
        assert len(told) == 1
        with pytest.warns(UserWarning, match="2 of 3 observations are outside.* of observation 2, .*summary 2 is 9"):
            posterior.log_prob([[0.0, 0.0]] * 3, x=[X_O, [0.0, 9.0], [9.0, 0.0]])

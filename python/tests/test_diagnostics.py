"""Calibration of posteriors that are known exactly, of this package's and of sbi's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import didyma
from conftest import prior
from didyma import diagnostics

ROWS = 200


class Stub:
    """theta ~ N(0, I), x ~ N(theta, I): the posterior is N(x / 2, I / 2), and this one has its width times a number."""

    def __init__(self, width: float = 1.0, seed: int = 5) -> None:
        self.width, self.rng = width, np.random.default_rng(seed)

    def sample(self, shape: tuple[int], x: np.ndarray) -> np.ndarray:
        assert x.shape == (2,)
        return x / 2 + self.width * self.rng.normal(size=(*shape, 2)) / np.sqrt(2)

    def log_prob(self, theta: np.ndarray, x: np.ndarray) -> np.ndarray:
        return np.asarray(-((theta - x / 2) ** 2).sum(axis=-1) / self.width**2)


class Batched(Stub):
    """The same, for many x at once."""

    def sample_batched(self, shape: tuple[int], x: np.ndarray) -> np.ndarray:
        return x / 2 + self.width * self.rng.normal(size=(*shape, *x.shape)) / np.sqrt(2)

    def sample(self, shape: tuple[int], x: np.ndarray) -> np.ndarray:
        raise AssertionError("one by one")


class NoDensity:
    def sample(self, shape: tuple[int], x: np.ndarray) -> np.ndarray:
        return Stub().sample(shape, x)


def pairs(rows: int = ROWS) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(1)
    theta = rng.normal(size=(rows, 2))
    return theta, theta + rng.normal(size=(rows, 2))


@pytest.mark.parametrize("kind", [Stub, Batched])
def test_a_right_posterior_passes(kind: type[Stub]) -> None:
    theta, x = pairs()
    found = diagnostics.sbc(kind(), theta, x, draws=99, seed=1)
    assert found.ranks.shape == found.values.shape == (ROWS, 2) and found.ranks.dtype == np.int64
    assert found.log_prob_ranks is not None and found.log_prob_ranks.shape == (ROWS,)
    # Seeds are fixed: these are three tests at 1 %, which these numbers pass.
    assert found.log_prob_p_value is not None and found.log_prob_p_value > 0.01
    assert (found.p_values > 0.01).all()
    assert found.names == ["theta[0]", "theta[1]"] and "theta[0]  p = " in repr(found)
    assert found.bands.points[-1] == found.bands.low[-1] == 1 and len(found.bands.high) == 100
    covered = diagnostics.coverage(kind(), theta, x, draws=99, seed=1)
    assert covered.size == "unremarkable" and abs(covered.signed_area) < 0.1
    assert covered.levels.shape == covered.covered.shape == covered.bands.low.shape == (19,)
    assert diagnostics.tarp(kind(), theta, x, draws=99, seed=1).p_value > 0.01


def test_faults_are_found_and_said() -> None:
    theta, x = pairs()
    narrow, wide = Stub(0.5), Stub(2.0)
    ranks = diagnostics.sbc(narrow, theta, x, draws=99)
    assert (ranks.p_values < 1e-4).all() and "too narrow" in repr(ranks)
    assert "too wide" in repr(diagnostics.sbc(wide, theta, x, draws=99))
    covered = diagnostics.coverage(narrow, theta, x, draws=99, levels=[0.5, 0.9])
    assert covered.size == "too narrow" and "outside" in repr(covered)
    # A region that covers 90 % is one of a much higher level.
    assert covered.level(0.9) > 0.97
    assert diagnostics.coverage(wide, theta, x, draws=99).size == "too wide"
    found = diagnostics.tarp(narrow, theta, x, draws=99, seed=2)
    assert found.p_value < 0.01 and found.atc < 0 and "too narrow" in repr(found)
    assert len(found.ecp) == len(found.alpha) == ROWS // 10 + 1


def test_one_observation() -> None:
    theta, x = pairs(600)
    found = diagnostics.lc2st(Stub(0.5), theta, x, x[0], draws=200, trials=19, seed=1)
    assert isinstance(found, diagnostics.LocalTest)
    assert found.p_value == 0.05 and found.null.shape == (19,) and "p = 0.05" in repr(found)
    assert found.theta.shape == (200, 2) and found.probabilities.shape == (200,)
    both = diagnostics.lc2st(Stub(0.5), theta, x, x[:2], draws=200, trials=3, seed=1)
    assert isinstance(both, list) and len(both) == 2


def test_arguments_that_cannot_be_used() -> None:
    theta, x = pairs()
    with pytest.raises(didyma.ShapeError, match="theta has 19 rows, but 20 are needed: simulate more"):
        diagnostics.sbc(Stub(), theta[:19], x[:19])
    with pytest.raises(didyma.ShapeError, match="x has 199 rows, but theta has 200"):
        diagnostics.tarp(Stub(), theta, x[1:])
    with pytest.raises(didyma.ShapeError, match=r"x has the shape \(200,\)"):
        diagnostics.sbc(Stub(), theta, x[:, 0])
    with pytest.raises(didyma.ShapeError, match="draws 2 parameters, but theta has 1 columns"):
        diagnostics.sbc(Stub(), theta[:, :1], x)
    with pytest.raises(didyma.InputError, match="no log_prob: use sbc or tarp"):
        diagnostics.coverage(NoDensity(), theta, x)
    assert diagnostics.sbc(NoDensity(), theta, x, draws=9).log_prob_ranks is None
    with pytest.raises(didyma.InputError, match="without sample"):
        diagnostics.sbc(object(), theta, x)
    with pytest.raises(didyma.InputError, match="draws is 0"):
        diagnostics.sbc(Stub(), theta, x, draws=0)
    with pytest.raises(didyma.InputError, match="simulate at least 999 rows"):
        diagnostics.coverage(Stub(), theta, x, draws=9).level(0.999)
    with pytest.raises(didyma.ShapeError, match="x_o has the shape"):
        diagnostics.lc2st(Stub(), theta, x, [1.0])
    x[3, 1] = np.nan
    with pytest.raises(didyma.NotFiniteError, match="x holds nan in row 3, column 1"):
        diagnostics.sbc(Stub(), theta, x)


def test_a_posterior_of_this_package(result: didyma.Result) -> None:
    theta = prior().sample((25,), seed=1)
    x = theta + 0.1 * np.random.default_rng(2).normal(size=theta.shape)
    first, again = (diagnostics.sbc(result.posterior, theta, x, draws=20, seed=4) for _ in range(2))
    np.testing.assert_array_equal(first.values, again.values)
    assert first.names == ["a", "b"] and first.log_prob_ranks is not None
    with pytest.raises(didyma.ShapeError, match="3"):
        diagnostics.sbc(result.posterior, theta, np.ones((25, 3)), draws=20)


def test_tensors_in_and_out() -> None:
    torch: Any = pytest.importorskip("torch", reason="torch is not installed: tensors were not tried")

    class Tensors(Stub):
        def sample(self, shape: tuple[int], x: Any) -> Any:
            return torch.as_tensor(super().sample(shape, x.numpy())).requires_grad_()

        def log_prob(self, theta: Any, x: Any) -> Any:
            return torch.as_tensor(super().log_prob(theta.numpy(), x.numpy())).requires_grad_()

    theta, x = (torch.as_tensor(values) for values in pairs())
    found = diagnostics.coverage(Tensors(0.5), theta, x, draws=99)
    assert found.size == "too narrow"


def test_a_posterior_of_sbi() -> None:
    pytest.importorskip("sbi", reason="sbi is not installed: its posteriors were not tried")
    import torch
    from sbi.inference import NPE

    theta, x = (torch.as_tensor(values, dtype=torch.float32) for values in pairs())
    gaussian = torch.distributions.MultivariateNormal(torch.zeros(2), torch.eye(2))
    inference = NPE(gaussian, density_estimator="mdn", show_progress_bars=False)
    inference.append_simulations(theta, x).train(max_num_epochs=5)
    posterior = inference.build_posterior()
    found = diagnostics.sbc(posterior, theta[:30], x[:30], draws=20)
    assert found.ranks.shape == (30, 2) and found.log_prob_ranks is not None
    assert diagnostics.tarp(posterior, theta[:30], x[:30], draws=20).credibility.shape == (30,)

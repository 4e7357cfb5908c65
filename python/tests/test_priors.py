"""Priors: shapes, densities, and what they refuse."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

import didyma


def test_samples_have_the_shape_asked_for_and_repeat_by_seed() -> None:
    prior = didyma.Uniform([-1, 0], [1, 3])
    theta = prior.sample((50,), seed=4)
    assert theta.shape == (50, 2) and theta.dtype == np.float64
    assert (theta > [-1, 0]).all() and (theta < [1, 3]).all()
    np.testing.assert_array_equal(theta, prior.sample(50, seed=4))
    assert (prior.sample((50,)) != prior.sample((50,))).any()


def test_densities_are_those_of_the_textbook() -> None:
    theta = np.array([[0.5, 1.0, 2.0], [0.5, 1.0, -1.0]])
    prior = didyma.Independent([didyma.Uniform(0, 4), didyma.Normal(1, 2), didyma.LogNormal(0, 1)])
    normal = -0.5 * np.log(2 * np.pi)
    log_two = np.log(2.0)
    expected = -np.log(4) + (normal - np.log(2)) + (normal - 0.5 * log_two**2 - log_two)
    found = prior.log_prob(theta)
    assert found[0] == pytest.approx(expected, rel=1e-12)
    assert found[1] == -np.inf


def test_a_truncated_prior_stays_inside() -> None:
    prior = didyma.Normal([0, 0], 1, low=[0, -np.inf], high=[np.inf, 1])
    theta = prior.sample((1000,), seed=1)
    assert theta[:, 0].min() > 0 and theta[:, 1].max() < 1
    np.testing.assert_array_equal(prior.support, [[0, np.inf], [-np.inf, 1]])
    # Half of a normal law: twice its density.
    twice = didyma.Normal(0, 1, low=0).log_prob([[0.3]])[0]
    assert twice == pytest.approx(didyma.Normal(0, 1).log_prob([[0.3]])[0] + np.log(2), rel=1e-9)


def test_names() -> None:
    assert didyma.Uniform([0, 0], [1, 1]).names == ["theta1", "theta2"]
    both = didyma.Independent([didyma.Uniform(0, 1), didyma.Normal([0, 0], 1)])
    assert both.names == ["theta1", "theta2", "theta3"] and len(both) == both.dim == 3
    named = didyma.Independent([didyma.Uniform(0, 1, names=["p"]), didyma.Normal(0, 1, names=["shift"])])
    assert named.names == ["p", "shift"] and didyma.Uniform(0, 1, names="p").names == ["p"]
    mixed = didyma.Independent([didyma.Uniform(0, 1), didyma.Uniform(0, 1, names=["p"]), didyma.Uniform(0, 1)])
    assert mixed.names == ["theta1", "p", "theta3"]
    kept = didyma.Independent([didyma.Uniform(0, 1, names=["theta5"]), didyma.Uniform(0, 1), didyma.Uniform(0, 1)])
    assert kept.names == ["theta5", "theta2", "theta3"]


def test_pickles_and_equality() -> None:
    prior = didyma.Independent([didyma.Uniform(0, 1, names=["p"]), didyma.Normal(0, 1, low=-1, names=["s"])])
    again = pickle.loads(pickle.dumps(prior))
    assert again == prior and again != didyma.Uniform(0, 1)
    np.testing.assert_array_equal(again.sample((5,), seed=1), prior.sample((5,), seed=1))


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda: didyma.Uniform([1, 1], [0, 0]), didyma.InputError, "must be"),
        (lambda: didyma.Uniform([0, 0, 0], [1, 1]), didyma.ShapeError, "high has 2 numbers where others have 3"),
        (lambda: didyma.Uniform("low", 1), didyma.DtypeError, "low is an array of <U3"),
        (lambda: didyma.Uniform(None, 1), didyma.DtypeError, "low is an array of object"),
        (lambda: didyma.Uniform(1j, 1), didyma.DtypeError, "complex"),
        (lambda: didyma.Uniform([[0, 1], [0, 1]], 1), didyma.ShapeError, r"low has the shape \(2, 2\)"),
        (lambda: didyma.Uniform([0, 0], 1, names=["a"]), didyma.ShapeError, "names has 1 words for 2"),
        (lambda: didyma.Uniform([0, 0], 1, names=["a", "a"]), didyma.InputError, "named differently"),
        (lambda: didyma.Normal(0, -1), didyma.InputError, "must be"),
        (lambda: didyma.Normal(0, 1, low=3, high=2), didyma.InputError, "3 to 2, but it must be from a lower to a higher"),
        (lambda: didyma.Normal(0, 1, low=np.inf), didyma.InputError, "must be"),
        (lambda: didyma.Uniform(0, 1).sample(10**13), didyma.InputError, "at most 100000000 at a time"),
        (lambda: didyma.Normal(0, 1, low=np.nan), didyma.NotFiniteError, "low or high holds NaN"),
        (lambda: didyma.Uniform(0, 1, names=3), didyma.InputError, "names is of type int: give a list of words"),
        (lambda: didyma.Uniform(0, 1, names=[""]), didyma.InputError, "names has an empty word"),
        (lambda: didyma.Uniform(0, 1, names=["\x1b[2J"]), didyma.InputError, r'parameter "\\u\{1b\}\[2J" has a control'),
        (lambda: didyma.Uniform(0, 1, names=["=1+1"]), didyma.InputError, "begins with =, .*: begin it with a letter"),
        (lambda: didyma.Uniform(0, 1, names=[" a"]), didyma.InputError, "begins or ends with a blank"),
        (lambda: didyma.Independent([didyma.Uniform(0, 1), 3]), didyma.InputError, "prior is of type int"),
        (lambda: didyma.Normal(0, np.nan), didyma.InputError, "must be"),
        (lambda: didyma.Uniform(0, 1).sample((2, 3)), didyma.ShapeError, r"sample_shape is \(2, 3\)"),
        (lambda: didyma.Uniform(0, 1).sample((-1,)), didyma.ShapeError, "give"),
        (lambda: didyma.Uniform([0, 0], 1).log_prob([[1, 2, 3]]), didyma.ShapeError, r"\(N, 2\) is needed"),
    ],
)
def test_what_is_refused(make: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words) as raised:
        make()
    assert isinstance(raised.value, didyma.DidymaError)

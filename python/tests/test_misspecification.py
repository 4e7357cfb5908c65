"""Is an observation like simulations?"""

import numpy as np
import pytest

from didyma import _didyma, diagnostics


def test_an_observation_that_no_simulation_resembles_is_found_and_its_summary_named():
    x = np.random.default_rng(1).normal(size=(300, 3)) * [1.0, 100.0, 1e-3]
    p, statistic, foremost = _didyma.misspecification(x, [0.3, 900.0, 0.0])
    assert p < 0.02 and foremost == [1]
    fine, smaller, _ = _didyma.misspecification(x, [0.3, 20.0, 0.0])
    assert fine > 0.05 and smaller < statistic


def test_failed_simulations_are_left_out_and_other_shapes_refused():
    x = np.random.default_rng(2).normal(size=(100, 2))
    failed = np.vstack([x, np.full((20, 2), np.nan)])
    assert _didyma.misspecification(failed, [0.1, 0.2]) == _didyma.misspecification(x, [0.1, 0.2])
    with pytest.raises(ValueError, match="shape"):
        _didyma.misspecification(x, [0.1, 0.2, 0.3])
    with pytest.raises(ValueError):
        _didyma.misspecification(x, [0.1, np.nan])


def test_the_package_names_what_it_finds():
    x = np.random.default_rng(1).normal(size=(200, 2))
    found = diagnostics.misspecification(x, [0.0, 9.0])
    assert found.p_value < 0.02 and found.foremost[0] == 1

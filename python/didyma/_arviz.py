"""Posteriors for ArviZ."""

from __future__ import annotations

from typing import Any

from didyma._didyma import Posterior
from didyma.errors import InputError


def inference_data(posterior: Posterior, samples: int, seed: int | None) -> Any:
    """Draws as one chain, and the observation."""
    try:
        import arviz
    except ImportError as error:
        raise InputError("to_arviz needs ArviZ: pip install arviz") from error
    theta = posterior.sample((samples,), seed=seed)
    draws = {name: theta[None, :, i] for i, name in enumerate(posterior.names)}
    groups: dict[str, Any] = {"posterior": draws, "observed_data": {"x_o": posterior.x_o}}
    if hasattr(arviz, "InferenceData"):
        return arviz.from_dict(**groups)
    # From version 1 on, groups are one dict, and what comes back is a DataTree.
    return arviz.from_dict(groups)

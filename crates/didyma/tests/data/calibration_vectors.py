"""Makes calibration_vectors.json beside this file: calibration checks of sbi 0.27 on stored draws.

pip install 'sbi==0.27.*' && python crates/didyma/tests/data/calibration_vectors.py

The posterior is a stub that returns stored draws, and a Gaussian log-density without its constant.
"""

import json
from pathlib import Path

import numpy as np
import sbi
import torch
from sbi.diagnostics import check_tarp, run_sbc, run_tarp
from sbi.diagnostics.sbc import check_uniformity_frequentist

ROWS, DRAWS, DIM = 100, 40, 2


class Stub:
    def __init__(self, draws: np.ndarray) -> None:
        self.draws = torch.tensor(draws).permute(1, 0, 2)

    def sample_batched(self, shape, x, show_progress_bars=False):
        assert tuple(shape) == (DRAWS,) and len(x) == ROWS
        return self.draws


def log_prob(theta, x):
    return -((theta - x) ** 2).sum(-1)


def thousandths(values: np.ndarray) -> np.ndarray:
    return np.round(values, 3)


def case(rng: np.random.Generator, width: float) -> dict:
    # Prior N(0, I), noise N(0, I): the posterior is N(x / 2, I / 2). The stub's log-density has its centre at x.
    theta = thousandths(rng.normal(size=(ROWS, DIM)))
    x = thousandths(theta + rng.normal(size=(ROWS, DIM)))
    noise = rng.normal(size=(ROWS, DRAWS, DIM))
    draws = thousandths(x[:, None] / 2 + width * noise / 2**0.5)
    references = thousandths(rng.uniform(theta.min(0), theta.max(0), size=(ROWS, DIM)))
    posterior, tensors = Stub(draws), (torch.tensor(theta), torch.tensor(x))
    options = {"num_posterior_samples": DRAWS, "show_progress_bar": False}
    ranks, _ = run_sbc(*tensors, posterior, **options)
    density, _ = run_sbc(*tensors, posterior, reduce_fns=log_prob, **options)
    ecp, alpha = run_tarp(*tensors, posterior, references=torch.tensor(references), **options)
    area, p_value = check_tarp(ecp, alpha)
    return {
        "theta": theta.ravel().tolist(),
        "x": x.ravel().tolist(),
        "draws": draws.ravel().tolist(),
        "references": references.ravel().tolist(),
        "ranks": ranks.int().flatten().tolist(),
        "log_density_ranks": density.int().flatten().tolist(),
        "ks_p_values": check_uniformity_frequentist(ranks, DRAWS).tolist(),
        "ecp": ecp.tolist(),
        "alpha": alpha.tolist(),
        "area": area,
        "ks_p_value": float(p_value),
    }


def main() -> None:
    assert sbi.__version__.startswith("0.27."), sbi.__version__
    rng = np.random.default_rng(27)
    cases = [case(rng, width) for width in (1.0, 0.6, 1.5)]
    data = {"sbi": sbi.__version__, "rows": ROWS, "draws": DRAWS, "dim": DIM, "cases": cases}
    Path(__file__).with_suffix(".json").write_text(json.dumps(data) + "\n")


if __name__ == "__main__":
    main()

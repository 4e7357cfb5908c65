#!/usr/bin/env python3
"""Time a training step in PyTorch + nflows, the stack of the paper's authors.

The work is that of `didyma bench step`: the same flow, a batch of 100, the pairs of the same method, the
loss, its gradient, clipping and Adam. Set up once, outside the repository:

    python3 -m venv ../peer && ../peer/bin/pip install torch nflows
    ../peer/bin/python benches/peers/nflows_step.py --threads 1

`--device cuda` runs it on a GPU. One line per task and method: median and fastest milliseconds, pairs per step, parameters.
"""

import argparse
import math
import statistics
import time

import torch
from nflows.distributions import StandardNormal
from nflows.flows import Flow
from nflows.nn.nets import ResidualNet
from nflows.transforms import (
    CompositeTransform,
    LULinear,
    PiecewiseRationalQuadraticCouplingTransform,
)

SIZES = {"two-moons": (2, 2), "lotka-volterra": (4, 9), "mg1": (3, 5), "hodgkin-huxley": (8, 7)}
METHODS = ("tgrr", "nested", "atomic", "likelihood")
POOL, BATCH, ATOMS = 10_000, 100, 100
FIRST_BLOCK, BASE, TOP, ALPHA = 8, 2, 4, 1.673


def conditioner(x_dim):
    """50 units, two residual blocks, gated by x."""
    return lambda inputs, outputs: ResidualNet(
        inputs, outputs, hidden_features=50, context_features=x_dim, num_blocks=2
    )


def build_flow(theta_dim, x_dim):
    layers = []
    for layer in range(8):
        mask = torch.tensor([1.0 if f % 2 == layer % 2 else -1.0 for f in range(theta_dim)])
        coupling = PiecewiseRationalQuadraticCouplingTransform(
            mask, conditioner(x_dim), num_bins=10, tails="linear", tail_bound=20.0
        )
        layers += [coupling, LULinear(theta_dim, identity_init=True)]
    return Flow(CompositeTransform(layers), StandardNormal([theta_dim]))


class Step:
    """One training step of a method on random data."""

    def __init__(self, task, method):
        torch.manual_seed(1)
        theta_dim, x_dim = SIZES[task]
        self.method = method
        self.flow = build_flow(theta_dim, x_dim)
        self.theta, self.x = torch.randn(POOL, theta_dim), torch.randn(POOL, x_dim)
        self.optimiser = torch.optim.Adam(self.flow.parameters(), lr=1e-4, weight_decay=1e-4)
        self.pairs = 0

    def log_q(self, rows, atoms):
        """log q of `atoms` (len(rows), M) given the x of `rows`."""
        self.pairs += atoms.numel()
        x = self.x[rows].repeat_interleave(atoms.shape[1], 0)
        return self.flow.log_prob(self.theta[atoms.flatten()], x).view(atoms.shape)

    def inner(self, rows, count):
        return torch.randint(POOL, (len(rows), count))

    def log_mean_exp(self, log_q):
        return torch.logsumexp(log_q, 1) - math.log(log_q.shape[1])

    def corrections(self, rows):
        """The antithetic differences above the base level, each by the inverse of its probability."""
        cut = 2 ** (-ALPHA * (TOP + 1))
        uniform, total = torch.rand(len(rows)), 0.0
        for level in range(BASE + 1, TOP + 1):
            tail = (2 ** (-ALPHA * level) - cut) / (1 - cut)
            chosen = rows[uniform < tail]
            if len(chosen):
                log_q = self.log_q(chosen, self.inner(chosen, FIRST_BLOCK << level))
                first, second = log_q.chunk(2, 1)
                halves = (self.log_mean_exp(first) + self.log_mean_exp(second)) / 2
                total = total + ((self.log_mean_exp(log_q) - halves) / tail).sum()
        return total

    def loss(self):
        rows = torch.randint(POOL, (BATCH,))
        if self.method == "atomic":
            log_q = self.log_q(rows, torch.cat([rows[:, None], self.inner(rows, ATOMS - 1)], 1))
            return (self.log_mean_exp(log_q) - log_q[:, 0]).mean()
        total = -self.log_q(rows, rows[:, None]).sum()
        if self.method == "nested":
            total = total + self.log_mean_exp(self.log_q(rows, self.inner(rows, ATOMS))).sum()
        if self.method == "tgrr":
            base = self.log_q(rows, self.inner(rows, FIRST_BLOCK << BASE))
            total = total + self.log_mean_exp(base).sum() + self.corrections(rows)
        return total / BATCH

    def __call__(self):
        self.pairs = 0
        start = time.perf_counter()
        self.optimiser.zero_grad()
        self.loss().backward()
        torch.nn.utils.clip_grad_norm_(self.flow.parameters(), 5.0)
        self.optimiser.step()
        if torch.get_default_device().type == "cuda":
            torch.cuda.synchronize()
        return 1e3 * (time.perf_counter() - start)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--task", choices=SIZES, action="append")
    parser.add_argument("--method", choices=METHODS, action="append")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--seconds", type=float, default=10.0)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    torch.set_default_device(args.device)
    for task in args.task or ["lotka-volterra"]:
        for method in args.method or ["tgrr"]:
            step, times, pairs = Step(task, method), [], []
            start = time.perf_counter()
            while time.perf_counter() - start < args.seconds or len(times) < 8:
                times.append(step())
                pairs.append(step.pairs)
            times, parameters = times[3:], sum(p.numel() for p in step.flow.parameters())
            print(
                f"{task} {method}: {statistics.median(times):.1f} ms a step"
                f" (fastest {min(times):.1f}), {statistics.mean(pairs):.0f} pairs,"
                f" {parameters} parameters, {args.device}, {args.threads} threads, torch {torch.__version__}",
                flush=True,
            )


if __name__ == "__main__":
    main()

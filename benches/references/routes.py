"""Two routes from the same simulations to a posterior.

The first trains q(z | x) and weights its draws by the prior over the law of the simulations. The second trains q(y | θ),
takes it as the likelihood at x_o, and weights candidates by prior times likelihood over the candidates' density. The candidates
are draws of the first route's flow and of a wider law; their density cancels. Errors of the first are errors of the
posterior's shape; those of the second are errors of a density in the space of the summaries.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

import didyma

from .laws import Law
from .normal_scores import Array, NormalScores

#: Settings of both flows; steps, members and seeds come on top.
SETTINGS = {
    "train.batch": 500,
    "train.growth": 0,
    "train.patience": 1000,
    "train.validation_share": 0.02,
    "flow.units": 64,
    "flow.bins": 10,
    "coordinates.relevance": False,
}
#: Share of the second route's candidates that come from the first route's flow; the others come from a wide law.
SHARE = 0.8


@dataclass(frozen=True)
class Training:
    """Steps, members, seed and threads of both flows."""

    steps: int
    members: int
    seed: int
    threads: int

    def train(self, rows: Array, given: Array, at: Array) -> didyma.Posterior:
        """A flow of q(row | given), scaled around `at`; the rows' columns are standard normal."""
        settings = {**SETTINGS, "train.steps": self.steps, "ensemble.members": self.members}
        dim = rows.shape[1]
        prior = didyma.Normal([0.0] * dim, [1.0] * dim)
        flow = didyma.NPE(prior, at, method="npe", seed=self.seed, settings=settings)
        flow.append_simulations(rows, given)
        return flow.train(threads=self.threads, progress=False)


def resample(rows: Array, log_weights: Array, count: int, rng: np.random.Generator) -> tuple[Array, float]:
    """`count` rows by systematic resampling, in random order, and the effective share of the candidates.

    No weight is above √n times their mean (Ionides 2008): a few draws of a flow far out would count for hundreds of rows.
    """
    weights = np.exp(log_weights - log_weights.max())
    weights = np.minimum(weights, np.sqrt(len(rows)) * weights.mean())
    weights /= weights.sum()
    places = (np.arange(count) + rng.random()) / count
    chosen = np.minimum(np.searchsorted(np.cumsum(weights), places), len(rows) - 1)
    return rows[rng.permutation(chosen)], float(1 / (weights**2).sum() / len(rows))


@dataclass(frozen=True)
class PosteriorRoute:
    """q(z | x) by maximum likelihood."""

    law: Law
    x_o: Array
    scores: NormalScores
    flow: didyma.Posterior

    @classmethod
    def train(cls, law: Law, theta: Array, x: Array, x_o: Array, training: Training) -> PosteriorRoute:
        z = law.z(theta, x)
        scores = NormalScores(z)
        return cls(law, x_o[None], scores, training.train(scores(z)[0], x, x_o))

    def candidates(self, count: int, seed: int) -> tuple[Array, Array]:
        """Candidates z, from the flow and from the law of all simulations' scores, and the log-density of this mixture."""
        own = int(SHARE * count)
        rng = np.random.default_rng(seed)
        dim = self.flow.dim
        scores = np.vstack([self.flow.sample((own,), seed=seed), rng.normal(size=(count - own, dim))])
        wide = -0.5 * (scores**2).sum(axis=1) - 0.5 * dim * np.log(2 * np.pi)
        mixed = np.logaddexp(np.log(SHARE) + self.flow.log_prob(scores), np.log(1 - SHARE) + wide)
        z = self.scores.inverse(scores)
        return z, mixed + self.scores(z)[1]

    def sample(self, count: int, seed: int) -> tuple[Array, float]:
        """Draws of the posterior, and the effective share of the flow's draws."""
        z = self.scores.inverse(self.flow.sample((4 * count,), seed=seed))
        z, share = resample(z, self.law.log_weight(z), count, np.random.default_rng(seed))
        return self.law.theta(z, self.x_o), share


@dataclass(frozen=True)
class LikelihoodRoute:
    """q(y | θ) by maximum likelihood."""

    law: Law
    x_o: Array
    scores: NormalScores
    flow: didyma.Posterior

    @classmethod
    def train(cls, law: Law, theta: Array, x: Array, x_o: Array, training: Training) -> LikelihoodRoute:
        y = law.y(x, theta)
        scores, given = NormalScores(y), law.given(theta)
        nearest = np.argmin((((x - x_o) / x.std(axis=0)) ** 2).sum(axis=1))
        return cls(law, x_o[None], scores, training.train(scores(y)[0], given, given[nearest]))

    def log_likelihood(self, theta: Array) -> Array:
        """log p(x_o | θ), up to a constant."""
        x = np.repeat(self.x_o, len(theta), axis=0)
        scores, log_slope = self.scores(self.law.y(x, theta))
        log_q = [self.flow.log_prob(row[None], x=at)[0] for row, at in zip(scores, self.law.given(theta), strict=True)]
        return np.array(log_q) + log_slope + self.law.log_slope(x, theta)

    def sample(self, first: PosteriorRoute, count: int, seed: int) -> tuple[Array, float]:
        """Draws of the posterior, and the effective share of the candidates. Another seed than the first route's draws."""
        z, log_candidates = first.candidates(2 * count, seed)
        theta, log_weights = self.law.theta(z, self.x_o), self.law.log_prior(z) - log_candidates
        # Beyond the prior's support the likelihood's coordinates need not exist.
        inside = np.isfinite(log_weights)
        log_weights[inside] += self.log_likelihood(theta[inside])
        return resample(theta, log_weights, count, np.random.default_rng(seed))

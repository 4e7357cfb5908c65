//! The two profiles: the paper's protocol, and what we found to work best (`docs/choices.md`).

use super::{
    Algorithm, Architecture, Config, DensityKind, EnsembleConfig, FailureConfig, Inner,
    LevelSource, Profile, Proposal, Schedule, ScoreArchitecture, Scoring, Split, Start,
    TrainConfig, Truncation, Validation,
};
use crate::density::coordinates::{CoordinateConfig, Scale, Space};
use crate::density::score::Output;
use crate::training::estimator::{Blocks, Coupling, Levels, Method, Settings, Tails};

/// Steps of a cycle of the last round in the default profile.
const STEPS: u64 = 5000;
/// Share of these steps that rounds before the last take.
const EARLY: f64 = 0.2;
/// Epochs of a cycle, at most: few rows are learnt by heart in more.
const EPOCHS: u32 = 50;
/// Cycles of the last round, at most, while each lowers the validation loss.
const CYCLES: u32 = 4;
/// Steps of a round where a step is cheap, without inner samples.
const LIKELIHOOD_STEPS: u64 = 10_000;
/// The same for a score network.
const SCORE_STEPS: u64 = 5000;
/// Power by which the steps of a round grow with many rows.
const GROWTH: f64 = 0.5;
/// Flows of an ensemble in the default profile.
const MEMBERS: usize = 4;
/// Steps of the ODE of a score.
const ODE_STEPS: usize = 40;

impl Config {
    pub(super) fn paper(algorithm: Algorithm) -> Self {
        let config = Self::paper_flow(algorithm);
        if algorithm == Algorithm::Snse { config.score_as_published() } else { config }
    }

    /// Score estimation as its authors' code has it, with the number of iterations that the paper allows.
    fn score_as_published(self) -> Self {
        Self {
            truncation: Truncation { share: 5e-4, draws: 20_000 },
            coordinates: CoordinateConfig {
                theta: Scale::Pool,
                x: Scale::Pool,
                ..self.coordinates
            },
            train: TrainConfig {
                batch: 512,
                sweeps: 10,
                epochs: 1000,
                patience: 250,
                validation_share: 0.1,
                split: Split::Pooled,
                restore_best: true,
                start: Start::Fresh,
                decay: 0.0,
                ..self.train
            },
            ..self
        }
    }

    fn paper_flow(algorithm: Algorithm) -> Self {
        let proposal = match algorithm {
            Algorithm::Corrected(_) => Proposal::Posterior,
            Algorithm::Tsnpe | Algorithm::Snse => Proposal::Truncated,
            Algorithm::Npe => Proposal::Prior,
        };
        Self {
            profile: Profile::Paper,
            rounds: 20,
            simulations: 1000,
            proposal,
            prior_share: 0.0,
            width: 1.0,
            truncation: Truncation { share: 1e-4, draws: 100_000 },
            failures: FailureConfig::default(),
            seed: 1,
            samples: 10_000,
            scores: Scoring::Every,
            estimator: Settings::paper(algorithm.method()),
            ensemble: EnsembleConfig::default(),
            density: match algorithm {
                Algorithm::Snse => DensityKind::Score,
                _ => DensityKind::Flow,
            },
            score: ScoreArchitecture {
                units: 256,
                output: Output::Energy,
                scaled: false,
                ode_steps: ODE_STEPS,
                repeats: 10,
            },
            flow: Architecture { layers: 8, blocks: 2, units: 50, bins: 10, bound: 20.0 },
            coordinates: CoordinateConfig {
                space: Space::Bounded,
                theta: Scale::None,
                x: Scale::None,
                bend: None,
                tolerance: 0.0,
                relevance: false,
            },
            train: TrainConfig {
                batch: 100,
                sweeps: 1,
                rate: 1e-4,
                schedule: Schedule::Constant,
                steps: None,
                cycles: 1,
                early: 1.0,
                growth: 0.0,
                epochs: 10_000,
                patience: 20,
                validation_share: 0.05,
                split: Split::Newest,
                validation: Validation::Random,
                restore_best: false,
                start: Start::Carried,
                inner: Inner::Pool,
                stock: TrainConfig::STOCK,
                levels: LevelSource::Given,
                thinning: 0.0,
                noise: 0.0,
                decay: 1e-4,
                decay_coupled: true,
                clip: None,
            },
        }
    }

    pub(super) fn best(algorithm: Algorithm) -> Self {
        let config = Self::best_flow(algorithm);
        if algorithm == Algorithm::Snse { config.score_at_its_best() } else { config }
    }

    fn score_at_its_best(self) -> Self {
        let (output, scaled, ode_steps) = (Output::Direct, true, 20);
        let score = ScoreArchitecture { output, scaled, ode_steps, ..self.score };
        Self {
            score,
            truncation: Truncation { share: 1e-4, draws: 4_000 },
            ensemble: EnsembleConfig::default(),
            train: TrainConfig {
                batch: 100,
                steps: Some(SCORE_STEPS),
                growth: 0.0,
                patience: 1000,
                ..self.train
            },
            ..self
        }
    }

    fn best_flow(algorithm: Algorithm) -> Self {
        let paper = Self::paper_flow(algorithm);
        let likelihood = algorithm.method() == Method::Likelihood;
        let estimator = Self::best_estimator(algorithm.method());
        Self {
            profile: Profile::Default,
            rounds: 10,
            width: 1.25,
            estimator,
            ensemble: EnsembleConfig { members: MEMBERS },
            flow: Architecture { layers: 6, blocks: 2, units: 32, bins: 5, bound: 5.0 },
            coordinates: CoordinateConfig {
                space: Space::Unbounded,
                theta: Scale::First,
                x: Scale::Newest,
                bend: Some(3.0),
                tolerance: 0.5,
                relevance: true,
            },
            train: TrainConfig {
                batch: 50,
                rate: 1e-3,
                schedule: Schedule::Cosine,
                steps: Some(if likelihood { LIKELIHOOD_STEPS } else { STEPS }),
                cycles: if likelihood { 1 } else { CYCLES },
                early: if likelihood { 1.0 } else { EARLY },
                growth: if algorithm == Algorithm::Npe { 1.0 } else { GROWTH },
                epochs: if likelihood { 1000 } else { EPOCHS },
                patience: if likelihood { 200 } else { 50 },
                validation_share: 0.1,
                split: Split::Fixed,
                validation: Validation::Fixed,
                restore_best: true,
                start: Start::Warm,
                decay_coupled: false,
                thinning: 0.1,
                clip: Some(5.0),
                ..paper.train
            },
            ..paper
        }
    }

    /// About 16 inner samples of a query at the base, whatever the method; the outer θ among them, where the method
    /// allows it: the loss is then bounded.
    fn best_estimator(method: Method) -> Settings {
        let paper = Settings::paper(method);
        let levels = matches!(method, Method::Grr | Method::Tgrr);
        let apart = matches!(method, Method::Likelihood | Method::Nested);
        Settings {
            atoms: if method == Method::Nested { 32 } else { 20 },
            m0: if levels { 4 } else { 16 },
            top: if method == Method::Tru { Some(2) } else { paper.top },
            coupling: if apart { Coupling::Excluded } else { Coupling::Inclusive },
            tails: if levels { Tails::Scaled { kappa: 0.5 } } else { Tails::Paper },
            blocks: Blocks::Reused,
            levels: Levels::Systematic,
            ..paper
        }
    }
}

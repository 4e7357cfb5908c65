//! The levels of a run's estimator on its flow.

mod laws;

pub use crate::training::levels::{
    BaseTerm, BatchMoments, Estimate, Evaluated, LevelChoice, LevelMoments, LevelReport,
    LevelStudy, Objective, Slope, TrainedFlow, measure_batches,
};
pub(crate) use laws::Past;

use crate::error::{Error, Result};
use crate::inference::SimulatedRow;
use crate::inference::config::{Config, Meaning};
use crate::inference::posterior::Posterior;
use crate::inference::simulations::Records;
use crate::training::estimator::{Alpha, Blocks, Coupling, Method, Settings, Source, Tails};

/// The settings of a run's estimator for a study of its levels, fitted to its simulations as its training was; of
/// another method if one is given, and of TGRR if the run's own has no levels.
pub fn level_settings(run: &Config, method: Option<Method>, source: &impl Source) -> Settings {
    let own = run.estimator.method;
    let method = method.or(own.is_multilevel().then_some(own)).unwrap_or(Method::Tgrr);
    let usual = match own.is_multilevel() {
        true => run.estimator.clone(),
        false => Config::new(run.profile, method).estimator,
    };
    let paper = Settings::paper(method);
    let (base, top) = if method == own { (usual.base, usual.top) } else { (paper.base, paper.top) };
    // Moments do not depend on how often a level is drawn, and a law may fit one method and not another.
    let (alpha, tails) = (Alpha::Paper, Tails::Paper);
    let coupling = run.estimator.coupling;
    let blocks = if coupling == Coupling::Planted { Blocks::Fresh } else { usual.blocks };
    Settings { method, base, top, alpha, tails, coupling, blocks, ..usual }.fitted_to(source)
}

impl LevelStudy {
    /// A study of a run's estimator on its flow, of levels that its simulations can fill.
    pub fn of_flow(run: &Config, flow: &TrainedFlow, highest: u32, budget: usize) -> Self {
        let settings = level_settings(run, None, flow);
        let filled = (flow.largest_block() / settings.m0.max(1)).checked_ilog2().unwrap_or(0);
        Self { settings, highest: filled.min(highest), budget }
    }
}

impl TrainedFlow {
    /// The flow of a posterior on these simulations, those of the rounds that it was trained in: their parameters are a
    /// sample of the proposal, and the successful ones are outer samples. What a failure means says whether failed ones are
    /// inner samples, as in training. Of an ensemble it is the first member.
    pub fn of_posterior(
        posterior: &Posterior,
        mut simulations: Vec<SimulatedRow>,
        failures: Meaning,
        threads: usize,
    ) -> Result<Self> {
        simulations.retain(|row| row.x.is_ok() || failures == Meaning::Outcome);
        let Posterior { prior, coordinates, ensemble, .. } = posterior;
        let Some(flow) = posterior.model().flow() else {
            let why = "a run that trains a flow: a score has no log q to take levels of";
            return Err(Error::setting("the run's density", "score", why));
        };
        let dims = (flow.config().theta_dim, flow.config().x_dim);
        let records = Records::new(dims, simulations.len(), simulations);
        records.check()?;
        let data = records.dataset(prior, coordinates, None)?;
        Self::new(flow.clone(), ensemble.members()[0].clone(), data, threads)
    }
}

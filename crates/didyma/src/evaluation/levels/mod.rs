//! What can be measured about an estimator: its levels and their rates, its variance and its cost.

mod batches;
mod laws;
mod study;
mod trained;

pub use crate::math::moments::Estimate;
pub use crate::math::regression::Slope;
pub use batches::{BatchMoments, measure_batches};
pub(crate) use laws::Past;
pub use study::{BaseTerm, LevelMoments, LevelReport, LevelStudy};
pub use trained::TrainedFlow;

use crate::error::Result;
use crate::inference::config::Config;
use crate::rng::Stream;
use crate::training::estimator::{Alpha, Blocks, Coupling, Method, Plan, Settings, Source, Tails};

/// Something whose loss and gradient can be evaluated query by query: a toy, or a flow with its
/// dataset.
pub trait Objective: Source {
    /// Number of parameters that the gradient has.
    fn gradient_len(&self) -> usize;

    /// Starts anew, and fills `rows` with those of `queries` outer samples.
    fn outer(&mut self, queries: usize, rng: &mut Stream, rows: &mut Vec<u32>);

    /// Loss of a plan on rows given out since; its gradient replaces `gradient`.
    fn evaluate(&mut self, plan: &Plan, gradient: &mut [f64]) -> Result<f64>;

    /// Evaluations of log q that an inner sample takes.
    fn evaluations(&self) -> f64 {
        1.0
    }

    /// Plans that are best evaluated together. If it is more than 1, plans stay valid when [`Objective::outer`] starts
    /// anew.
    fn at_once(&self) -> usize {
        1
    }

    /// Evaluates each plan by itself, into the place of the same number.
    fn evaluate_all(&mut self, plans: &[Plan], found: &mut [Evaluated]) -> Result<()> {
        for (plan, found) in plans.iter().zip(found) {
            found.loss = self.evaluate(plan, &mut found.gradient)?;
        }
        Ok(())
    }
}

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

/// What a plan was evaluated to.
#[derive(Clone, Debug, PartialEq)]
pub struct Evaluated {
    /// The loss.
    pub loss: f64,
    /// Its gradient.
    pub gradient: Vec<f64>,
}

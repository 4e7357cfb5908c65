//! Constant-step descent on a toy with one estimator of the gradient.

use crate::toy::{Toy, ToyQueries};
use didyma::Result;
use didyma::estimator::{Coupling, Estimator, Method, Plan, Settings, Target};
use didyma::levels::Objective;
use didyma::rng::Stream;

/// φ minus the truth, beyond which a descent is given up: at −3 in c, q is 20 times too narrow.
const RANGE: f64 = 3.0;
/// The level that methods without a top are capped at, as in `docs/estimators.md`.
const CAP: u32 = 12;

/// Inner samples whose bias is below anything that is measured here; a cap at level 12 leaves 2¹⁵.
const AS_GOOD_AS_EXACT: usize = 1 << 14;

/// Where gradients come from.
#[derive(Clone, Debug, PartialEq)]
pub struct Descent {
    /// What it is called.
    pub name: String,
    /// The estimator; without one, the exact gradient of each query: its noise is that of the outer samples alone.
    pub settings: Option<Settings>,
}

impl Descent {
    /// With exact gradients of the queries.
    pub fn exact() -> Self {
        Self { name: "exact".to_owned(), settings: None }
    }

    /// With an estimator, capped at level 12 if it draws a level and has no top.
    pub fn with(name: impl Into<String>, settings: Settings) -> Self {
        let top = settings.top.or(settings.method.is_multilevel().then_some(CAP));
        Self { name: name.into(), settings: Some(Settings { top, ..settings }) }
    }

    /// All that are compared: exact; nested 8, 32, 128; atomic 8, 32; the paper's RU, TRU, RR, GRR, TGRR; and TGRR in the
    /// inclusive form.
    pub fn all() -> Vec<Self> {
        let sized = |method, name: &str, atoms: usize| {
            Self::with(format!("{name} {atoms}"), Settings { atoms, ..Settings::paper(method) })
        };
        let paper = |name: &str, method| Self::with(name, Settings::paper(method));
        let coupling = Coupling::Inclusive;
        vec![
            Self::exact(),
            sized(Method::Nested, "nested", 8),
            sized(Method::Nested, "nested", 32),
            sized(Method::Nested, "nested", 128),
            sized(Method::Atomic, "atomic", 8),
            sized(Method::Atomic, "atomic", 32),
            paper("ru", Method::Ru),
            paper("tru", Method::Tru),
            paper("rr", Method::Rr),
            paper("grr", Method::Grr),
            paper("tgrr", Method::Tgrr),
            Self::with("tgrr, inclusive", Settings { coupling, ..Settings::paper(Method::Tgrr) }),
        ]
    }

    /// What its gradients are, on average, the gradient of.
    pub fn target(&self) -> Result<Target> {
        match &self.settings {
            None => Ok(Target::Exact),
            Some(settings) => Ok(Estimator::new(settings.clone())?.target()),
        }
    }

    /// The method of least noise that has the same mean: nested for its truncated forms, exact for those whose cap does not
    /// matter.
    pub(super) fn mean(&self) -> Result<Self> {
        let atoms = match self.target()? {
            Target::Nested(samples) if samples >= AS_GOOD_AS_EXACT => return Ok(Self::exact()),
            Target::Nested(samples) => samples,
            _ => return Ok(self.clone()),
        };
        Ok(Self::with(&self.name, Settings { atoms, ..Settings::paper(Method::Nested) }))
    }

    /// Whether its mean is the exact gradient.
    pub(super) fn is_exact(&self) -> Result<bool> {
        Ok(self.target()? == Target::Exact)
    }

    /// Whether the truth is the minimiser of its mean.
    pub(super) fn has_exact_minimiser(&self) -> Result<bool> {
        Ok(matches!(self.target()?, Target::Exact | Target::Atomic(_)))
    }

    pub(super) fn gradients(&self, toy: &Toy) -> Result<Gradients> {
        let estimator = self.settings.clone().map(Estimator::new).transpose()?;
        let (queries, plan, rows) = (toy.queries(), Plan::default(), Vec::new());
        Ok(Gradients { toy: *toy, queries, estimator, plan, rows })
    }
}

/// Gradients of batches.
pub(super) struct Gradients {
    toy: Toy,
    queries: ToyQueries,
    estimator: Option<Estimator>,
    plan: Plan,
    rows: Vec<u32>,
}

impl Gradients {
    pub fn move_to(&mut self, offset: [f64; 3]) {
        self.toy = self.toy.at(offset);
        self.queries.move_to(offset);
    }

    /// The mean over a new batch.
    pub fn batch(&mut self, size: usize, rng: &mut Stream) -> Result<[f64; 3]> {
        self.queries.outer(size, rng, &mut self.rows);
        let Some(estimator) = &mut self.estimator else { return Ok(self.exact()) };
        estimator.plan(&self.rows, &mut self.queries, rng, &mut self.plan)?;
        let mut gradient = [0.0; 3];
        self.queries.evaluate(&self.plan, &mut gradient)?;
        Ok(gradient)
    }

    /// The mean of the exact gradients of the last batch.
    pub fn exact(&self) -> [f64; 3] {
        let mut sum = [0.0; 3];
        for &row in &self.rows {
            let (_, gradient) = self.toy.exact_query(self.queries.theta(row), self.queries.x(row));
            sum.iter_mut().zip(gradient).for_each(|(sum, g)| *sum += g);
        }
        sum.map(|sum| sum / self.rows.len() as f64)
    }

    /// Expected pairs of a query.
    pub fn expected_pairs(&self) -> f64 {
        self.estimator.as_ref().map_or(1.0, Estimator::expected_pairs)
    }

    /// Pairs of the last batch.
    pub fn pairs(&self) -> usize {
        if self.estimator.is_some() { self.plan.pairs() } else { self.rows.len() }
    }
}

/// One descent.
#[derive(Clone, Debug)]
pub(super) struct Path {
    /// The gap at each recorded step, as far as it came.
    pub gaps: Vec<f64>,
    /// Mean gap of the second half, unless it diverged.
    pub plateau: Option<f64>,
    /// Pairs of a step.
    pub pairs: f64,
}

/// φ ← φ − γ g for `steps` steps from `start`; the gap is recorded at the steps of `record`.
pub(super) fn descend(
    gradients: &mut Gradients,
    (start, gamma): ([f64; 3], f64),
    (steps, batch): (usize, usize),
    record: &[usize],
    rng: &mut Stream,
) -> Result<Path> {
    let least = gradients.toy.at([0.0; 3]).loss();
    let (mut offset, mut record) = (start, record.iter().peekable());
    let (mut path, mut sum) = (Path { gaps: Vec::new(), plateau: None, pairs: 0.0 }, 0.0);
    for step in 0..=steps {
        gradients.move_to(offset);
        let gap = gradients.toy.loss() - least;
        if !gap.is_finite() || !is_sane(offset) {
            return Ok(path);
        }
        if record.next_if(|&&next| next == step).is_some() {
            path.gaps.push(gap);
        }
        if 2 * step > steps {
            sum += gap;
        }
        if step < steps {
            let gradient = gradients.batch(batch, rng)?;
            path.pairs += gradients.pairs() as f64 / steps as f64;
            offset.iter_mut().zip(gradient).for_each(|(phi, g)| *phi -= gamma * g);
        }
    }
    path.plateau = Some(sum / (steps - steps / 2) as f64);
    Ok(path)
}

/// Whether φ is where a descent may still come back from; not so if it is not a number.
pub(super) fn is_sane(offset: [f64; 3]) -> bool {
    offset.iter().all(|phi| phi.abs() < RANGE)
}

//! From a batch of outer samples to the plan of a step.

use super::settings::highest_level;
use super::{
    Blocks, Coupling, Difference, Draws, GroupMut, LevelLaw, Levels, Method, Plan, Settings,
    Source, Target, Term,
};
use crate::error::{Error, Result};
use crate::named::Named;
use crate::rng::Stream;
use rand::RngExt;
use rand::seq::SliceRandom;

/// An estimator of the loss and its gradient: it chooses atoms, levels and weights, and never sees a
/// density.
///
/// ```
/// use didyma::estimator::{Estimator, Method, Plan, Pool, Replacement, Settings};
/// use didyma::rng::{Purpose, Streams};
/// let mut estimator = Estimator::new(Settings::paper(Method::Tgrr))?;
/// let mut pool = Pool::new(0..1000, Replacement::Without)?;
/// let mut rng = Streams::new(1).stream(Purpose::Plan, 0, 0);
/// let mut plan = Plan::default();
/// let batch: Vec<u32> = (0..100).collect();
/// estimator.plan(&batch, &mut pool, &mut rng, &mut plan)?;
/// // 32 inner samples and the outer one for each query, and a few corrections.
/// assert!(plan.pairs() >= 3300 && plan.groups().len() >= 200);
/// assert!((estimator.expected_inner() - 34.637).abs() < 1e-3);
/// # Ok::<(), didyma::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Estimator {
    settings: Settings,
    /// Inner samples of level 0.
    m0: usize,
    law: LevelLaw,
    levels: Vec<u32>,
    draws: Draws,
}

/// What a plan is being made with.
struct Draft<'a, S> {
    source: &'a mut S,
    rng: &'a mut Stream,
    plan: &'a mut Plan,
}

impl Estimator {
    /// Checks the settings.
    pub fn new(settings: Settings) -> Result<Self> {
        let law = settings.law()?;
        let m0 = match (settings.method, settings.coupling) {
            (Method::Atomic, Coupling::Inclusive) => settings.atoms - 1,
            (Method::Atomic | Method::Nested, _) => settings.atoms,
            _ => settings.m0,
        };
        Ok(Self { settings, m0, law, levels: Vec::new(), draws: Draws::default() })
    }

    /// Its choices.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// The law of its level; a point for the methods that have one level.
    pub fn law(&self) -> &LevelLaw {
        &self.law
    }

    /// M_l = M₀ 2^l, the inner samples of a block at this level.
    pub fn block_size(&self, level: u32) -> usize {
        self.m0 << level
    }

    /// What its mean is.
    pub fn target(&self) -> Target {
        match (self.settings.method, self.settings.coupling, self.law.top()) {
            (Method::Likelihood, ..) => Target::Likelihood,
            (_, Coupling::Planted, _) => Target::Planted,
            (_, _, None) => Target::Exact,
            (_, Coupling::Excluded, Some(top)) => Target::Nested(self.block_size(top)),
            (_, Coupling::Inclusive, Some(top)) => Target::Atomic(self.block_size(top) + 1),
        }
    }

    /// Expected inner samples of a query, in closed form: M_m + Σ_{j>m} p_j M_j with fresh blocks,
    /// E M_L with one block.
    pub fn expected_inner(&self) -> f64 {
        let law = &self.law;
        let blocks = match self.settings.method {
            Method::Likelihood => 0.0,
            _ if self.has_one_block() => law.mean_block(),
            _ => f64::from(law.base()).exp2() + law.corrections(),
        };
        self.m0 as f64 * blocks
    }

    /// Expected (θ, x) pairs of a query: inner samples, and the outer one as often as it is needed.
    pub fn expected_pairs(&self) -> f64 {
        let law = &self.law;
        let outer = match self.settings.coupling {
            _ if self.settings.method == Method::Likelihood => 1.0,
            Coupling::Planted => 0.0,
            Coupling::Excluded if self.settings.method.is_single_term() => law.mass(law.base()),
            Coupling::Inclusive if !self.has_one_block() => 1.0 + law.steps(),
            _ => 1.0,
        };
        self.expected_inner() + outer
    }

    /// The highest level whose block this source can give, for capping the level: `None` if not even
    /// level 0.
    pub fn highest_level(&self, source: &impl Source) -> Option<u32> {
        highest_level(self.m0, source)
    }

    /// Replaces `plan` by the plan of one step on the mean over `batch`, rows of outer samples, with
    /// the largest groups first so that threads end together.
    pub fn plan(
        &mut self,
        batch: &[u32],
        source: &mut impl Source,
        rng: &mut Stream,
        plan: &mut Plan,
    ) -> Result<()> {
        plan.clear();
        let each = 1.0 / batch.len() as f64;
        if self.settings.method != Method::Likelihood {
            self.check_source(source)?;
            self.draw_levels(batch.len(), rng);
            self.plan_blocks(batch, &mut Draft { source, rng, plan });
        }
        if self.has_outer_apart() {
            for (i, &row) in batch.iter().enumerate() {
                let weight = match self.settings.method.is_single_term() {
                    true if self.levels[i] > self.law.base() => continue,
                    true => each / self.law.mass(self.law.base()),
                    false => each,
                };
                plan.push_own(row, weight);
            }
        }
        match plan.groups().is_empty() {
            true => Err(Error::EmptyPlan),
            false => Ok(()),
        }
    }

    /// Replaces `plan` by the term of one level alone: ψ_{M_m} at the base, Δψ_l above it.
    ///
    /// # Panics
    /// If the level is below the base.
    pub fn plan_level(
        &mut self,
        row: u32,
        level: u32,
        source: &mut impl Source,
        rng: &mut Stream,
        plan: &mut Plan,
    ) -> Result<()> {
        assert!(level >= self.law.base(), "no level below the base");
        plan.clear();
        self.check_block(level, source)?;
        self.push_level(row, level, 1.0, &mut Draft { source, rng, plan });
        if level == self.law.base() && self.has_outer_apart() {
            plan.push_own(row, 1.0);
        }
        Ok(())
    }

    fn plan_blocks(&mut self, batch: &[u32], draft: &mut Draft<impl Source>) {
        let each = 1.0 / batch.len() as f64;
        let highest = self.levels.iter().copied().max().unwrap_or(0);
        for level in (self.law.base()..=highest).rev() {
            for (i, &row) in batch.iter().enumerate() {
                let drawn = self.levels[i];
                if self.settings.method.is_single_term() {
                    if drawn == level {
                        self.push_level(row, level, each / self.law.mass(level), draft);
                    }
                } else if self.settings.blocks == Blocks::Reused {
                    if drawn == level {
                        self.push_reused(row, level, each, draft);
                    }
                } else if drawn >= level {
                    self.push_level(row, level, each / self.law.tail(level), draft);
                }
            }
        }
    }

    /// One block for one level.
    fn push_level(&mut self, row: u32, level: u32, weight: f64, draft: &mut Draft<impl Source>) {
        let is_base = level == self.law.base();
        let difference = self.settings.difference;
        let group = self.push_block(row, level, if is_base { weight } else { 0.0 }, draft);
        match difference {
            _ if is_base => group.log_mean_exp(weight),
            Difference::Antithetic => group.antithetic_difference(weight),
            Difference::Naive => group.naive_difference(weight),
        };
    }

    /// One block for all levels up to `highest`: at level j the mean over its 2^(L−j) sub-blocks. The
    /// weights 1/p_j of neighbouring differences meet at each sub-block size, so that its term has
    /// weight 1/p_j − 1/p_{j+1}.
    fn push_reused(&mut self, row: u32, highest: u32, each: f64, draft: &mut Draft<impl Source>) {
        let base = self.law.base();
        self.push_block(row, highest, each, draft);
        for level in base..=highest {
            let next = if level < highest { 1.0 / self.law.tail(level + 1) } else { 0.0 };
            let blocks = match self.settings.difference {
                Difference::Antithetic => 1 << (highest - level),
                Difference::Naive => 1,
            };
            let weight = each * (1.0 / self.law.tail(level) - next);
            draft.plan.last().term(Term { weight, size: self.block_size(level), blocks });
        }
    }

    /// A group of one level's inner samples, with the outer one where the coupling puts it; `own` is
    /// the weight of −log q of the outer one, if it is there.
    fn push_block<'a>(
        &mut self,
        row: u32,
        level: u32,
        own: f64,
        draft: &'a mut Draft<impl Source>,
    ) -> GroupMut<'a> {
        let (size, coupling) = (self.block_size(level), self.settings.coupling);
        let has_corrections = self.law.top() != Some(self.law.base());
        let Draft { source, rng, plan } = draft;
        let draws = &mut self.draws;
        draws.clear();
        let planted = match coupling {
            Coupling::Planted if level == self.law.base() && has_corrections => 1,
            Coupling::Planted => 2,
            _ => 0,
        };
        if coupling != Coupling::Excluded {
            draws.push_weighted(row, source.outer_log_weight(row));
        }
        source.draw(row, size - planted, rng, draws);
        if planted == 2 {
            draws.push_weighted(row, source.outer_log_weight(row));
        }
        let group = plan.group(row, draws.rows().iter().copied()).log_weights(draws.log_weights());
        match coupling {
            Coupling::Excluded => group,
            Coupling::Inclusive => group.share_first().own(own),
            Coupling::Planted => group.own(own),
        }
    }

    fn draw_levels(&mut self, count: usize, rng: &mut Stream) {
        let Self { law, levels, .. } = self;
        levels.clear();
        match self.settings.levels {
            _ if law.top() == Some(law.base()) => levels.resize(count, law.base()),
            Levels::Independent => {
                levels.extend((0..count).map(|_| law.level(rng.random())));
            }
            Levels::Systematic => {
                let start: f64 = rng.random();
                levels.extend((0..count).map(|i| law.level((i as f64 + start) / count as f64)));
                levels.shuffle(rng);
            }
        }
    }

    fn has_one_block(&self) -> bool {
        self.settings.method.is_single_term() || self.settings.blocks == Blocks::Reused
    }

    /// Whether −log q of the outer θ is a group of its own.
    fn has_outer_apart(&self) -> bool {
        self.settings.coupling == Coupling::Excluded || self.settings.method == Method::Likelihood
    }

    /// Every level that can be drawn must have its block in the source.
    fn check_source(&self, source: &impl Source) -> Result<()> {
        match self.law.top() {
            Some(top) => self.check_block(top, source),
            None => {
                let highest = self.highest_level(source);
                Err(Error::NoTop { method: self.settings.method.name(), highest })
            }
        }
    }

    fn check_block(&self, level: u32, source: &impl Source) -> Result<()> {
        match self.highest_level(source).is_some_and(|highest| level <= highest) {
            true => Ok(()),
            false => {
                let (block, rows) = (self.block_size(level), source.largest_block());
                Err(Error::SmallPool { block, level, rows })
            }
        }
    }
}

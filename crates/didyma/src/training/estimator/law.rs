//! The law of the random level L: its tails, its masses, and what they cost.

use crate::error::{Error, Result};

/// A law on the levels m, m + 1, …, given by its tails p_j = P(L ≥ j), with p_j = 1 up to the base m.
///
/// The tails are listed one by one up to some level; beyond it they are geometric, or 0 if the law
/// has a top level.
///
/// ```
/// use didyma::estimator::LevelLaw;
/// let law = LevelLaw::truncated(1.673, 2, 4); // the paper's TGRR
/// assert!((law.tail(3) - 0.0279).abs() < 1e-4);
/// assert!((law.mass(2) - 0.9721).abs() < 1e-4);
/// assert_eq!((law.level(0.5), law.level(0.01), law.level(0.001)), (2, 3, 4));
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct LevelLaw {
    base: u32,
    /// p_m = 1, p_{m+1}, …
    tails: Vec<f64>,
    /// p_{j+1} / p_j beyond the last tail listed.
    ratio: f64,
}

impl LevelLaw {
    /// L = m always: a nested estimator without corrections.
    pub fn point(base: u32) -> Self {
        Self { base, tails: vec![1.0], ratio: 0.0 }
    }

    /// p_j = 2^(−αj) for every j > m, in the absolute level j: the paper's RU and RR (m = 0) and GRR.
    /// E 2^L is finite if α > 1.
    pub fn geometric(alpha: f64, base: u32) -> Self {
        let first = (-alpha * f64::from(base + 1)).exp2();
        Self { base, tails: vec![1.0, first], ratio: (-alpha).exp2() }
    }

    /// p_j = (2^(−αj) − 2^(−α(top+1))) / (1 − 2^(−α(top+1))) for m < j ≤ top: a geometric level
    /// conditioned on L ≤ top, raised to m where it is below. The paper's truncated RU and TGRR.
    pub fn truncated(alpha: f64, base: u32, top: u32) -> Self {
        let power = |level: u32| (-alpha * f64::from(level)).exp2();
        let cut = power(top + 1);
        let tail = |level| (power(level) - cut) / (1.0 - cut);
        let tails = std::iter::once(1.0).chain((base + 1..=top).map(tail)).collect();
        Self { base, tails, ratio: 0.0 }
    }

    /// p_j = min(1, κ 2^(−α(j−m))): a geometric law whose first step is free. κ sets what is spent
    /// above the base, α = (r + 1)/2 how it is shared among the levels.
    pub fn scaled(kappa: f64, alpha: f64, base: u32) -> Self {
        let tail = |step: u32| kappa * (-alpha * f64::from(step)).exp2();
        let below_one = (1..).find(|&step| tail(step) < 1.0).expect("α > 0");
        let ones = std::iter::repeat_n(1.0, below_one as usize);
        Self { base, tails: ones.chain([tail(below_one)]).collect(), ratio: (-alpha).exp2() }
    }

    /// The tails p_{m+1}, p_{m+2}, …, given one by one; the last is at the top level.
    pub fn free(base: u32, tails: &[f64]) -> Result<Self> {
        let ordered = std::iter::once(&1.0).chain(tails).zip(tails).all(|(a, b)| a >= b);
        if !ordered || tails.iter().any(|&p| p.is_nan() || p <= 0.0) {
            let tails = tails.iter().map(f64::to_string).collect::<Vec<_>>().join(", ");
            let why = "probabilities P(L ≥ base + 1), P(L ≥ base + 2), …, none of them larger than the one before";
            return Err(Error::setting("tails", format!("[{tails}]"), why));
        }
        let tails = std::iter::once(1.0).chain(tails.iter().copied()).collect();
        Ok(Self { base, tails, ratio: 0.0 })
    }

    /// The same law with L replaced by min(L, top): every tail up to the top stays, none is above.
    pub fn capped(self, top: u32) -> Self {
        let tails = (self.base..=top.max(self.base)).map(|level| self.tail(level)).collect();
        Self { base: self.base, tails, ratio: 0.0 }
    }

    /// m, the lowest level.
    pub fn base(&self) -> u32 {
        self.base
    }

    /// The highest level, if there is one.
    pub fn top(&self) -> Option<u32> {
        (self.ratio == 0.0).then(|| self.base + self.tails.len() as u32 - 1)
    }

    /// P(L ≥ j).
    pub fn tail(&self, level: u32) -> f64 {
        let step = level.saturating_sub(self.base) as usize;
        let last = self.tails.len() - 1;
        let beyond = step.saturating_sub(last);
        match beyond {
            0 => self.tails[step],
            _ => self.tails[last] * self.ratio.powi(beyond as i32),
        }
    }

    /// P(L = j).
    pub fn mass(&self, level: u32) -> f64 {
        if level < self.base { 0.0 } else { self.tail(level) - self.tail(level + 1) }
    }

    /// The level that a number u in [0, 1) stands for, so that a uniform u gives the law: the largest
    /// j with u < p_j.
    pub fn level(&self, u: f64) -> u32 {
        let mut level = self.base;
        while u < self.tail(level + 1) {
            level += 1;
        }
        level
    }

    /// Σ_{j>m} p_j 2^j: expected atoms above the base, in units of M₀, if every level up to L has a
    /// block of its own. Infinite if the tails fall no faster than 2^(−j).
    pub fn corrections(&self) -> f64 {
        self.sum(2.0)
    }

    /// Σ_{j>m} p_j = E L − m: expected number of corrections.
    pub fn steps(&self) -> f64 {
        self.sum(1.0)
    }

    fn sum(&self, b: f64) -> f64 {
        self.series(self.base + 1, |level| self.tail(level) * b.powi(level as i32))
    }

    /// Σ_{j ≥ first} of a term that is geometric beyond the tails listed: that part in closed form.
    pub(super) fn series(&self, first: u32, term: impl Fn(u32) -> f64) -> f64 {
        let last = self.base + self.tails.len() as u32 - 1;
        let listed: f64 = (first..=last).map(&term).sum();
        if self.ratio == 0.0 {
            return listed;
        }
        let rest = term(last + 1);
        let growth = term(last + 2) / rest;
        listed + if growth < 1.0 { rest / (1.0 - growth) } else { f64::INFINITY }
    }

    /// E 2^L = 2^m + ½ Σ_{j>m} p_j 2^j: expected atoms of one block at level L, in units of M₀.
    pub fn mean_block(&self) -> f64 {
        f64::from(self.base).exp2() + 0.5 * self.corrections()
    }
}

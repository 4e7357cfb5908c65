//! The coordinates that the flow works in: θ ↦ z in R^D, x ↦ features, both of unit scale where it matters.
//!
//! What matters is the neighbourhood of x_o: later rounds live there, and the posterior is read off there. Summaries may
//! vary a hundred times less there than under the prior. So x is centred and scaled by the newest round's simulations
//! around x_o (`scaling.rs`), and counts less where it has nothing to do with θ (`relevance.rs`). Rows of earlier rounds are then far away, by hundreds of units: beyond about `bend` units
//! features grow only logarithmically, y = b asinh(v / b). θ is first taken to R^D by the prior's bijection, where
//! nothing can leak outside the support, then centred and whitened by the first round: once for the whole run, since the
//! flow's weights mean something in its coordinates. All of it is a bijection of θ whose Jacobian is known, so that q
//! and the prior, and with them g = q / p, stay exactly what they are.

use super::relevance;
use super::scaling::Scaling;
use super::whitening::Whitening;
use crate::error::{Error, Result};
use crate::named::{Named, serde_by_name};
use crate::problem::prior::Prior;
use crate::rows::Rows;
use serde::{Deserialize, Serialize};

/// Where θ lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Space {
    /// R^D, by the prior's bijection: no density can be outside the support.
    Unbounded,
    /// As it is: samples outside the prior's support are rejected, as in the paper.
    Bounded,
}

/// What numbers are scaled by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// Nothing.
    None,
    /// The first round, which follows the prior.
    First,
    /// The newest round, which follows the latest proposal.
    Newest,
    /// All rounds.
    Pool,
}

impl Named for Space {
    const ALL: &'static [(&'static str, Self)] =
        &[("unbounded", Self::Unbounded), ("bounded", Self::Bounded)];
}

impl Named for Scale {
    const ALL: &'static [(&'static str, Self)] = &[
        ("none", Self::None),
        ("first", Self::First),
        ("newest", Self::Newest),
        ("pool", Self::Pool),
    ];
}

serde_by_name!(Space, Scale);

/// Units from which features grow like the logarithm of a logarithm: a thousand scales, where the bend is at 3.
const FAR: f64 = 20.0;

/// How coordinates are chosen.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CoordinateConfig {
    /// Where θ lives.
    pub space: Space,
    /// What θ is centred and scaled by: the first round, which follows the prior, by whose covariance it is whitened;
    /// or each parameter by its mean and standard deviation in all rounds.
    pub theta: Scale,
    /// What x is centred and scaled by.
    pub x: Scale,
    /// Units beyond which features of x grow logarithmically; none for never.
    pub bend: Option<f64>,
    /// New coordinates replace the old ones when a centre moved by more than this many units, or a scale by more
    /// than this in its logarithm.
    pub tolerance: f64,
    /// Whether summaries that show no dependence on θ count less.
    #[serde(default)]
    pub relevance: bool,
}

/// A map of θ to z and of x to features.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Coordinates {
    space: Space,
    bend: Option<f64>,
    /// Units from which features are bent once more; models of version 0.1.0 were trained without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    far: Option<f64>,
    theta: Whitening,
    x: Scaling,
    /// Factor of each feature; none for 1.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    relevance: Vec<f64>,
}

/// Simulations that coordinates are chosen by.
#[derive(Clone, Copy, Debug)]
pub struct Rounds<'a> {
    /// The observation, whose neighbourhood matters.
    pub x_o: &'a [f64],
    /// θ and x of the first round.
    pub first: (Rows<'a>, Rows<'a>),
    /// x of the newest round.
    pub newest: Rows<'a>,
    /// θ and x of all rounds.
    pub pool: (Rows<'a>, Rows<'a>),
}

impl CoordinateConfig {
    pub(crate) fn check(&self) -> Result<()> {
        if let Some(bend) = self.bend.filter(|bend| !(bend.is_finite() && *bend >= 0.1)) {
            return Err(Error::setting("coordinates.bend", bend, "at least 0.1, or none"));
        }
        if self.theta == Scale::Newest {
            let why =
                "none, first or pool: coordinates that follow the newest round drift away with it";
            return Err(Error::setting("coordinates.theta", "newest", why));
        }
        match self.tolerance >= 0.0 {
            true => Ok(()),
            false => Err(Error::setting("coordinates.tolerance", self.tolerance, "0 or above")),
        }
    }
}

impl Coordinates {
    /// θ and x as they are, or θ in R^D.
    pub fn plain(space: Space, theta_dim: usize, x_dim: usize) -> Self {
        let theta = Whitening::identity(theta_dim);
        let (x, relevance) = (Scaling::identity(x_dim), Vec::new());
        Self { space, bend: None, far: None, theta, x, relevance }
    }

    /// Coordinates for simulations of these rounds.
    pub fn of(config: &CoordinateConfig, prior: &Prior, rounds: &Rounds) -> Result<Self> {
        let Rounds { x_o, first, newest, pool } = *rounds;
        let plain = Self::plain(config.space, first.0.columns(), first.1.columns());
        let theta = match config.theta {
            Scale::None => plain.theta.clone(),
            Scale::Pool => Whitening::of(&plain, prior, pool.0, false)?,
            Scale::First | Scale::Newest => Whitening::of(&plain, prior, first.0, true)?,
        };
        let x = match config.x {
            Scale::None => plain.x.clone(),
            Scale::First => Scaling::near(x_o, first.1, first.1),
            Scale::Newest => Scaling::near(x_o, newest, first.1),
            Scale::Pool => Scaling::moments(pool.1),
        };
        let mut found = Self { bend: config.bend, far: Some(FAR), theta, x, ..plain };
        if config.relevance {
            found.relevance = found.relevance_of(prior, pool)?;
        }
        Ok(found)
    }

    /// Factors of the features by what simulations show of their dependence on θ.
    fn relevance_of(&self, prior: &Prior, (theta, x): (Rows, Rows)) -> Result<Vec<f64>> {
        let (mut features, mut z) = (Vec::new(), Vec::new());
        for (theta, x) in theta.iter().zip(x.iter()).step_by(relevance::step(x.len())) {
            prior.expect_inside(theta)?;
            let first = z.len();
            z.resize(first + theta.len(), 0.0);
            self.to_z(prior, theta, &mut z[first..]);
            features.extend(self.bent_features(x.iter().copied()));
        }
        let features = Rows::new("x", &features, x.columns())?;
        Ok(relevance::factors(features, Rows::new("theta", &z, theta.columns())?))
    }

    /// By how much the features of x differ from `other`: units of a centre, or the logarithm of a scale, whichever is
    /// more. Coordinates in which θ differs have nothing in common.
    pub fn distance(&self, other: &Self) -> f64 {
        if self.theta != other.theta || !self.x.is_alike(&other.x) {
            return f64::INFINITY;
        }
        let (a, b) = (&self.x, &other.x);
        let x = (0..a.mean.len()).map(|i| {
            let shift = (a.mean[i] - b.mean[i]).abs() / b.scale[i];
            let relevance = (self.relevance(i) / other.relevance(i)).ln().abs();
            shift.max((a.scale[i] / b.scale[i]).ln().abs()).max(relevance)
        });
        x.fold(0.0, f64::max)
    }

    /// Offset and slope of these features of x as functions of `new` ones, around the new centre: exact without a bend.
    pub fn features_by(&self, new: &Self) -> (Vec<f64>, Vec<f64>) {
        let pairs = self.x.mean.iter().zip(&self.x.scale).zip(new.x.mean.iter().zip(&new.x.scale));
        let features = pairs.enumerate().map(|(i, ((mean, scale), (new_mean, new_scale)))| {
            let shift = (new_mean - mean) / scale;
            let slope = self.bent_slope(shift) * new_scale / scale / new.relevance(i);
            (self.relevance(i) * self.bent(shift), self.relevance(i) * slope)
        });
        features.unzip()
    }

    /// Whether these are coordinates of θ and x of these dimensions: what a file says must be checked.
    pub fn fit(&self, theta_dim: usize, x_dim: usize) -> bool {
        let relevance = self.relevance.iter().all(|r| r.is_finite() && *r > 0.0)
            && [0, x_dim].contains(&self.relevance.len());
        self.theta.is_valid(theta_dim) && self.x.is_valid(x_dim) && relevance
    }

    /// Number of features of x.
    pub fn x_dim(&self) -> usize {
        self.x.mean.len()
    }

    /// The factor of a feature.
    fn relevance(&self, i: usize) -> f64 {
        self.relevance.get(i).copied().unwrap_or(1.0)
    }

    /// Whether z covers the prior's support and nothing else.
    pub fn is_unbounded(&self) -> bool {
        self.space == Space::Unbounded
    }

    /// z of a θ inside the prior's support; returns log |dθ/dz|.
    pub fn to_z(&self, prior: &Prior, theta: &[f64], z: &mut [f64]) -> f64 {
        let log_jacobian = match self.space {
            Space::Unbounded => prior.unbounded(theta, z),
            Space::Bounded => {
                z.copy_from_slice(theta);
                0.0
            }
        };
        z.iter_mut().zip(&self.theta.mean).for_each(|(z, mean)| *z -= mean);
        self.theta.factor.solve_lower(z);
        log_jacobian + self.theta.factor.log_volume()
    }

    /// log p of a z: the density that z has if its θ has this prior.
    pub(crate) fn log_prior(&self, prior: &Prior, z: &[f64]) -> f64 {
        let mut v = z.to_vec();
        self.theta.factor.multiply(&mut v);
        v.iter_mut().zip(&self.theta.mean).for_each(|(v, mean)| *v += mean);
        let log_density = match self.space {
            Space::Unbounded => prior.log_density_unbounded(&v),
            Space::Bounded => prior.log_density(&v),
        };
        log_density + self.theta.factor.log_volume()
    }

    /// θ of a z; returns log |dθ/dz|.
    pub fn to_theta(&self, prior: &Prior, z: &[f64], theta: &mut [f64]) -> f64 {
        let log_jacobian = self.theta.factor.log_volume();
        let mut v = z.to_vec();
        self.theta.factor.multiply(&mut v);
        v.iter_mut().zip(&self.theta.mean).for_each(|(v, mean)| *v += mean);
        match self.space {
            Space::Unbounded => log_jacobian + prior.bounded(&v, theta),
            Space::Bounded => {
                theta.copy_from_slice(&v);
                log_jacobian
            }
        }
    }

    /// The features of an x.
    pub fn features<'a>(
        &'a self,
        x: impl Iterator<Item = f64> + 'a,
    ) -> impl Iterator<Item = f32> + 'a {
        self.bent_features(x).enumerate().map(|(i, f)| (self.relevance(i) * f) as f32)
    }

    /// The features of an x with noise on its scaled summaries.
    pub(crate) fn noisy_features<'a>(
        &'a self,
        x: impl Iterator<Item = f64> + 'a,
        noise: impl Iterator<Item = f64> + 'a,
    ) -> impl Iterator<Item = f32> + 'a {
        let noisy = move |(i, (x, e)): (usize, (f64, f64))| {
            (self.relevance(i) * self.bent(self.x.scaled(i, x) + e)) as f32
        };
        x.zip(noise).enumerate().map(noisy)
    }

    /// Summaries, scaled and bent.
    fn bent_features<'a>(
        &'a self,
        x: impl Iterator<Item = f64> + 'a,
    ) -> impl Iterator<Item = f64> + 'a {
        x.enumerate().map(|(i, x)| self.bent(self.x.scaled(i, x)))
    }

    /// y = b asinh(v / b), and beyond [`FAR`] the logarithm of that, sign(y) (FAR + ln(1 + |y| − FAR)): networks learn
    /// little else where some inputs are hundreds of units.
    fn bent(&self, v: f64) -> f64 {
        let Some(b) = self.bend else { return v };
        let (y, far) = (b * (v / b).asinh(), self.far.unwrap_or(f64::INFINITY));
        if y.abs() <= far { y } else { (far + (y.abs() - far).ln_1p()).copysign(y) }
    }

    /// Its slope, 1 / √(1 + (v / b)²), and 1 / (1 + |y| − FAR) of it beyond.
    fn bent_slope(&self, v: f64) -> f64 {
        let Some(b) = self.bend else { return 1.0 };
        let slope = 1.0 / (v / b).hypot(1.0);
        let beyond = b * (v / b).asinh().abs() - self.far.unwrap_or(f64::INFINITY);
        slope / (1.0 + beyond.max(0.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::problem::prior::Marginal;
    use crate::rng::{Purpose, Streams};

    fn prior() -> Prior {
        Prior::new([
            ("a", Marginal::Uniform { low: -2.0, high: 5.0 }),
            ("b", Marginal::LogNormal { mean: 0.5, sd: 0.7 }),
        ])
        .unwrap()
    }

    fn coordinates(space: Space, bend: Option<f64>) -> Coordinates {
        let (prior, streams) = (prior(), Streams::new(1).simulations(Purpose::Parameters, 0));
        let theta = prior.sample_rows(500, &streams, 1);
        // The newest round: a tenth as wide.
        let newest: Vec<f64> =
            theta.iter().enumerate().map(|(i, t)| t / 10.0 + (1 + i % 2) as f64).collect();
        let rows = |data| Rows::new("theta", data, 2).unwrap();
        let (theta_by, x) = (Scale::First, Scale::Newest);
        let config =
            CoordinateConfig { space, theta: theta_by, x, bend, tolerance: 0.0, relevance: false };
        let (first, newest) = (rows(&theta), rows(&newest));
        let rounds =
            Rounds { x_o: &[1.1, 2.2], first: (first, first), newest, pool: (first, newest) };
        Coordinates::of(&config, &prior, &rounds).unwrap()
    }

    /// θ → z → θ is the identity, and the Jacobian is that of finite differences, near the centre and far away.
    #[test]
    fn the_map_is_a_bijection_with_the_right_jacobian() {
        let prior = prior();
        for (space, bend) in
            [(Space::Unbounded, Some(3.0)), (Space::Unbounded, None), (Space::Bounded, Some(2.0))]
        {
            let map = coordinates(space, bend);
            for theta in [[1.1, 2.2], [-1.9, 0.01], [4.9, 40.0]] {
                let (mut z, mut back) = ([0.0; 2], [0.0; 2]);
                let log_jacobian = map.to_z(&prior, &theta, &mut z);
                let log_prior = prior.log_density(&theta) + log_jacobian;
                assert!((map.log_prior(&prior, &z) - log_prior).abs() < 1e-9, "{theta:?}");
                let log_jacobian_back = map.to_theta(&prior, &z, &mut back);
                assert!((log_jacobian - log_jacobian_back).abs() < 1e-9);
                assert!(theta.iter().zip(back).all(|(a, b)| (a - b).abs() < 1e-9 * a.abs()));
                let h = 1e-5;
                let slope = |i: usize| {
                    let mut ends = [[0.0; 2]; 2];
                    for (end, sign) in ends.iter_mut().zip([-1.0, 1.0]) {
                        let mut z = z;
                        z[i] += sign * h;
                        map.to_theta(&prior, &z, end);
                    }
                    [0, 1].map(|k| (ends[1][k] - ends[0][k]) / (2.0 * h))
                };
                let (a, b) = (slope(0), slope(1));
                let log_det = (a[0] * b[1] - a[1] * b[0]).abs().ln();
                assert!((log_det - log_jacobian).abs() < 1e-6, "{log_det} {log_jacobian}");
            }
        }
    }

    #[test]
    fn the_newest_round_has_unit_scale_and_the_rest_stays_near() {
        let map = coordinates(Space::Unbounded, Some(3.0));
        let far: Vec<f32> = map.features([1e9, -1e9].into_iter()).collect();
        assert!(far.iter().all(|v| v.abs() < 100.0), "{far:?}");
        assert!(map.distance(&map) == 0.0);
        assert!(map.distance(&coordinates(Space::Unbounded, None)) == 0.0);
        assert!(map.distance(&Coordinates::plain(Space::Unbounded, 2, 2)) > 1.0);
    }

    /// By all rounds, every column has mean 0 and variance 1.
    #[test]
    fn all_rounds_have_unit_scale() {
        let (prior, streams) = (prior(), Streams::new(2).simulations(Purpose::Parameters, 0));
        let theta = prior.sample_rows(300, &streams, 1);
        let rows = Rows::new("theta", &theta, 2).unwrap();
        let config = CoordinateConfig {
            space: Space::Bounded,
            theta: Scale::Pool,
            x: Scale::Pool,
            bend: None,
            tolerance: 0.0,
            relevance: false,
        };
        let first = Rows::new("theta", &theta[..20], 2).unwrap();
        let rounds =
            Rounds { x_o: &[1.1, 2.2], first: (first, first), newest: first, pool: (rows, rows) };
        let map = Coordinates::of(&config, &prior, &rounds).unwrap();
        let mut sums = [[0.0; 2]; 4];
        for row in rows.iter() {
            let mut z = [0.0; 2];
            map.to_z(&prior, &[row[0], row[1]], &mut z);
            let x: Vec<f64> = map.features(row.iter().copied()).map(f64::from).collect();
            for i in 0..2 {
                for (sum, v) in sums.iter_mut().zip([z[i], z[i] * z[i], x[i], x[i] * x[i]]) {
                    sum[i] += v / 300.0;
                }
            }
        }
        let [z, z2, x, x2] = sums;
        // A millionth is added to variances; features are f32.
        assert!(z.iter().chain(&x).all(|mean| mean.abs() < 1e-5), "{sums:?}");
        assert!(z2.iter().chain(&x2).all(|square| (square - 1.0).abs() < 1e-5), "{sums:?}");
        let other = Rounds { pool: (first, first), ..rounds };
        let other = Coordinates::of(&config, &prior, &other).unwrap();
        assert_eq!(map.distance(&other), f64::INFINITY);
    }

    #[test]
    fn numbers_beyond_any_range_stay_numbers() {
        let (map, prior) = (coordinates(Space::Unbounded, Some(3.0)), prior());
        let mut theta = [0.0; 2];
        let log_jacobian = map.to_theta(&prior, &[1e30, -1e30], &mut theta);
        assert!(!theta[0].is_nan() && !log_jacobian.is_nan());
    }

    /// Old features as functions of new ones: the same at the new centre, and to first order around it.
    #[test]
    fn features_are_told_by_newer_ones() {
        for bend in [None, Some(3.0)] {
            let old = coordinates(Space::Unbounded, bend);
            let mut new = old.clone();
            for (i, (mean, scale)) in [(2.0, 0.05), (-7.0, 0.3)].into_iter().enumerate() {
                (new.x.mean[i], new.x.scale[i]) = (mean, scale);
            }
            let old = Coordinates { relevance: vec![0.5, 1.0], ..old };
            new.relevance = vec![0.2, 0.8];
            let (offset, slope) = old.features_by(&new);
            let h = 1e-3;
            for i in 0..2 {
                let at = |v: f64| {
                    let x = (0..2)
                        .map(|j| new.x.mean[j] + if i == j { v * new.x.scale[j] } else { 0.0 });
                    f64::from(old.features(x).nth(i).unwrap())
                };
                assert!((at(0.0) - offset[i]).abs() < 1e-5 * (1.0 + offset[i].abs()));
                // Features are f32 of size 100 at most: rounding of 1e-5 over 2h, and over the relevance.
                let found = (at(h) - at(-h)) / (2.0 * h * new.relevance(i));
                assert!((found - slope[i]).abs() < 3e-2, "{found} {}", slope[i]);
            }
        }
    }
}

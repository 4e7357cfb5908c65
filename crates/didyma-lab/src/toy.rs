//! Problems whose loss and gradient are known exactly, to check estimators against.
//!
//! Everything is Gaussian: prior N(0, I), proposal p̃ = N(μ, s² I), x | θ ~ N(θ, σ² I), and
//! q(θ | x) = N(ax + b, e^(2c) I) with parameters φ = (a, b, c). With v = e^(2c), m = ax + b,
//! Λ = 1/v − 1 + 1/s² and η = m/v + μ/s², per dimension,
//!
//! ```text
//! log g(x, θ) = − c − (θ − m)²/(2v) + θ²/2
//! log Z(x) = log E_p̃ g = − c − log s − ½ log Λ − m²/(2v) − μ²/(2s²) + η²/(2Λ)
//! ```
//!
//! and the loss L(φ) = E[−log g + log Z] is the mean of quadratics in Gaussian variables.

use didyma::Result;
use didyma::estimator::{Draws, Group, Plan, Source, reduce, reduce_loss};
use didyma::levels::Objective;
use didyma::math::{Dual, Net, normal_quantile};
use didyma::rng::Stream;
use rand::RngExt;
use rand_distr::{Distribution, StandardNormal};

/// A Gaussian problem, and the φ near the truth at which it is looked at.
///
/// ```
/// use didyma::estimator::{Estimator, Method, Settings};
/// use didyma::levels::measure_batches;
/// use didyma::rng::Streams;
/// use didyma_lab::Toy;
///
/// let toy = Toy::named("benign").unwrap();
/// let settings = Settings { top: Some(10), ..Settings::paper(Method::Rr) };
/// let mut estimator = Estimator::new(settings)?;
/// let found = measure_batches(&mut toy.queries(), &mut estimator, 100, 50, Streams::new(1))?;
/// // Unbiased: within four standard errors of the exact loss.
/// assert!((found.loss.mean - toy.loss()).abs() < 4.0 * found.loss.error);
/// # Ok::<(), didyma::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Toy {
    /// Its name.
    pub name: &'static str,
    /// Number of dimensions, all alike.
    pub dim: usize,
    /// μ, mean of the proposal.
    pub mu: f64,
    /// s, its standard deviation.
    pub s: f64,
    /// σ, noise of the simulator.
    pub sigma: f64,
    /// φ minus the truth.
    pub offset: [f64; 3],
}

/// The toys, from one with all the moments one could wish for to one whose levels hardly fall.
pub const TOYS: [Toy; 4] = [
    Toy { name: "benign", dim: 1, mu: 0.3, s: 0.8, sigma: 3.0, offset: [0.02, 0.03, -0.1] },
    Toy { name: "mild", dim: 1, mu: 0.3, s: 0.9, sigma: 1.5, offset: [0.02, 0.03, 0.1] },
    Toy { name: "sharp", dim: 1, mu: 0.5, s: 0.7, sigma: 0.3, offset: [0.02, 0.03, 0.1] },
    Toy { name: "four-d", dim: 4, mu: 0.3, s: 0.7, sigma: 0.5, offset: [0.02, 0.03, 0.1] },
];

impl Toy {
    /// The toy of this name.
    pub fn named(name: &str) -> Option<Self> {
        TOYS.into_iter().find(|toy| toy.name == name)
    }

    /// The same problem, looked at where φ minus the truth is this.
    pub fn at(&self, offset: [f64; 3]) -> Self {
        Self { offset, ..*self }
    }

    /// φ = (a, b, c): the posterior's a = 1/(1 + σ²), b = 0, c = ½ log(σ²/(1 + σ²)), and the offset.
    pub fn phi(&self) -> [f64; 3] {
        let precision = 1.0 + self.sigma * self.sigma;
        let truth = [1.0 / precision, 0.0, self.sigma.ln() - 0.5 * precision.ln()];
        std::array::from_fn(|i| truth[i] + self.offset[i])
    }

    /// The exact loss L(φ).
    pub fn loss(&self) -> f64 {
        self.expected_loss(self.phi().map(Dual::from)).value
    }

    /// Its exact gradient.
    pub fn gradient(&self) -> [f64; 3] {
        self.slopes(|phi| self.expected_loss(phi))
    }

    /// Exact loss of one query: −log g(x, θ) + log Z(x), and its gradient.
    pub fn exact_query(&self, theta: &[f64], x: &[f64]) -> (f64, [f64; 3]) {
        let loss = |phi: [Dual; 3]| {
            let pairs = theta.iter().zip(x);
            pairs.map(|(&theta, &x)| self.log_z(phi, x) - log_g(phi, theta, x)).sum::<Dual>()
        };
        (loss(self.phi().map(Dual::from)).value, self.slopes(loss))
    }

    /// Queries with inner samples of the proposal.
    pub fn queries(&self) -> ToyQueries {
        let (theta, x) = (Vec::new(), Vec::new());
        ToyQueries { toy: *self, phi: self.phi(), mixture: false, nets: false, theta, x }
    }

    fn slopes(&self, function: impl Fn([Dual; 3]) -> Dual) -> [f64; 3] {
        std::array::from_fn(|i| {
            let mut phi = self.phi().map(Dual::from);
            phi[i].slope = 1.0;
            function(phi).slope
        })
    }

    /// E over θ ~ p̃ and x | θ, from the first two moments of m and θ − m.
    fn expected_loss(&self, [a, b, c]: [Dual; 3]) -> Dual {
        let Self { mu, s, sigma, .. } = *self;
        let v = (c * 2.0).exp();
        let error = Dual::from(1.0) - a;
        let error_squared =
            (error * mu - b).square() + error.square() * s * s + (a * sigma).square();
        let outer = c + error_squared / (v * 2.0) - 0.5 * (mu * mu + s * s);
        let m = a * mu + b;
        let m_squared = m.square() + a.square() * (s * s + sigma * sigma);
        (outer + self.log_z_of(c, m, m_squared)) * self.dim as f64
    }

    /// log Z(x) of one dimension.
    fn log_z(&self, [a, b, c]: [Dual; 3], x: f64) -> Dual {
        let m = a * x + b;
        self.log_z_of(c, m, m.square())
    }

    /// log Z as a function of m and m², in which it is linear: so it serves for their means too.
    fn log_z_of(&self, c: Dual, m: Dual, m_squared: Dual) -> Dual {
        let (mu, s) = (self.mu, self.s);
        let v = (c * 2.0).exp();
        let lambda = Dual::from(1.0) / v - 1.0 + 1.0 / (s * s);
        let (shift, precision) = (mu / (s * s), Dual::from(1.0) / v);
        let eta_squared =
            m_squared * precision.square() + m * precision * (2.0 * shift) + shift * shift;
        -c - s.ln() - lambda.ln() * 0.5 - m_squared / (v * 2.0) - mu * shift * 0.5
            + eta_squared / (lambda * 2.0)
    }

    /// log p̃(θ) − log r(θ | x), for r = ½ p̃ + ½ q.
    fn mixture_log_weight(&self, phi: [f64; 3], theta: &[f64], x: &[f64]) -> f64 {
        let [a, b, c] = phi;
        let log_ratio: f64 = theta
            .iter()
            .zip(x)
            .map(|(&theta, &x)| {
                let (to_q, to_p) = ((theta - a * x - b) / c.exp(), (theta - self.mu) / self.s);
                0.5 * (to_p * to_p - to_q * to_q) + self.s.ln() - c
            })
            .sum();
        // log p̃/r = −log(½ + ½ q/p̃), without overflow.
        std::f64::consts::LN_2 - log_ratio.max(0.0) - (-log_ratio.abs()).exp().ln_1p()
    }
}

fn log_g([a, b, c]: [Dual; 3], theta: f64, x: f64) -> Dual {
    -c - (-(a * x) - b + theta).square() / ((c * 2.0).exp() * 2.0) + 0.5 * theta * theta
}

/// Queries of a toy: outer and inner samples are drawn as they are asked for, each a row of its own.
#[derive(Clone, Debug)]
pub struct ToyQueries {
    toy: Toy,
    phi: [f64; 3],
    mixture: bool,
    nets: bool,
    theta: Vec<f64>,
    x: Vec<f64>,
}

impl ToyQueries {
    /// Inner samples of the mixture r = ½ p̃ + ½ q(· | x), with log-weights log p̃ − log r.
    pub fn of_mixture(self) -> Self {
        Self { mixture: true, ..self }
    }

    /// Nets of Sobol's sequence for blocks, which must be powers of two.
    pub fn by_nets(self) -> Self {
        Self { nets: true, ..self }
    }

    /// Moves to another φ, given as φ minus the truth; rows given out so far stay.
    pub fn move_to(&mut self, offset: [f64; 3]) {
        self.toy = self.toy.at(offset);
        self.phi = self.toy.phi();
    }

    /// θ of a row.
    pub fn theta(&self, row: u32) -> &[f64] {
        &self.theta[row as usize * self.toy.dim..][..self.toy.dim]
    }

    /// x of an outer row.
    pub fn x(&self, row: u32) -> &[f64] {
        &self.x[row as usize * self.toy.dim..][..self.toy.dim]
    }

    /// Loss of a plan on rows given out, without the gradient: several times as fast as [`Objective::evaluate`].
    pub fn loss(&self, plan: &Plan) -> f64 {
        let [a, b, c] = self.phi;
        let (precision, log_scale) = (0.5 * (-2.0 * c).exp(), c * self.toy.dim as f64);
        let mut values = Vec::new();
        let group_loss = |group: &Group| {
            let x = self.x(group.context);
            let log_g = |&atom: &u32| {
                let pairs = self.theta(atom).iter().zip(x);
                let square =
                    |(t, x): (&f64, &f64)| 0.5 * t * t - precision * (t - a * x - b).powi(2);
                pairs.map(square).sum::<f64>() - log_scale
            };
            values.clear();
            values.extend(plan.atoms(group).iter().map(log_g));
            reduce_loss(plan, group, values[0], &mut values)
        };
        plan.groups().iter().map(group_loss).sum()
    }

    /// log g of an atom, and its gradient for precision 1/v: (θ−m)x/v, (θ−m)/v, (θ−m)²/v − 1, summed over dimensions.
    fn log_g(&self, row: u32, context: u32, precision: f64) -> (f64, [f64; 3]) {
        let [a, b, c] = self.phi;
        let mut log_g = -c * self.toy.dim as f64;
        let mut slopes = [0.0; 3];
        for (theta, x) in self.theta(row).iter().zip(self.x(context)) {
            let error = theta - a * x - b;
            log_g += 0.5 * (theta * theta - error * error * precision);
            slopes[0] += error * precision * x;
            slopes[1] += error * precision;
            slopes[2] += error * error * precision - 1.0;
        }
        (log_g, slopes)
    }
}

impl Source for ToyQueries {
    fn largest_block(&self) -> usize {
        usize::MAX
    }

    fn draw(&mut self, own: u32, count: usize, rng: &mut Stream, draws: &mut Draws) {
        let dim = self.toy.dim;
        if self.nets {
            let net = Net::new(dim + 1, rng);
            for index in 0..count as u32 {
                let mut point = net.point(index);
                let from_q = point.next().is_some_and(|coin| self.mixture && coin >= 0.5);
                self.push(own, from_q, point.map(normal_quantile), draws);
            }
            return;
        }
        for _ in 0..count {
            let from_q = self.mixture && rng.random();
            let normal = StandardNormal.sample_iter(&mut *rng).take(dim);
            self.push(own, from_q, normal, draws);
        }
    }

    fn outer_log_weight(&self, own: u32) -> f64 {
        self.log_weight(own, own)
    }
}

impl ToyQueries {
    /// Adds an inner sample for the outer row `own`: of q or of p̃, made of normal numbers.
    fn push(
        &mut self,
        own: u32,
        from_q: bool,
        normal: impl Iterator<Item = f64>,
        draws: &mut Draws,
    ) {
        let Toy { dim, mu, s, .. } = self.toy;
        let [a, b, c] = self.phi;
        let row = (self.theta.len() / dim) as u32;
        for (k, z) in normal.enumerate() {
            let theta = if from_q { a * self.x(own)[k] + b + c.exp() * z } else { mu + s * z };
            self.theta.push(theta);
        }
        draws.push_weighted(row, self.log_weight(row, own));
    }

    fn log_weight(&self, row: u32, context: u32) -> f64 {
        if !self.mixture {
            return 0.0;
        }
        self.toy.mixture_log_weight(self.phi, self.theta(row), self.x(context))
    }
}

impl Objective for ToyQueries {
    fn gradient_len(&self) -> usize {
        3
    }

    fn outer(&mut self, queries: usize, rng: &mut Stream, rows: &mut Vec<u32>) {
        let Toy { dim, mu, s, sigma, .. } = self.toy;
        let mut normal = || -> f64 { StandardNormal.sample(rng) };
        self.theta.clear();
        self.x.clear();
        for _ in 0..queries * dim {
            let theta = mu + s * normal();
            self.theta.push(theta);
            self.x.push(theta + sigma * normal());
        }
        rows.clear();
        rows.extend(0..queries as u32);
    }

    fn evaluate(&mut self, plan: &Plan, gradient: &mut [f64]) -> Result<f64> {
        gradient.fill(0.0);
        let mut loss = 0.0;
        let precision = (-2.0 * self.phi[2]).exp();
        for group in plan.groups() {
            let atoms = plan.atoms(group);
            let log_g = |&atom: &u32| self.log_g(atom, group.context, precision);
            let (mut values, slopes): (Vec<f64>, Vec<[f64; 3]>) = atoms.iter().map(log_g).unzip();
            let mut d = vec![0.0; atoms.len()];
            loss += reduce(plan, group, values[0], &mut values, &mut d);
            for (d, slope) in d.iter().zip(&slopes) {
                gradient.iter_mut().zip(slope).for_each(|(sum, slope)| *sum += d * slope);
            }
        }
        Ok(loss)
    }
}

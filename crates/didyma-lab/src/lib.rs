//! Studies of estimators, and the paper made anew.
//!
//! [`Toy`]s are Gaussian problems whose loss and gradient are exact. On them, [`ComplexityStudy`] measures the cost of
//! an error and [`ConvergenceStudy`] the gap that a descent ends with. A [`Shape`] is synthetic training work of the
//! size of a task of the paper; a [`StepBench`] times it. A [`Reproduction`] makes the paper's tables and figures anew by
//! runs of the program `didyma`. The library knows nothing of this crate.
//!
//! ```
//! use didyma::estimator::{Method, Settings};
//! use didyma::levels::LevelStudy;
//! use didyma::rng::Streams;
//! use didyma_lab::Toy;
//!
//! // The differences between levels fall as theory says: their mean by 2 a level, their mean square by 4.
//! let toy = Toy::named("benign").unwrap();
//! let study = LevelStudy { budget: 100_000, ..LevelStudy::new(Settings::paper(Method::Tgrr)) };
//! let report = study.run(&mut toy.queries(), Streams::new(1))?;
//! assert!((report.r2 - 2.0).abs() < 0.3);
//! # Ok::<(), didyma::Error>(())
//! ```

#![deny(missing_docs)]

mod bench;
mod complexity;
mod convergence;
mod reproduce;
mod toy;
mod workload;

pub use bench::{StepBench, StepReport};
pub use complexity::{ComplexityReport, ComplexityStudy, CostPoint, Scheme, SchemeCost, Sizes};
pub use convergence::{
    ConvergenceReport, ConvergenceStudy, Curve, Descent, GapPoint, MethodConvergence, Verdict,
};
pub use reproduce::{Console, Failure, Reproduction, Target, Work};
pub use toy::{TOYS, Toy, ToyQueries};
pub use workload::{BATCH, POOL, SHAPES, Shape, Steps, plans};

//! Simulators, and running many simulations on all cores.

mod piece;
pub mod program;
mod run;

pub(crate) use piece::outcome;
pub use piece::{Failure, Piece, Work};
pub(crate) use run::simulate_once;
pub use run::{Progress, Simulations, simulate, simulate_numbered};

/// Largest magnitude of a summary, observed or simulated. Two summaries differ by 2e150 at most, of which the square is
/// 4e300: below 1.8e308, the largest number, with room for a sum over 4e7 of them.
pub const LARGEST_SUMMARY: f64 = 1e150;

use crate::error::{Error, Result as Checked};
use crate::rng::SimulationStream;
use std::fmt;
use std::sync::mpsc::Sender;

/// A model that can be simulated: parameters θ in, summaries x out.
///
/// All randomness comes from `rng`, so that a simulation can be repeated from its index alone.
///
/// ```
/// use didyma::rng::SimulationStream;
/// use didyma::simulator::{SimulationFailed, Simulator};
/// use rand::RngExt;
///
/// /// How long a machine runs; one that never starts is a failure.
/// struct Machine;
///
/// impl Simulator for Machine {
///     fn theta_dim(&self) -> usize {
///         1
///     }
///     fn x_dim(&self) -> usize {
///         1
///     }
///     fn simulate(
///         &self,
///         theta: &[f64],
///         rng: &mut SimulationStream,
///         x: &mut [f64],
///     ) -> Result<(), SimulationFailed> {
///         if rng.random::<f64>() < 0.01 {
///             return Err(SimulationFailed("it did not start".to_owned()));
///         }
///         x[0] = -rng.random::<f64>().ln() / theta[0];
///         Ok(())
///     }
/// }
/// ```
///
/// A function that cannot fail is a simulator by [`from_fn`].
pub trait Simulator: Send + Sync {
    /// Number of parameters.
    fn theta_dim(&self) -> usize;

    /// Number of summaries.
    fn x_dim(&self) -> usize;

    /// Simulates once. A failure is data: it is recorded with its reason, and the run goes on. So is a
    /// summary that is not finite.
    fn simulate(
        &self,
        theta: &[f64],
        rng: &mut SimulationStream,
        x: &mut [f64],
    ) -> Result<(), SimulationFailed>;

    /// How many simulations may be under way at once, where it is not as many as there are threads.
    fn workers(&self) -> Option<usize> {
        None
    }

    /// How many simulations are best made together: with more than one, [`Self::simulate_batch`] is given up to so many.
    fn batch(&self) -> usize {
        1
    }

    /// Simulates several times. What becomes of one may not depend on the others.
    fn simulate_batch(&self, batch: &mut [Job]) {
        for Job { theta, rng, x, result } in batch {
            *result = simulate_once(self, theta, rng, x);
        }
    }

    /// True: nobody waits for the simulations under way any more, and they are to end as soon as they can, by
    /// whatever failure. False: back to work.
    fn interrupt(&self, now: bool) {
        let _ = now;
    }

    /// Who makes all simulations in a way of its own, rather than one or a batch at a time on threads of ours.
    fn crew(&self) -> Option<&dyn Crew> {
        None
    }

    /// An error if it cannot simulate at all: asked before the first simulation, so that none is counted as failed.
    fn ready(&self) -> Checked<()> {
        Ok(())
    }

    /// What this process lacks, if simulations have failed by that since [`Self::interrupt`] was last called with false.
    /// Then they say nothing of the simulator: none is counted as failed, and the run stops with this error.
    fn lack(&self) -> Option<Error> {
        None
    }
}

/// Hands every call on to the simulator behind a pointer.
macro_rules! simulator_behind {
    ($pointer:ty) => {
        impl<T: Simulator + ?Sized> Simulator for $pointer {
            fn theta_dim(&self) -> usize {
                (**self).theta_dim()
            }
            fn x_dim(&self) -> usize {
                (**self).x_dim()
            }
            fn simulate(
                &self,
                theta: &[f64],
                rng: &mut SimulationStream,
                x: &mut [f64],
            ) -> Result<(), SimulationFailed> {
                (**self).simulate(theta, rng, x)
            }
            fn workers(&self) -> Option<usize> {
                (**self).workers()
            }
            fn batch(&self) -> usize {
                (**self).batch()
            }
            fn simulate_batch(&self, batch: &mut [Job]) {
                (**self).simulate_batch(batch);
            }
            fn interrupt(&self, now: bool) {
                (**self).interrupt(now);
            }
            fn crew(&self) -> Option<&dyn Crew> {
                (**self).crew()
            }
            fn ready(&self) -> Checked<()> {
                (**self).ready()
            }
            fn lack(&self) -> Option<Error> {
                (**self).lack()
            }
        }
    };
}
simulator_behind!(&T);
simulator_behind!(Box<T>);

/// Makes many simulations where it likes: in an interpreter, on a cluster.
pub trait Crew: Sync {
    /// Makes these simulations in any order, and sends them as they are done. Returns when all are, or soon after
    /// [`Work::stopped`]; what was not sent by then counts as not made.
    fn make(&self, work: &Work, done: &Sender<Piece>);
}

/// The simulator of a run that a program made with a function of its own, which is not here: sizes, and no simulations.
#[derive(Clone, Copy, Debug)]
pub struct Elsewhere {
    /// Number of parameters.
    pub theta_dim: usize,
    /// Number of summaries.
    pub x_dim: usize,
}

impl Simulator for Elsewhere {
    fn theta_dim(&self) -> usize {
        self.theta_dim
    }

    fn x_dim(&self) -> usize {
        self.x_dim
    }

    fn simulate(
        &self,
        _theta: &[f64],
        _rng: &mut SimulationStream,
        _x: &mut [f64],
    ) -> Result<(), SimulationFailed> {
        Err(SimulationFailed("the simulator is a function of another program".to_owned()))
    }

    fn ready(&self) -> Checked<()> {
        Err(Error::NoSimulator)
    }
}

/// A simulation of a batch.
#[derive(Clone, Debug)]
pub struct Job {
    /// Its parameters.
    pub theta: Vec<f64>,
    /// Its random stream.
    pub rng: SimulationStream,
    /// Room for its summaries, NaN before.
    pub x: Vec<f64>,
    /// Whether there are any.
    pub result: Result<(), SimulationFailed>,
}

/// A simulator made of a function that cannot fail.
///
/// ```
/// use didyma::simulator::{Simulator, from_fn};
/// use rand::RngExt;
/// // The number of heads in ten throws of a coin.
/// let coin = from_fn(1, 1, |theta, rng, x| {
///     x[0] = (0..10).filter(|_| rng.random::<f64>() < theta[0]).count() as f64;
/// });
/// assert_eq!((coin.theta_dim(), coin.x_dim()), (1, 1));
/// ```
pub fn from_fn<F>(theta_dim: usize, x_dim: usize, function: F) -> FromFn<F>
where
    F: Fn(&[f64], &mut SimulationStream, &mut [f64]) + Send + Sync,
{
    FromFn { theta_dim, x_dim, function }
}

/// See [`from_fn`].
#[derive(Clone, Copy, Debug)]
pub struct FromFn<F> {
    theta_dim: usize,
    x_dim: usize,
    function: F,
}

impl<F> Simulator for FromFn<F>
where
    F: Fn(&[f64], &mut SimulationStream, &mut [f64]) + Send + Sync,
{
    fn theta_dim(&self) -> usize {
        self.theta_dim
    }

    fn x_dim(&self) -> usize {
        self.x_dim
    }

    fn simulate(
        &self,
        theta: &[f64],
        rng: &mut SimulationStream,
        x: &mut [f64],
    ) -> Result<(), SimulationFailed> {
        (self.function)(theta, rng, x);
        Ok(())
    }
}

/// Why a simulation gave no summaries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SimulationFailed(pub String);

impl fmt::Display for SimulationFailed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

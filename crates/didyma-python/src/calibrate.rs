//! The calibration of a run: what its own simulations say of its posterior, or new ones.

use crate::arrays::whole;
use crate::errors::{Kind, python};
#[cfg(unix)]
use crate::infer::Held;
use crate::infer::batch_of;
use crate::runner::Runner;
use crate::wait::wait;
use didyma::report::{CalibrationReport, Overview, write_page};
use didyma::run::{CalibrationRequest, Calibrator, Manifest};
use didyma::{Event, Observer, parallel};
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;
use std::ops::ControlFlow;
use std::path::PathBuf;

/// Fewest new simulations that say anything, and most that fit into a machine.
const SIMULATIONS: std::ops::RangeInclusive<usize> = 20..=10_000_000;

/// What a call asks for.
pub struct Call<'a, 'py> {
    pub simulator: Option<&'a Bound<'py, PyAny>>,
    pub simulations: Option<&'a Bound<'py, PyAny>>,
    pub executor: Option<&'a Bound<'py, PyAny>>,
    pub request: CalibrationRequest,
    pub retry_failed: bool,
    /// Whether a page is written, as into a directory that stays.
    pub page: bool,
}

/// Breaks when the caller wants the work to stop.
struct Stopping<F>(F);

impl<F: Fn() -> bool> Observer for Stopping<F> {
    fn notice(&mut self, _event: &Event) -> didyma::Result<ControlFlow<()>> {
        Ok(if (self.0)() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    }
}

impl Call<'_, '_> {
    /// How many new simulations, if any.
    fn count(&self, manifest: &Manifest) -> PyResult<Option<usize>> {
        let count = whole::<usize>("simulations", self.simulations)?;
        let refused = |text: String| Err(Kind::Input.error(text));
        match (count, self.simulator.is_some(), batch_of(manifest).is_some()) {
            (Some(count), ..) if !SIMULATIONS.contains(&count) => refused(format!(
                "simulations is {count}, too few or too many to say anything: give between {} and {}",
                SIMULATIONS.start(),
                SIMULATIONS.end()
            )),
            (Some(count), false, true) => refused(format!(
                "simulator is missing: the run is of a Python function; give it as result.calibrate(simulator, simulations={count})"
            )),
            (_, true, false) => {
                refused("simulator was given, but the run knows its own: leave it out".to_owned())
            }
            (None, true, true) => refused(
                "simulations is missing: say how many new ones the simulator is to make".to_owned(),
            ),
            _ => Ok(count),
        }
    }

    /// Calibrates the run in a directory.
    pub fn answer(
        self,
        py: Python<'_>,
        path: PathBuf,
        manifest: Manifest,
    ) -> PyResult<(CalibrationReport, Overview)> {
        let count = self.count(&manifest)?;
        let task = manifest.task().map_err(python)?;
        let dims = (task.problem.prior().dim(), task.problem.observation().len());
        let Self { simulator, executor, request, retry_failed, page, .. } = self;
        let running = Runner {
            executor,
            vectorized: None,
            batch_size: None,
            progress: false,
            began: batch_of(&manifest),
        };
        let mut caller = running.caller(py, simulator, task.problem.prior(), dims.1)?;
        let mut calibrator = wait(py, move || Calibrator::open(&path, request, parallel::cores()))?;
        #[cfg(unix)]
        let _held = Held::new(py, calibrator.run())?;
        let (asks, stopped) = (
            caller.function.is_some(),
            "stopped; all new simulations so far are stored, and the same call continues",
        );
        let found = caller.answer(py, stopped, move |link| {
            if retry_failed {
                calibrator.forget_failures()?;
            }
            if let Some(count) = count {
                let mut observer = Stopping(|| link.is_stopped());
                let made = match asks {
                    true => calibrator.simulate(&link.simulator(dims), count, &mut observer)?,
                    false => calibrator.simulate(task.problem.simulator(), count, &mut observer)?,
                };
                if made.is_break() {
                    return Ok(None);
                }
            }
            let made = calibrator.stored()?;
            let findings = calibrator.finish()?;
            if page {
                // A calibration is not lost because a page about the run cannot be written.
                let _ = write_page(&findings);
            }
            Ok(Some((CalibrationReport::new(&findings, made)?, Overview::of(&findings)?)))
        })?;
        found.ok_or_else(|| PyKeyboardInterrupt::new_err(stopped))
    }
}

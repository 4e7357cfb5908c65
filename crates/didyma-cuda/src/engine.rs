//! The engine on a GPU: a step is a plan on its way to the device and one graph of kernels, and nobody waits for it.

use crate::kernel::{Backend, bytes_of};
use crate::programs::Programs;
use crate::resident::{Resident, STATE, Task};
use didyma::estimator::Plan;
use didyma::training::{AdamConfig, Engine, EngineState};
use didyma::{Dataset, Error, Result, SplineFlow};
use std::cell::Cell;
use std::sync::Arc;

/// Trains a flow on a GPU; the result is the same bytes on every run on the same kind of GPU.
#[derive(Debug)]
pub(crate) struct CudaEngine {
    flow: SplineFlow,
    resident: Resident,
    adam: AdamConfig,
    /// Rows of the dataset.
    rows: usize,
    /// Rows of the dataset that have an x: the first ones.
    contexts: usize,
    /// Steps that were asked for, less those that came to nothing because one before them diverged.
    steps: Cell<u64>,
    /// Steps before those that the device's notes are about.
    noted_before: Cell<u64>,
}

/// What the device says of the steps since it was last asked.
struct Told {
    loss_sum: f64,
    losses: u64,
    diverged: Option<Error>,
    loss: f64,
}

impl CudaEngine {
    pub fn new(
        backend: &Arc<dyn Backend>,
        programs: &Arc<Programs>,
        flow: SplineFlow,
        params: Vec<f32>,
        data: &Dataset,
        adam: AdamConfig,
    ) -> Result<Self> {
        adam.check()?;
        flow.check_params(&params)?;
        flow.check_dims(data.theta(), data.x())?;
        let mut resident = Resident::new(backend, programs, &flow)?;
        resident.keep(|buffers| &mut buffers.theta, data.theta().data())?;
        resident.keep(|buffers| &mut buffers.x, data.x().data())?;
        resident.keep(|buffers| &mut buffers.log_prior, data.log_prior())?;
        let (rows, contexts) = (data.len(), data.x().len());
        let (steps, noted_before) = (Cell::new(0), Cell::new(0));
        let mut engine = Self { flow, resident, adam, rows, contexts, steps, noted_before };
        engine.restore(&EngineState::fresh(params))?;
        Ok(engine)
    }

    /// Reads the device's notes; forgets a failure, or else, if asked to, all of them.
    fn told(&self, forget: bool) -> Result<Told> {
        let Resident { buffers, queue, .. } = &self.resident;
        let mut state = [0u64; STATE];
        buffers.state.get(&**queue, &mut state)?;
        let [sum_bits, losses, reason, value, loss] = state;
        let [loss_sum, value, loss] = [sum_bits, value, loss].map(f64::from_bits);
        let diverged = (reason != 0).then(|| {
            let what = if reason == 1 { "loss" } else { "gradient norm" };
            // Only steps that succeed have a loss.
            self.steps.set(self.noted_before.get() + losses);
            Error::Diverged { what, value, step: self.steps.get() + 1 }
        });
        if diverged.is_some() {
            queue.write(buffers.state.memory(), bytes_of(&[sum_bits, losses, 0, 0, 0]))?;
        } else if forget {
            queue.write(buffers.state.memory(), &[0; 8 * STATE])?;
            self.noted_before.set(self.steps.get());
        }
        Ok(Told { loss_sum, losses, diverged, loss })
    }

    /// One step, kernel by kernel: the seconds of each.
    pub fn time_step(&mut self, plan: &Plan) -> Result<Vec<(&'static str, f64)>> {
        plan.check(self.rows, self.contexts)?;
        let numbers = self.adam.numbers(self.steps.get() + 1, 0.0, 0.0);
        self.resident.time(Task::Step, plan, &numbers, self.adam.clip)
    }

    /// Bytes of device memory.
    pub fn bytes(&self) -> usize {
        self.resident.bytes()
    }

    /// Floating-point operations a second that the device can do at most.
    pub fn peak_flops(&self) -> Result<f64> {
        self.resident.peak().map(|multiply_adds| 2.0 * multiply_adds)
    }

    fn refuse_divergence(&self) -> Result<()> {
        self.told(false)?.diverged.map_or(Ok(()), Err)
    }
}

impl Engine for CudaEngine {
    fn step(&mut self, plan: &Plan, learning_rate: f64) -> Result<()> {
        AdamConfig::check_rate(learning_rate)?;
        plan.check(self.rows, self.contexts)?;
        let numbers = self.adam.numbers(self.steps.get() + 1, learning_rate, 0.0);
        self.resident.run(Task::Step, plan, &numbers, self.adam.clip)?;
        self.steps.set(self.steps.get() + 1);
        Ok(())
    }

    fn take_loss(&mut self) -> Result<f64> {
        let told = self.told(true)?;
        match told.diverged {
            Some(error) => Err(error),
            None => Ok(told.loss_sum / told.losses as f64),
        }
    }

    fn evaluate(&mut self, plan: &Plan) -> Result<f64> {
        plan.check(self.rows, self.contexts)?;
        let numbers = self.adam.numbers(1, 0.0, 0.0);
        self.resident.run(Task::Loss, plan, &numbers, self.adam.clip)?;
        let told = self.told(false)?;
        match told.diverged {
            Some(error) => Err(error),
            None if told.loss.is_finite() => Ok(told.loss),
            None => {
                Err(Error::Diverged { what: "loss", value: told.loss, step: self.steps.get() + 1 })
            }
        }
    }

    fn read_params(&self, to: &mut [f32]) -> Result<()> {
        assert_eq!(to.len(), self.flow.params_len(), "room for every parameter");
        self.refuse_divergence()?;
        self.resident.buffers.params.get(&*self.resident.queue, to)
    }

    fn read_state(&self, to: &mut EngineState) -> Result<()> {
        self.refuse_divergence()?;
        let Resident { buffers, queue, .. } = &self.resident;
        for (from, numbers) in [
            (&buffers.params, &mut to.params),
            (&buffers.first_moments, &mut to.m),
            (&buffers.second_moments, &mut to.v),
        ] {
            numbers.resize(self.flow.params_len(), 0.0);
            from.get(&**queue, numbers)?;
        }
        to.steps = self.steps.get();
        Ok(())
    }

    fn restore(&mut self, state: &EngineState) -> Result<()> {
        for numbers in [&state.params, &state.m, &state.v] {
            self.flow.check_params(numbers)?;
        }
        self.resident.keep(|buffers| &mut buffers.first_moments, &state.m)?;
        self.resident.keep(|buffers| &mut buffers.second_moments, &state.v)?;
        let Resident { buffers, queue, .. } = &self.resident;
        queue.write(buffers.state.memory(), &[0; 8 * STATE])?;
        self.resident.set_params(&state.params)?;
        self.steps.set(state.steps);
        self.noted_before.set(state.steps);
        Ok(())
    }
}

//! Device memory: pieces that grow, and all of those that kernels are given.

use crate::kernel::{Job, Memory, Plain, Queue, bytes_of, bytes_of_mut};
use didyma::Result;

/// Device memory that grows with what it is asked to hold; what it held is lost then.
#[derive(Debug, Default)]
pub(crate) struct Buffer {
    memory: Option<Memory>,
}

impl Buffer {
    /// Whether there is less room than that.
    pub fn lacks(&self, bytes: usize) -> bool {
        bytes > self.bytes()
    }

    /// Room for so many bytes.
    pub fn reserve(&mut self, queue: &dyn Queue, bytes: usize) -> Result<()> {
        if self.lacks(bytes) {
            // Freed first: twice the memory may not be there. Some room to grow, as random plans do.
            let spare = if self.memory.take().is_some() { bytes / 4 } else { 0 };
            self.memory = Some(queue.allocate((bytes + spare).next_multiple_of(256))?);
        }
        Ok(())
    }

    pub fn put<T: Plain>(&mut self, queue: &dyn Queue, numbers: &[T]) -> Result<()> {
        self.reserve(queue, size_of_val(numbers))?;
        queue.write(self.memory(), bytes_of(numbers))
    }

    pub fn get<T: Plain>(&self, queue: &dyn Queue, numbers: &mut [T]) -> Result<()> {
        queue.read(self.memory(), bytes_of_mut(numbers))
    }

    pub fn memory(&self) -> &Memory {
        self.memory.as_ref().expect("reserved before")
    }

    fn address(&self) -> u64 {
        self.memory.as_ref().map_or(0, |memory| memory.address)
    }

    fn bytes(&self) -> usize {
        self.memory.as_ref().map_or(0, |memory| memory.bytes)
    }
}

/// All device memory.
#[derive(Debug, Default)]
pub(crate) struct Buffers {
    pub theta: Buffer,
    pub x: Buffer,
    pub log_prior: Buffer,
    pub plan: Buffer,
    pub params: Buffer,
    pub first_moments: Buffer,
    pub second_moments: Buffer,
    pub images: [Buffer; 3],
    pub places: Buffer,
    pub contexts: Buffer,
    pub row_group: Buffer,
    pub tape: Buffer,
    pub log_q: Buffer,
    pub z: Buffer,
    pub weights: Buffer,
    pub d_log_q: Buffer,
    pub group_losses: Buffer,
    pub gradients: Buffer,
    pub gradient: Buffer,
    pub norms: Buffer,
    pub state: Buffer,
}

impl Buffers {
    /// Their addresses.
    pub fn job(&self) -> Job {
        let b = self;
        Job {
            theta: b.theta.address(),
            x: b.x.address(),
            log_prior: b.log_prior.address(),
            plan: b.plan.address(),
            params: b.params.address(),
            first_moments: b.first_moments.address(),
            second_moments: b.second_moments.address(),
            forward_image: b.images[0].address(),
            backward_image: b.images[1].address(),
            context_image: b.images[2].address(),
            places: b.places.address(),
            contexts: b.contexts.address(),
            row_group: b.row_group.address(),
            tape: b.tape.address(),
            log_q: b.log_q.address(),
            z: b.z.address(),
            weights: b.weights.address(),
            d_log_q: b.d_log_q.address(),
            group_losses: b.group_losses.address(),
            gradients: b.gradients.address(),
            gradient: b.gradient.address(),
            norms: b.norms.address(),
            state: b.state.address(),
            log_constant: 0.0,
        }
    }

    /// Bytes of device memory.
    pub fn bytes(&self) -> usize {
        let b = self;
        let all = [
            &b.theta,
            &b.x,
            &b.log_prior,
            &b.plan,
            &b.params,
            &b.first_moments,
            &b.second_moments,
            &b.places,
            &b.contexts,
            &b.row_group,
            &b.tape,
            &b.log_q,
            &b.z,
            &b.weights,
            &b.d_log_q,
            &b.group_losses,
            &b.gradients,
            &b.gradient,
            &b.norms,
            &b.state,
        ];
        all.into_iter().chain(&b.images).map(Buffer::bytes).sum()
    }
}

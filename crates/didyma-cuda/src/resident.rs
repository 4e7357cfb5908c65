//! A flow that lives on the device: parameters, images, and the buffers that a plan's rows pass through.

use crate::buffers::{Buffer, Buffers};
use crate::kernel::{Backend, Job, Kernel, Launch, Plain, Program, Queue, Recording, fault};
use crate::packing::Packing;
use crate::programs::Programs;
use crate::shape::{
    BACKWARD_THREADS, FORWARD_THREADS, GRADIENTS, PEAK_LENGTH, SUM_THREADS, Shape, Tiling,
};
use didyma::estimator::Plan;
use didyma::kernel::AdamStep;
use didyma::{Advice, FlowConfig, Remedy, Result, SplineFlow};
use std::collections::HashMap;
use std::sync::Arc;

/// What is done with a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Task {
    /// Log-densities of all rows.
    Densities,
    /// From the base's draws to θ.
    Transport,
    /// The loss.
    Loss,
    /// A step of the optimiser.
    Step,
}

/// A flow on a device, with everything that kernels are given.
#[derive(Debug)]
pub(crate) struct Resident {
    backend: Arc<dyn Backend>,
    programs: Arc<Programs>,
    pub queue: Box<dyn Queue>,
    pub shape: Shape,
    pub buffers: Buffers,
    /// The most rows and groups that each task had, which its recordings serve.
    sizes: HashMap<Task, (usize, usize)>,
    /// What was recorded with the buffers where they are.
    recorded: HashMap<(Task, Tiling), Box<dyn Recording>>,
    /// Whether the images hold the parameters.
    published: bool,
    log_constant: f64,
}

/// Threads that prepare a layer for a group: one for each number, of the paper's flow.
const PREPARE_THREADS: usize = 160;

/// Numbers of `struct State` of the kernels.
pub(crate) const STATE: usize = 5;

/// The tile for a plan of so many rows; an error if the device has no room for any tile of such a flow.
pub(crate) fn tiling(backend: &dyn Backend, shape: &Shape, rows: usize) -> Result<Tiling> {
    let limit = backend.shared_memory();
    let fits = |t| shape.forward_shared(t).max(shape.backward_shared(t)) <= limit;
    Tiling::of(rows, fits).ok_or_else(|| {
        let FlowConfig { theta_dim, x_dim, units, bins, .. } = shape.config;
        fault(
            &backend.name(),
            Advice::new(
            format!(
                "a flow of {theta_dim} parameters and {x_dim} summaries with flow.units {units} and flow.bins {bins} does not \
                 fit its {} KB of shared memory: make flow.units smaller, give fewer summaries, or",
                limit >> 10
            ), Remedy::Cpu),
        )
    })
}

impl Resident {
    pub fn new(
        backend: &Arc<dyn Backend>,
        programs: &Arc<Programs>,
        flow: &SplineFlow,
    ) -> Result<Self> {
        let shape = Shape::new(flow);
        tiling(&**backend, &shape, 1)?;
        let queue = backend.queue()?;
        let mut buffers = Buffers::default();
        for (image, floats) in buffers.images.iter_mut().zip(shape.image_sizes()) {
            image.reserve(&*queue, 4 * floats)?;
        }
        buffers.places.put(&*queue, &shape.places())?;
        buffers.state.reserve(&*queue, 8 * STATE)?;
        let dim = flow.config().theta_dim as f64;
        let log_constant = -0.5 * dim * std::f64::consts::TAU.ln();
        Ok(Self {
            backend: backend.clone(),
            programs: programs.clone(),
            queue,
            shape,
            buffers,
            sizes: HashMap::new(),
            recorded: HashMap::new(),
            published: false,
            log_constant,
        })
    }

    fn tiling(&self, rows: usize) -> Result<Tiling> {
        tiling(&*self.backend, &self.shape, rows)
    }

    /// Takes parameters over.
    pub fn set_params(&mut self, params: &[f32]) -> Result<()> {
        self.published = false;
        self.keep(|buffers| &mut buffers.params, params)
    }

    /// Copies the parameters into the images, if they came from the host.
    fn publish(&mut self, program: &Arc<dyn Program>) -> Result<()> {
        if !self.published {
            let launch = Launch {
                kernel: Kernel::PublishAll,
                blocks: self.shape.params.div_ceil(SUM_THREADS),
                threads: SUM_THREADS,
                shared: 0,
            };
            self.queue.launch(program, &[launch], &self.job())?;
            self.published = true;
        }
        Ok(())
    }

    /// Copies numbers to one of the buffers.
    pub fn keep<T: Plain>(
        &mut self,
        buffer: impl Fn(&mut Buffers) -> &mut Buffer,
        numbers: &[T],
    ) -> Result<()> {
        let buffer = buffer(&mut self.buffers);
        if buffer.lacks(size_of_val(numbers)) {
            self.recorded.clear();
        }
        buffer.put(&*self.queue, numbers)
    }

    /// Does this with a plan, some time soon.
    pub fn run(&mut self, task: Task, plan: &Plan, adam: &AdamStep, clip: f64) -> Result<()> {
        let (tiling, program) = self.send(task, plan, adam, clip)?;
        let key = (task, tiling);
        if !self.recorded.contains_key(&key) {
            let launches = self.launches(task, tiling);
            let recording = self.queue.record(&program, &launches, &self.job())?;
            self.recorded.insert(key, recording);
        }
        self.recorded[&key].replay()
    }

    /// Does this with a plan, kernel by kernel: the seconds of each.
    pub fn time(
        &mut self,
        task: Task,
        plan: &Plan,
        adam: &AdamStep,
        clip: f64,
    ) -> Result<Vec<(&'static str, f64)>> {
        let (tiling, program) = self.send(task, plan, adam, clip)?;
        let launches = self.launches(task, tiling);
        let seconds = self.queue.time(&program, &launches, &self.job())?;
        Ok(launches.iter().map(|launch| launch.kernel.name()).zip(seconds).collect())
    }

    /// Sends a plan, after making room for what is done with it. Returns its tile and the kernels for it.
    fn send(
        &mut self,
        task: Task,
        plan: &Plan,
        adam: &AdamStep,
        clip: f64,
    ) -> Result<(Tiling, Arc<dyn Program>)> {
        let tiling = self.tiling(plan.pairs())?;
        let program = self.programs.get(&*self.backend, &self.shape, tiling)?;
        self.publish(&program)?;
        let packing = Packing::of(plan);
        self.make_room(task, plan, packing.bytes, tiling)?;
        let room = self.buffers.plan.memory();
        self.queue.send(room, room.bytes, &mut |to| {
            packing.write(plan, adam, clip, to);
            packing.bytes
        })?;
        Ok((tiling, program))
    }

    /// Multiply-adds a second, in registers.
    pub fn peak(&self) -> Result<f64> {
        const BLOCKS: usize = 132 * 16;
        let program = self.programs.get(&*self.backend, &self.shape, self.tiling(1)?)?;
        let launch = Launch { kernel: Kernel::Peak, blocks: BLOCKS, threads: 256, shared: 0 };
        let job = Job { log_constant: 0.5, ..self.job() };
        let seconds = self.queue.time(&program, &[launch; 5], &job)?;
        let fastest = seconds.into_iter().fold(f64::INFINITY, f64::min);
        Ok((BLOCKS * 256 * 16 * PEAK_LENGTH) as f64 / fastest)
    }

    /// Makes room for what is done with a plan. Recordings are forgotten before anything moves: if there is no room, none
    /// is left that knows of memory which is gone.
    fn make_room(&mut self, task: Task, plan: &Plan, packed: usize, tiling: Tiling) -> Result<()> {
        let before = self.sizes.get(&task).copied().unwrap_or_default();
        let (rows, groups) = (before.0.max(plan.pairs()), before.1.max(plan.groups().len()));
        let Self { queue, buffers, shape, recorded, .. } = self;
        // A smaller tile has more padding rows: room for the plan at hand, in its own tiles.
        let tiles = plan.pairs().div_ceil(tiling.rows);
        let steps = usize::from(task == Task::Step);
        let losses = usize::from(matches!(task, Task::Loss | Task::Step));
        let draws = usize::from(task == Task::Transport);
        let needs = [
            (&mut buffers.plan, packed),
            (&mut buffers.contexts, 4 * groups * shape.group_floats()),
            (&mut buffers.row_group, 4 * rows),
            (&mut buffers.log_q, 4 * rows),
            (&mut buffers.z, draws * 4 * rows * shape.config.theta_dim),
            (&mut buffers.weights, losses * 4 * rows),
            (&mut buffers.d_log_q, losses * 16 * rows),
            (&mut buffers.group_losses, losses * 8 * groups),
            (&mut buffers.tape, steps * 4 * tiles * shape.tape_floats(tiling)),
            (&mut buffers.gradients, steps * 4 * tiles.min(GRADIENTS) * shape.gradient_stride()),
            (&mut buffers.gradient, steps * 4 * shape.params),
            (&mut buffers.norms, steps * 8 * shape.norms()),
        ];
        if (rows, groups) != before || needs.iter().any(|(buffer, bytes)| buffer.lacks(*bytes)) {
            recorded.clear();
        }
        needs.into_iter().try_for_each(|(buffer, bytes)| buffer.reserve(&**queue, bytes))?;
        self.sizes.insert(task, (rows, groups));
        Ok(())
    }

    /// The kernels of a task. Grids are as large as the buffers: blocks without work end at once.
    fn launches(&self, task: Task, tiling: Tiling) -> Vec<Launch> {
        let shape = &self.shape;
        let (rows, groups) = self.sizes[&task];
        let tiles = rows.div_ceil(tiling.rows);
        let updates = shape.params.div_ceil(SUM_THREADS);
        let launch = |kernel, blocks, threads, shared| Launch { kernel, blocks, threads, shared };
        let forward = |kernel| {
            launch(kernel, tiles.min(8 * GRADIENTS), FORWARD_THREADS, shape.forward_shared(tiling))
        };
        let prepare =
            launch(Kernel::Prepare, shape.config.layers * (1 + groups), PREPARE_THREADS, 0);
        let reduce = launch(Kernel::Reduce, groups, 32, 0);
        match task {
            Task::Densities => vec![prepare, forward(Kernel::Forward)],
            Task::Transport => vec![prepare, forward(Kernel::Inverse)],
            Task::Loss => {
                let total = launch(Kernel::TotalLoss, 1, SUM_THREADS, 0);
                vec![prepare, forward(Kernel::Forward), reduce, total]
            }
            Task::Step => {
                let shared = shape.backward_shared(tiling);
                vec![
                    prepare,
                    forward(Kernel::ForwardWithTape),
                    reduce,
                    launch(Kernel::Backward, tiles.min(GRADIENTS), BACKWARD_THREADS, shared),
                    launch(Kernel::SumGradients, shape.norms() + 1, SUM_THREADS, 0),
                    launch(Kernel::Adam, updates, SUM_THREADS, 0),
                ]
            }
        }
    }

    fn job(&self) -> Job {
        Job { log_constant: self.log_constant, ..self.buffers.job() }
    }

    /// Bytes of device memory.
    pub fn bytes(&self) -> usize {
        self.buffers.bytes()
    }
}

//! A stream of work on a GPU: copies, launches, and graphs of them.

#![allow(unsafe_code)]

use super::gpu::advice;
use super::{Job, Launch, Memory, Program, Queue, Recording, fault};
use cudarc::driver::{
    CudaEvent, CudaFunction, CudaGraph, CudaSlice, CudaStream, DevicePtr, DriverError,
    PinnedHostSlice, result, sys,
};
use didyma::Result;
use std::any::Any;
use std::sync::{Arc, Mutex, PoisonError};

/// Steps whose plans may be on their way to the device at once.
const AHEAD: usize = 8;

/// Kernels of a module.
#[derive(Debug)]
pub(super) struct Compiled {
    pub functions: Vec<CudaFunction>,
}

impl Program for Compiled {
    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// Pinned memory that plans travel from, used in turns.
#[derive(Debug, Default)]
struct Staging {
    slots: Vec<(PinnedHostSlice<u8>, CudaEvent)>,
    next: usize,
}

/// A stream of work.
#[derive(Debug)]
pub(super) struct Stream {
    device: String,
    stream: Arc<CudaStream>,
    staging: Mutex<Staging>,
}

impl Stream {
    pub fn new(device: String, stream: Arc<CudaStream>) -> Self {
        Self { device, stream, staging: Mutex::default() }
    }

    fn check<T>(&self, result: std::result::Result<T, DriverError>) -> Result<T> {
        result.map_err(|error| fault(&self.device, advice(error)))
    }

    fn start(
        &self,
        program: &Compiled,
        launches: &[Launch],
        job: &Job,
    ) -> std::result::Result<(), DriverError> {
        for launch in launches {
            let function = &program.functions[launch.kernel as usize];
            let mut arguments = [std::ptr::from_ref(job).cast_mut().cast()];
            // SAFETY: every kernel takes one job by value, whose addresses are those of memory that the caller keeps.
            unsafe {
                result::launch_kernel(
                    function.cu_function(),
                    (launch.blocks as u32, 1, 1),
                    (launch.threads as u32, 1, 1),
                    launch.shared as u32,
                    self.stream.cu_stream(),
                    &mut arguments,
                )?;
            }
        }
        Ok(())
    }

    /// Pinned memory, and the event of the last copy from it.
    fn staging(&self, bytes: usize) -> Result<(PinnedHostSlice<u8>, CudaEvent)> {
        let context = self.stream.context();
        // SAFETY: it is filled before anybody reads it.
        let memory = unsafe { context.alloc_pinned_with_flags(bytes, 0) };
        let mut memory = self.check(memory)?;
        self.check(memory.as_mut_slice())?.fill(0);
        let flags = sys::CUevent_flags::CU_EVENT_BLOCKING_SYNC;
        Ok((memory, self.check(context.new_event(Some(flags)))?))
    }

    fn bind(&self) -> Result<()> {
        self.check(self.stream.context().bind_to_thread())
    }
}

fn compiled(program: &Arc<dyn Program>) -> &Compiled {
    program.as_any().downcast_ref().expect("made by this backend")
}

impl Queue for Stream {
    fn allocate(&self, bytes: usize) -> Result<Memory> {
        let slice: CudaSlice<u8> = self.check(self.stream.alloc_zeros(bytes.max(16)))?;
        let address = slice.device_ptr(&self.stream).0;
        Ok(Memory { address, bytes, _owner: Box::new(slice) })
    }

    fn write(&self, to: &Memory, bytes: &[u8]) -> Result<()> {
        assert!(bytes.len() <= to.bytes, "room for what is written");
        self.bind()?;
        // SAFETY: the memory is that large; from pageable memory the driver copies before it returns.
        self.check(unsafe {
            result::memcpy_htod_async(to.address, bytes, self.stream.cu_stream())
        })?;
        self.check(self.stream.synchronize())
    }

    fn send(
        &self,
        to: &Memory,
        bytes: usize,
        fill: &mut dyn FnMut(&mut [u8]) -> usize,
    ) -> Result<()> {
        assert!(bytes <= to.bytes, "room for what is sent");
        self.bind()?;
        let mut staging = self.staging.lock().unwrap_or_else(PoisonError::into_inner);
        if staging.slots.first().is_none_or(|(memory, _)| memory.len() < bytes) {
            self.check(self.stream.synchronize())?;
            staging.slots = (0..AHEAD).map(|_| self.staging(bytes)).collect::<Result<_>>()?;
        }
        let slot = staging.next % AHEAD;
        staging.next = slot + 1;
        let (memory, event) = &mut staging.slots[slot];
        self.check(event.synchronize())?;
        let host = self.check(memory.as_mut_slice())?;
        let used = fill(&mut host[..bytes]);
        // SAFETY: the memory is pinned, lives as long as the queue, and is not touched before the event.
        self.check(unsafe {
            result::memcpy_htod_async(to.address, &host[..used], self.stream.cu_stream())
        })?;
        self.check(event.record(&self.stream))
    }

    fn read(&self, from: &Memory, bytes: &mut [u8]) -> Result<()> {
        assert!(bytes.len() <= from.bytes, "no more than there is");
        self.bind()?;
        // SAFETY: the memory is that large, and the stream is waited for before the bytes are used.
        self.check(unsafe {
            result::memcpy_dtoh_async(bytes, from.address, self.stream.cu_stream())
        })?;
        self.check(self.stream.synchronize())
    }

    fn launch(&self, program: &Arc<dyn Program>, launches: &[Launch], job: &Job) -> Result<()> {
        self.bind()?;
        self.check(self.start(compiled(program), launches, job))
    }

    fn time(&self, program: &Arc<dyn Program>, launches: &[Launch], job: &Job) -> Result<Vec<f64>> {
        self.bind()?;
        let event = || {
            let flags = Some(sys::CUevent_flags::CU_EVENT_DEFAULT);
            self.check(self.stream.record_event(flags))
        };
        let mut events = vec![event()?];
        for launch in launches {
            self.check(self.start(compiled(program), &[*launch], job))?;
            events.push(event()?);
        }
        self.check(self.stream.synchronize())?;
        let milliseconds = events.windows(2).map(|pair| self.check(pair[0].elapsed_ms(&pair[1])));
        milliseconds.map(|ms| ms.map(|ms| f64::from(ms) / 1e3)).collect()
    }

    fn record(
        &self,
        program: &Arc<dyn Program>,
        launches: &[Launch],
        job: &Job,
    ) -> Result<Box<dyn Recording>> {
        let mode = sys::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
        self.check(self.stream.begin_capture(mode))?;
        let started = self.start(compiled(program), launches, job);
        let graph = self.stream.end_capture(sys::CUgraphInstantiate_flags(0));
        self.check(started)?;
        let graph = self.check(graph)?.expect("something was captured");
        Ok(Box::new(Graph { graph, device: self.device.clone(), _program: program.clone() }))
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        // Memory is freed after this: nothing may still work on it.
        let _ = self.stream.synchronize();
    }
}

struct Graph {
    graph: CudaGraph,
    device: String,
    _program: Arc<dyn Program>,
}

// SAFETY: a graph is used by one thread at a time: a recording is owned by one engine and not shared.
unsafe impl Send for Graph {}

impl std::fmt::Debug for Graph {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Graph").field("device", &self.device).finish_non_exhaustive()
    }
}

impl Recording for Graph {
    fn replay(&self) -> Result<()> {
        self.graph.launch().map_err(|error| fault(&self.device, advice(error)))
    }
}

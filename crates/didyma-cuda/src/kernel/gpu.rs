//! NVIDIA GPUs: the driver and its run-time compiler, both found when they are needed.

#![allow(unsafe_code)]

use super::{Backend, Job, Kernel, Launch, Memory, Program, Queue, Recording, fault};
use cudarc::driver::sys::{self, CUdevice_attribute as Attribute, CUresult};
use cudarc::driver::{
    CudaContext, CudaEvent, CudaFunction, CudaGraph, CudaSlice, CudaStream, DevicePtr, DeviceRepr,
    DriverError, PinnedHostSlice, result,
};
use cudarc::nvrtc::{CompileError, CompileOptions, Ptx, compile_ptx_with_opts};
use didyma::{Error, Result};
use std::any::Any;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

/// Steps whose plans may be on their way to the device at once.
const AHEAD: usize = 8;

// SAFETY: addresses and a number, laid out as C does.
unsafe impl DeviceRepr for Job {}

/// Why there is no GPU to compute with, as a sentence with a remedy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Missing(pub String);

/// One GPU.
#[derive(Debug)]
pub(crate) struct Gpu {
    context: Arc<CudaContext>,
    name: String,
    capability: (i32, i32),
    shared_memory: usize,
}

/// What the driver can do, as 13000 for CUDA 13.0; why not, if there is none.
pub(crate) fn driver_version() -> std::result::Result<i32, Missing> {
    // SAFETY: it only tries to open the library.
    if !unsafe { sys::is_culib_present() } {
        return Err(Missing(
            "no NVIDIA driver was found (libcuda): install it, or choose --device cpu".to_owned(),
        ));
    }
    let mut version = 0;
    // SAFETY: the library is there, and the pointer is that of a number.
    match unsafe { sys::cuDriverGetVersion(&mut version) } {
        CUresult::CUDA_SUCCESS => Ok(version),
        other => Err(Missing(format!("the NVIDIA driver does not answer ({other:?})"))),
    }
}

/// The run-time compiler's version, as (13, 0); why not, if there is none.
pub(crate) fn compiler_version() -> std::result::Result<(i32, i32), Missing> {
    // SAFETY: it only tries to open the library.
    if !unsafe { cudarc::nvrtc::sys::is_culib_present() } {
        return Err(Missing(
            "NVIDIA's run-time compiler was not found (libnvrtc, of the CUDA toolkit; `pip install \
             nvidia-cuda-nvrtc` has it, too): let LD_LIBRARY_PATH name its folder, or choose --device cpu"
                .to_owned(),
        ));
    }
    let (mut major, mut minor) = (0, 0);
    // SAFETY: the library is there, and the pointers are those of numbers.
    let found = unsafe { cudarc::nvrtc::sys::nvrtcVersion(&mut major, &mut minor) };
    match found {
        cudarc::nvrtc::sys::nvrtcResult::NVRTC_SUCCESS => Ok((major, minor)),
        other => Err(Missing(format!("NVIDIA's run-time compiler does not answer ({other:?})"))),
    }
}

/// GPUs that the driver knows.
pub(crate) fn count() -> std::result::Result<usize, Missing> {
    driver_version()?;
    let none = |error: DriverError| Missing(words(error));
    result::init().map_err(none)?;
    CudaContext::device_count().map(|count| count as usize).map_err(none)
}

impl Gpu {
    /// The GPU of this number.
    pub fn new(number: usize) -> std::result::Result<Self, Missing> {
        let driver = driver_version()?;
        let (major, minor) = compiler_version()?;
        if driver < 1000 * major + 10 * minor {
            return Err(Missing(format!(
                "the NVIDIA driver is for CUDA {}.{}, the run-time compiler of CUDA {major}.{minor}: update the \
                 driver, let LD_LIBRARY_PATH name an older libnvrtc, or choose --device cpu",
                driver / 1000,
                driver % 1000 / 10
            )));
        }
        let missing = |error: DriverError| Missing(words(error));
        if number >= count()? {
            return Err(Missing(
                "the NVIDIA driver knows of no GPU: is CUDA_VISIBLE_DEVICES set? Or choose --device cpu".to_owned(),
            ));
        }
        let context = CudaContext::new(number).map_err(missing)?;
        // SAFETY: every queue has a stream and memory of its own, so that no work needs another's events.
        unsafe { context.disable_event_tracking() };
        let capability = context.compute_capability().map_err(missing)?;
        let name = context.name().map_err(missing)?;
        if capability < (8, 0) {
            return Err(Missing(format!(
                "{name} has compute capability {}.{}, but 8.0 is needed: choose --device cpu",
                capability.0, capability.1
            )));
        }
        let attribute = Attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN;
        let shared_memory = context.attribute(attribute).map_err(missing)? as usize;
        Ok(Self { context, name, capability, shared_memory })
    }

    /// Multiprocessors.
    pub fn multiprocessors(&self) -> usize {
        let attribute = Attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT;
        self.context.attribute(attribute).map_or(0, |count| count as usize)
    }

    /// Compute capability.
    pub fn capability(&self) -> (i32, i32) {
        self.capability
    }

    /// Free and total bytes.
    pub fn memory(&self) -> (usize, usize) {
        self.context.mem_get_info().unwrap_or((0, 0))
    }

    fn error(&self, error: DriverError) -> Error {
        fault(&self.name, words(error))
    }

    /// What the compiler is to write for.
    fn architecture(&self) -> &'static str {
        match self.capability {
            (8, 0) => "compute_80",
            (8, _) => "compute_86",
            (9, _) => "compute_90",
            (10 | 11, _) => "compute_100",
            _ => "compute_120",
        }
    }
}

/// The driver's answers that a user can do something about.
fn words(error: DriverError) -> String {
    match error.0 {
        CUresult::CUDA_ERROR_OUT_OF_MEMORY => {
            "out of memory: close other programs that use this GPU, make train.batch smaller, train fewer seeds \
             together, or choose --device cpu"
                .to_owned()
        }
        CUresult::CUDA_ERROR_UNSUPPORTED_PTX_VERSION => {
            "its driver is older than NVIDIA's run-time compiler: update the driver, let LD_LIBRARY_PATH name an older \
             libnvrtc, or choose --device cpu"
                .to_owned()
        }
        CUresult::CUDA_ERROR_NO_DEVICE => {
            "the NVIDIA driver knows of no GPU: is CUDA_VISIBLE_DEVICES set? Or choose --device cpu".to_owned()
        }
        other => format!(
            "the driver says {other:?}: `didyma resume DIR` goes on from what is saved, with --device cpu if it happens again"
        ),
    }
}

#[derive(Debug)]
struct Compiled {
    functions: Vec<CudaFunction>,
}

impl Program for Compiled {
    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl Backend for Gpu {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn queue(&self) -> Result<Box<dyn Queue>> {
        let stream = self.context.new_stream().map_err(|error| self.error(error))?;
        let staging = Mutex::new(Staging::default());
        Ok(Box::new(Stream { device: self.name.clone(), stream, staging }))
    }

    fn shared_memory(&self) -> usize {
        self.shared_memory
    }

    fn compile(&self, source: &str, shared: usize) -> Result<Arc<dyn Program>> {
        let architecture = self.architecture();
        let ptx = cached(source, architecture, || {
            compile(source, architecture).map_err(|said| {
                let problem =
                    format!("the kernels do not compile here; choose --device cpu. {said}");
                fault(&self.name, problem)
            })
        })?;
        let failed = |error| self.error(error);
        let module = self.context.load_module(ptx).map_err(failed)?;
        let attribute = sys::CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
        let functions = Kernel::ALL.iter().map(|(_, name)| {
            let function = module.load_function(name)?;
            function.set_attribute(attribute, shared as i32)?;
            Ok(function)
        });
        let functions =
            functions.collect::<std::result::Result<_, DriverError>>().map_err(failed)?;
        Ok(Arc::new(Compiled { functions }))
    }
}

/// The kernels in the driver's own language, or what the compiler said.
pub(super) fn compile(
    source: &str,
    architecture: &'static str,
) -> std::result::Result<Ptx, String> {
    let options = CompileOptions {
        arch: Some(architecture),
        options: vec!["--std=c++17".to_owned()],
        ..CompileOptions::default()
    };
    compile_ptx_with_opts(source, options).map_err(|error| match error {
        CompileError::CompileError { log, .. } => log.to_string_lossy().into_owned(),
        other => other.to_string(),
    })
}

/// Kernels that an earlier process compiled, or those of `compile`, which are then kept. Compiling takes seconds.
fn cached(source: &str, architecture: &str, compile: impl FnOnce() -> Result<Ptx>) -> Result<Ptx> {
    let mut hasher = DefaultHasher::new();
    (source, architecture, compiler_version().ok(), env!("CARGO_PKG_VERSION")).hash(&mut hasher);
    let path = cache_folder().map(|folder| folder.join(format!("{:016x}.ptx", hasher.finish())));
    if let Some(found) = path.as_ref().and_then(|path| std::fs::read_to_string(path).ok()) {
        return Ok(Ptx::from_src(found));
    }
    let ptx = compile()?;
    if let Some(path) = path {
        // Whole or not at all, and without it the next process compiles again.
        let beside = path.with_extension(std::process::id().to_string());
        let folder = path.parent().map_or(Ok(()), std::fs::create_dir_all);
        let kept = folder.and_then(|()| std::fs::write(&beside, ptx.to_src()));
        let _ = kept.and_then(|()| std::fs::rename(&beside, &path));
    }
    Ok(ptx)
}

/// Where programs of this user keep what they can make again.
fn cache_folder() -> Option<PathBuf> {
    let named =
        |variable| std::env::var_os(variable).map(PathBuf::from).filter(|p| p.is_absolute());
    let folder =
        named("XDG_CACHE_HOME").or_else(|| named("HOME").map(|home| home.join(".cache")))?;
    Some(folder.join("didyma").join("kernels"))
}

/// Pinned memory that plans travel from, used in turns.
#[derive(Debug, Default)]
struct Staging {
    slots: Vec<(PinnedHostSlice<u8>, CudaEvent)>,
    next: usize,
}

/// A stream of work.
#[derive(Debug)]
struct Stream {
    device: String,
    stream: Arc<CudaStream>,
    staging: Mutex<Staging>,
}

impl Stream {
    fn check<T>(&self, result: std::result::Result<T, DriverError>) -> Result<T> {
        result.map_err(|error| fault(&self.device, words(error)))
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
            staging.slots.clear();
            for _ in 0..AHEAD {
                // SAFETY: every byte is written before it is copied.
                let memory = unsafe { self.stream.context().alloc_pinned_with_flags(bytes, 0) };
                let flags = sys::CUevent_flags::CU_EVENT_BLOCKING_SYNC;
                let event = self.check(self.stream.context().new_event(Some(flags)))?;
                staging.slots.push((self.check(memory)?, event));
            }
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
        self.graph.launch().map_err(|error| fault(&self.device, words(error)))
    }
}

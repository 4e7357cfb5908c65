//! The kernels on the CPU, compiled by the system's C++ compiler: slow, and the same arithmetic.

#![allow(unsafe_code)]

use super::{Backend, Job, Kernel, Launch, Memory, Program, Queue, Recording, fault};
use didyma::Result;
use libloading::Library;
use std::any::Any;
use std::process::Command;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

const NAME: &str = "emulated GPU";
/// As an H200 has.
const SHARED_MEMORY: usize = 227 << 10;

/// Runs kernels on the CPU.
#[derive(Debug)]
pub(crate) struct Emulator;

impl Emulator {
    /// None where there is no C++ compiler.
    pub fn new() -> Option<Self> {
        let found = Command::new("c++").arg("--version").output().is_ok_and(|o| o.status.success());
        found.then_some(Self)
    }
}

#[derive(Debug)]
struct Compiled {
    library: Library,
    /// A library's fibres share static memory: they do one thing at a time.
    alone: Mutex<()>,
}

impl Program for Compiled {
    fn as_any(&self) -> &dyn Any {
        self
    }
}

type Start = unsafe extern "C" fn(blocks: u32, threads: u32, shared: usize, job: *const Job);

impl Backend for Emulator {
    fn name(&self) -> String {
        NAME.to_owned()
    }

    fn queue(&self) -> Result<Box<dyn Queue>> {
        Ok(Box::new(HostQueue))
    }

    fn shared_memory(&self) -> usize {
        SHARED_MEMORY
    }

    fn compile(&self, source: &str, _: &dyn Fn(Kernel) -> usize) -> Result<Arc<dyn Program>> {
        let mut text = format!("{}\n{source}\n", include_str!("cuda/emulator.cu"));
        for (_, name) in Kernel::ALL {
            text += &format!(
                "extern \"C\" void start_{name}(unsigned blocks, unsigned threads, size_t shared, const Job *job) \
                 {{ launch({name}, blocks, threads, shared, *job); }}\n"
            );
        }
        let failed = |error: &dyn std::fmt::Display| fault(NAME, error.to_string());
        let dir = tempfile::tempdir().map_err(|e| failed(&e))?;
        let (code, library) = (dir.path().join("kernels.cpp"), dir.path().join("kernels.so"));
        std::fs::write(&code, text).map_err(|e| failed(&e))?;
        let compiler = Command::new("c++")
            .args(["-std=c++17", "-O1", "-w", "-shared", "-fPIC", "-ffp-contract=off"])
            // Checked, a jump from stack to stack is taken for a mistake.
            .args(["-U_FORTIFY_SOURCE", "-o"])
            .args([&library, &code])
            .output()
            .map_err(|e| failed(&e))?;
        if !compiler.status.success() {
            return Err(failed(&String::from_utf8_lossy(&compiler.stderr)));
        }
        // SAFETY: the library is ours and does nothing when it is loaded.
        let library = unsafe { Library::new(&library) }.map_err(|e| failed(&e))?;
        Ok(Arc::new(Compiled { library, alone: Mutex::new(()) }))
    }
}

#[derive(Debug)]
struct HostQueue;

impl Queue for HostQueue {
    fn allocate(&self, bytes: usize) -> Result<Memory> {
        // Quads of floats are read at once.
        let numbers = vec![0u128; bytes.div_ceil(16).max(1)];
        Ok(Memory { address: numbers.as_ptr() as u64, bytes, _owner: Box::new(numbers) })
    }

    fn write(&self, to: &Memory, bytes: &[u8]) -> Result<()> {
        assert!(bytes.len() <= to.bytes);
        // SAFETY: `allocate` made room for that many bytes.
        unsafe {
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), to.address as *mut u8, bytes.len())
        };
        Ok(())
    }

    fn send(
        &self,
        to: &Memory,
        bytes: usize,
        fill: &mut dyn FnMut(&mut [u8]) -> usize,
    ) -> Result<()> {
        let mut staged = vec![0; bytes];
        let used = fill(&mut staged);
        self.write(to, &staged[..used])
    }

    fn read(&self, from: &Memory, bytes: &mut [u8]) -> Result<()> {
        assert!(bytes.len() <= from.bytes);
        // SAFETY: `allocate` made room for that many bytes.
        unsafe {
            std::ptr::copy_nonoverlapping(
                from.address as *const u8,
                bytes.as_mut_ptr(),
                bytes.len(),
            );
        };
        Ok(())
    }

    fn launch(&self, program: &Arc<dyn Program>, launches: &[Launch], job: &Job) -> Result<()> {
        let program = program.as_any().downcast_ref::<Compiled>().expect("made by this backend");
        let _alone = program.alone.lock().unwrap_or_else(PoisonError::into_inner);
        for launch in launches {
            let name = launch.kernel.name();
            // SAFETY: the kernel was compiled with this signature, and its job's addresses are those of this queue's memory.
            unsafe {
                let start = program.library.get::<Start>(format!("start_{name}").as_bytes());
                let start = start.map_err(|error| fault(NAME, error.to_string()))?;
                start(launch.blocks as u32, launch.threads as u32, launch.shared, job);
            }
        }
        Ok(())
    }

    fn time(&self, program: &Arc<dyn Program>, launches: &[Launch], job: &Job) -> Result<Vec<f64>> {
        let time = |launch| {
            let clock = Instant::now();
            self.launch(program, &[launch], job).map(|()| clock.elapsed().as_secs_f64())
        };
        launches.iter().copied().map(time).collect()
    }

    fn record(
        &self,
        program: &Arc<dyn Program>,
        launches: &[Launch],
        job: &Job,
    ) -> Result<Box<dyn Recording>> {
        Ok(Box::new(Replay { program: program.clone(), launches: launches.to_vec(), job: *job }))
    }
}

#[derive(Debug)]
struct Replay {
    program: Arc<dyn Program>,
    launches: Vec<Launch>,
    job: Job,
}

impl Recording for Replay {
    fn replay(&self) -> Result<()> {
        HostQueue.launch(&self.program, &self.launches, &self.job)
    }
}

//! Compiled kernels, each once for a process.

use crate::kernel::{Backend, Kernel, Program, source};
use crate::shape::{Shape, Tiling};
use didyma::{FlowConfig, Result};
use std::sync::{Arc, Mutex, PoisonError};

/// Kernels that were compiled in this process: seconds that later engines need not spend again.
#[derive(Debug, Default)]
pub(crate) struct Programs {
    compiled: Mutex<Vec<Compiled>>,
}

/// What kernels were compiled for, and they themselves.
type Compiled = (FlowConfig, Tiling, Arc<dyn Program>);

impl Programs {
    pub fn get(
        &self,
        backend: &dyn Backend,
        shape: &Shape,
        tiling: Tiling,
    ) -> Result<Arc<dyn Program>> {
        // Held while compiling: who else needs the same kernels waits for them.
        let mut compiled = self.compiled.lock().unwrap_or_else(PoisonError::into_inner);
        let same =
            |(config, t, _): &&(FlowConfig, Tiling, _)| (config, *t) == (&shape.config, tiling);
        if let Some((.., program)) = compiled.iter().find(same) {
            return Ok(program.clone());
        }
        let shared = |kernel| match kernel {
            Kernel::ForwardWithTape | Kernel::Forward | Kernel::Inverse => {
                shape.forward_shared(tiling)
            }
            Kernel::Backward => shape.backward_shared(tiling),
            _ => 0,
        };
        let program = backend.compile(&source(shape, tiling), &shared)?;
        compiled.push((shape.config.clone(), tiling, program.clone()));
        Ok(program)
    }
}

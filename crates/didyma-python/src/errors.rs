//! Errors of the library as Python exceptions, which `didyma.errors` defines.

use crate::wording::sentence;
use didyma::Error;
use pyo3::prelude::*;

/// The kinds of exceptions; their names are the classes'.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Input,
    Shape,
    Dtype,
    NotFinite,
    Proposal,
    Simulator,
    Executor,
    Sampling,
    Training,
    Run,
    Internal,
}

impl Kind {
    fn class(self) -> &'static str {
        match self {
            Self::Input => "InputError",
            Self::Shape => "ShapeError",
            Self::Dtype => "DtypeError",
            Self::NotFinite => "NotFiniteError",
            Self::Proposal => "ProposalError",
            Self::Simulator => "SimulatorError",
            Self::Executor => "ExecutorError",
            Self::Sampling => "SamplingError",
            Self::Training => "TrainingError",
            Self::Run => "RunError",
            Self::Internal => "InternalError",
        }
    }

    /// An exception of this kind.
    pub fn error(self, text: impl Into<String>) -> PyErr {
        Python::attach(|py| {
            let class = py.import("didyma.errors").and_then(|module| module.getattr(self.class()));
            match class.and_then(|class| class.call1((text.into(),))) {
                Ok(exception) => PyErr::from_value(exception),
                Err(error) => error,
            }
        })
    }

    /// Whether an exception is one of these.
    pub fn is_ours(py: Python<'_>, error: &PyErr) -> bool {
        let class = py.import("didyma.errors").and_then(|module| module.getattr("DidymaError"));
        class.is_ok_and(|class| error.value(py).is_instance(&class).unwrap_or(false))
    }

    /// The same, raised from another exception.
    pub fn from(self, cause: PyErr, text: impl Into<String>) -> PyErr {
        let error = self.error(text);
        Python::attach(|py| error.set_cause(py, Some(cause)));
        error
    }
}

/// The exception for an error of the library.
pub fn python(error: Error) -> PyErr {
    kind(&error).error(sentence(&error))
}

fn kind(error: &Error) -> Kind {
    match error {
        Error::AtRow { error, .. } => kind(error),
        Error::Shape { .. } => Kind::Shape,
        Error::NotFinite { .. } => Kind::NotFinite,
        Error::Proposal { .. } => Kind::Proposal,
        Error::FewSimulations { .. } | Error::FailuresInARow { .. } => Kind::Simulator,
        Error::Leakage { .. } | Error::ThinRegion { .. } => Kind::Sampling,
        Error::InfiniteQuery { .. }
        | Error::BadParams { .. }
        | Error::OutOfRange { .. }
        | Error::Diverged { .. }
        | Error::Device { .. } => Kind::Training,
        Error::ModelFile { .. }
        | Error::NotAFile { .. }
        | Error::Run { .. }
        | Error::Table { .. }
        | Error::Shard { .. }
        | Error::Lack { .. }
        | Error::Io { .. } => Kind::Run,
        Error::NoSuchRow { .. } | Error::EmptyPlan | Error::Threads { .. } => Kind::Internal,
        _ => Kind::Input,
    }
}

/// The exception for a panic, which is a fault of ours.
pub fn panicked(panic: &(dyn std::any::Any + Send)) -> PyErr {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default();
    Kind::Internal.error(format!(
        "this is a fault of Didyma, not yours: {text}; please report it with the call that led to it"
    ))
}

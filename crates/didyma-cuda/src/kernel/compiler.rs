//! NVIDIA's run-time compiler, and what it made before.

use super::discovery::versions;
use cudarc::nvrtc::{CompileError, CompileOptions, Ptx, compile_ptx_with_opts};
use didyma::Result;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::PathBuf;

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
pub(super) fn cached(
    source: &str,
    architecture: &str,
    compile: impl FnOnce() -> Result<Ptx>,
) -> Result<Ptx> {
    let mut hasher = DefaultHasher::new();
    (source, architecture, versions().ok().map(|v| v.compiler), env!("CARGO_PKG_VERSION"))
        .hash(&mut hasher);
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

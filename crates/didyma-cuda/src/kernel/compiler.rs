//! NVIDIA's run-time compiler, and what it made before.

use super::discovery::versions;
use cudarc::nvrtc::{CompileError, CompileOptions, Ptx, compile_ptx_with_opts};
use didyma::Result;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::Write;
use std::path::{Path, PathBuf};

/// What the compiler is told.
const OPTIONS: [&str; 1] = ["--std=c++17"];

/// The kernels in the driver's own language, or what the compiler said.
pub(super) fn compile(
    source: &str,
    architecture: &'static str,
) -> std::result::Result<Ptx, String> {
    let options = CompileOptions {
        arch: Some(architecture),
        options: OPTIONS.map(str::to_owned).to_vec(),
        ..CompileOptions::default()
    };
    compile_ptx_with_opts(source, options).map_err(|error| match error {
        CompileError::CompileError { log, .. } => log.to_string_lossy().into_owned(),
        other => other.to_string(),
    })
}

/// What `load` makes of kernels that an earlier process compiled, or of those of `compile`, which are then kept: compiling
/// takes seconds. A file that cannot be loaded is replaced.
pub(super) fn cached<T>(
    source: &str,
    architecture: &str,
    compile: impl FnOnce() -> Result<Ptx>,
    load: impl Fn(Ptx) -> Result<T>,
) -> Result<T> {
    let mut hasher = DefaultHasher::new();
    let compiler = versions().ok().map(|versions| versions.compiler);
    (source, architecture, OPTIONS, compiler, env!("CARGO_PKG_VERSION")).hash(&mut hasher);
    let path = cache_folder().map(|folder| folder.join(format!("{:016x}.ptx", hasher.finish())));
    let kept = path.as_ref().and_then(|path| std::fs::read_to_string(path).ok());
    let kept = kept.filter(|text| is_whole(text)).map(|text| load(Ptx::from_src(text)));
    if let Some(Ok(loaded)) = kept {
        return Ok(loaded);
    }
    let text = compile()?.to_src();
    let loaded = load(Ptx::from_src(text.clone()))?;
    // Without it, the next process compiles again.
    let _ = path.map(|path| keep(&path, text.as_bytes()));
    Ok(loaded)
}

/// Whether nothing is missing at the end, where a computer that lost power would have left zeros.
fn is_whole(text: &str) -> bool {
    text.trim_end().ends_with('}') && !text.contains('\0')
}

/// Writes a file whole or not at all, whoever else writes it.
fn keep(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let folder = path.parent().unwrap_or(path);
    std::fs::create_dir_all(folder)?;
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    file.write_all(bytes)?;
    file.as_file().sync_all()?;
    file.persist(path).map(drop).map_err(|error| error.error)
}

/// Where programs of this user keep what they can make again.
fn cache_folder() -> Option<PathBuf> {
    let named =
        |variable| std::env::var_os(variable).map(PathBuf::from).filter(|p| p.is_absolute());
    let folder =
        named("XDG_CACHE_HOME").or_else(|| named("HOME").map(|home| home.join(".cache")))?;
    Some(folder.join("didyma").join("kernels"))
}

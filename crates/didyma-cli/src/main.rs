//! The program `didyma`.

use std::process::ExitCode;

fn main() -> ExitCode {
    let program = std::env::current_exe().map_or_else(|_| "didyma".into(), Into::into);
    ExitCode::from(didyma_cli::main(vec![program], std::env::args_os()))
}

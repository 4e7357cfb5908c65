//! The languages that `didyma init` has a worker in.

use clap::ValueEnum;

/// A language to write a simulator in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Language {
    Python,
    R,
    Julia,
    C,
    Rust,
    Shell,
}

impl Language {
    /// The file of its worker.
    pub fn file(self) -> &'static str {
        match self {
            Self::Python => "worker.py",
            Self::R => "worker.R",
            Self::Julia => "worker.jl",
            Self::C => "worker.c",
            Self::Rust => "worker.rs",
            Self::Shell => "worker.sh",
        }
    }

    /// The worker itself.
    pub fn worker(self) -> &'static str {
        match self {
            Self::Python => include_str!("templates/worker.py"),
            Self::R => include_str!("templates/worker.R"),
            Self::Julia => include_str!("templates/worker.jl"),
            Self::C => include_str!("templates/worker.c"),
            Self::Rust => include_str!("templates/worker.rs"),
            Self::Shell => include_str!("templates/worker.sh"),
        }
    }

    /// The command that starts it, as a problem file has it.
    pub fn command(self) -> &'static str {
        match self {
            Self::Python => r#"["python3", "worker.py"]"#,
            Self::R => r#"["Rscript", "--vanilla", "worker.R"]"#,
            Self::Julia => r#"["julia", "--startup-file=no", "worker.jl"]"#,
            Self::C | Self::Rust => r#"["./worker"]"#,
            Self::Shell => r#"["sh", "worker.sh"]"#,
        }
    }

    /// The command that compiles the worker, in its folder.
    pub fn compile(self) -> Option<&'static str> {
        match self {
            Self::C => Some("cc -O2 -o worker worker.c -lm"),
            Self::Rust => Some("rustc -O worker.rs"),
            Self::Python | Self::R | Self::Julia | Self::Shell => None,
        }
    }

    /// Programs that it needs.
    pub fn needs(self) -> &'static [&'static str] {
        match self {
            Self::Python => &["python3"],
            Self::R => &["Rscript"],
            Self::Julia => &["julia"],
            Self::C => &["cc"],
            Self::Rust => &["rustc"],
            Self::Shell => &["sh", "awk"],
        }
    }
}

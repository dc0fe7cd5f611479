//! `cargo xtask learn`: files of the repository that were learned from PyTorch or from a GPU, each with what
//! it is learned from, and the program that writes it.

use std::ffi::OsString;
use std::fs;
use std::path::PathBuf;

use anyhow::{Context as _, Result, ensure};
use clap::ValueEnum;

use crate::workspace::{self, Workspace};

/// What is learned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum LearnedFile {
    /// What each operator saves for the backward pass.
    Derivatives,
    /// The public names of PyTorch.
    Names,
    /// Which second derivatives count as recorded.
    SecondDerivatives,
    /// What NVIDIA's libraries took for recorded operator calls.
    Tables,
    /// The same for recorded programs.
    ProgramTables,
    /// The same for calls that only networks have.
    Networks,
    /// Decision trees for the engine of a convolution.
    Trees,
    /// What cuDNN takes for the layers of known networks.
    Layers,
}

/// How a file is learned.
struct Source {
    /// The file that is written.
    file: &'static str,
    /// The source from which the file is learned.
    from: &'static str,
    /// Where the input comes from. It is too large for the repository unless this text says otherwise.
    input: &'static str,
    /// The arguments of the command.
    arguments: &'static str,
    program: Program,
}

enum Program {
    /// A script of Python. If `prints_the_file`, the output of the script is the file.
    Script { name: &'static str, before: &'static [&'static str], prints_the_file: bool },
    /// The program of recorded operator calls.
    OperatorCalls(&'static [&'static str]),
    /// The example of recorded programs, with what it does.
    Recorded(&'static str),
}

impl LearnedFile {
    fn source(self) -> Source {
        match self {
            Self::Derivatives => Source {
                file: "crates/programs/torch/src/autograd/derivatives.txt",
                from: "the folder torchgen of PyTorch's wheel",
                input: "pip download --no-deps torch==2.11.0, and the wheel's torchgen in a folder",
                arguments: "FOLDER",
                program: Program::Script { name: "derivatives.py", before: &[], prints_the_file: true },
            },
            Self::Names => Source {
                file: "crates/programs/python/lib/torch/_public.py",
                from: "an installed PyTorch 2.11",
                input: "pip install torch==2.11.0; BLOCKYARD_PYTHON names its Python",
                arguments: "",
                program: Program::Script { name: "public_names.py", before: &[], prints_the_file: false },
            },
            Self::SecondDerivatives => Source {
                file: "crates/programs/torch/src/autograd/second_derivatives.txt",
                from: "the recorded programs that are equal whole",
                input: "tests/fixtures/pytorch_programs, which is here",
                arguments: "",
                program: Program::Recorded("update"),
            },
            Self::Tables => Source {
                file: "crates/base/gpus/src/tables.bin",
                from: "recorded operator calls of an H200",
                input: "lines like those of tests/fixtures/operator-calls/sample.jsonl.gz, recorded on an H200",
                arguments: "FILE",
                program: Program::OperatorCalls(&["--keep", "--write-tables"]),
            },
            Self::ProgramTables => Source {
                file: "crates/base/gpus/src/tables.bin",
                from: "recorded programs of an H200, with addresses",
                input: "for each program of tests/fixtures/pytorch_programs a file NAME.json.gz with its trace, recorded on an H200",
                arguments: "FOLDER",
                program: Program::Recorded("learn"),
            },
            Self::Networks => Source {
                file: "crates/base/gpus/src/networks.bin",
                from: "recorded operator calls of an H200",
                input: "lines like those of tests/fixtures/operator-calls/sample.jsonl.gz, recorded on an H200",
                arguments: "FILE",
                program: Program::OperatorCalls(&["--besides", "--write-tables"]),
            },
            Self::Trees => Source {
                file: "crates/base/gpus/src/trees.bin",
                from: "questions about convolutions and cuDNN's answers",
                input: "scripts/convolutions.py ask, then scripts/cudnn.cpp on an H200",
                arguments: "QUESTIONS ANSWERS ...",
                program: Program::Script {
                    name: "convolutions.py",
                    before: &["learn", "crates/base/gpus/src/trees.bin"],
                    prints_the_file: false,
                },
            },
            Self::Layers => Source {
                file: "crates/base/gpus/src/layers.bin",
                from: "the layers of known networks and cuDNN's answers",
                input: "scripts/networks.py and scripts/layers.py, then scripts/cudnn.cpp on an H200",
                arguments: "ANSWERS ...",
                program: Program::Script {
                    name: "layers.py",
                    before: &["table", "crates/base/gpus/src/layers.bin"],
                    prints_the_file: false,
                },
            },
        }
    }

    fn name(self) -> String {
        self.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
    }
}

/// Learns what is named, or lists what can be learned.
pub(crate) fn run(workspace: &Workspace, what: Option<LearnedFile>, arguments: &[OsString]) -> Result<()> {
    if let Some(what) = what {
        return learn(workspace, &what.source(), arguments);
    }
    for lesson in LearnedFile::value_variants() {
        let source = lesson.source();
        println!("cargo xtask learn {} {}", lesson.name(), source.arguments);
        println!("    writes {}, from {}", source.file, source.from);
        println!("    input: {}", source.input);
    }
    Ok(())
}

fn learn(workspace: &Workspace, source: &Source, arguments: &[OsString]) -> Result<()> {
    ensure!(
        arguments.is_empty() == source.arguments.is_empty(),
        "this is learned from {}: {}",
        source.from,
        source.input
    );
    let file = workspace.root().join(source.file);
    match source.program {
        Program::Script { name, before, prints_the_file } => {
            let python = std::env::var_os("BLOCKYARD_PYTHON").unwrap_or_else(|| "python3".into());
            let mut script = workspace.program(python);
            script.arg(PathBuf::from("scripts").join(name)).args(before).args(arguments);
            if prints_the_file {
                let printed = workspace::read(&mut script)?;
                fs::write(&file, printed).with_context(|| file.display().to_string())?;
            } else {
                workspace::run(&mut script)?;
            }
        }
        Program::OperatorCalls(options) => {
            let run = ["run", "--quiet", "--release", "--package", "blockyard-truth", "--", "operator-calls"];
            workspace::run(workspace.cargo(run).args(arguments).args(options).arg(&file))?;
        }
        Program::Recorded(what) => {
            let run = ["run", "--quiet", "--package", "blockyard-python", "--example", "recorded", what];
            workspace::run(workspace.cargo(run).args(arguments))?;
        }
    }
    workspace::run(workspace.program("git").args(["status", "--short"]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_that_is_learned_is_there_and_so_is_its_script() {
        let workspace = Workspace::find();
        for lesson in LearnedFile::value_variants() {
            let source = lesson.source();
            assert!(workspace.root().join(source.file).is_file(), "{}", source.file);
            if let Program::Script { name, .. } = source.program {
                assert!(workspace.root().join("scripts").join(name).is_file(), "{name}");
            }
        }
    }

    #[test]
    fn a_file_that_is_learned_from_others_is_not_learned_without_them() {
        let workspace = Workspace::find();
        assert!(run(&workspace, Some(LearnedFile::Trees), &[]).is_err());
        assert!(run(&workspace, Some(LearnedFile::Names), &["answers".into()]).is_err());
    }
}

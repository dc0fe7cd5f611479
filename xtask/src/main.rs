//! The developer's commands: `cargo xtask play`, `cargo xtask test`, `cargo xtask ci`.
//!
//! Each command does its own set-up, so that a fresh machine with the stable Rust toolchain needs nothing
//! else. Each command is a module; `page` lists the parts of the page, `stages` runs a list of checks, `workspace`
//! knows the folders and runs programs.
#![allow(clippy::print_stdout, reason = "this program talks to a person in a terminal")]

mod bench;
mod bundle;
mod check;
mod deps;
mod fuzz;
mod gpu;
mod learn;
mod licenses;
mod loom;
mod metadata;
mod miri;
mod page;
mod prose;
mod python;
mod release;
mod setup;
mod size;
mod stages;
mod truth;
mod update;
mod wheel;
mod workspace;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use blockyard_serve::{Port, Server};
use clap::{Args, Parser, Subcommand};

use crate::learn::LearnedFile;
use crate::release::ReleaseStep;
use crate::truth::Truth;
use crate::update::UpdateTarget;
use crate::wheel::WheelOptions;
use crate::workspace::Workspace;

/// The developer's commands of Blockyard.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", arg_required_else_help = true)]
struct Options {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Build the page and serve it on 127.0.0.1.
    Play {
        /// The port; 0 for any free port.
        #[arg(long, default_value_t = 8080)]
        port: u16,
    },
    /// Build the page into dist/: files that any web server can host.
    Build {
        /// Another folder.
        #[arg(long, value_name = "DIR")]
        out: Option<PathBuf>,
        /// A profile of cargo other than the page's own, such as dev, sooner built and larger.
        #[arg(long, value_name = "NAME")]
        profile: Option<String>,
    },
    /// Run every test: native, WebAssembly in a browser, end to end.
    Test,
    /// Test, and format, lints, docs, dependency rules, licenses, the size of the page.
    ///
    /// Oracle, fuzz, advisories and Firefox run where these have been set up, and are `skipped` where not.
    Ci,
    /// Build the Python package into target/wheels/.
    Wheel {
        #[command(flatten)]
        options: WheelOptions,
        /// Build it without optimization and run its tests instead.
        #[arg(long)]
        test: bool,
    },
    /// Check the style of our Python: format, lints, the length of modules.
    Style {
        /// Give Python that style, as far as ruff can.
        #[arg(long)]
        fix: bool,
    },
    /// Write the files of the repository that follow from others again: read each change before you keep it.
    Update {
        /// What is written; all files if nothing is named.
        what: Vec<UpdateTarget>,
        /// Pythons with a PyTorch whose symbols are added, with commas between; for `symbols` and
        /// `watch`.
        #[arg(long, value_name = "PYTHON", value_delimiter = ',')]
        python: Vec<String>,
    },
    /// Learn a file of the repository from PyTorch or from a GPU's answers; without a name, list the files
    /// and what each is learned from.
    Learn {
        what: Option<LearnedFile>,
        /// What the file is learned from.
        arguments: Vec<OsString>,
    },
    /// Compare our programs, operators and dry runs with PyTorch's.
    Truth {
        #[command(subcommand)]
        what: Truth,
    },
    /// Make everything that a release consists of, in a folder, and publish nothing.
    Release {
        #[command(subcommand)]
        step: ReleaseStep,
    },
    /// Check which of our crates depend on which, by their groups.
    Deps,
    /// Check documents for long lines.
    Prose,
    /// Check the licenses and sources of all packages, by deny.toml.
    Licenses,
    /// Check the size of the page in dist/.
    Size,
    /// Look for input that breaks a target of tests/fuzz, or each of them.
    Fuzz {
        /// The target.
        target: Option<String>,
        /// For how long, each.
        // libFuzzer never ends with 0.
        #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..))]
        seconds: u64,
    },
    /// Run the unit tests of the allocator and its lock in Miri.
    Miri,
    /// Run the lock's tests in loom: every order of the threads' steps.
    Model,
    /// Compare our allocator with PyTorch's own library; `cargo xtask oracle --help` tells more.
    #[command(disable_help_flag = true)]
    Oracle(PassedArguments),
    /// Measure speed and memory; `cargo xtask bench --help` tells more.
    #[command(disable_help_flag = true)]
    Bench(PassedArguments),
    /// `pack KIND`: pack what a machine with a GPU and without a toolchain runs; KIND is cuda, torch or
    /// bench. `run KIND FOLDER [STAGE...]`: run what was packed, here; the results go to FOLDER. Without a
    /// toolchain: xtask/gpu/run-KIND.sh FOLDER [STAGE...].
    #[command(disable_help_flag = true)]
    Gpu(PassedArguments),
}

/// The arguments of another program.
#[derive(Clone, Debug, Args)]
struct PassedArguments {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<OsString>,
}

fn main() -> ExitCode {
    if let Some(linker) = python::linker() {
        return python::link(&linker);
    }
    let options = Options::parse();
    match run(&options.command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(command: &Command) -> Result<()> {
    let workspace = Workspace::find();
    match command {
        Command::Play { port } => play(&workspace, *port)?,
        Command::Build { out, profile } => bundle::build_to(
            &workspace,
            &out.clone().unwrap_or_else(|| workspace.dist()),
            profile.as_deref(),
        )?,
        Command::Test => check::test(&workspace)?,
        Command::Ci => check::ci(&workspace)?,
        Command::Wheel { test: true, .. } => {
            bundle::build(&workspace)?;
            wheel::test(&workspace, &workspace.dist())?;
        }
        Command::Wheel { options, .. } => wheel::build(&workspace, options)?,
        Command::Style { fix } => wheel::style(&workspace, *fix)?,
        Command::Update { what, python } => update::run(&workspace, what, python)?,
        Command::Learn { what, arguments } => learn::run(&workspace, *what, arguments)?,
        Command::Truth { what } => truth::run(&workspace, what)?,
        Command::Release { step } => release::run(&workspace, step)?,
        Command::Deps => deps::check(&workspace)?,
        Command::Prose => prose::check(&workspace)?,
        Command::Licenses => licenses::check(&workspace)?,
        Command::Size => size::check(&workspace)?,
        Command::Fuzz { target, seconds } => fuzz::run(&workspace, target.as_deref(), *seconds)?,
        Command::Miri => miri::run(&workspace)?,
        Command::Model => loom::run(&workspace)?,
        Command::Oracle(passed) => check::oracle(&workspace, &passed.arguments)?,
        Command::Bench(passed) => bench::run(&workspace, &passed.arguments)?,
        Command::Gpu(passed) => gpu::run(&workspace, &passed.arguments)?,
    }
    Ok(())
}

fn play(workspace: &Workspace, port: u16) -> Result<()> {
    let port = Port::take(port)?;
    let server = bundle::build_python_last(workspace, |page| {
        let server = Server::start(page, port)?;
        println!("Blockyard is at {} (Ctrl-C ends it)", server.url());
        Ok(server)
    })?;
    server.wait();
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use clap::CommandFactory as _;
    use clap::error::ErrorKind;

    use super::*;

    fn parsed(arguments: &[&str]) -> Result<Command, clap::Error> {
        Options::try_parse_from(["xtask"].iter().chain(arguments)).map(|options| options.command)
    }

    #[test]
    fn the_commands_fit_together() {
        Options::command().debug_assert();
    }

    #[test]
    fn workflows_call_what_a_developer_calls() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let mut count = 0;
        for file in std::fs::read_dir(root.join(".github/workflows")).unwrap() {
            let text = std::fs::read_to_string(file.unwrap().path()).unwrap();
            for command in text.lines().filter_map(|line| line.trim().strip_prefix("- run: ")) {
                count += 1;
                let Some(arguments) = command.strip_prefix("cargo xtask ") else {
                    assert!(root.join(command).exists(), "{command}");
                    continue;
                };
                let arguments: Vec<&str> = arguments.split(' ').collect();
                assert!(parsed(&arguments).is_ok(), "{command}");
            }
            assert!(!text.contains("run: |"), "one command a step, so that a developer can type each step");
        }
        assert!(count >= 4);
    }

    #[test]
    fn the_port_is_an_option_of_play() {
        assert!(matches!(parsed(&["play"]), Ok(Command::Play { port: 8080 })));
        assert!(matches!(parsed(&["play", "--port", "9000"]), Ok(Command::Play { port: 9000 })));
        assert!(matches!(parsed(&["play", "--port=0"]), Ok(Command::Play { port: 0 })));
        assert!(parsed(&["test", "--port", "9000"]).is_err());
        assert!(parsed(&["play", "--port", "65536"]).is_err());
        assert!(parsed(&["play", "--port"]).is_err());
    }

    #[test]
    fn the_page_is_built_where_it_is_asked_for() {
        let command = parsed(&["build", "--out", "site", "--profile", "dev"]);
        assert!(matches!(command, Ok(Command::Build { out: Some(out), profile: Some(profile) })
                if out.as_os_str() == "site" && profile == "dev"));
        assert!(matches!(parsed(&["build"]), Ok(Command::Build { out: None, profile: None })));
        assert!(parsed(&["play", "--out", "site"]).is_err());
    }

    #[test]
    fn fuzz_takes_a_target_and_a_time() {
        assert!(matches!(parsed(&["fuzz"]), Ok(Command::Fuzz { target: None, seconds: 60 })));
        let both = parsed(&["fuzz", "options", "--seconds", "5"]);
        assert!(matches!(both, Ok(Command::Fuzz { target: Some(name), seconds: 5 }) if name == "options"));
        assert!(parsed(&["fuzz", "options", "workload"]).is_err());
        assert!(parsed(&["fuzz", "--seconds", "0"]).is_err());
        assert!(parsed(&["miri", "--seconds", "5"]).is_err());
    }

    #[test]
    fn what_stands_behind_bench_and_oracle_is_their_own() {
        let command = parsed(&["oracle", "--seconds", "5", "--help"]);
        assert!(
            matches!(command, Ok(Command::Oracle(PassedArguments { arguments })) if arguments == ["--seconds", "5", "--help"])
        );
        let command = parsed(&["bench", "pytorch", "--rounds", "7"]);
        assert!(
            matches!(command, Ok(Command::Bench(PassedArguments { arguments })) if arguments == ["pytorch", "--rounds", "7"])
        );
    }

    #[test]
    fn the_wheel_has_a_folder_and_a_source_package() {
        let wheel = |arguments: &[&str]| match parsed(arguments) {
            Ok(Command::Wheel { options, test }) => (options, test),
            _ => panic!("{arguments:?} is not understood"),
        };
        let (options, test) = wheel(&[
            "wheel",
            "--out",
            "here",
            "--sdist",
            "--target",
            "aarch64-unknown-linux-gnu",
            "--profile",
            "dev",
        ]);
        assert_eq!((options.out.as_deref(), options.sdist, test), (Some(Path::new("here")), true, false));
        assert_eq!(options.target.as_deref(), Some("aarch64-unknown-linux-gnu"));
        assert_eq!(options.profile.as_deref(), Some("dev"));
        let (plain, test) = wheel(&["wheel"]);
        assert!(
            plain.out.is_none() && plain.target.is_none() && plain.profile.is_none() && !plain.sdist && !test
        );
        assert!(wheel(&["wheel", "--test"]).1);
        assert!(parsed(&["play", "--sdist"]).is_err());
    }

    #[test]
    fn what_is_written_anew_is_named() {
        assert!(matches!(parsed(&["update"]), Ok(Command::Update { what, .. }) if what.is_empty()));
        assert!(matches!(parsed(&["update", "answers", "figure"]), Ok(Command::Update { what, .. })
                if what == [UpdateTarget::Answers, UpdateTarget::Figure]));
        assert!(parsed(&["update", "everything"]).is_err());
        assert!(parsed(&["truth"]).is_err());
        assert!(parsed(&["truth", "programs", "programs/dqn", "--requests", "here.txt"]).is_ok());
        let command = parsed(&["truth", "dry-run", "--verbose", "--help"]);
        assert!(matches!(command, Ok(Command::Truth { what: Truth::DryRun(PassedArguments { arguments }) })
                if arguments == ["--verbose", "--help"]));
    }

    #[test]
    fn what_is_not_a_command_is_refused() {
        let kind = |arguments: &[&str]| parsed(arguments).unwrap_err().kind();
        assert_eq!(kind(&[]), ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand);
        assert_eq!(kind(&["ci", "--help"]), ErrorKind::DisplayHelp);
        assert_eq!(kind(&["help"]), ErrorKind::DisplayHelp);
        assert!(parsed(&["plya"]).is_err());
        assert!(parsed(&["test", "play"]).is_err());
    }
}

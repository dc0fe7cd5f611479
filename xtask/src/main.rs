//! The developer's commands: `cargo xtask play`, `cargo xtask test`, `cargo xtask ci`.
//!
//! Each does its own set-up, so that a fresh machine with the stable Rust toolchain needs nothing else. What the page
//! is made of is written in `index.html` alone, in Trunk's words; this program reads the same file.
#![allow(clippy::print_stdout, reason = "this program talks to a person in a terminal")]

mod bench;
mod bundle;
mod check;
mod deps;
mod fuzz;
mod gpu;
mod licenses;
mod metadata;
mod miri;
mod model;
mod page;
mod references;
mod setup;
mod size;
mod stages;
mod wheel;
mod workspace;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use blockyard_serve::{Port, Server};
use lexopt::prelude::*;

use crate::wheel::WheelWanted;
use crate::workspace::Workspace;

const HELP: &str = "\
The developer's commands of Blockyard.

cargo xtask play [--port N]  build the page and serve it on 127.0.0.1 (port 8080; 0 for any free port)
cargo xtask build [--out DIR] [--profile NAME]
                             build the page into dist/, or DIR: files that any web server can host; with a profile of
                             cargo other than the page's own, such as dev, sooner built and larger
cargo xtask test             run every test: native, WebAssembly in a browser, end to end
cargo xtask ci [--may-skip STAGE,...]
                             test, and format, lints, docs, dependency rules, licenses, the size of the page; oracle,
                             fuzz, advisories, Firefox and Trunk's build of the page where these have been set up, and
                             `skipped` where not; with the option only the stages that it names may be skipped
cargo xtask wheel [--out DIR] [--target TRIPLE] [--profile PROFILE] [--sdist] [--test]
                             build the Python package into target/wheels/, or DIR; the source package too; or build it
                             without optimization and run its tests
cargo xtask deps             check which of our crates depend on which, by the table of ARCHITECTURE.md
cargo xtask licenses         check the licenses and sources of all packages, by deny.toml
cargo xtask size             check the size of the page in dist/
cargo xtask fuzz [TARGET] [--seconds N]
                             look for input that breaks a target of tests/fuzz, or each of them (60 s)
cargo xtask miri             run the unit tests of the allocator and its lock in Miri
cargo xtask model            run the lock's tests in loom: every order of the threads' steps
cargo xtask oracle [...]     hold our allocator against PyTorch's own library; `cargo xtask oracle --help` tells more
cargo xtask zoo FILE [...]    run recorded operator calls through crates/torch; `cargo xtask zoo --help` tells more
cargo xtask dry-run-truth FILE [...]
                             run recorded programs by a dry run and compare them with a GPU; `--help` tells more
cargo xtask torch-oracle [...]
                             hold crates/torch against PyTorch's own code, without a GPU; `--help` tells more
cargo xtask bench [...]      measure speed and memory; `cargo xtask bench --help` tells more
cargo xtask gpu pack KIND    pack what a machine with a GPU and without a toolchain runs; KIND is cuda, torch or bench
cargo xtask gpu run KIND FOLDER [STAGE...]
                             run what was packed, here; the results go to FOLDER. Without a toolchain:
                             xtask/gpu/run-KIND.sh FOLDER [STAGE...]
";

enum Command {
    Help,
    Play { port: u16 },
    Build { out: Option<PathBuf>, profile: Option<String> },
    Test,
    Ci { may_skip: Option<Vec<String>> },
    Wheel { wanted: WheelWanted, test: bool },
    Deps,
    Licenses,
    Size,
    Fuzz { target: Option<String>, seconds: u64 },
    Miri,
    Model,
    Oracle { arguments: Vec<OsString> },
    Zoo { arguments: Vec<OsString> },
    DryRunTruth { arguments: Vec<OsString> },
    TorchOracle { arguments: Vec<OsString> },
    Bench { arguments: Vec<OsString> },
    Gpu { arguments: Vec<OsString> },
}

fn main() -> ExitCode {
    match parse(lexopt::Parser::from_env()).and_then(|command| run(&command)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn parse(mut arguments: lexopt::Parser) -> Result<Command> {
    let mut command = None;
    while let Some(argument) = arguments.next()? {
        match (argument, &mut command) {
            (Short('h') | Long("help"), _) => return Ok(Command::Help),
            (Value(name), None) => {
                command = Some(match name.to_str() {
                    Some("help") => Command::Help,
                    Some("play") => Command::Play { port: 8080 },
                    Some("build") => Command::Build { out: None, profile: None },
                    Some("test") => Command::Test,
                    Some("ci") => Command::Ci { may_skip: None },
                    Some("wheel") => Command::Wheel { wanted: WheelWanted::default(), test: false },
                    Some("deps") => Command::Deps,
                    Some("licenses") => Command::Licenses,
                    Some("size") => Command::Size,
                    Some("fuzz") => Command::Fuzz { target: None, seconds: 60 },
                    Some("miri") => Command::Miri,
                    Some("model") => Command::Model,
                    // Their arguments are their own.
                    Some("zoo") => {
                        return Ok(Command::Zoo { arguments: arguments.raw_args()?.collect() });
                    }
                    Some("dry-run-truth") => {
                        return Ok(Command::DryRunTruth { arguments: arguments.raw_args()?.collect() });
                    }
                    Some("torch-oracle") => {
                        return Ok(Command::TorchOracle { arguments: arguments.raw_args()?.collect() });
                    }
                    Some("oracle") => {
                        return Ok(Command::Oracle { arguments: arguments.raw_args()?.collect() });
                    }
                    Some("bench") => {
                        return Ok(Command::Bench { arguments: arguments.raw_args()?.collect() });
                    }
                    Some("gpu") => {
                        return Ok(Command::Gpu { arguments: arguments.raw_args()?.collect() });
                    }
                    _ => bail!("no command `{}`; see `cargo xtask help`", name.display()),
                });
            }
            (Long("port"), Some(Command::Play { port })) => {
                *port = arguments.value()?.parse().context("--port takes a number from 0 to 65535")?;
            }
            (
                Long("out"),
                Some(Command::Build { out, .. } | Command::Wheel { wanted: WheelWanted { out, .. }, .. }),
            ) => {
                *out = Some(arguments.value()?.into());
            }
            (Long("sdist"), Some(Command::Wheel { wanted, .. })) => wanted.sdist = true,
            (Long("target"), Some(Command::Wheel { wanted, .. })) => {
                wanted.target = Some(arguments.value()?.string()?);
            }
            (Long("test"), Some(Command::Wheel { test, .. })) => *test = true,
            (
                Long("profile"),
                Some(
                    Command::Build { profile, .. }
                    | Command::Wheel { wanted: WheelWanted { profile, .. }, .. },
                ),
            ) => {
                *profile = Some(arguments.value()?.string()?);
            }
            (Long("may-skip"), Some(Command::Ci { may_skip })) => {
                let names = arguments.value()?.string()?;
                may_skip.get_or_insert_default().extend(names.split(',').map(str::to_owned));
            }
            (Long("seconds"), Some(Command::Fuzz { seconds, .. })) => {
                *seconds = arguments.value()?.parse().context("--seconds takes a whole number")?;
                // libFuzzer takes 0 for ever.
                if *seconds == 0 {
                    bail!("--seconds takes at least 1");
                }
            }
            (Value(name), Some(Command::Fuzz { target: target @ None, .. })) => {
                *target = Some(name.string()?);
            }
            (other, _) => return Err(other.unexpected().into()),
        }
    }
    Ok(command.unwrap_or(Command::Help))
}

fn run(command: &Command) -> Result<()> {
    let workspace = Workspace::find();
    match command {
        Command::Help => print!("{HELP}"),
        Command::Play { port } => play(&workspace, *port)?,
        Command::Build { out, profile } => bundle::build_to(
            &workspace,
            &out.clone().unwrap_or_else(|| workspace.dist()),
            profile.as_deref(),
        )?,
        Command::Test => check::test(&workspace)?,
        Command::Ci { may_skip } => check::ci(&workspace, may_skip.clone())?,
        Command::Wheel { test: true, .. } => {
            bundle::build(&workspace)?;
            wheel::test(&workspace, &workspace.dist())?;
        }
        Command::Wheel { wanted, .. } => wheel::build(&workspace, wanted)?,
        Command::Deps => deps::check(&workspace)?,
        Command::Licenses => licenses::check(&workspace)?,
        Command::Size => size::check(&workspace)?,
        Command::Fuzz { target, seconds } => fuzz::run(&workspace, target.as_deref(), *seconds)?,
        Command::Miri => miri::run(&workspace)?,
        Command::Model => model::run(&workspace)?,
        Command::Zoo { arguments } => check::zoo(&workspace, arguments)?,
        Command::DryRunTruth { arguments } => check::dry_run_truth(&workspace, arguments)?,
        Command::TorchOracle { arguments } => check::torch_oracle(&workspace, arguments)?,
        Command::Oracle { arguments } => check::oracle(&workspace, arguments)?,
        Command::Bench { arguments } => bench::run(&workspace, arguments)?,
        Command::Gpu { arguments } => gpu::run(&workspace, arguments)?,
    }
    Ok(())
}

fn play(workspace: &Workspace, port: u16) -> Result<()> {
    let port = Port::take(port)?;
    let server = bundle::build_interpreter_last(workspace, || {
        let server = Server::start(&workspace.dist(), port)?;
        println!("Blockyard is at {} (Ctrl-C ends it)", server.url());
        Ok(server)
    })?;
    server.wait();
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn parsed(arguments: &[&str]) -> Result<Command> {
        parse(lexopt::Parser::from_args(arguments))
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
            assert!(!text.contains("run: |"), "one command a step, so that a step is what a developer types");
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
    fn ci_takes_the_stages_that_may_be_skipped() {
        assert!(matches!(parsed(&["ci"]), Ok(Command::Ci { may_skip: None })));
        let named = parsed(&["ci", "--may-skip", "oracle,fuzz"]);
        assert!(matches!(named, Ok(Command::Ci { may_skip: Some(stages) }) if stages == ["oracle", "fuzz"]));
        assert!(parsed(&["test", "--may-skip", "oracle"]).is_err());
    }

    #[test]
    fn what_stands_behind_bench_and_oracle_is_their_own() {
        let command = parsed(&["oracle", "--seconds", "5", "--help"]);
        assert!(
            matches!(command, Ok(Command::Oracle { arguments }) if arguments == ["--seconds", "5", "--help"])
        );
        let command = parsed(&["bench", "pytorch", "--rounds", "7"]);
        assert!(
            matches!(command, Ok(Command::Bench { arguments }) if arguments == ["pytorch", "--rounds", "7"])
        );
    }

    #[test]
    fn the_wheel_has_a_folder_and_a_source_package() {
        let wheel = |arguments: &[&str]| match parsed(arguments) {
            Ok(Command::Wheel { wanted, test }) => (wanted, test),
            _ => panic!("{arguments:?} is not understood"),
        };
        let (wanted, test) = wheel(&[
            "wheel",
            "--out",
            "here",
            "--sdist",
            "--target",
            "aarch64-unknown-linux-gnu",
            "--profile",
            "dev",
        ]);
        assert_eq!((wanted.out.as_deref(), wanted.sdist, test), (Some(Path::new("here")), true, false));
        assert_eq!(wanted.target.as_deref(), Some("aarch64-unknown-linux-gnu"));
        assert_eq!(wanted.profile.as_deref(), Some("dev"));
        let (plain, test) = wheel(&["wheel"]);
        assert!(
            plain.out.is_none() && plain.target.is_none() && plain.profile.is_none() && !plain.sdist && !test
        );
        assert!(wheel(&["wheel", "--test"]).1);
        assert!(parsed(&["play", "--sdist"]).is_err());
    }

    #[test]
    fn what_is_not_a_command_is_refused() {
        assert!(matches!(parsed(&[]), Ok(Command::Help)));
        assert!(matches!(parsed(&["ci", "--help"]), Ok(Command::Help)));
        assert!(parsed(&["plya"]).is_err());
        assert!(parsed(&["test", "play"]).is_err());
    }
}

//! `cargo xtask bench`: measures, prints tables, and writes them into `target/bench/`.
#![allow(clippy::print_stdout, reason = "this program talks to a person in a terminal")]

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, Result, bail};
use blockyard_bench::machine::{Machine, cores, pin};
use blockyard_bench::native::Side;
use blockyard_bench::report::{Report, Section, chart, into_page, table};
use blockyard_bench::sections::{self, BenchContext};
use lexopt::prelude::*;

const HELP: &str = "\
Measures Blockyard beside what it is compared with; results go to target/bench/ too.

cargo xtask bench [SECTION..] [--rounds N] [--quick] [--docs]

  --rounds N  how often each contender has its turn (default 9, at least 7 for numbers to show)
  --quick     three rounds, to see whether everything works
  --docs      put the results into docs/speed.md, and the chart into docs/speed.svg

Sections (all, where none is named):
";

type Measured = fn(&BenchContext) -> Result<Section>;

const SECTIONS: &[(&str, &str, Measured)] = &[
    ("pytorch", "PyTorch's own library, ns a pair", sections::pytorch),
    ("instructions", "the same in instructions, under valgrind", sections::instructions),
    ("wasm", "WebAssembly in Chromium beside native code, ns a pair", sections::wasm),
    ("crates", "offset-allocator and VMA's virtual blocks, ns a pair", sections::crates),
    (
        "replay",
        "replays of recorded programs, silent, recorded, and under 24 configurations",
        sections::replay,
    ),
    ("heap", "the allocator's own memory, bytes a live block", sections::heap),
    ("recordings", "a recording in memory, bytes an event", sections::recordings),
    ("lock", "the allocator's lock beside parking_lot's, ns a pair", sections::lock),
    ("threads", "two threads on two streams, ours and PyTorch's", sections::threads),
];

enum Command {
    Help,
    Measure {
        sections: Vec<String>,
        rounds: usize,
        into_docs: bool,
    },
    /// For valgrind: one trace through one contender.
    Count {
        side: Side,
        file: PathBuf,
    },
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
    let (mut sections, mut rounds, mut into_docs) = (Vec::new(), 9, false);
    while let Some(argument) = arguments.next()? {
        match argument {
            Short('h') | Long("help") => return Ok(Command::Help),
            Long("rounds") => {
                rounds = arguments.value()?.parse().context("--rounds takes a number")?;
                if rounds == 0 {
                    bail!("--rounds takes at least 1");
                }
            }
            Long("quick") => rounds = 3,
            Long("docs") => into_docs = true,
            Long("count") => {
                let side = match arguments.value()?.to_str() {
                    Some("ours") => Side::Ours,
                    Some("theirs") => Side::Theirs,
                    _ => bail!("--count takes `ours` or `theirs`"),
                };
                return Ok(Command::Count { side, file: arguments.value()?.into() });
            }
            Value(name) => {
                let name = name.string()?;
                if !SECTIONS.iter().any(|(known, _, _)| *known == name) {
                    bail!("no section `{name}`; see `cargo xtask bench --help`");
                }
                sections.push(name);
            }
            other => return Err(other.unexpected().into()),
        }
    }
    Ok(Command::Measure { sections, rounds, into_docs })
}

fn run(command: &Command) -> Result<()> {
    let workspace = workspace()?;
    let target = target(&workspace)?;
    let cores = cores()?;
    let context = |rounds| BenchContext { workspace, target, rounds, cores: cores.clone() };
    match command {
        Command::Help => {
            print!("{HELP}");
            for (name, about, _) in SECTIONS {
                println!("  {name:<14}{about}");
            }
            Ok(())
        }
        Command::Count { side, file } => sections::count(&context(1), *side, file),
        Command::Measure { sections, rounds, into_docs } => {
            let context = context(*rounds);
            let report = measure(&context, sections)?;
            if *into_docs { write_docs(&context, &report) } else { Ok(()) }
        }
    }
}

fn measure(context: &BenchContext, wanted: &[String]) -> Result<Report> {
    let machine = Machine::here();
    println!("{}", machine.line());
    let mut report = Report {
        machine,
        command: [&["cargo xtask bench"], &wanted.iter().map(String::as_str).collect::<Vec<_>>()[..]]
            .concat()
            .join(" "),
        rounds: context.rounds,
        sections: Vec::new(),
    };
    let mut failed = Vec::new();
    for (name, _, section) in SECTIONS {
        if !wanted.is_empty() && !wanted.iter().any(|wanted| wanted == name) {
            continue;
        }
        // The last core: the first one often serves the system's interrupts.
        pin(context.cores.last().map_or(&[][..], std::slice::from_ref))?;
        match section(context) {
            Ok(section) => {
                println!("\n{}", table(&section));
                report.sections.push(section);
            }
            Err(error) => {
                println!("\n{name}: FAILED: {error:#}\n");
                failed.push(*name);
            }
        }
    }
    let folder = context.target.join("bench");
    report.write(&folder)?;
    println!("written: {}", folder.join("results.{json,md,svg}").display());
    if !failed.is_empty() {
        bail!("no result for {}", failed.join(", "));
    }
    Ok(report)
}

fn write_docs(context: &BenchContext, report: &Report) -> Result<()> {
    let path = context.workspace.join("docs/speed.md");
    let page = std::fs::read_to_string(&path).context("cannot read docs/speed.md")?;
    std::fs::write(&path, into_page(&page, report)?).context("cannot write docs/speed.md")?;
    std::fs::write(context.workspace.join("docs/speed.svg"), chart(report))
        .context("cannot write docs/speed.svg")?;
    println!("written: docs/speed.md, docs/speed.svg");
    Ok(())
}

fn workspace() -> Result<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2);
    Ok(root.context("the package is not in its repository")?.to_owned())
}

/// Cargo's target folder: where this program lies, without the names of target and profile.
fn target(workspace: &Path) -> Result<PathBuf> {
    let program = std::env::current_exe()?;
    let found = program.ancestors().find(|folder| folder.join("CACHEDIR.TAG").is_file());
    Ok(found.map_or_else(|| workspace.join("target"), Path::to_owned))
}

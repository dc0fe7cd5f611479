//! `cargo xtask bench`: measures, prints tables, and writes them into `target/bench/`.
#![allow(clippy::print_stdout, reason = "this program talks to a person in a terminal")]

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, Result, bail};
use blockyard_bench::cores::{cores, pin};
use blockyard_bench::native::Side;
use blockyard_bench::page::into_page;
use blockyard_bench::sections::{self, BenchContext, SECTIONS};
use blockyard_measure::{BenchReport, Machine, chart, table};
use lexopt::prelude::*;

const HELP: &str = "\
Measures Blockyard beside what it is compared with; results go to target/bench/ too.

cargo xtask bench [SECTION..] [--rounds N] [--quick] [--docs] [--memory-viz DIR]
cargo xtask bench --draw FILE

  --rounds N   how often each contender has its turn (default 9, at least 7 for numbers to show)
  --quick      three rounds, to see whether everything works
  --docs       put the results into docs/speed.md, and the chart into docs/speed.svg
  --memory-viz DIR  where PyTorch's MemoryViz.js lies, for the section memory-viz; d3 beside it, or else from npm
  --draw FILE  write the table and the chart of results as JSON beside them: of another machine, or of PyTorch

Sections (all, where none is named):
";

enum Command {
    Help,
    Measure {
        sections: Vec<String>,
        rounds: usize,
        into_docs: bool,
        memory_viz: Option<PathBuf>,
    },
    /// The table and the chart of results that another program or machine wrote.
    Draw {
        file: PathBuf,
    },
    /// Replays one trace through one contender, for valgrind.
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
    let (mut sections, mut rounds, mut into_docs, mut memory_viz) = (Vec::new(), 9, false, None);
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
            Long("memory-viz") => memory_viz = Some(PathBuf::from(arguments.value()?)),
            Long("draw") => return Ok(Command::Draw { file: arguments.value()?.into() }),
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
                if !SECTIONS.iter().any(|section| section.name == name) {
                    bail!("no section `{name}`; see `cargo xtask bench --help`");
                }
                sections.push(name);
            }
            other => return Err(other.unexpected().into()),
        }
    }
    Ok(Command::Measure { sections, rounds, into_docs, memory_viz })
}

fn run(command: &Command) -> Result<()> {
    let workspace = workspace()?;
    let target = target(&workspace)?;
    let cores = cores()?;
    let context = |rounds| BenchContext { workspace, target, rounds, cores: cores.clone(), memory_viz: None };
    match command {
        Command::Help => {
            print!("{HELP}");
            for section in SECTIONS {
                println!("  {:<14}{}", section.name, section.about);
            }
            Ok(())
        }
        Command::Draw { file } => draw(file),
        Command::Count { side, file } => sections::count(&context(1), *side, file),
        Command::Measure { sections, rounds, into_docs, memory_viz } => {
            let context = BenchContext { memory_viz: memory_viz.clone(), ..context(*rounds) };
            let report = measure(&context, sections)?;
            if *into_docs { write_docs(&context, &report) } else { Ok(()) }
        }
    }
}

fn measure(context: &BenchContext, wanted: &[String]) -> Result<BenchReport> {
    let machine = Machine { software: vec![rustc()], ..Machine::here() };
    println!("{}", machine.line());
    let mut report = BenchReport {
        machine,
        command: [&["cargo xtask bench"], &wanted.iter().map(String::as_str).collect::<Vec<_>>()[..]]
            .concat()
            .join(" "),
        rounds: context.rounds,
        sections: Vec::new(),
    };
    let mut failed = Vec::new();
    for section in SECTIONS {
        if !wanted.is_empty() && !wanted.iter().any(|wanted| wanted == section.name) {
            continue;
        }
        // The last core is used, because the first one often serves the system's interrupts.
        pin(context.cores.last().map_or(&[][..], std::slice::from_ref))?;
        match (section.measure)(context) {
            Ok(measured) => {
                println!("\n{}", table(&measured));
                report.sections.push(measured);
            }
            Err(error) => {
                println!("\n{}: FAILED: {error:#}\n", section.name);
                failed.push(section.name);
            }
        }
    }
    let folder = context.target.join("bench");
    report.write(&folder, "results")?;
    println!("written: {}", folder.join("results.{json,md,svg}").display());
    if !failed.is_empty() {
        bail!("no result for {}", failed.join(", "));
    }
    Ok(report)
}

fn write_docs(context: &BenchContext, report: &BenchReport) -> Result<()> {
    let path = context.workspace.join("docs/speed.md");
    let page = std::fs::read_to_string(&path).context("cannot read docs/speed.md")?;
    std::fs::write(&path, into_page(&page, report)?).context("cannot write docs/speed.md")?;
    std::fs::write(context.workspace.join("docs/speed.svg"), chart(report))
        .context("cannot write docs/speed.svg")?;
    println!("written: docs/speed.md, docs/speed.svg");
    Ok(())
}

/// Writes the table and the chart of a report beside it.
fn draw(file: &Path) -> Result<()> {
    let place = || format!("cannot read {}", file.display());
    let report =
        BenchReport::from_json(&std::fs::read_to_string(file).with_context(place)?).with_context(place)?;
    let folder = file.parent().unwrap_or_else(|| Path::new("."));
    let name = file.file_stem().and_then(|name| name.to_str()).context("the file has no name")?;
    for section in &report.sections {
        println!("\n{}", table(section));
    }
    report.write(folder, name)?;
    println!("written: {}", folder.join(format!("{name}.{{json,md,svg}}")).display());
    Ok(())
}

fn rustc() -> String {
    let program = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let output = std::process::Command::new(program).arg("--version").output();
    output.map_or_else(
        |_| "unknown compiler".to_owned(),
        |output| String::from_utf8_lossy(&output.stdout).trim().to_owned(),
    )
}

fn workspace() -> Result<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2);
    Ok(root.context("the package is not in its repository")?.to_owned())
}

/// Cargo's target folder: the folder of this program without the parts for target and profile.
fn target(workspace: &Path) -> Result<PathBuf> {
    let program = std::env::current_exe()?;
    let found = program.ancestors().find(|folder| folder.join("CACHEDIR.TAG").is_file());
    Ok(found.map_or_else(|| workspace.join("target"), Path::to_owned))
}

//! `cargo xtask bench`: measures, prints tables, and writes them into `target/bench/`.
#![allow(clippy::print_stdout, reason = "this program talks to a person in a terminal")]

use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, Result, bail};
use blockyard_bench::cores::{cores, pin};
use blockyard_bench::native::Side;
use blockyard_bench::page::into_page;
use blockyard_bench::sections::{self, BenchContext, SECTIONS};
use blockyard_measure::{BenchReport, Machine, chart, table};
use clap::Parser;
use clap::builder::PossibleValuesParser;

/// Measure Blockyard beside what it is compared with; results go to target/bench/ too.
#[derive(Debug, Parser)]
#[command(bin_name = "cargo xtask bench", after_help = list_of_sections())]
struct Options {
    /// All, where none is named.
    #[arg(value_name = "SECTION", hide_possible_values = true, value_parser = section_names())]
    sections: Vec<String>,
    /// How often each contender has its turn; at least 7 for numbers to show.
    #[arg(long, value_name = "N", default_value = "9")]
    rounds: NonZero<usize>,
    /// Three rounds, to see whether everything works.
    #[arg(long, conflicts_with = "rounds")]
    quick: bool,
    /// Put the results into docs/speed.md, and the chart into docs/speed.svg.
    #[arg(long)]
    docs: bool,
    /// Where PyTorch's MemoryViz.js lies, for the section memory-viz; d3 beside it, or else from npm.
    #[arg(long, value_name = "DIR")]
    memory_viz: Option<PathBuf>,
    /// Write the table and the chart of results as JSON beside them: of another machine, or of PyTorch.
    #[arg(long, value_name = "FILE")]
    draw: Option<PathBuf>,
    /// Replay one trace through one contender (`ours` or `theirs`), for valgrind.
    #[arg(long, hide = true, num_args = 2, value_names = ["SIDE", "FILE"])]
    count: Option<Vec<String>>,
}

fn section_names() -> PossibleValuesParser {
    SECTIONS.iter().map(|section| section.name).collect::<Vec<_>>().into()
}

fn list_of_sections() -> String {
    let rows = SECTIONS.iter().map(|section| format!("\n  {:<14}{}", section.name, section.about));
    format!("Sections:{}", rows.collect::<String>())
}

fn main() -> ExitCode {
    match run(Options::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(options: Options) -> Result<()> {
    if let Some(file) = &options.draw {
        return draw(file);
    }
    let workspace = workspace()?;
    let target = target(&workspace)?;
    let rounds = if options.quick { 3 } else { options.rounds.get() };
    let mut context =
        BenchContext { workspace, target, rounds, cores: cores()?, memory_viz: options.memory_viz };
    if let Some([side, file]) = options.count.as_deref() {
        let side = match side.as_str() {
            "ours" => Side::Ours,
            "theirs" => Side::Theirs,
            _ => bail!("--count takes `ours` or `theirs`"),
        };
        context.rounds = 1;
        return sections::count(&context, side, Path::new(file));
    }
    let report = measure(&context, &options.sections)?;
    if options.docs { write_docs(&context, &report) } else { Ok(()) }
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

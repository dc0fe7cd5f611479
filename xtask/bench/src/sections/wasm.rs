//! A replay as WebAssembly in a browser, compared with the native replay.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use blockyard_e2e::{GpuChoice, Page, Window};
use blockyard_measure::{Measurement, OperationList, RatioGoal, Replay, ReportRow, Section, alternate};
use blockyard_record::Bytes;
use blockyard_rules::AllocatorConfig;
use serde_json::json;

use super::BenchContext;
use crate::cores::pin;
use crate::suite::Suite;

const TARGET: &str = "wasm32-unknown-unknown";

/// The profile of the page's worker, which makes long runs.
const PROFILE: &str = "wasm-worker";

const CAPACITY_GIB: u64 = 139;

/// At least this many pairs in a timed turn: a browser's clock is coarse.
const PAIRS_A_TURN: usize = 200_000;

/// How often a build replays before it is timed, so that the browser has compiled it for speed.
const WARM: u32 = 8;

/// Nanoseconds a pair of allocation and free, as WebAssembly in Chromium and natively.
///
/// # Errors
///
/// When the target, Chromium or its driver is missing, or the addresses differ.
pub(super) fn wasm(context: &BenchContext) -> Result<Section> {
    let folder = context.target.join("bench/wasm");
    fs::create_dir_all(&folder)?;
    fs::write(folder.join("index.html"), include_str!("wasm.html"))?;
    compile(context, &folder)?;
    let suite = Suite::load(&context.workspace)?;
    let progress = super::progress("wasm", suite.traces.len())?;
    // The browser may use all cores; this thread then returns to its own core.
    let own = crate::cores::cores()?;
    pin(&context.cores)?;
    let page = Page::of(&folder, Window::default(), GpuChoice::None)?;
    page.goto("/")?;
    pin(&own)?;
    let mut rows = Vec::new();
    for trace in &suite.traces {
        progress.set_message(trace.name.clone());
        rows.push(row(&page, &folder, trace, context.rounds).with_context(|| trace.name.clone())?);
        progress.inc(1);
    }
    progress.finish_and_clear();
    let mut notes = vec![
        "the allocator called directly in both, in Chromium and in this program by turns; the hash of all addresses was \
         equal in every round"
            .to_owned(),
    ];
    notes.extend(suite.missing);
    Ok(Section {
        rows,
        goal: Some(RatioGoal::AtMost(1.25)),
        notes,
        ..Section::new(
            "wasm",
            "WebAssembly in Chromium beside native code",
            "ns a pair of allocation and free",
            ["WebAssembly as in the worker", "native"],
        )
    })
}

fn compile(context: &BenchContext, folder: &Path) -> Result<()> {
    let what = ["--package", "blockyard-bench-abi", "--target", TARGET, "--profile", PROFILE];
    super::cargo_build(context, &what).with_context(|| {
        format!("the allocator does not build for {TARGET}; `cargo xtask build` adds the target")
    })?;
    let built = context.target.join(TARGET).join(PROFILE).join("blockyard_bench_abi.wasm");
    fs::copy(&built, folder.join(PROFILE).with_extension("wasm"))
        .with_context(|| format!("cannot copy {}", built.display()))?;
    Ok(())
}

fn row(page: &Page, folder: &Path, trace: &OperationList, rounds: usize) -> Result<ReportRow> {
    fs::write(folder.join("trace.bin"), trace.to_bytes())?;
    let pairs = trace.pairs();
    let times = u32::try_from(PAIRS_A_TURN.div_ceil(pairs.max(1)))?;
    let mut native = Replay::new(trace, AllocatorConfig::default(), Bytes::gib(CAPACITY_GIB));
    let mut hashes: [Vec<u64>; 2] = Default::default();
    let mut turn = |contender: usize, times: u32| -> Result<Duration> {
        let (took, hash) = match contender {
            1 => {
                let begun = Instant::now();
                let mut hash = 0;
                for _ in 0..times {
                    hash = native.run(trace)?;
                }
                (begun.elapsed(), hash)
            }
            _ => in_page(page, times)?,
        };
        hashes[contender].push(hash);
        Ok(took)
    };
    let arguments = [json!(PROFILE), json!("trace.bin"), json!(CAPACITY_GIB)];
    let made = page.execute_async("return await prepare(...arguments)", &arguments)?;
    ensure!(made.as_f64().is_some_and(|made| made >= 0.0), "the page read no trace");
    for contender in 0..2 {
        turn(contender, WARM * times)?;
    }
    let nanos = alternate(rounds, times, pairs, &mut [0, 1], |contender, times| turn(*contender, times))?;
    ensure!(
        hashes.iter().all(|hash| *hash == hashes[0]),
        "the page and this program hand out different addresses"
    );
    let ratio = Measurement::ratio(&nanos[0], &nanos[1]);
    Ok(ReportRow::new(&trace.name, pairs, &nanos).with_ratio(ratio))
}

/// The time that the page took, and the hash of the addresses of its last replay.
fn in_page(page: &Page, times: u32) -> Result<(Duration, u64)> {
    let answer = page.execute("return turn(...arguments)", &[json!(times)])?;
    let millis = answer[0].as_f64().context("the page returned no time")?;
    let hash = answer[1].as_str().and_then(|hash| hash.parse().ok()).context("the page returned no hash")?;
    Ok((Duration::from_secs_f64(millis / 1e3), hash))
}

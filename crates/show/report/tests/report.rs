//! Reports of recorded snapshots, recordings and workloads: their contents, and the things that they must not
//! contain.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking, in its helpers too"
)]

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use blockyard_lab::{Conditions, Run, RunSource, Simulation};
use blockyard_pytorch::snapshot::{self, FileKind, MemoryName, SnapshotFile, file_kind};
use blockyard_record::{Bytes, Stacks};
use blockyard_report::{ReportError, ReportOptions, report, report_under};
use blockyard_rules::Release;

const HOSTILE: &str = "</script><img src=x onerror=alert(1)>'\"&\u{202e}";

fn fixtures(folder: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../tests/fixtures").join(folder);
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    // Files that are not snapshots, and a pickle of a protocol that is not read, are left out.
    files.retain(|path| !path.ends_with("results.jsonl") && !path.ends_with("protocol0.pickle.gz"));
    files.sort();
    assert!(!files.is_empty());
    files
}

fn source(path: &Path) -> RunSource {
    let name = path.file_name().unwrap().to_str().unwrap().to_owned();
    RunSource::File { name, bytes: std::fs::read(path).unwrap() }
}

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../tests/fixtures").join(name)
}

fn made(source: RunSource, options: &ReportOptions) -> String {
    let html = report(source, options, &mut |_| ControlFlow::Continue(())).unwrap();
    check(&html);
    html
}

fn of(name: &str) -> String {
    made(source(&fixture(name)), &ReportOptions::default())
}

fn workload(name: &str, text: &str) -> RunSource {
    RunSource::File { name: name.to_owned(), bytes: text.as_bytes().to_vec() }
}

/// Checks the properties of every report: small, without scripts, without files from elsewhere, every element
/// closed.
fn check(html: &str) {
    assert!(html.len() < 1_000_000, "{} bytes", html.len());
    let lower = html.to_ascii_lowercase();
    for forbidden in ["<script", "<img", "<link", "<iframe", " src=", "javascript:", "@import", "onerror="] {
        let found = lower.find(forbidden).map(|at| &html[at.saturating_sub(80)..(at + 40).min(html.len())]);
        // As a text, in which the first letter is written as an entity, these are harmless.
        assert!(found.is_none_or(|text| text.contains("&lt;")), "{forbidden}: {found:?}");
    }
    let addresses = html.match_indices("http").map(|(at, _)| &html[at..(at + 26).min(html.len())]);
    for address in addresses {
        assert!(address.starts_with("http-equiv") || address == "http://www.w3.org/2000/svg", "{address}");
    }
    for (at, _) in html.match_indices("url(") {
        assert!(html[at..].starts_with("url(#"), "{}", &html[at..at + 40]);
    }
    assert!(html.contains("Content-Security-Policy\" content=\"default-src 'none'"));
    for part in ["class=\"verdict\"", "<svg", "Who holds the memory", "Settings tried", "Made by"] {
        assert!(html.contains(part), "{part}");
    }
    // A simulation has no certificate.
    assert!(html.contains("Certificate") || html.contains("How these numbers were made"));
    assert!(html.contains("@media screen and (prefers-color-scheme: dark)") && html.contains("@media print"));
    check_elements(html);
}

/// Every element that is opened is closed, in order.
fn check_elements(html: &str) {
    let mut open = Vec::new();
    let mut rest = html;
    while let Some(at) = rest.find('<') {
        rest = &rest[at + 1..];
        let end = rest.find('>').expect("a tag ends");
        let (tag, after) = rest.split_at(end);
        rest = after;
        let name = tag.trim_start_matches('/').split([' ', '/']).next().unwrap();
        if tag.starts_with('!') || name == "meta" || tag.ends_with('/') {
            continue;
        }
        if tag.starts_with('/') {
            assert_eq!(open.pop(), Some(name), "{}", &after[..after.len().min(60)]);
        } else {
            open.push(name);
        }
    }
    assert!(open.is_empty(), "{open:?}");
}

#[test]
fn every_snapshot_and_recording_has_a_report() {
    for path in ["snapshots", "oom", "programs"].into_iter().flat_map(fixtures) {
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        let html = made(source(&path), &ReportOptions::default());
        assert!(html.contains(&format!("<h1>{name}</h1>")), "{name}");
    }
}

#[test]
fn a_run_that_went_out_of_memory_is_explained_first() {
    let html = of("oom/loss_history_100.pickle.gz");
    let place = |text: &str| html.find(text).unwrap_or_else(|| panic!("{text}"));
    assert!(html.contains(
        "<h2>Out of memory by a leak at <code>loss_history train.py:26</code>: each of 136 iterations kept "
    ));
    let order = [
        "<h2>Out of memory",
        "What helps",
        "Memory over time",
        "Segments at the failure",
        "Who holds the memory at the failure",
    ];
    let places = order.map(place);
    assert!(places.is_sorted(), "{places:?}");
    assert!(html.contains("train.py:26"), "the line that grows");
    // The limit is not in the file, and the report has both of its bounds.
    assert!(html.contains("inferred from the file, which does not name it: between"));
}

#[test]
fn a_limit_that_is_given_is_the_one_of_the_table() {
    let limit = |_: &Run| Conditions { limit: Some(Bytes::gib(1)), ..Conditions::default() };
    let path = fixture("snapshots/checkerboard_default_100.pickle.gz");
    let html = report_under(source(&path).into(), &ReportOptions::default(), &limit, &mut |_| {
        ControlFlow::Continue(())
    });
    let html = html.unwrap();
    check(&html);
    assert!(html.contains("The limit of reserved bytes was given: 1 GiB (1,073,741,824 bytes)."));
    assert!(!html.contains("inferred from the file"));
}

#[test]
fn a_run_that_fits_shows_its_peak_and_who_holds_it() {
    let html = made(
        workload("two.workload", "small = alloc 2 MiB; large = alloc 30 MiB; free small"),
        &ReportOptions::default(),
    );
    assert!(html.contains("<h2>It fits: at most 32 MiB are allocated, and"), "{html}");
    assert!(html.contains("tensor large") && html.contains("30 MiB<small>31,457,280 bytes</small>"));
    assert!(html.contains("after request 2 of 3: 32 MiB (33,554,432 bytes)"));
}

/// A run without a GPU has no certificate, and names the GPU that it was simulated on.
#[test]
fn a_simulation_is_no_recording_of_pytorch() {
    let bytes = std::fs::read(fixture("snapshots/small_2.11.pickle")).unwrap();
    let simulation = Simulation {
        program: "print(1 < 2)".to_owned(),
        arguments: "--batch-size 8".to_owned(),
        gpu: "Tesla T4".to_owned(),
        total: Bytes::gib(15),
        capacity: Bytes::gib(14),
        release: Release::LATEST,
        caveats: vec!["the numbers of this GPU are derived".to_owned()],
        failed_lines: Vec::new(),
        unfreeable: Vec::new(),
    };
    let name = "program.py".to_owned();
    let source = || RunSource::Simulated {
        name: name.clone(),
        bytes: bytes.clone(),
        simulation: Box::new(simulation.clone()),
    };
    let html = made(source(), &ReportOptions::default());
    check(&html);
    for part in [
        "Simulated: the program ran in Blockyard",
        "<dd>Tesla T4</dd>",
        "--batch-size 8",
        "print(1 &lt; 2)",
        "<li>The numbers of this GPU are derived.</li>",
        "The device is a Tesla T4 of 15 GiB, of which 1 GiB are set aside for the CUDA context and \
         libraries (an estimate: measured on an NVIDIA H100 80GB HBM3, and not on a Tesla T4)",
    ] {
        assert!(html.contains(part), "{part}: {html}");
    }
    for part in ["Certificate", "made the same decisions", "memory snapshot of PyTorch", "are assumed"] {
        assert!(!html.contains(part), "{part}: {html}");
    }
    let redacted = made(source(), &ReportOptions { is_redacted: true, ..ReportOptions::default() });
    assert!(!redacted.contains("--batch-size") && !redacted.contains("print(1"), "{redacted}");
}

#[test]
fn each_device_has_a_part_and_one_can_be_chosen() {
    let two = two_devices();
    let all = made(two(), &ReportOptions::default());
    assert!(all.contains("<a href=\"#part-0\">Device 0</a>") && all.contains("<section id=\"part-1\">"));
    let one = made(two(), &ReportOptions { device: Some(MemoryName::Device(1)), ..ReportOptions::default() });
    assert!(!one.contains("part-1\"") && one.contains("Who holds"));
    let none = report(
        two(),
        &ReportOptions { device: Some(MemoryName::Device(7)), ..ReportOptions::default() },
        &mut |_| ControlFlow::Continue(()),
    );
    assert_eq!(none.unwrap_err().to_string(), "the file has nothing about device 7; it has 0, 1");
}

#[test]
fn the_device_that_holds_most_comes_first() {
    let mut file = two_device_file();
    file.devices[0].segments.truncate(1);
    std::mem::take(&mut file.devices[0].trace);
    let mut bytes = Vec::new();
    file.write_pickle(&mut bytes).unwrap();
    let html = made(RunSource::File { name: "two.pickle".to_owned(), bytes }, &ReportOptions::default());
    assert!(
        html.contains("<a href=\"#part-0\">Device 1</a>") && html.contains("device 1 holds most"),
        "{html}"
    );
}

/// A snapshot with the devices of two others.
fn two_devices() -> impl Fn() -> RunSource {
    let mut bytes = Vec::new();
    two_device_file().write_pickle(&mut bytes).unwrap();
    move || RunSource::File { name: "two.pickle".to_owned(), bytes: bytes.clone() }
}

fn two_device_file() -> SnapshotFile {
    let read = |name: &str| read_snapshot(&fixture(name));
    let mut file = read("snapshots/rank0.pickle.gz");
    let mut second = file.devices[0].clone();
    file.devices[0].index = 0;
    second.index = 1;
    second.segments.iter_mut().for_each(|segment| segment.device = 1);
    file.devices[0].segments.iter_mut().for_each(|segment| segment.device = 0);
    file.devices.truncate(1);
    file.devices.push(second);
    file
}

fn read_snapshot(path: &Path) -> SnapshotFile {
    snapshot::read(&std::fs::read(path).unwrap()[..], &mut |_| ControlFlow::Continue(())).unwrap()
}

#[test]
fn a_redacted_report_has_no_name_of_the_file() {
    let redacted = ReportOptions { is_redacted: true, ..ReportOptions::default() };
    // Words that any report has: a function may be called `main`.
    let words = made(workload("x", "x = alloc 3 MiB"), &redacted);
    for path in ["snapshots", "oom"].into_iter().flat_map(fixtures) {
        let bytes = std::fs::read(&path).unwrap();
        assert!(matches!(file_kind(&bytes), FileKind::Snapshot | FileKind::Packed));
        let file = read_snapshot(&path);
        let html = made(source(&path), &redacted);
        let open = made(source(&path), &ReportOptions::default());
        for text in texts(&file.stacks) {
            if words.contains(&text) {
                continue;
            }
            assert!(!html.contains(&text), "{} has {text}", path.display());
        }
        assert!(!html.contains(path.file_name().unwrap().to_str().unwrap()));
        assert!(
            !html.contains(".py") && (file.stacks.is_empty() || open.contains(".py")),
            "{}",
            path.display()
        );
        assert!(file.stacks.is_empty() || html.contains("call site 1"), "{}", path.display());
    }
}

/// The names of functions and files, whole and the last part of paths.
fn texts(stacks: &Stacks) -> BTreeSet<String> {
    let mut texts = BTreeSet::new();
    for stack in (0..u32::try_from(stacks.len()).unwrap()).map(blockyard_record::StackId::new) {
        for frame in stacks.frames(stack).map(|frame| stacks.frame(frame)) {
            let file = frame.filename.rsplit('/').next().unwrap_or_default();
            texts.extend([frame.name, frame.filename, file].map(str::to_owned));
        }
    }
    texts.retain(|text| text.len() > 1);
    texts
}

/// The snapshot with every text of a frame changed.
fn with_texts(path: &Path, change: impl Fn(&str) -> String) -> RunSource {
    let mut file = read_snapshot(path);
    let old = file.stacks.clone();
    let mut stacks = Stacks::default();
    for stack in (1..u32::try_from(old.len()).unwrap()).map(blockyard_record::StackId::new) {
        let frames = old.frames(stack).map(|frame| {
            let frame = old.frame(frame);
            let name = stacks.intern_text(&change(frame.name)).unwrap();
            let filename = stacks.intern_text(&change(frame.filename)).unwrap();
            stacks.intern_frame(name, filename, frame.line).unwrap().get()
        });
        let frames: Vec<u32> = frames.collect();
        stacks.intern_stack(&frames).unwrap();
    }
    assert_eq!(stacks.len(), old.len());
    for annotation in &mut file.annotations {
        annotation.name = stacks.intern_text(&change(old.texts().get(annotation.name))).unwrap();
    }
    file.contexts
        .iter_mut()
        .for_each(|context| (context.compile_context, context.user_metadata) = (None, None));
    file.stacks = Arc::new(stacks);
    let mut bytes = Vec::new();
    file.write_pickle(&mut bytes).unwrap();
    RunSource::File { name: change("own.pickle"), bytes }
}

#[test]
fn no_text_of_a_frame_is_left_in_a_redacted_report() {
    for name in ["oom/loss_history_100.pickle.gz", "oom/views_pin_100.pickle.gz", "snapshots/rank0.pickle.gz"]
    {
        let marked = || with_texts(&fixture(name), |text| format!("{text}ZQX"));
        assert!(made(marked(), &ReportOptions::default()).contains("ZQX"), "{name}");
        let redacted = ReportOptions { is_redacted: true, ..ReportOptions::default() };
        assert!(!made(marked(), &redacted).contains("ZQX"), "{name}");
    }
    let text =
        "stream ZQXs\npool ZQXp\nstep \"ZQXl\"\nZQXa = alloc 3 MiB\nZQXb = alloc 4 MiB on ZQXs\nfree ZQXa";
    let redacted = ReportOptions { is_redacted: true, ..ReportOptions::default() };
    let html = made(workload("ZQX.workload", text), &redacted);
    assert!(!html.contains("ZQX") && html.contains("its name is left out"));
    let recording = source(&fixture("programs/gpt2_varlen.jsonl.gz"));
    let RunSource::File { bytes, .. } = recording else { panic!() };
    let html = made(RunSource::File { name: "ZQX.jsonl.gz".to_owned(), bytes }, &redacted);
    assert!(!html.contains("ZQX") && !html.contains("gpt2"));
}

#[test]
fn hostile_names_stay_text() {
    let path = fixture("oom/loss_history_100.pickle.gz");
    let html = made(
        with_texts(&path, |text| format!("{HOSTILE}{text}")),
        &ReportOptions { notes: vec![HOSTILE.to_owned()], ..ReportOptions::default() },
    );
    assert!(html.matches("&lt;/script&gt;&lt;img src=x").count() > 4);
    assert!(!html.contains('\u{202e}'));
}

#[test]
fn notes_are_paragraphs() {
    let notes = vec!["Batch size 8.".to_owned(), "Since Monday.".to_owned()];
    let html = made(workload("w", "a = alloc 1 MiB"), &ReportOptions { notes, ..ReportOptions::default() });
    assert!(html.contains("<p class=\"note\">Batch size 8.</p>\n<p class=\"note\">Since Monday.</p>"));
}

#[test]
fn what_is_no_run_has_an_error() {
    let error = |bytes: &[u8]| {
        let source = RunSource::File { name: "x".to_owned(), bytes: bytes.to_vec() };
        report(source, &ReportOptions::default(), &mut |_| ControlFlow::Continue(())).unwrap_err().to_string()
    };
    assert!(
        error(b"\x89PNG\r\n").contains("neither a recording nor a snapshot"),
        "{}",
        error(b"\x89PNG\r\n")
    );
    assert!(error(b"a = alloc 3 apples").contains("apples"), "{}", error(b"a = alloc 3 apples"));
    assert!(!error(b"\x80\x04]q\x00.").is_empty());
}

#[test]
fn the_work_can_be_cancelled() {
    let path = fixture("programs/gnn_random.jsonl.gz");
    let cancelled = report(source(&path), &ReportOptions::default(), &mut |_| ControlFlow::Break(()));
    assert!(matches!(cancelled, Err(ReportError::Lab(blockyard_lab::LabError::Cancelled))));
}

/// Every link of the verdict leads to a part of the page; growth leads to the figure, which names its steps.
#[test]
fn sentences_of_the_verdict_lead_to_their_places() {
    let html = of("oom/loss_history_100.pickle.gz");
    let targets: Vec<&str> =
        html.split("href=\"#").skip(1).map(|rest| rest.split('"').next().unwrap()).collect();
    for target in &targets {
        assert!(html.contains(&format!(" id=\"{target}\"")), "{target}");
    }
    for wanted in ["over-time-0", "segments-0", "holders-0", "setting-0-"] {
        assert!(targets.iter().any(|target| target.starts_with(wanted)), "{wanted}: {targets:?}");
    }
    let steps = html.split("#over-time-0\">from request ").nth(1).unwrap().split("</a>").next().unwrap();
    let (first, last) = steps.split_once(" to request ").unwrap();
    assert!(html.contains(&format!("what grows most: requests {first} and {last}.")), "{steps}");
}

/// The settings that the reader tried are below those that every report tries, each with its device or its
/// limit.
#[test]
fn what_the_reader_tried_is_in_the_report() {
    let text = "a = alloc 100 MiB; b = alloc 300 MiB; free a; c = alloc 90 MiB";
    let tried = vec![
        Conditions { limit: Some(Bytes::mib(350)), ..Conditions::with_conf("max_split_size_mb:33") },
        Conditions { capacity: Some(Bytes::gib(2)), ..Conditions::default() },
        Conditions::with_conf(HOSTILE),
    ];
    let html = made(workload("w", text), &ReportOptions { tried, ..ReportOptions::default() });
    assert!(html.contains("max_split_size_mb:33, at most 350 MiB reserved (tried by the reader)"), "{html}");
    assert!(
        html.contains("default settings, a device with 2 GiB for PyTorch (tried by the reader)"),
        "{html}"
    );
    let row = html.split("<tr ").find(|row| row.contains("max_split_size_mb:33")).unwrap();
    assert!(row.contains("yes, at request 2"), "{row}");
}

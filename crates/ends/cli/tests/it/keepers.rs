//! What `blockyard dry-run` says about programs that grow, over a real PyTorch, and `blockyard python` in
//! Blockyard's: `TORCH=PYTHON BLOCKYARD_STANDIN=LIBRARY cargo test -p blockyard-cli --test it keepers::`.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

use std::path::PathBuf;

use serde_json::Value;

use super::{blockyard, command, json};

fn fixture(program: &str) -> String {
    format!("{}/../../../tests/fixtures/keepers/{program}.py", env!("CARGO_MANIFEST_DIR"))
}

fn folder() -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("keepers");
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

/// The report of a dry run of a program of `tests/fixtures/keepers`, as text and as JSON; `None` without a
/// PyTorch.
fn dry_run(program: &str, options: &[&str]) -> Option<(String, Value)> {
    let (Ok(python), Ok(library)) = (std::env::var("TORCH"), std::env::var("BLOCKYARD_STANDIN")) else {
        eprintln!("skipped: TORCH names no Python with PyTorch, or BLOCKYARD_STANDIN no library");
        return None;
    };
    let folder = folder();
    let report = folder.join(format!("{program}.json"));
    let mut command = command();
    command.env("BLOCKYARD_STANDIN", library).env("XDG_CACHE_HOME", folder.join("cache"));
    command.args(["dry-run", "--python", python.split(':').next().unwrap_or_default()]);
    command.args(["--total-memory", "8 GiB", "--json"]).arg(&report).args(options).arg(fixture(program));
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    let report = std::fs::read_to_string(report).unwrap_or_else(|error| panic!("{error}: {text}"));
    Some((text, json(&report)))
}

/// The first keeper in the report, as one line: name, function, kind, tensors, lines that put and made.
fn keeper(report: &Value) -> String {
    let keeper = &report["keepers"][0];
    let lines = |name: &str| {
        let lines = keeper[name].as_array().into_iter().flatten();
        lines.map(|line| line["line"].to_string()).collect::<Vec<_>>().join(" ")
    };
    let text = |name: &str| keeper[name].as_str().unwrap_or("-").to_owned();
    format!(
        "{} {} {} {} put {} made {}",
        text("name"),
        text("function"),
        text("kind"),
        keeper["tensors"],
        lines("put_at"),
        lines("made_at")
    )
}

/// The programs that grow, each with its keeper.
const GROWING: [(&str, &str); 7] = [
    ("logged", "logged - list 50 put 17 made 13"),
    ("losses", "losses main list 159 put 13 made 12 10 13"),
    ("cache", "cache - dict 40 put 10 made 9"),
    ("attribute", "self.meters['out'].values Trainer.fit list 40 put 8 made 16"),
    ("hook", "kept watch list 40 put 7 made 7"),
    ("recent", "recent - deque 40 put 7 made 12"),
    ("total", "total main graph 80 put 12 made 10 9"),
];

#[test]
fn each_kind_of_keeper_is_named_with_its_lines() {
    for (program, expected) in GROWING {
        let Some((text, report)) = dry_run(program, &[]) else { return };
        assert_eq!(keeper(&report), expected, "{program}: {text}");
        assert_eq!(report["keepers"].as_array().map(Vec::len), Some(1), "{program}: {report}");
        // Growth comes before the peaks.
        let lines: Vec<&str> = text.lines().skip_while(|line| !line.starts_with("dry run")).collect();
        assert!(lines[1].starts_with("  it fits so far, and grows: "), "{program}: {text}");
        assert!(lines[2].contains(" keeps ") && lines[3].contains("peak allocated"), "{program}: {text}");
        assert_eq!(report["exact"], true, "{program}: {text}");
    }
}

#[test]
fn a_program_that_runs_out_names_its_keeper() {
    let Some((text, report)) = dry_run("oom", &[]) else { return };
    let keeper = keeper(&report);
    assert!(keeper.starts_with("seen['out'] main list 1") && keeper.ends_with("put 14 made 10"), "{keeper}");
    assert!(text.contains("OutOfMemoryError") && text.contains("  memory grew: each of "), "{text}");
}

#[test]
fn where_nothing_grows_no_keeper_is_named() {
    for program in ["steady", "inference", "forward"] {
        let Some((text, report)) = dry_run(program, &[]) else { return };
        assert_eq!(report["keepers"], Value::Array(Vec::new()), "{program}");
        assert!(!text.contains("grows") && !text.contains("grew"), "{program}: {text}");
    }
}

/// A search must not keep anything of the program: the peak of the run is that of a run without a search.
#[test]
fn a_search_changes_no_number() {
    let Some((text, report)) = dry_run("logged", &[]) else { return };
    let printed = |line: usize| report["lines"][line]["text"].as_str().unwrap_or_default().to_owned();
    let peaks: Vec<u64> =
        (0..50).map(|line| printed(line).parse().unwrap_or_else(|_| panic!("{text}"))).collect();
    let steps: Vec<u64> = peaks.windows(2).skip(1).map(|pair| pair[1] - pair[0]).collect();
    assert!(steps.iter().all(|step| *step == steps[0]), "each iteration keeps as much: {steps:?}");
}

/// The headline and the first sentence about growth in the verdict about a file.
fn verdict(file: &str) -> (String, String) {
    let called = blockyard(["verdict", "--json", file]);
    let answer = json(&called.out);
    let findings = answer["findings"].as_array().into_iter().flatten();
    let grows = findings.clone().find(|finding| finding["about"] == "grows");
    let grows = grows.unwrap_or_else(|| panic!("{}{}", called.out, called.err));
    (answer["headline"].as_str().unwrap_or_default().to_owned(), grows["text"].as_str().unwrap().to_owned())
}

#[test]
fn the_verdict_of_a_dry_runs_snapshot_names_the_keeper() {
    let snapshot = folder().join("cache.pickle").display().to_string();
    let Some((text, _)) = dry_run("cache", &["--snapshot", &snapshot]) else { return };
    let (headline, grows) = verdict(&snapshot);
    assert!(headline.starts_with("it fits so far, and grows at `"), "{headline}");
    assert!(text.contains(&format!("  {grows}\n")), "{grows}: {text}");
}

/// The search in Blockyard's own PyTorch finds what the search in PyTorch finds.
#[cfg(feature = "python")]
#[test]
fn a_simulated_program_names_its_keeper() {
    for (program, expected) in GROWING {
        let recording = folder().join(format!("{program}.jsonl")).display().to_string();
        let called = blockyard(["python", "--json", "--record", &recording, &fixture(program)]);
        let answer = json(&called.out);
        // Before Python 3.12 nobody says when a function ends: its variables are those of the search before.
        let [mut found, mut expected] = [keeper(&answer), expected.to_owned()];
        if expected.split(' ').nth(1) != Some("-") {
            let without_count = |text: &str| text.split(' ').take(3).collect::<Vec<_>>().join(" ");
            [found, expected] = [without_count(&found), without_count(&expected)];
        }
        assert_eq!(found, expected, "{program}: {}", called.err);
        let (headline, grows) = verdict(&recording);
        assert!(headline.starts_with("it fits so far, and grows"), "{program}: {headline}");
        assert!(grows.contains(" keeps "), "{program}: {grows}");
    }
    for program in ["steady", "inference", "forward"] {
        let called = blockyard(["python", "--json", &fixture(program)]);
        assert_eq!(json(&called.out)["keepers"], Value::Array(Vec::new()), "{program}");
    }
}

#[cfg(feature = "python")]
#[test]
fn a_simulated_program_that_runs_out_says_what_grew() {
    let called = blockyard(["python", "--total-memory", "8 GiB", &fixture("oom")]);
    let said = called.err.lines().skip_while(|line| !line.starts_with("memory grew: each of "));
    let keeper = said.last().unwrap_or_default();
    assert!(
        keeper.starts_with("`seen['out']` in `main` (keepers/oom.py:14 appends) keeps "),
        "{}",
        called.err
    );
}

//! What `blockyard dry-run` says about programs that grow, over a real PyTorch:
//! `TORCH=PYTHON BLOCKYARD_STANDIN=LIBRARY cargo test -p blockyard-cli --test it keepers::`.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::{command, json};

/// The report of a dry run of a program of `tests/fixtures/keepers`, as text and as JSON; `None` without a
/// PyTorch.
fn dry_run(program: &str) -> Option<(String, Value)> {
    let (Ok(python), Ok(library)) = (std::env::var("TORCH"), std::env::var("BLOCKYARD_STANDIN")) else {
        eprintln!("skipped: TORCH names no Python with PyTorch, or BLOCKYARD_STANDIN no library");
        return None;
    };
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("keepers");
    std::fs::create_dir_all(&folder).unwrap();
    let report = folder.join(format!("{program}.json"));
    let file =
        Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../../tests/fixtures/keepers/{program}.py"));
    let mut command = command();
    command.env("BLOCKYARD_STANDIN", library).env("XDG_CACHE_HOME", folder.join("cache"));
    command.args(["dry-run", "--python", python.split(':').next().unwrap_or_default()]);
    command.args(["--total-memory", "8 GiB", "--json"]).arg(&report).arg(file);
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

#[test]
fn each_kind_of_keeper_is_named_with_its_lines() {
    for (program, expected) in [
        ("logged", "logged - list 50 put 17 made 13"),
        ("losses", "losses main list 159 put 13 made 12 10 13"),
        ("cache", "cache - dict 40 put 10 made 9"),
        ("attribute", "self.meters['out'].values Trainer.fit list 40 put 8 made 16"),
        ("hook", "kept watch list 40 put 7 made 7"),
        ("recent", "recent - deque 40 put 7 made 12"),
        ("total", "total main graph 80 put 12 made 10 9"),
    ] {
        let Some((text, report)) = dry_run(program) else { return };
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
    let Some((text, report)) = dry_run("oom") else { return };
    let keeper = keeper(&report);
    assert!(keeper.starts_with("seen['out'] main list 1") && keeper.ends_with("put 14 made 10"), "{keeper}");
    assert!(text.contains("OutOfMemoryError") && text.contains("  memory grew: each of "), "{text}");
}

#[test]
fn where_nothing_grows_no_keeper_is_named() {
    for program in ["steady", "inference", "forward"] {
        let Some((text, report)) = dry_run(program) else { return };
        assert_eq!(report["keepers"], Value::Array(Vec::new()), "{program}");
        assert!(!text.contains("grows") && !text.contains("grew"), "{program}: {text}");
    }
}

/// A search must not keep anything of the program: the peak of the run is that of a run without a search.
#[test]
fn a_search_changes_no_number() {
    let Some((text, report)) = dry_run("logged") else { return };
    let printed = |line: usize| report["lines"][line]["text"].as_str().unwrap_or_default().to_owned();
    let peaks: Vec<u64> =
        (0..50).map(|line| printed(line).parse().unwrap_or_else(|_| panic!("{text}"))).collect();
    let steps: Vec<u64> = peaks.windows(2).skip(1).map(|pair| pair[1] - pair[0]).collect();
    assert!(steps.iter().all(|step| *step == steps[0]), "each iteration keeps as much: {steps:?}");
}

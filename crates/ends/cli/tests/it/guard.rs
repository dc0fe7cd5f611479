//! `blockyard guard` over a package that stands for PyTorch: no PyTorch and no GPU is needed.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

use std::path::{Path, PathBuf};

use blockyard_answers::GuardAnswer;
use serde_json::Value;

use super::fit::{called, folder};
use super::{CommandOutput, command, json};

/// A program in which two lines hold memory: 128 KiB to the end, and 64 KiB for each unit of `--batch` in a
/// training step.
const TRAIN: &str = "\
import argparse, torch, traced
parser = argparse.ArgumentParser()
parser.add_argument('--batch', type=int, default=1)
parser.add_argument('--fails', action='store_true')
options = parser.parse_args()
def step():
    traced.take(65_536 * options.batch)
    if options.fails:
        print('some words')
        raise ValueError('a value that the program does not take')
    traced.give(65_536 * options.batch)
traced.take(131_072)
optimizer = torch.optim.Optimizer()
for _ in range(9):
    step()
    optimizer.step()
    break
";

/// [`TRAIN`] with one more line at the top, and another new line that takes 32 KiB in a training step.
fn with_a_layer() -> String {
    TRAIN
        .replace("import argparse", "# one more layer\nimport argparse")
        .replace("def step():\n", "def step():\n    traced.take(32_768)\n")
}

fn guard_in(folder: &Path, within: &str, arguments: &[&str]) -> (CommandOutput, Option<Value>) {
    let report = folder.join("report.json");
    let _ = std::fs::remove_file(&report);
    let mut all = vec!["guard", "--python", "python3", "--json", report.to_str().unwrap()];
    all.extend(arguments);
    let called = called(command().args(all).current_dir(folder.join(within)), folder);
    (called, std::fs::read_to_string(report).ok().map(|text| json_of_its_type(&text)))
}

/// Reads a report from its JSON, and asserts that the report's type writes the same JSON again.
fn json_of_its_type(text: &str) -> Value {
    let value = json(text);
    let read: GuardAnswer = serde_json::from_str(text).unwrap();
    assert_eq!(serde_json::to_value(read).unwrap(), value);
    value
}

fn guard(folder: &Path, arguments: &[&str]) -> (CommandOutput, Option<Value>) {
    guard_in(folder, "", arguments)
}

/// A folder with the program, and a file with its baseline.
fn begun(name: &str, arguments: &[&str]) -> Option<PathBuf> {
    let folder = folder(&format!("guard-{name}"))?;
    std::fs::write(folder.join("train.py"), TRAIN).unwrap();
    let mut all = vec!["--update", "train.py", "--gpu", "h100", "--steps", "1"];
    all.extend(arguments);
    let (called, _) = guard(&folder, &all);
    assert_eq!(called.status, 0, "{}{}", called.out, called.err);
    Some(folder)
}

fn file(folder: &Path) -> String {
    std::fs::read_to_string(folder.join("memory.toml")).unwrap()
}

#[test]
fn a_peak_that_grew_fails_with_the_lines_to_the_byte() {
    let Some(folder) = begun("grew", &["--budget", "512 KiB", "--", "--batch", "2"]) else { return };
    let text = file(&folder);
    for words in [
        "arguments = [\"--batch\", \"2\"]",
        "budget = \"512 KiB\"",
        "steps = 1",
        "peak_allocated = 262144  # 256 KiB",
        "    { bytes = 131072, at = \"train.py:7\", function = \"step\", code = \"traced.take(65_536 * \
         options.batch)\" },  # 128 KiB",
        "everything_else = 0",
    ] {
        assert!(text.contains(words), "{words}\n{text}");
    }
    // A call from another folder passes too, since programs start in the folder of the file.
    std::fs::create_dir_all(folder.join("tests")).unwrap();
    let (called, report) = guard_in(&folder, "tests", &["--file", "../memory.toml"]);
    assert_eq!(called.status, 0, "{}{}", called.out, called.err);
    assert_eq!(report.unwrap()["passed"], true);
    assert!(called.out.contains("peak allocated: 262,144 bytes (256 KiB), as before"), "{}", called.out);

    std::fs::write(folder.join("train.py"), with_a_layer()).unwrap();
    let (called, report) = guard(&folder, &[]);
    let program = &report.unwrap()["programs"][0];
    assert_eq!((called.status, &program["passed"]), (1, &false.into()), "{}{}", called.out, called.err);
    let kinds: Vec<&Value> = program["failures"].as_array().unwrap().iter().map(|it| &it["kind"]).collect();
    assert_eq!(kinds, ["allocated", "reserved"]);
    // All lines of the baseline moved, and one line is new.
    let rows = program["rows"].as_array().unwrap();
    let changes: Vec<(&Value, i64)> =
        rows.iter().map(|row| (&row["at"], row["change"].as_i64().unwrap())).collect();
    assert_eq!(changes, [(&"train.py:8".into(), 32_768), (&Value::Null, 0)], "{}", called.out);
    assert!(called.out.contains("+32,768  train.py:8 step  `traced.take(32_768)`, new"), "{}", called.out);
    assert_eq!(program["dry_run"]["peaks"][0]["allocated"], 294_912);

    // An option of the command sets a tolerance that allows the growth.
    let allowed = ["train.py", "--tolerance", "32 KiB", "--", "--batch", "2"];
    assert_eq!(guard(&folder, &allowed).0.status, 0);
    let tight = ["train.py", "--tolerance", "32767", "--", "--batch", "2"];
    assert_eq!(guard(&folder, &tight).0.status, 1);

    // `--update` writes the new baseline, and comments of the file stay.
    std::fs::write(folder.join("memory.toml"), text.replace("[[program]]", "# ours\n[[program]]")).unwrap();
    let (called, _) = guard(&folder, &["--update"]);
    assert_eq!(called.status, 0, "{}{}", called.out, called.err);
    assert!(called.out.contains("memory.toml has the new baseline of 1 program"), "{}", called.out);
    let text = file(&folder);
    assert!(text.contains("# ours\n[[program]]") && text.contains("peak_allocated = 294912"), "{text}");
    assert_eq!(guard(&folder, &[]).0.status, 0);
}

#[test]
fn a_budget_counts_without_a_baseline_and_in_an_update() {
    let Some(folder) = folder("guard-budget") else { return };
    std::fs::write(folder.join("train.py"), TRAIN).unwrap();
    // 128 KiB and 64 KiB are reserved.
    let with = |budget: &str| guard(&folder, &["train.py", "--gpu", "t4", "--budget", budget]);
    assert_eq!(with("196608").0.status, 0);
    let (called, report) = with("196607");
    assert_eq!(called.status, 1, "{}{}", called.out, called.err);
    let words = "over the budget: the peak reserved is 196,608 bytes (192 KiB), which is 1 byte more than";
    assert!(called.out.contains(words), "{}", called.out);
    let report = report.unwrap();
    assert_eq!(report["programs"][0]["failures"][0]["kind"], "budget");
    assert_eq!(report["programs"][0]["baseline"], Value::Null);
    assert!(!folder.join("memory.toml").exists(), "a run without --update writes nothing");
    // With `--update` and a budget that is too small, the command fails and still writes the budget.
    let (called, _) = guard(&folder, &["--update", "train.py", "--gpu", "t4", "--budget", "196607"]);
    assert_eq!(called.status, 1, "{}{}", called.out, called.err);
    assert!(file(&folder).contains("budget = 196607"), "{}", file(&folder));
}

#[test]
fn a_program_that_fails_or_runs_out_is_no_baseline() {
    let Some(folder) = begun("fails", &[]) else { return };
    let before = file(&folder);
    let (called, _) = guard(&folder, &["--update", "train.py", "--", "--fails"]);
    assert_eq!(called.status, 2, "{}{}", called.out, called.err);
    assert!(called.out.contains("ValueError at") && called.out.contains("some words"), "{}", called.out);
    assert!(called.out.ends_with("memory.toml is unchanged\n"), "{}", called.out);
    let (called, report) = guard(&folder, &["train.py", "--budget", "1 GiB", "--", "--batch", "40"]);
    assert_eq!(called.status, 1, "{}{}", called.out, called.err);
    assert!(called.out.contains("the program runs out of memory at"), "{}", called.out);
    assert_eq!(report.unwrap()["programs"][0]["failures"][0]["kind"], "out_of_memory");
    assert_eq!(file(&folder), before);
    std::fs::remove_file(folder.join("memory.toml")).unwrap();
    assert_eq!(guard(&folder, &["--update", "train.py", "--", "--fails"]).0.status, 2);
    assert!(!folder.join("memory.toml").exists(), "a file that says nothing is not written");
}

#[test]
fn what_cannot_be_answered_is_an_error() {
    let Some(folder) = folder("guard-errors") else { return };
    std::fs::write(folder.join("train.py"), TRAIN).unwrap();
    let error = |arguments: &[&str]| {
        let (called, report) = guard(&folder, arguments);
        assert_eq!((called.status, report), (2, None), "{}{}", called.out, called.err);
        called.err
    };
    assert!(error(&[]).contains("memory.toml: no such file; `blockyard guard --update"));
    assert!(error(&["missing.py"]).contains("missing.py: no such file"));
    assert!(error(&["train.py"]).contains("neither a baseline nor a budget of `train.py` on h200"));
    assert!(error(&["--budget", "1 GiB"]).contains("<PROGRAM>"), "options are those of one program");
    assert!(error(&["train.py", "--gpu", "voodoo2"]).contains("no GPU has this name"));
    std::fs::write(folder.join("memory.toml"), "version = 1\n").unwrap();
    assert!(error(&[]).contains("memory.toml has no program"));
    std::fs::write(folder.join("memory.toml"), "[[program]]\nprogram = \"train.py\"\nbudget = \"much\"\n")
        .unwrap();
    assert!(error(&[]).contains("memory.toml: `budget` of entry 1 is not a size"));
    std::fs::write(
        folder.join("memory.toml"),
        "[[program]]\nprogram = \"train.py\"\ngpu = \"voodoo2\"\nbudget = 1\n",
    )
    .unwrap();
    assert!(error(&[]).contains("memory.toml: train.py: no GPU has this name"));
    std::fs::write(folder.join("memory.toml"), "[[program]]\nprogram = \"gone.py\"\nbudget = 1\n").unwrap();
    assert!(error(&[]).contains("gone.py: no such file"));
    let outside = std::env::temp_dir().join("blockyard-guard-outside.py");
    std::fs::write(&outside, "").unwrap();
    std::fs::write(folder.join("memory.toml"), "version = 1\n").unwrap();
    assert!(
        error(&[outside.to_str().unwrap(), "--budget", "1"])
            .contains("is not below the folder of memory.toml")
    );
    std::fs::remove_file(outside).unwrap();
}

/// Over a real PyTorch: `TORCH=PYTHON BLOCKYARD_STANDIN=LIBRARY cargo test -p blockyard-cli --test it
/// guard::`.
#[test]
fn one_more_layer_is_told_to_the_byte() {
    let (Ok(python), Ok(library)) = (std::env::var("TORCH"), std::env::var("BLOCKYARD_STANDIN")) else {
        eprintln!("skipped: TORCH names no Python with PyTorch, or BLOCKYARD_STANDIN no library");
        return;
    };
    let python = python.split(':').next().unwrap_or_default();
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("guard-real");
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../tests/fixtures/fit/encoder.py");
    let source = std::fs::read_to_string(source).unwrap();
    let call = |arguments: &[&str]| {
        let mut command = command();
        command.env("BLOCKYARD_STANDIN", &library).env("XDG_CACHE_HOME", folder.join("cache"));
        command.args(["guard", "--python", python, "--json", "report.json"]).args(arguments);
        let output = command.current_dir(&folder).output().unwrap();
        let text = std::fs::read_to_string(folder.join("report.json"));
        let report =
            text.unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&output.stderr)));
        (output.status.code().unwrap(), json(&report)["programs"][0].clone())
    };
    std::fs::write(folder.join("encoder.py"), &source).unwrap();
    let (status, before) = call(&["--update", "encoder.py", "--gpu", "h200", "--steps", "3"]);
    assert_eq!((status, &before["estimate"]), (0, &false.into()), "{}", before["text"]);
    let bytes = |value: &Value| value.as_i64().unwrap();
    let sum =
        |rows: &Value, of: &str| rows.as_array().unwrap().iter().map(|row| bytes(&row[of])).sum::<i64>();
    assert_eq!(
        sum(&before["holders"], "bytes"),
        bytes(&before["peak_allocated"]),
        "lines hold all of the peak"
    );
    assert_eq!(call(&[]).0, 0, "the same program takes the same");
    let (moved, deeper) = ("\n\"\"\"Trains", "TransformerEncoder(layer, 9)");
    let changed = source.replacen("\"\"\"Trains", moved, 1).replace("TransformerEncoder(layer, 8)", deeper);
    assert_ne!(source, changed);
    std::fs::write(folder.join("encoder.py"), changed).unwrap();
    let (status, after) = call(&[]);
    let change = bytes(&after["peak_allocated"]) - bytes(&before["peak_allocated"]);
    assert_eq!((status, sum(&after["rows"], "change")), (1, change), "{}", after["text"]);
    // The model, the optimizer's states and the activations, each at its line.
    let grown =
        after["rows"].as_array().unwrap().iter().filter(|row| bytes(&row["change"]) > 1 << 20).count();
    assert_eq!(grown, 3, "{}", after["text"]);
    // The program reads a value that a kernel would have computed, so the report and the file mark an
    // estimate.
    let marked = source.replace("    loss.backward()", "    print(loss.item() > 0.5)\n    loss.backward()");
    assert_ne!(source, marked);
    std::fs::write(folder.join("encoder.py"), marked).unwrap();
    let (status, found) = call(&["--update"]);
    assert_eq!((status, &found["estimate"]), (0, &true.into()), "{}", found["text"]);
    assert!(found["text"].as_str().unwrap().contains("an estimate, because:\n    "), "{}", found["text"]);
    assert!(std::fs::read_to_string(folder.join("memory.toml")).unwrap().contains("exact = false"));
}

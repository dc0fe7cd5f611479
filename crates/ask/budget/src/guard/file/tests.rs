use proptest::prelude::*;

use super::super::MeasuredRun;
use super::*;

const TEXT: &str = r#"# Reviewed by the training team.
owner = "training"

[[program]]
program = "train.py" # the nightly job
arguments = ["--batch-size", "8"]
gpu = "h100"
budget = "60 GiB" # leaves room for evaluation
ticket = 17

[[program]]
program = "eval.py"
tolerance = 1024
"#;

fn measured() -> MeasuredRun {
    let holder = |bytes: Bytes, at: &str, function: &str, code: &str| GuardHolder {
        bytes,
        at: at.into(),
        function: function.into(),
        code: code.into(),
    };
    MeasuredRun {
        torch: "2.11.0+cu130".into(),
        is_exact: true,
        peak_allocated: Bytes::mib(3),
        peak_reserved: Bytes::mib(4),
        iteration_peaks: vec![Bytes::mib(2), Bytes::mib(3)],
        holders: vec![
            holder(Bytes::mib(2), "train.py:7", "f", "x = \"a\\b\""),
            holder(Bytes::new(1000), "threads without a line", "", ""),
            holder(Bytes::ZERO, "", "", ""),
        ],
        ..MeasuredRun::default()
    }
}

#[test]
fn what_a_person_wrote_is_read() {
    let file = GuardFile::parse(TEXT).unwrap();
    let [train, eval] = file.entries() else { panic!("two entries") };
    assert_eq!((train.command().as_str(), train.gpu.as_str()), ("train.py --batch-size 8", "h100"));
    assert_eq!((train.budget, train.tolerance), (Some(Bytes::gib(60)), Tolerance::default()));
    assert_eq!((eval.gpu.as_str(), eval.tolerance), ("h200", Tolerance::Bytes(Bytes::new(1024))));
    assert_eq!((eval.lines, &eval.baseline), (10, &None));
    assert_eq!(file.unread_keys(), ["owner", "ticket"]);
}

#[test]
fn an_update_keeps_comments_and_own_keys_and_is_read_again() {
    let mut file = GuardFile::parse(TEXT).unwrap();
    let baseline = measured().baseline(2);
    let entry = ProgramEntry { baseline: Some(baseline.clone()), ..file.entries()[0].clone() };
    file.set(&entry).unwrap();
    assert_eq!(file.entries()[0], entry);
    let text = file.to_string();
    for words in TEXT.lines() {
        assert!(text.lines().any(|line| line == words), "{words} is gone:\n{text}");
    }
    let again = GuardFile::parse(&text).unwrap();
    assert_eq!(again.entries(), file.entries());
    assert_eq!(again.entries()[0].baseline.as_ref(), Some(&baseline));
    assert!(text.contains("peak_allocated = 3145728  # 3 MiB\n"), "{text}");
    assert!(text.contains("everything_else = 1047576  # 1023.02 KiB\n"), "{text}");
    // The same again changes nothing, and another baseline takes the place of the first.
    let mut same = again.clone();
    same.set(&entry).unwrap();
    assert_eq!(same.to_string(), text);
    let commented = text.replace("peak_reserved", "# looked at in March\npeak_reserved");
    let mut file = GuardFile::parse(&commented).unwrap();
    let smaller =
        MeasuredRun { iteration_peaks: Vec::new(), peak_reserved: Bytes::mib(3), ..measured() }.baseline(1);
    file.set(&ProgramEntry { baseline: Some(smaller.clone()), ..entry }).unwrap();
    assert_eq!(file.entries()[0].baseline.as_ref(), Some(&smaller));
    assert!(file.to_string().contains("# looked at in March\npeak_reserved = 3145728  # 3 MiB"), "{file}");
    assert!(!file.to_string().contains("peak_by_step"), "{file}");
}

#[test]
fn a_new_entry_comes_last() {
    let mut file = GuardFile::default();
    assert!(file.entries().is_empty());
    let entry = ProgramEntry {
        program: "train.py".into(),
        gpu: "h100".into(),
        iterations: Some(3),
        budget: Some(Bytes::gib(60)),
        lines: ProgramEntry::LINES,
        baseline: Some(measured().baseline(10)),
        ..ProgramEntry::default()
    };
    file.set(&entry).unwrap();
    let other = ProgramEntry { arguments: vec!["--large".into()], ..entry.clone() };
    file.set(&other).unwrap();
    let again = GuardFile::parse(&file.to_string()).unwrap();
    assert_eq!(again.entries(), [entry, other], "{file}");
}

#[test]
fn a_file_that_cannot_be_read_is_named_by_its_place() {
    let error = |text: &str| GuardFile::parse(text).unwrap_err().to_string();
    assert!(error("a = \n").contains("line 1"), "{}", error("a = \n"));
    for (text, words) in [
        ("version = 2", "has version 2"),
        ("program = 1", "`program` is not a list of `[[program]]`"),
        ("[[program]]\ngpu = \"h100\"", "entry 1 has no `program`"),
        ("[[program]]\nprogram = \"a\"\nbudget = \"much\"", "`budget` of entry 1 is not a size"),
        ("[[program]]\nprogram = \"a\"\nbudget = -1", "`budget` of entry 1 is not a whole number"),
        ("[[program]]\nprogram = \"a\"\ntolerance = \"much\"", "`tolerance` of entry 1"),
        ("[[program]]\nprogram = \"a\"\nsteps = 0", "`steps` of entry 1"),
        ("[[program]]\nprogram = \"a\"\narguments = [1]", "`arguments` of entry 1"),
        ("[[program]]\nprogram = \"a\"\n[program.baseline]", "`peak_allocated` of the baseline of a"),
        ("[[program]]\nprogram = \"a\"\n[[program]]\nprogram = \"a\"", "two entries are for `a on h200`"),
    ] {
        assert!(error(text).contains(words), "{text}: {}", error(text));
    }
}

proptest! {
    #[test]
    fn any_text_is_read_or_named(cut in 0..400_usize, noise in "[\\[\\]{}=\"#,.a-z0-9\\n -]{0,40}") {
        // A part of a good file, and something behind it.
        let mut file = GuardFile::parse(TEXT).unwrap();
        file.set(&ProgramEntry { baseline: Some(measured().baseline(2)), ..file.entries()[0].clone() }).unwrap();
        let text: String = file.to_string().chars().take(cut).chain(noise.chars()).collect();
        if let Ok(mut read) = GuardFile::parse(&text) {
            // What can be read can be written, and be read again.
            read.set(&ProgramEntry { program: "other.py".into(), gpu: "t4".into(), ..ProgramEntry::default() }).unwrap();
            prop_assert!(GuardFile::parse(&read.to_string()).is_ok(), "{}", read);
        }
    }
}

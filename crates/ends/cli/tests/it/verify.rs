use crate::{begun_late, blockyard, blockyard_with_input, file, fixture, fixture_text, gzip, json};

/// The trace of a recording with one address that is not what PyTorch returned.
fn tampered() -> String {
    let text = fixture_text("synthetic/default-small");
    let line = text.lines().position(|line| line.starts_with("{\"trace\"")).unwrap();
    let mut lines: Vec<String> = text.lines().map(ToOwned::to_owned).collect();
    let mut trace = json(&lines[line]);
    let entry = &mut trace["trace"][100];
    let addr = entry[1].as_u64().unwrap();
    entry[1] = (addr + 512).into();
    lines[line] = trace.to_string();
    lines.join("\n")
}

#[test]
fn recordings_that_are_identical_are_a_line_each() {
    let names = ["synthetic/default-mix", "synthetic/default-tight", "programs/gnn_random"].map(fixture);
    let called = blockyard(["verify"].into_iter().chain(names.iter().map(String::as_str)));
    assert_eq!((called.status, called.err.as_str()), (0, ""));
    let lines: Vec<&str> = called.out.lines().collect();
    assert_eq!(lines.len(), 3, "{}", called.out);
    for (line, name) in lines.iter().zip(&names) {
        assert!(line.starts_with(&format!("{name}: identical: events ")), "{line}");
    }
    assert!(lines[0].ends_with(
        "events 1762/1762, statistics 1202/1202, placements 657/657, segments 27/27, blocks 171/171, memory_summary 1/1"
    ));
}

#[test]
fn a_recording_that_begins_late_is_compared_from_there_on() {
    let late = file("late.jsonl", begun_late("programs/gnn_random", 501));
    let called = blockyard(["verify", &late]);
    assert_eq!(called.status, 0, "{}{}", called.out, called.err);
    let events = format!("{late}: identical: events 8456/8456, ");
    assert!(called.out.starts_with(&events), "{}", called.out);
    assert!(called.out.contains("\n  note: the recording begins late: "), "{}", called.out);
}

#[test]
fn the_recordings_that_must_be_identical_are() {
    let synthetic =
        ["mix", "small", "large", "pow", "tight"].map(|profile| format!("synthetic/default-{profile}"));
    let programs = ["gpt2_varlen", "resnet50_amp", "gnn_random"].map(|name| format!("programs/{name}"));
    let files: Vec<String> = synthetic.iter().chain(&programs).map(|name| fixture(name)).collect();
    let called = blockyard(["verify"].into_iter().chain(files.iter().map(String::as_str)));
    assert_eq!(called.status, 0, "{}", called.out);
    assert_eq!(called.out.matches(": identical: events ").count(), 8, "{}", called.out);
    assert!(called.out.contains("gpt2_varlen.jsonl.gz: identical: events 52141/52141,"), "{}", called.out);
}

#[test]
fn a_difference_is_shown_with_both_values() {
    let path = file("tampered.jsonl.gz", gzip(&tampered()));
    let called = blockyard(["verify", &path]);
    assert_eq!((called.status, called.err.as_str()), (1, ""));
    assert!(called.out.starts_with(&format!("{path}: DIFFERS: events ")), "{}", called.out);

    let original = json(
        fixture_text("synthetic/default-small").lines().find(|line| line.starts_with("{\"trace\"")).unwrap(),
    );
    let entry = &original["trace"][100];
    let addr = entry[1].as_u64().unwrap();
    let words = |addr: u64| {
        format!("{} {addr:#x} of {} bytes on stream {}", entry[0].as_str().unwrap(), entry[2], entry[3])
    };
    let lines: Vec<&str> = called.out.lines().skip(1).map(str::trim).collect();
    assert_eq!(lines[0], "first difference, trace entry 100");
    assert_eq!(lines[2], format!("PyTorch  {}", words(addr + 512)));
    assert_eq!(lines[3], format!("replay   {}", words(addr)));
}

#[test]
fn a_difference_is_in_the_json_too() {
    let path = file("tampered-json.jsonl", tampered());
    let called = blockyard(["verify", "--json", &path]);
    assert_eq!(called.status, 1);
    let value = json(called.out.trim_end());
    assert_eq!(value["file"], path.as_str());
    assert_eq!(value["identical"], false);
    let events = &value["counts"]["events"];
    assert_eq!(events["identical"].as_u64().unwrap() + 1, events["total"].as_u64().unwrap());
    assert_eq!(value["first_difference"]["what"], "trace entry 100");
    assert_ne!(value["first_difference"]["expected"], value["first_difference"]["found"]);
}

#[test]
fn a_changed_statistic_is_named() {
    let text = fixture_text("synthetic/default-small");
    let mut lines: Vec<String> = text.lines().map(ToOwned::to_owned).collect();
    let mut operation = json(&lines[2]);
    operation["stats"]["num_ooms"] = 7.into();
    lines[2] = operation.to_string();
    let called = blockyard(["verify", &file("statistic.jsonl", lines.join("\n"))]);
    assert_eq!(called.status, 1);
    let shown: Vec<&str> = called.out.lines().skip(1).take(4).map(str::trim).collect();
    assert_eq!(shown, ["first difference, num_ooms", "request  1", "PyTorch  7", "replay   0"]);
}

#[test]
fn a_file_that_cannot_be_read_does_not_keep_the_others_from_it() {
    let good = fixture("synthetic/default-mix");
    let half = std::fs::read(&good).unwrap();
    let half = file("half.jsonl.gz", &half[..half.len() / 2]);
    let letter = file("letter.txt", "Dear reader,\n");
    let nothing = format!("{letter}.missing");
    let called = blockyard(["verify", half.as_str(), &letter, &nothing, &good]);
    assert_eq!((called.status, called.err.as_str()), (2, ""));
    let lines: Vec<&str> = called.out.lines().collect();
    assert_eq!(lines.len(), 4, "{}", called.out);
    assert!(
        lines[0].starts_with(&format!("{half}: not replayed: the gzip data is cut off or damaged: ")),
        "{}",
        lines[0]
    );
    assert!(
        lines[1]
            .starts_with(&format!("{letter}: not replayed: this is another kind of text, not a recording"))
    );
    assert!(lines[2].starts_with(&format!("{nothing}: not replayed: ")), "{}", lines[2]);
    assert!(lines[3].starts_with(&format!("{good}: identical: ")), "{}", lines[3]);
}

#[test]
fn errors_are_json_too_where_a_machine_reads() {
    let letter = file("letter-json.txt", "Dear reader,\n");
    let good = fixture("programs/gnn_random");
    let called = blockyard(["verify", "--json", &letter, &good]);
    assert_eq!(called.status, 2);
    let values: Vec<_> = called.out.lines().map(json).collect();
    assert!(values[0]["error"].as_str().unwrap().starts_with("this is another kind of text"));
    assert_eq!(values[1]["identical"], true);
    assert_eq!(values[1]["counts"]["events"]["total"], 8957);
    assert!(values[1]["first_difference"].is_null());
}

#[test]
fn a_file_without_results_is_not_called_identical_nor_different() {
    let path = file("no-results.jsonl", "{\"meta\":{\"total_memory\":1048576}}\n{\"op\":\"empty_cache\"}\n");
    let called = blockyard(["verify", &path]);
    assert_eq!(called.status, 2);
    assert_eq!(called.out, format!("{path}: nothing to compare: the file has no results\n"));
}

#[test]
fn standard_input_is_verified_too() {
    let called = blockyard_with_input(["verify", "-"], &fixture_text("synthetic/default-small"));
    assert_eq!(called.status, 0, "{called:?}");
    assert!(called.out.starts_with("-: identical: "), "{}", called.out);
}

use crate::{begun_late, blockyard, blockyard_with_input, file, json};

#[test]
fn presets_play_step_by_step() {
    for (preset, label, steps) in
        [("two-tensors", "== del y ==", 4), ("fragmentation", "== empty_cache cannot help ==", 34)]
    {
        let called = blockyard(["play", preset]);
        assert_eq!((called.status, called.err.as_str()), (0, ""));
        assert!(called.out.contains(label), "{}", called.out);
        assert!(called.out.contains(&format!("\n{steps}. ")), "{preset} has {steps} steps: {}", called.out);
        assert!(!called.out.contains(&format!("\n{}. ", steps + 1)), "{preset} has {steps} steps");
    }
}

#[test]
fn a_recording_plays_too_and_shows_what_was_there_before() {
    let late = file("late-play.jsonl", begun_late("programs/cudagraph_mlp", 190));
    let called = blockyard(["play", &late]);
    assert_eq!(called.status, 0, "{}", called.err);
    assert!(
        called.err.starts_with(&format!("{late}: ")) && called.err.contains(" events identical"),
        "{}",
        called.err
    );
    assert!(called.out.starts_with("0. before the recording\n"), "{}", called.out);
    assert!(called.out.contains("\n== the recording begins ==\n\n1. "), "{}", called.out);
    let refused = blockyard(["play", &late, "--total-memory", "1 GiB"]);
    assert_eq!(refused.status, 2, "{}", refused.out);
}

#[test]
fn the_end_alone_is_printed_on_request() {
    let whole = blockyard(["play", "two-tensors"]).out;
    let last = blockyard(["play", "two-tensors", "--last"]);
    assert_eq!(last.status, 0);
    assert!(last.out.starts_with("== torch.cuda.empty_cache() =="), "{}", last.out);
    assert!(last.out.contains("\n4. ") && !last.out.contains("\n3. "), "{}", last.out);
    assert!(whole.ends_with(&last.out) && whole.len() > last.out.len());
}

#[test]
fn a_machine_gets_a_json_value_a_step() {
    let called = blockyard(["play", "fragmentation", "--json"]);
    assert_eq!(called.status, 0);
    let steps: Vec<_> = called.out.lines().map(json).collect();
    assert_eq!(steps.len(), 34);
    for (index, step) in steps.iter().enumerate() {
        assert_eq!(step["step"], index + 1);
        let sum = step["reserved"].as_u64().unwrap() + step["free"].as_u64().unwrap();
        assert_eq!(sum, 128 << 20);
    }
    let (first, last) = (&steps[0], &steps[33]);
    assert_eq!((&first["outcome"], first["allocated"].as_u64()), (&json("\"done\""), Some(8 << 20)));
    assert_eq!(last["outcome"], "out_of_memory");
    assert!(
        last["message"].as_str().unwrap().starts_with("CUDA out of memory. Tried to allocate 40.00 MiB.")
    );
    assert_eq!((last["free"].as_u64(), last["cached"].as_u64()), (Some(28 << 20), Some(80 << 20)));

    let end = blockyard(["play", "fragmentation", "--json", "--last"]);
    assert_eq!(end.out, format!("{}\n", called.out.lines().last().unwrap()));
}

#[test]
fn a_file_and_standard_input_play_alike() {
    let text = "# a comment\nstep \"one\"\na = alloc 3 MiB\nfree a\n";
    let path = file("small.workload", text);
    let of_file = blockyard(["play", &path]);
    let of_input = blockyard_with_input(["play", "-"], text);
    assert_eq!((of_file.status, of_input.status), (0, 0));
    assert_eq!(of_file.out, of_input.out);
    assert!(of_file.out.starts_with("== one =="), "{}", of_file.out);
}

#[test]
fn settings_and_total_memory_are_the_command_lines() {
    let text = "a = alloc 60 MiB";
    let step = |arguments: &[&str]| {
        let called =
            blockyard_with_input(["play", "-", "--json"].into_iter().chain(arguments.iter().copied()), text);
        assert_eq!(called.status, 0, "{}", called.err);
        json(called.out.trim_end())
    };
    assert_eq!(step(&[])["free"], (1024_u64 - 60) << 20, "1 GiB without a word");
    assert_eq!(step(&["--total-memory", "80 GiB"])["free"], (80_u64 << 30) - (60 << 20));
    assert_eq!(step(&["--total-memory", "40 MiB"])["outcome"], "out_of_memory");
    assert_eq!(step(&["--conf", "per_process_memory_fraction:0.01"])["outcome"], "out_of_memory");
    assert_eq!(step(&["--conf", "expandable_segments:True"])["reserved"], 60 << 20);
}

#[test]
fn an_error_in_the_text_is_reported_with_its_place() {
    let path = file("broken.workload", "a = alloc 3 MiB\nfree b\n");
    let called = blockyard(["play", &path]);
    assert_eq!((called.status, called.out.as_str()), (2, ""));
    let message = "line 2, column 6: \"b\" is not allocated: no line before this one allocates it";
    assert_eq!(called.err, format!("error: {path}: {message}\n"));

    let path = file("size.workload", "repeat 3 as i {\n  a[i] = alloc 3 MBB\n}\n");
    let called = blockyard(["play", &path]);
    assert_eq!(called.status, 2);
    assert!(
        called.err.starts_with(&format!("error: {path}: line 2, column 16: expected ")),
        "{}",
        called.err
    );
}

#[test]
fn what_is_neither_a_file_nor_a_preset_is_reported_so() {
    let called = blockyard(["play", "no-such-thing"]);
    assert_eq!((called.status, called.out.as_str()), (2, ""));
    assert!(
        called.err.starts_with(
            "error: no-such-thing (neither a workload's file nor one of the presets terms, two-tensors, \
         training, fragmentation, streams, caching, pools): "
        ),
        "{}",
        called.err
    );
    let bytes = file("bytes.workload", b"\xff\xfe\x00");
    let called = blockyard(["play", &bytes]);
    assert_eq!(called.status, 2);
    assert!(called.err.contains("a text in UTF-8"), "{}", called.err);
}

#[test]
fn no_step_is_no_output() {
    let called = blockyard_with_input(["play", "-"], "# nothing\n");
    assert_eq!((called.status, called.out.as_str(), called.err.as_str()), (0, "", ""));
    let called = blockyard_with_input(["play", "-", "--last"], "");
    assert_eq!((called.status, called.out.as_str()), (0, ""));
}

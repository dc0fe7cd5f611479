use serde_json::Value;

use crate::{CommandOutput, blockyard, blockyard_with_input, command, file, fixture, fixture_text, json};

fn lines(called: &CommandOutput) -> Vec<Value> {
    assert_eq!((called.status, called.err.as_str()), (0, ""));
    called.out.lines().map(json).collect()
}

fn allocations(lines: &[Value]) -> Vec<&Value> {
    lines.iter().filter(|line| line["op"] == "alloc").collect()
}

/// Asserts that `run` on a fixture prints every line of the fixture, without the members that only PyTorch's
/// recording has.
fn check_reproduced(name: &str) {
    let ours = lines(&blockyard(["run", &fixture(name)]));
    let theirs: Vec<Value> = fixture_text(name).lines().map(json).collect();
    assert_eq!(ours.len(), theirs.len(), "{name}");
    for (index, (mine, recorded)) in ours.iter().zip(&theirs).enumerate().skip(1) {
        for (key, value) in recorded.as_object().unwrap() {
            match key.as_str() {
                "allocator_settings" => {}
                _ => assert_eq!(&mine[key], value, "{name}, line {}, {key}", index + 1),
            }
        }
    }
    for key in ["name", "profile", "torch", "conf", "total_memory", "device", "streams"] {
        assert_eq!(ours[0]["meta"][key], theirs[0]["meta"][key], "{name}, {key}");
    }
}

#[test]
fn operations_give_what_pytorch_recorded_line_by_line() {
    for name in [
        "synthetic/default-mix",
        "synthetic/default-tight",
        "synthetic/split64-tight",
        "synthetic/expand-mix",
        "synthetic/async-mix",
    ] {
        check_reproduced(name);
    }
}

#[test]
fn what_run_writes_verifies_as_identical_and_is_read_back_by_run() {
    for name in
        ["synthetic/default-mix", "synthetic/default-streams", "synthetic/pools-mix", "programs/gnn_random"]
    {
        let first = blockyard(["run", &fixture(name)]);
        assert_eq!(first.status, 0, "{}", first.err);
        let path = file(&format!("again-{}.jsonl", name.replace('/', "-")), &first.out);
        let verified = blockyard(["verify", &path]);
        assert_eq!(verified.status, 0, "{name}: {}", verified.out);
        assert!(verified.out.starts_with(&format!("{path}: identical: events ")), "{}", verified.out);
        let second = blockyard_with_input(["run", "-"], &first.out);
        assert!(second.out == first.out, "{name}: a second run writes something else");
    }
}

#[test]
fn virtual_addresses_grow_from_the_virtual_devices_own_base() {
    let path = fixture("synthetic/default-mix");
    let recorded = lines(&blockyard(["run", &path]));
    let called = blockyard(["run", "--virtual-addresses", &path]);
    let placed = lines(&called);
    assert_eq!(allocations(&placed)[0]["addr"], 0x7f00_0000_0000_u64);
    assert_ne!(allocations(&placed)[0]["addr"], allocations(&recorded)[0]["addr"]);
    let (ours, theirs) = (allocations(&placed), allocations(&recorded));
    assert!(
        ours.iter().zip(&theirs).all(|(one, other)| one["size"] == other["size"] && one["id"] == other["id"])
    );
    let bases: Vec<u64> = placed
        .iter()
        .find_map(|line| line["trace"].as_array())
        .unwrap()
        .iter()
        .filter(|entry| entry[0] == "segment_alloc")
        .map(|entry| entry[1].as_u64().unwrap())
        .collect();
    assert!(
        bases.len() > 10 && bases.is_sorted_by(|one, next| one < next),
        "addresses are never given twice"
    );
    let again = file("virtual.jsonl", &called.out);
    assert_eq!(blockyard(["verify", &again]).status, 0);
}

const SMALL: &str = "{\"meta\":{\"total_memory\":1073741824}}
{\"op\":\"alloc\",\"id\":1,\"size\":5000}
{\"op\":\"alloc\",\"id\":2,\"size\":3145728}
{\"op\":\"alloc\",\"id\":3,\"size\":62914560}
{\"op\":\"free\",\"id\":2}";

fn run_small(arguments: &[&str]) -> Vec<Value> {
    lines(&blockyard_with_input(["run", "-"].into_iter().chain(arguments.iter().copied()), SMALL))
}

#[test]
fn operations_without_results_are_enough() {
    let lines = run_small(&[]);
    let operations: Vec<&str> = lines.iter().filter_map(|line| line["op"].as_str()).collect();
    assert_eq!(operations, ["start", "alloc", "alloc", "alloc", "free", "end"]);
    assert_eq!(lines[1]["stats"].as_object().unwrap().len(), 122);
    let base = 0x7f00_0000_0000_u64;
    let places: Vec<u64> =
        allocations(&lines).iter().map(|line| line["addr"].as_u64().unwrap() - base).collect();
    assert_eq!(places, [0, 2 << 20, 22 << 20]);
    assert_eq!(lines[2]["stats"]["allocated_bytes.all.current"], 5120);
    assert_eq!(lines[5]["stats"]["allocation.all.freed"], 1);
    assert!(lines[5]["stats"].get("segment.all.current").is_none(), "only what changed");
    let rest: Vec<&String> = lines[7..].iter().flat_map(|line| line.as_object().unwrap().keys()).collect();
    assert_eq!(rest, ["trace", "segments", "memory_summary"]);
}

#[test]
fn settings_of_the_command_line_replace_those_of_the_file() {
    let lines = run_small(&["--conf", "roundup_power2_divisions:4"]);
    assert_eq!(lines[0]["meta"]["conf"], "roundup_power2_divisions:4");
    assert_eq!(lines[2]["stats"]["allocated_bytes.all.current"], 5120);
    let finer = run_small(&["--conf", "roundup_power2_divisions:2"]);
    assert_eq!(finer[2]["stats"]["allocated_bytes.all.current"], 6144);

    let refused = blockyard_with_input(["run", "-", "--conf", "max_split_size_mb:1"], SMALL);
    assert_eq!(refused.status, 2);
    assert_eq!(
        refused.err,
        "error: settings: CachingAllocator option max_split_size_mb too small, must be >= 20\n"
    );
}

#[test]
fn total_memory_of_the_command_line_replaces_that_of_the_file() {
    let lines = run_small(&["--total-memory", "80 GiB"]);
    assert_eq!(lines[0]["meta"]["total_memory"], 80_u64 << 30);
    let tight = run_small(&["--total-memory", "64MiB"]);
    let failed = tight[4]["oom"].as_str().unwrap();
    assert!(failed.starts_with(
        "CUDA out of memory. Tried to allocate 60.00 MiB. GPU 0 has a total capacity of 64.00 MiB of which 42.00 MiB is free."
    ), "{failed}");
    assert_eq!(tight[4]["stats"]["num_ooms"], 1);

    let thousands = run_small(&["--total-memory", "80 GB"]);
    assert_eq!(thousands[0]["meta"]["total_memory"], 80_000_000_000_u64);
    for size in ["80 GX", "-1", "", "3 MiB; empty_cache"] {
        let refused = blockyard_with_input(["run", "-", &format!("--total-memory={size}")], SMALL);
        assert_eq!(refused.status, 2, "{size}");
        assert!(refused.err.contains("--total-memory"), "{}", refused.err);
    }
}

#[test]
fn a_program_runs_under_other_settings() {
    let called = blockyard([
        "run",
        &fixture("programs/gnn_random"),
        "--conf",
        "max_split_size_mb:128",
        "--virtual-addresses",
    ]);
    let lines = lines(&called);
    let mut peak = 0;
    for line in &lines {
        peak = line["stats"]["reserved_bytes.all.peak"].as_i64().unwrap_or(peak);
    }
    assert_eq!(peak, 19_706_937_344, "what PyTorch reserved under this setting");
}

#[test]
fn a_file_that_cannot_be_run_is_an_error_with_its_name() {
    let letter = file("letter-run.txt", "Dear reader,\n");
    let called = blockyard(["run", &letter]);
    assert_eq!((called.status, called.out.as_str()), (2, ""));
    assert!(
        called.err.starts_with(&format!("error: {letter}: this is another kind of text")),
        "{}",
        called.err
    );
    let unknown = file("unknown-run.jsonl", "{\"meta\":{\"total_memory\":1}}\n{\"op\":\"free\",\"id\":7}");
    let called = blockyard(["run", &unknown]);
    assert_eq!((called.status, called.out.as_str()), (2, ""));
    assert_eq!(called.err, format!("error: {unknown}: line 2: no allocation with id 7 is live here\n"));
}

const TWO_ALLOCATIONS: &str = r#"{"meta":{"total_memory":1073741824,"conf":"max_split_size_mb:32"}}
{"op":"alloc","id":1,"size":1000,"stream":0}
{"op":"free","id":1}
"#;

/// The settings of a run under these environment variables, and the run's warnings.
fn settings_under(variables: &[(&str, &str)], arguments: &[&str]) -> (String, String) {
    let path =
        file(&format!("environment-{}.jsonl", variables.len() + 10 * arguments.len()), TWO_ALLOCATIONS);
    let output =
        command().args(["run", &path]).args(arguments).envs(variables.iter().copied()).output().unwrap();
    let out = String::from_utf8(output.stdout).unwrap();
    let conf = out.lines().next().map_or(Value::Null, |first| json(first)["meta"]["conf"].clone());
    (conf.as_str().unwrap_or("nothing").to_owned(), String::from_utf8(output.stderr).unwrap())
}

#[test]
fn settings_come_from_the_option_then_the_environment_then_the_file() {
    let (cuda, generic) = ("PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF");
    let conf = |variables: &[_], arguments: &[_]| settings_under(variables, arguments).0;
    assert_eq!(conf(&[], &[]), "max_split_size_mb:32");
    assert_eq!(conf(&[(generic, "max_split_size_mb:40")], &[]), "max_split_size_mb:40");
    let both = [(generic, "max_split_size_mb:40"), (cuda, "max_split_size_mb:64")];
    assert_eq!(conf(&both, &[]), "max_split_size_mb:64");
    assert_eq!(conf(&both, &["--conf", ""]), "");
}

#[test]
fn settings_that_pytorch_refuses_or_warns_of_are_reported() {
    let cuda = "PYTORCH_CUDA_ALLOC_CONF";
    let (conf, error) = settings_under(&[(cuda, "max_split_size_mb"), ("A", "1"), ("B", "2")], &[]);
    assert_eq!(conf, "nothing");
    assert!(error.contains("PyTorch aborts at import: Index out of bounds in ConfigTokenizer"), "{error}");
    let variables =
        [(cuda, "backend:cudaMallocAsync,pinned_num_register_threads:2"), ("A", "1"), ("B", "2"), ("C", "3")];
    let (_, warning) = settings_under(&variables, &[]);
    assert_eq!(
        warning,
        "warning: backend:cudaMallocAsync ignores max_split_size_mb,roundup_power2_divisions, and garbage_collect_threshold.\n"
    );
}

#[test]
fn without_caching_memory_comes_from_the_device_and_nothing_is_counted() {
    let path = file("uncached.jsonl", TWO_ALLOCATIONS);
    let output = command().args(["run", &path]).env("PYTORCH_NO_CUDA_MEMORY_CACHING", "1").output().unwrap();
    let out = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<Value> = out.lines().map(json).collect();
    assert!(lines[2]["addr"].as_u64().unwrap() > 0);
    assert_eq!(lines[2]["stats"], json("{}"));
    assert_eq!(lines[5]["trace"], json("[]"));
    assert_eq!(lines[6]["segments"], json("[]"));
}

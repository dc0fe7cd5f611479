use super::{blockyard, fixture, json};

#[test]
fn out_of_memory_is_explained_with_proved_changes() {
    let snapshot = fixture("snapshots/checkerboard_default_100").replace(".jsonl.gz", ".pickle.gz");
    let called = blockyard(["autopsy", snapshot.as_str(), "--limit", "1 GiB", "--json"]);
    assert_eq!(called.status, 1, "{}", called.err);
    let answer = json(called.out.trim_end());
    assert_eq!(answer["cause"], "fragmentation_by_live_blocks");
    assert_eq!(answer["request"]["size"], 300_u64 << 20);
    assert_eq!(answer["pinned_by"].as_array().unwrap().len(), 4);
    let changes = answer["changes"].as_array().unwrap();
    for kind in ["setting", "free_tensors", "limit"] {
        assert!(changes.iter().any(|change| change["kind"].get(kind).is_some()), "{changes:?}");
    }
    assert_eq!(answer["changes"][0]["kind"]["setting"], "expandable_segments:True");
    let text = blockyard(["autopsy", snapshot.as_str()]).out;
    assert!(
        text.contains("show the limit, between 960 MiB and 1.23 GiB: every answer is for this limit"),
        "{text}"
    );
}

#[test]
fn a_run_that_fits_needs_no_explanation() {
    let called = blockyard(["autopsy", fixture("programs/gnn_random").as_str()]);
    assert_eq!(
        (called.status, called.out.contains("does not go out of memory")),
        (0, true),
        "{}",
        called.out
    );
}

#[test]
fn a_file_alone_gets_its_verdict() {
    let snapshot = fixture("oom/loss_history_100").replace(".jsonl.gz", ".pickle.gz");
    let called = blockyard([snapshot.as_str()]);
    assert_eq!(called.status, 1, "{}", called.err);
    assert!(
        called.out.contains(
            "out of memory by a leak at `loss_history train.py:26`: each of 136 iterations kept 3 tensors (4 MiB)"
        ),
        "{}",
        called.out
    );
    assert_eq!(called.out, blockyard(["verdict", snapshot.as_str()]).out);
    let answer = json(blockyard([snapshot.as_str(), "--json"]).out.trim_end());
    assert_eq!((&answer["kind"], &answer["setting"]), (&"leak".into(), &serde_json::Value::Null));
    assert_eq!(answer["held"][0]["line"], "loss_history train.py:26");
    // An argument that names no file may be a misspelled command.
    let wrong = blockyard(["autopsie"]);
    assert_eq!(wrong.status, 2);
    assert!(wrong.err.contains("`autopsie` is neither a command nor a file"), "{}", wrong.err);
}

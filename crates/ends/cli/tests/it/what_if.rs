use super::{blockyard, file, fixture, json};

#[test]
fn other_settings_stand_beside_the_recorded_ones() {
    let recording = fixture("programs/gnn_random");
    let called = blockyard([
        "what-if",
        recording.as_str(),
        "--json",
        "--conf",
        "expandable_segments:True",
        "--conf",
        "max_split_size_mb:128",
    ]);
    assert_eq!(called.status, 0, "{}", called.err);
    let answer = json(called.out.trim_end());
    assert_eq!(answer["version"], 1);
    assert_eq!(answer["question"], "what-if");
    assert_eq!(answer["baseline"]["peak_reserved"], 6_589_251_584_u64);
    let peaks: Vec<u64> = answer["settings"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| row["peak_reserved"].as_u64().unwrap())
        .collect();
    assert_eq!(peaks, [2_545_942_528, 19_706_937_344]);
    assert_eq!(answer["settings"][0]["ooms"], 0);
    assert_eq!(answer["settings"][0]["first_oom"], serde_json::Value::Null);
}

#[test]
fn a_run_that_went_out_of_memory_does_so_again_under_the_limit_that_its_file_implies() {
    let snapshot = fixture("oom/loss_history_100").replace(".jsonl.gz", ".pickle.gz");
    let asked = |more: &[&str]| {
        let all = ["what-if", snapshot.as_str(), "--json", "--conf", "expandable_segments:True"];
        let called = blockyard(all.iter().chain(more).copied());
        assert_eq!(called.status, 1, "{}", called.err);
        json(called.out.trim_end())
    };
    let (low, high) = (594_u64 << 20, (614_u64 << 20) - 1);
    let answer = asked(&[]);
    let by = "memory_fraction";
    assert_eq!(
        answer["limit"],
        serde_json::json!({"low": low, "high": high, "source": "inferred", "by": by, "others": 0})
    );
    let (own, other) = (&answer["baseline"], &answer["settings"][0]);
    assert_eq!((&own["ooms"], &own["ooms_at_high"], &own["limit"]), (&1.into(), &1.into(), &low.into()));
    assert_eq!((&other["ooms"], &other["ooms_at_high"]), (&1.into(), &0.into()));
    // The file does not have the device's memory, so the message names no capacity.
    let message = own["first_oom"]["message"].as_str().unwrap();
    assert!(
        message.starts_with("out of memory in a replay where at most 594 MiB may be reserved"),
        "{message}"
    );
    // A limit that is given replaces the implied one.
    let answer = asked(&["--limit", "600 MiB"]);
    let limit = &answer["limit"];
    assert_eq!((&limit["low"], &limit["high"]), (&(600_u64 << 20).into(), &(600_u64 << 20).into()));
    assert_eq!(limit["source"], "given");
    let other = &answer["settings"][0];
    assert_eq!((&other["ooms"], &other["ooms_at_high"]), (&1.into(), &1.into()), "as on an H200");
}

#[test]
fn out_of_memory_and_errors_have_exit_statuses_of_their_own() {
    let recording = fixture("programs/gnn_random");
    let limited = blockyard(["what-if", recording.as_str(), "--limit", "2 GiB", "--json"]);
    assert_eq!(limited.status, 1, "{}", limited.err);
    let answer = json(limited.out.trim_end());
    assert_eq!(answer["settings"][0]["ooms"], 1);
    assert!(answer["settings"][0]["first_oom"]["request"].as_u64().unwrap() > 1);
    assert_eq!(blockyard(["what-if", recording.as_str(), "--conf", "no_such:1"]).status, 2);
    let bad = file("what-if-bad.txt", "a = alloc\n");
    let both = blockyard(["what-if", bad.as_str(), recording.as_str()]);
    assert_eq!(both.status, 2);
    assert_eq!(both.out.lines().next(), Some(format!("{bad}: no answer: line 1, column 10: expected a size such as \"3 MiB\", found the end of the line").as_str()));
    assert!(both.out.contains("gnn_random.jsonl.gz: 5,963 requests"));
}

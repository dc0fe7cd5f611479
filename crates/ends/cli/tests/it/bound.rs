use super::{blockyard, fixture, json};

#[test]
fn the_lower_bound_and_the_layout_stand_beside_what_the_run_took() {
    let recording = fixture("programs/gnn_random");
    let called = blockyard(["bound", recording.as_str(), "--json", "--layout"]);
    assert_eq!(called.status, 0, "{}", called.err);
    let answer = json(called.out.trim_end());
    assert_eq!(answer["lower_bound"], 2_403_611_136_u64);
    assert_eq!(answer["layout_peak"], 2_403_611_136_u64);
    assert_eq!(answer["peak_reserved"], 6_589_251_584_u64);
    assert_eq!(answer["layout"].as_array().unwrap().len(), 2_977);
}

#[test]
fn other_allocators_get_the_same_requests() {
    let recording = fixture("programs/gnn_random");
    let answer = json(blockyard(["compare-allocators", recording.as_str(), "--json"]).out.trim_end());
    let peaks: Vec<(&str, u64)> = answer["allocators"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| (row["name"].as_str().unwrap(), row["peak_reserved"].as_u64().unwrap()))
        .collect();
    assert_eq!(peaks.len(), 9);
    assert_eq!(peaks[0], ("PyTorch", 6_589_251_584));
    assert_eq!(peaks[1], ("PyTorch, expandable_segments:True", 2_545_942_528));
    assert_eq!(peaks[8], ("no caching", 2_403_611_136));
}

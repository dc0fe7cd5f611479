use super::{blockyard, fixture, json};

#[test]
fn the_best_setting_of_gnn_random_is_found_with_the_line_to_copy() {
    let recording = fixture("programs/gnn_random");
    let called = blockyard(["search", recording.as_str(), "--json"]);
    assert_eq!(called.status, 1, "{}", called.err);
    let answer = json(called.out.trim_end());
    assert_eq!(answer["best"], "expandable_segments:True");
    assert_eq!(answer["line"], "export PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True");
    let text = blockyard(["search", recording.as_str()]).out;
    assert!(text.contains("reserves 3.77 GiB less at its peak (2.37 GiB instead of 6.14 GiB)"), "{text}");
}

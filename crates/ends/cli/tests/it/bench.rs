use std::path::Path;

use crate::{blockyard, fixture, json};

#[test]
fn contenders_are_measured_and_written_down() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("bench");
    let (folder, trace) = (folder.to_str().unwrap(), fixture("programs/gnn_random"));
    let called = blockyard(["bench", "--rounds", "2", "--out", folder, &trace]);
    assert_eq!((called.status, called.err.as_str()), (0, ""));
    assert!(called.out.contains("**cache hit** (ns a pair of allocation and free)"), "{}", called.out);
    assert!(called.out.contains("| gnn_random"), "{}", called.out);
    let read = |name: &str| std::fs::read_to_string(Path::new(folder).join(name)).unwrap();
    assert_eq!(read("bench.md"), called.out);
    let report = &json(&read("bench.json"))["report"];
    assert_eq!((&report["machine"]["device"], &report["rounds"]), (&"virtual".into(), &2.into()));
    let sections = report["sections"].as_array().unwrap();
    let rows: Vec<_> = sections.iter().flat_map(|section| section["rows"].as_array().unwrap()).collect();
    // Five sizes, three sizes, one cache, one recording twice.
    assert_eq!(rows.len(), 5 + 3 + 1 + 2);
    for row in &rows {
        let values = row["values"].as_array().unwrap();
        assert_eq!(values.len(), 3, "{row}");
        for value in values {
            let [least, median, most] = ["least", "median", "most"].map(|key| value[key].as_f64().unwrap());
            assert!(0.0 < least && least <= median && median <= most, "{row}");
        }
    }
    let chart = read("bench.svg");
    // The chart has a background, and a bar for each contender of each row.
    assert!(chart.starts_with("<svg ") && chart.matches("<rect ").count() == 3 * rows.len() + 1);
}

#[test]
fn what_cannot_be_measured_is_reported() {
    let called = blockyard(["bench", &fixture("programs/cudagraph_mlp")]);
    assert_eq!(called.status, 2);
    assert!(called.err.contains("memory pools"), "{}", called.err);
    assert_eq!(blockyard(["bench", "--rounds", "0"]).status, 2);
}

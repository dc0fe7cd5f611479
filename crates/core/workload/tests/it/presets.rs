use std::collections::HashSet;

use blockyard_record::Bytes;
use blockyard_workload::presets::presets;
use blockyard_workload::{Request, Workload};

#[test]
fn every_preset_parses_and_has_steps() {
    let mut ids = HashSet::new();
    for preset in presets() {
        let workload = Workload::parse(preset.text).unwrap_or_else(|error| panic!("{}: {error}", preset.id));
        assert!(ids.insert(preset.id));
        assert!(preset.id.chars().all(|character| character.is_ascii_lowercase() || character == '-'));
        assert!(workload.labels().len() >= 4, "{}", preset.id);
        assert_eq!(workload.labels()[0].0, 0, "{}: every request belongs to a step", preset.id);
        assert!(workload.labels().iter().all(|(_, label)| label.len() <= 60), "{}", preset.id);
        assert!((4..=150).contains(&workload.requests().len()), "{}", preset.id);
        assert!(preset.capacity >= Bytes::mib(64), "{}", preset.id);
        assert!(preset.text.contains('#') && preset.text.ends_with('\n'), "{}", preset.id);
    }
    assert_eq!(presets().len(), 7);
}

#[test]
fn the_two_tensors_are_those_of_the_tutorial() {
    let preset = presets().iter().find(|preset| preset.id == "two-tensors").unwrap();
    let workload = Workload::parse(preset.text).unwrap();
    let asked = workload.requests().iter().filter_map(|request| match request {
        Request::Allocate { size, .. } => Some(size.get()),
        _ => None,
    });
    assert_eq!(asked.collect::<Vec<_>>(), [400_000_000, 400_000_000]);
    assert!(matches!(workload.requests(), [.., Request::Free { .. }, Request::EmptyCache]));
}

#[test]
fn only_the_last_request_of_the_fragmentation_asks_for_more_than_is_free() {
    let preset = presets().iter().find(|preset| preset.id == "fragmentation").unwrap();
    let workload = Workload::parse(preset.text).unwrap();
    let last = workload.requests().last();
    assert!(matches!(last, Some(Request::Allocate { size, .. }) if *size == Bytes::mib(40)), "{last:?}");
}

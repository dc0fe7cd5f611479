//! Snapshots of releases that do not exist yet: a real snapshot with keys, items and kinds of values that no
//! release writes so far.
//!
//! Such a snapshot opens, and has the same content as without the additions.

use std::ops::ControlFlow;

use blockyard_pytorch::snapshot::{DeviceSnapshot, Limits, SnapshotFile, read_within};
use serde_json::{Map, Value, json};

use crate::input::Input;

#[path = "../../../crates/core/pytorch/tests/snapshot/pickles.rs"]
mod pickles;

/// A program with pinned memory, memory pools and a text for a tensor, under PyTorch 2.15.
const REAL: &str = include_str!("../../fixtures/snapshots/small_2.15.json");

const LIMITS: Limits = Limits { content: 1 << 22, memory: 1 << 26 };

/// The most changes of an input: more changes find no further defects.
const MAX_CHANGES: usize = 40;

/// Lists whose items may be of any kind, by their paths; `*` in a path is any item of a list.
const LISTS: [&str; 9] = [
    "/segments",
    "/segments/*/blocks",
    "/segments/*/frames",
    "/device_traces/0",
    "/device_traces/0/*/frames",
    "/external_annotations",
    "/host_segments",
    "/host_segments/*/blocks",
    "/host_traces",
];

/// Dictionaries that a later release may add keys to.
const DICTIONARIES: [&str; 12] = [
    "",
    "/segments/*",
    "/segments/*/blocks/*",
    "/segments/*/frames/*",
    "/device_traces/0/*",
    "/device_traces/0/*/frames/*",
    "/external_annotations/*",
    "/host_segments/*",
    "/host_segments/*/blocks/*",
    "/host_traces/*",
    "/host_traces/*/frames/*",
    "/allocator_settings",
];

/// Fields that a row can do without.
const OPTIONAL: [&str; 18] = [
    "stream",
    "time_us",
    "compile_context",
    "user_metadata",
    "internal_metadata",
    "pool_id",
    "frames",
    "allocated_size",
    "active_size",
    "requested_size",
    "segment_type",
    "segment_pool_id",
    "is_expandable",
    "name",
    "filename",
    "line",
    "max_cached_size",
    "roundup_power2_divisions",
];

/// Reads the bytes as changes of a snapshot, and checks that the changed snapshot opens.
pub fn later_release(data: &[u8]) {
    let mut input = Input::new(data);
    let expected = read(REAL.as_bytes());
    let mut value: Value = serde_json::from_str(REAL).unwrap();
    let mut is_same = true;
    for _ in 0..MAX_CHANGES {
        if input.is_empty() {
            break;
        }
        match input.byte() % 5 {
            0 | 1 => add_key(&mut value, &mut input),
            2 => add_item(&mut value, &mut input),
            3 => add_segment(&mut value, &mut input),
            _ => {
                change_kind(&mut value, &mut input);
                is_same = false;
            }
        }
    }
    for bytes in [value.to_string().into_bytes(), pickles::pickle(&value)] {
        check(&read(&bytes), &expected, is_same);
    }
}

fn check(found: &SnapshotFile, expected: &SnapshotFile, is_same: bool) {
    assert_eq!(found.memories().count(), expected.memories().count());
    for (found, expected) in found.memories().zip(expected.memories()) {
        assert_eq!(core(found), core(expected));
    }
    for place in 0..found.memories().count() {
        let recording =
            blockyard_pytorch::trace::record(found, place, "", &mut |_| ControlFlow::Continue(()))
                .unwrap()
                .recording;
        assert!(recording.state_at(recording.event_count()).is_ok());
    }
    if is_same {
        assert_eq!(content(found), content(expected));
    }
}

fn read(bytes: &[u8]) -> SnapshotFile {
    read_within(bytes, LIMITS, &mut |_| ControlFlow::Continue(())).expect("the snapshot opens")
}

/// The parts that no change may touch: entries, segments and blocks, without their contexts.
fn core(device: &DeviceSnapshot) -> impl PartialEq + std::fmt::Debug + use<> {
    let entries = device.trace.iter().map(|entry| (entry.entry.action, entry.entry.addr, entry.entry.size));
    let blocks = |segment: &blockyard_pytorch::snapshot::SnapshotSegment| {
        let blocks = segment.blocks.iter().map(|block| (block.addr(), block.size, block.state));
        (segment.addr, segment.size, blocks.collect::<Vec<_>>())
    };
    (entries.collect::<Vec<_>>(), device.segments.iter().map(blocks).collect::<Vec<_>>())
}

/// The whole content of a snapshot except settings, whose names are free.
fn content(file: &SnapshotFile) -> Vec<u8> {
    let mut file = file.clone();
    file.settings.values.clear();
    let mut bytes = Vec::new();
    file.write_pickle(&mut bytes).unwrap();
    bytes
}

/// The value at a path of [`LISTS`] or [`DICTIONARIES`], if the choices lead to one.
fn at<'a>(value: &'a mut Value, path: &str, input: &mut Input<'_>) -> Option<&'a mut Value> {
    let mut place = value;
    for part in path.split('/').skip(1) {
        place = match place {
            Value::Array(items) if items.is_empty() => return None,
            Value::Array(items) => {
                let index = if part == "*" { input.index(items.len()) } else { part.parse().ok()? };
                items.get_mut(index)?
            }
            Value::Object(items) => items.get_mut(part)?,
            _ => return None,
        };
    }
    Some(place)
}

fn dictionary<'a>(value: &'a mut Value, input: &mut Input<'_>) -> Option<&'a mut Map<String, Value>> {
    let path = input.of(&DICTIONARIES);
    at(value, path, input)?.as_object_mut()
}

fn add_key(value: &mut Value, input: &mut Input<'_>) {
    let Some(dictionary) = dictionary(value, input) else { return };
    let key = input.of(&["later", "xpu_segments", "tensor_id", "", "a key with \"quotes\"", "history_2"]);
    let new = strange(input, 3);
    dictionary.insert(key.to_owned(), new);
}

fn add_item(value: &mut Value, input: &mut Input<'_>) {
    let path = input.of(&LISTS);
    let Some(Value::Array(items)) = at(value, path, input) else { return };
    let item = match input.byte() % 5 {
        0 if path.ends_with("traces") || path.ends_with("/0") => {
            json!({"action": "later", "addr": strange(input, 1), "size": strange(input, 1)})
        }
        1 if path.ends_with("blocks") => json!({"state": "active_later", "size": strange(input, 1)}),
        2 if path.ends_with("annotations") => json!({"stage": "LATER", "name": strange(input, 1)}),
        // A frame has no field that it needs.
        _ if path.ends_with("frames") => json!(input.byte()),
        _ => strange_item(input),
    };
    let place = input.index(items.len() + 1);
    items.insert(place, item);
}

/// A segment whose device is not a device.
fn add_segment(value: &mut Value, input: &mut Input<'_>) {
    let device = match input.byte() % 6 {
        0 => json!(-1),
        1 => json!("xpu"),
        2 => json!(null),
        3 => json!(0.5),
        4 => json!([0]),
        _ => json!(i64::MIN),
    };
    let segment = json!({"device": device, "address": strange(input, 1), "total_size": 512, "blocks": []});
    if let Some(Value::Array(segments)) = value.get_mut("segments") {
        let place = input.index(segments.len() + 1);
        segments.insert(place, segment);
    }
    // The device of host memory has no meaning, and a missing device is the first device.
    let list = input.of(&["host_segments", "segments"]);
    if let Some(Value::Object(segment)) = at(value, &format!("/{list}/*"), input) {
        if list == "segments" && segment.get("device").is_some_and(|device| device == 0) {
            segment.remove("device");
        } else if list == "host_segments" {
            segment.insert("device".to_owned(), strange(input, 1));
        }
    }
}

/// A field gets a value of another kind.
fn change_kind(value: &mut Value, input: &mut Input<'_>) {
    let Some(dictionary) = dictionary(value, input) else { return };
    let key = input.of(&OPTIONAL);
    if let Some(field) = dictionary.get_mut(key) {
        *field = strange(input, 2);
    }
}

/// A value of any kind, `deep` containers deep at most.
fn strange(input: &mut Input<'_>, deep: u32) -> Value {
    let kinds = if deep == 0 { 7 } else { 11 };
    match input.byte() % kinds {
        0 => json!(null),
        1 => json!(input.flag()),
        2 => json!(i64::from(input.byte()) - 128),
        3 => json!(u64::MAX - u64::from(input.byte())),
        4 => json!(f64::from(input.byte()) / 3.0),
        5 => json!("later"),
        6 => json!([]),
        7 => json!({}),
        8 => json!([strange(input, deep - 1), strange(input, deep - 1)]),
        9 => json!({"later": strange(input, deep - 1)}),
        // A list with items that would be rows in other lists.
        _ => json!([strange_item(input), {"action": "alloc"}, {"total_size": 1}, {"state": "inactive"}]),
    }
}

/// An item that is not a row of any kind.
fn strange_item(input: &mut Input<'_>) -> Value {
    match input.byte() % 6 {
        0 => json!(null),
        1 => json!(input.byte()),
        2 => json!("later"),
        3 => json!([]),
        4 => json!({}),
        _ => json!({"later": {"state": 1}, "state_2": [null]}),
    }
}

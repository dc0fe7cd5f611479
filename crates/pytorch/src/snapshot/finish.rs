//! The snapshot that the values of a file are.

use std::collections::BTreeMap;
use std::sync::Arc;

use blockyard_record::{StackId, TextId};

use super::heap::{Heap, Misfit, Object, Value};
use super::keys as key;
use super::{
    DeviceSnapshot, DeviceTrace, FieldError, OtherFile, SnapshotError, SnapshotFile, SnapshotSettings,
};

/// Devices of one machine; a file with more is no snapshot.
const MOST_DEVICES: usize = 4096;

pub(super) fn finish(mut heap: Heap, root: Value) -> Result<SnapshotFile, SnapshotError> {
    let parts = parts(&heap, root)?;
    let field = |misfit: Misfit| SnapshotError::Field { byte: None, path: misfit.path, error: misfit.error };
    check_rows(&heap, parts.segments, Object::Segments, "segments").map_err(field)?;
    check_rows(&heap, parts.annotations, Object::Annotations, "external_annotations").map_err(field)?;
    let traces = traces(&mut heap, parts.traces).map_err(field)?;
    let settings = settings(&heap, parts.settings);
    let mut devices: BTreeMap<u32, DeviceSnapshot> = BTreeMap::new();
    let device = |devices: &mut BTreeMap<u32, DeviceSnapshot>, index| {
        devices.entry(index).or_insert_with(|| DeviceSnapshot { index, ..DeviceSnapshot::default() });
    };
    for (index, trace) in traces {
        device(&mut devices, index);
        if let Some(device) = devices.get_mut(&index) {
            device.trace = trace;
        }
    }
    for segment in std::mem::take(&mut heap.segments) {
        device(&mut devices, segment.device);
        if let Some(device) = devices.get_mut(&segment.device) {
            device.segments.push(segment);
        }
    }
    let mut devices: Vec<DeviceSnapshot> = devices.into_values().collect();
    for device in &mut devices {
        device.trace.shrink();
        device.segments.sort_by_key(|segment| segment.addr);
        check_segments(device).map_err(field)?;
    }
    let notes = notes(&heap);
    let Heap { stacks, contexts, annotations, .. } = heap;
    Ok(SnapshotFile { devices, settings, annotations, stacks: Arc::new(stacks), contexts, notes })
}

/// The parts of a snapshot, where they are there.
struct Parts {
    segments: Option<Value>,
    traces: Option<Value>,
    settings: Option<Value>,
    annotations: Option<Value>,
}

fn parts(heap: &Heap, root: Value) -> Result<Parts, SnapshotError> {
    let other = |kind| Err(SnapshotError::OtherKind(kind));
    let Value::Object(object) = root else {
        return match root {
            Value::Other => other(OtherFile::OldTorchSave),
            root => other(OtherFile::Pickle { found: heap.describe(root) }),
        };
    };
    let mut parts = Parts { segments: None, traces: None, settings: None, annotations: None };
    match heap.object(object) {
        Object::Segments => parts.segments = Some(root),
        Object::Dict(slot) => {
            let mut names = Vec::new();
            for pair in heap.values(slot).chunks_exact(2) {
                let [Value::Text(key), value] = *pair else { continue };
                match TextId::new(key) {
                    key::SEGMENTS => parts.segments = Some(value),
                    key::DEVICE_TRACES => parts.traces = Some(value),
                    key::ALLOCATOR_SETTINGS => parts.settings = Some(value),
                    key::EXTERNAL_ANNOTATIONS => parts.annotations = Some(value),
                    other => names.push(other),
                }
            }
            if parts.segments.is_none() && parts.traces.is_none() {
                let texts = heap.stacks.texts();
                let keys =
                    names.iter().take(3).map(|name| texts.get(*name).chars().take(40).collect()).collect();
                return other(OtherFile::Dictionary { keys });
            }
        }
        Object::List(slot) if heap.values(slot).is_empty() => {}
        Object::Trace(_) => return other(OtherFile::Trace),
        _ => return other(OtherFile::List),
    }
    Ok(parts)
}

/// Whether the value is a list of such rows, or an empty one.
fn check_rows(heap: &Heap, value: Option<Value>, wanted: Object, path: &str) -> Result<(), Misfit> {
    let Some(value) = value else { return Ok(()) };
    match value {
        Value::None => Ok(()),
        Value::Object(object) => match heap.object(object) {
            found if found == wanted => Ok(()),
            Object::Stack(StackId::EMPTY) => Ok(()),
            Object::List(slot) => match heap.values(slot).first() {
                None => Ok(()),
                Some(Value::Object(first)) if matches!(heap.object(*first), Object::Dict(_)) => {
                    let missing = if wanted == Object::Segments { "total_size" } else { "stage" };
                    Err(Misfit::new(format!("{path}[0].{missing}"), FieldError::Missing))
                }
                Some(first) => Err(heap.wrong(*first, &format!("{path}[0]"), "a dictionary")),
            },
            _ => Err(Misfit::new(path, FieldError::OtherList)),
        },
        other => Err(heap.wrong(other, path, "a list")),
    }
}

/// The traces that have entries, with the index of their device.
fn traces(heap: &mut Heap, value: Option<Value>) -> Result<Vec<(u32, DeviceTrace)>, Misfit> {
    let path = "device_traces";
    let slot = match value {
        None | Some(Value::None) => return Ok(Vec::new()),
        Some(Value::Object(object)) => match heap.object(object) {
            Object::List(slot) | Object::Tuple(slot) => slot,
            Object::Stack(StackId::EMPTY) => return Ok(Vec::new()),
            _ => return Err(Misfit::new(path, FieldError::NoTraces)),
        },
        Some(other) => return Err(heap.wrong(other, path, "a list")),
    };
    let lists = heap.values(slot).to_vec();
    if lists.len() > MOST_DEVICES {
        return Err(Misfit::new(path, FieldError::DeviceCount(lists.len())));
    }
    let mut traces = Vec::new();
    for (index, list) in lists.into_iter().enumerate() {
        let path = format!("{path}[{index}]");
        let Value::Object(object) = list else { return Err(heap.wrong(list, &path, "a list")) };
        match heap.object(object) {
            Object::Trace(trace) => {
                let trace = heap.traces.get_mut(trace as usize).map(std::mem::take).unwrap_or_default();
                if trace.is_empty() {
                    continue;
                }
                traces.push((u32::try_from(index).unwrap_or(0), trace));
            }
            Object::Stack(StackId::EMPTY) => {}
            Object::List(slot) => match heap.values(slot).first().copied() {
                None => {}
                Some(Value::Object(first)) if matches!(heap.object(first), Object::Dict(_)) => {
                    return Err(Misfit::new(format!("{path}[0].action"), FieldError::Missing));
                }
                Some(first) => return Err(heap.wrong(first, &format!("{path}[0]"), "a dictionary")),
            },
            _ => return Err(heap.wrong(list, &path, "a list of entries")),
        }
    }
    Ok(traces)
}

fn check_segments(device: &DeviceSnapshot) -> Result<(), Misfit> {
    let pairs = device.segments.windows(2);
    for pair in pairs {
        let [below, above] = pair else { continue };
        if below.addr.saturating_add(below.size.get()) > above.addr {
            let error = FieldError::SegmentOverlap { below: below.addr, above: above.addr };
            return Err(Misfit::new("segments", error));
        }
    }
    Ok(())
}

fn settings(heap: &Heap, value: Option<Value>) -> SnapshotSettings {
    let mut settings = SnapshotSettings::default();
    let Some(Value::Object(object)) = value else { return settings };
    let Object::Dict(slot) = heap.object(object) else { return settings };
    let texts = heap.stacks.texts();
    let mut made: Vec<String> = Vec::new();
    for pair in heap.values(slot).chunks_exact(2) {
        let [Value::Text(key), value] = *pair else { continue };
        let key = TextId::new(key);
        settings.values.push((texts.get(key).to_owned(), plain(heap, value)));
        match (key, value) {
            (key::ALLOC_CONF, Value::Text(text)) => {
                texts.get(TextId::new(text)).clone_into(&mut settings.config);
            }
            (key::MAX_SPLIT_SIZE, Value::Int(bytes)) if bytes > 0 && bytes < i64::MAX => {
                made.push(format!("max_split_size_mb:{}", bytes >> 20));
            }
            (key::GARBAGE_COLLECTION_THRESHOLD, Value::Float(share)) if share > 0.0 => {
                made.push(format!("garbage_collection_threshold:{share}"));
            }
            (key::EXPANDABLE_SEGMENTS, Value::Bool(true)) => made.push("expandable_segments:True".to_owned()),
            (key::ROUNDUP, Value::Object(object)) => made.extend(roundup(heap, object)),
            _ => {}
        }
    }
    // Releases before 2.7 have only the values.
    if settings.config.is_empty() {
        settings.config = made.join(",");
    }
    settings
}

/// The divisions of each power of two, as a setting; `None` where none is divided.
fn roundup(heap: &Heap, dict: u32) -> Option<String> {
    let Object::Dict(slot) = heap.object(dict) else { return None };
    let pairs = heap.values(slot).chunks_exact(2).filter_map(|pair| match *pair {
        [Value::Text(size), Value::Int(divisions)] => {
            Some((heap.stacks.texts().get(TextId::new(size)), divisions))
        }
        _ => None,
    });
    let pairs: Vec<(&str, i64)> = pairs.collect();
    let (_, last) = *pairs.last()?;
    if pairs.iter().all(|(_, divisions)| *divisions == 0) {
        return None;
    }
    // A size that is left out has the divisions of the next larger size in the list.
    let mut parts: Vec<String> =
        pairs.iter().map(|(size, divisions)| format!("{size}:{divisions}")).collect();
    parts.push(format!(">:{last}"));
    Some(format!("roundup_power2_divisions:[{}]", parts.join(",")))
}

fn plain(heap: &Heap, value: Value) -> String {
    match value {
        Value::Text(text) => heap.stacks.texts().get(TextId::new(text)).to_owned(),
        Value::Int(number) => number.to_string(),
        Value::Large(number) => number.to_string(),
        Value::Float(number) => number.to_string(),
        Value::Bool(true) => "True".to_owned(),
        Value::Bool(false) => "False".to_owned(),
        Value::Object(object) => match heap.object(object) {
            Object::Dict(slot) => {
                let pairs = heap.values(slot).chunks_exact(2).filter_map(|pair| match *pair {
                    [key, value @ (Value::Text(_) | Value::Int(_) | Value::Float(_) | Value::Bool(_))] => {
                        Some(format!("{}:{}", plain(heap, key), plain(heap, value)))
                    }
                    _ => None,
                });
                pairs.collect::<Vec<_>>().join(",")
            }
            _ => String::new(),
        },
        Value::None | Value::Other => String::new(),
    }
}

fn notes(heap: &Heap) -> Vec<String> {
    let texts = heap.stacks.texts();
    let sentences = |counts: &rustc_hash::FxHashMap<TextId, u64>, what: &str| {
        let mut counts: Vec<(&str, u64)> =
            counts.iter().map(|(id, count)| (texts.get(*id), *count)).collect();
        counts.sort_unstable();
        let shown: Vec<String> = counts
            .iter()
            .take(20)
            .map(|(name, count)| format!("{} ({count} times)", name.chars().take(60).collect::<String>()))
            .collect();
        let more = counts.len().saturating_sub(20);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        (!shown.is_empty()).then(|| format!("{what} passed over: {}{more}", shown.join(", ")))
    };
    [
        sentences(&heap.unknown, "fields that are not known are"),
        sentences(&heap.unknown_actions, "entries of traces with actions that are not known are"),
    ]
    .into_iter()
    .flatten()
    .collect()
}

//! Makes a snapshot of the values of a file.

use std::collections::BTreeMap;
use std::sync::Arc;

use blockyard_record::{StackId, TextId, counted};
use rustc_hash::FxHashMap;

use super::dialect::dialect_of;
use super::heap::lists::RowKind;
use super::heap::{Heap, Misfit, Object, SegmentRow, SkippedItems, UnknownParts, Value};
use super::keys as key;
use super::{
    Annotation, DeviceSnapshot, DeviceTrace, FieldError, OtherFile, SnapshotError, SnapshotFile,
    SnapshotSettings,
};

/// Devices of one machine; a file with more is not a snapshot.
const MAX_DEVICES: usize = 4096;

pub(super) fn finish(mut heap: Heap, root: Value) -> Result<SnapshotFile, SnapshotError> {
    let parts = parts(&mut heap, root)?;
    let field = |misfit: Misfit| SnapshotError::Field { byte: None, path: misfit.path, error: misfit.error };
    let mut finish = SnapshotBuilder { heap, passed: Vec::new(), first: None };
    let mut devices: BTreeMap<u32, DeviceSnapshot> = BTreeMap::new();
    let of_index = |index| DeviceSnapshot { index, ..DeviceSnapshot::default() };
    for (index, trace) in finish.traces(parts.traces).map_err(field)? {
        devices.entry(index).or_insert_with(|| of_index(index)).trace = trace;
    }
    for SegmentRow { segment, unknown_device } in finish.segments(parts.segments, "segments") {
        if let Some(device) = unknown_device {
            let count = finish.heap.unknown.devices.entry(device.into()).or_default();
            *count = count.saturating_add(1);
            continue;
        }
        let index = segment.device;
        devices.entry(index).or_insert_with(|| of_index(index)).segments.push(segment);
    }
    let mut devices: Vec<DeviceSnapshot> = devices.into_values().collect();
    let mut host = finish.host(&parts);
    for device in devices.iter_mut().chain(&mut host) {
        device.trace.shrink();
        device.segments.sort_by_key(|segment| segment.addr);
    }
    devices.iter().try_for_each(|device| check_segments(device, "segments")).map_err(field)?;
    if let Some(Err(misfit)) = host.as_ref().map(|host| check_segments(host, "host_segments")) {
        finish.pass(1, misfit);
        host = None;
    }
    let annotations = finish.annotations(parts.annotations);
    let settings = settings(&finish.heap, parts.settings);
    let keepers = match parts.keepers {
        Some(Value::Text(text)) => finish.heap.stacks.texts().get(TextId::new(text)).to_owned(),
        _ => String::new(),
    };
    let notes = finish.notes();
    // A file of which nothing can be read is damaged, or no snapshot.
    if let Some(misfit) = finish.first.filter(|_| devices.is_empty() && host.is_none()) {
        return Err(field(misfit));
    }
    let Heap { stacks, contexts, .. } = finish.heap;
    Ok(SnapshotFile {
        dialect: dialect_of(&devices),
        devices,
        host,
        settings,
        annotations,
        stacks: Arc::new(stacks),
        contexts,
        keepers,
        notes,
    })
}

/// The parts of a snapshot, each where the file has it.
#[derive(Default)]
struct Parts {
    segments: Option<Value>,
    traces: Option<Value>,
    settings: Option<Value>,
    annotations: Option<Value>,
    host_segments: Option<Value>,
    host_traces: Option<Value>,
    keepers: Option<Value>,
}

fn parts(heap: &mut Heap, root: Value) -> Result<Parts, SnapshotError> {
    let other = |kind| Err(SnapshotError::OtherKind(kind));
    let Value::Object(object) = root else {
        return match root {
            Value::Other => other(OtherFile::OldTorchSave),
            root => other(OtherFile::Pickle { found: heap.describe(root) }),
        };
    };
    let mut parts = Parts::default();
    match heap.object(object) {
        Object::Segments(_) => parts.segments = Some(root),
        Object::Dict(slot) => {
            let mut names = Vec::new();
            for pair in heap.values(slot).chunks_exact(2) {
                let [Value::Text(key), value] = *pair else { continue };
                let part = match TextId::new(key) {
                    key::SEGMENTS => &mut parts.segments,
                    key::DEVICE_TRACES => &mut parts.traces,
                    key::ALLOCATOR_SETTINGS => &mut parts.settings,
                    key::EXTERNAL_ANNOTATIONS => &mut parts.annotations,
                    key::HOST_SEGMENTS => &mut parts.host_segments,
                    key::HOST_TRACES => &mut parts.host_traces,
                    key::KEEPERS => &mut parts.keepers,
                    other => {
                        names.push(other);
                        continue;
                    }
                };
                *part = Some(value);
            }
            if parts.segments.is_none() && parts.traces.is_none() {
                let texts = heap.stacks.texts();
                let keys =
                    names.iter().take(3).map(|name| texts.get(*name).chars().take(40).collect()).collect();
                return other(OtherFile::Dictionary { keys });
            }
            for name in names {
                heap.count_unknown(name);
            }
        }
        Object::List(slot) if heap.values(slot).is_empty() => {}
        Object::Trace(_) => return other(OtherFile::Trace),
        _ => return other(OtherFile::List),
    }
    Ok(parts)
}

/// Makes a snapshot of values, and counts the parts that are skipped.
struct SnapshotBuilder {
    heap: Heap,
    /// Sentences about items that lack a field.
    passed: Vec<String>,
    /// The first of all values that do not fit their place.
    first: Option<Misfit>,
}

impl SnapshotBuilder {
    /// The number of the list of rows at `path`; a value of another kind is counted.
    fn rows(&mut self, value: Option<Value>, kind: RowKind, path: &str) -> Option<u32> {
        let value = value.filter(|value| *value != Value::None)?;
        let Some(number) = self.heap.as_rows(value, kind) else {
            let wrong = match value {
                Value::Object(_) => Misfit::new(path, FieldError::OtherList),
                other => self.heap.wrong(other, path, "a list"),
            };
            self.pass(1, wrong);
            return None;
        };
        let SkippedItems { misfits, first, .. } = self.heap.take_skipped(kind, number);
        if let Some(first) = first {
            self.pass(misfits, first.inside(path));
        }
        Some(number)
    }

    fn pass(&mut self, count: usize, first: Misfit) {
        let items = if count == 1 { "1 item is" } else { &format!("{count} items are") };
        self.passed.push(format!("{items} passed over; the first is {}: {}", first.path, first.error));
        self.first.get_or_insert(first);
    }

    fn segments(&mut self, value: Option<Value>, path: &str) -> Vec<SegmentRow> {
        let number = self.rows(value, RowKind::Segments, path);
        let list = number.and_then(|number| self.heap.segment_lists.get_mut(number as usize));
        list.map(std::mem::take).unwrap_or_default()
    }

    fn annotations(&mut self, value: Option<Value>) -> Vec<Annotation> {
        let number = self.rows(value, RowKind::Annotations, "external_annotations");
        let list = number.and_then(|number| self.heap.annotation_lists.get_mut(number as usize));
        list.map(std::mem::take).unwrap_or_default()
    }

    fn trace(&mut self, value: Value, path: &str) -> DeviceTrace {
        let number = self.rows(Some(value), RowKind::Trace, path);
        let trace = number.and_then(|number| self.heap.traces.get_mut(number as usize));
        trace.map(std::mem::take).unwrap_or_default()
    }

    /// The traces that have entries, with the index of their device.
    fn traces(&mut self, value: Option<Value>) -> Result<Vec<(u32, DeviceTrace)>, Misfit> {
        let path = "device_traces";
        let slot = match value {
            None | Some(Value::None) => return Ok(Vec::new()),
            Some(Value::Object(object)) => match self.heap.object(object) {
                Object::List(slot) | Object::Tuple(slot) => slot,
                Object::Stack(StackId::EMPTY) => return Ok(Vec::new()),
                _ => {
                    self.pass(1, Misfit::new(path, FieldError::NoTraces));
                    return Ok(Vec::new());
                }
            },
            Some(other) => {
                let wrong = self.heap.wrong(other, path, "a list");
                self.pass(1, wrong);
                return Ok(Vec::new());
            }
        };
        let lists = self.heap.values(slot).to_vec();
        if lists.len() > MAX_DEVICES {
            return Err(Misfit::new(path, FieldError::DeviceCount(lists.len())));
        }
        let traces = (0..).zip(lists).map(|(index, list)| {
            let trace = self.trace(list, &format!("{path}[{index}]"));
            (index, trace)
        });
        Ok(traces.filter(|(_, trace)| !trace.is_empty()).collect())
    }

    /// Host memory, which has one list of segments and one trace.
    fn host(&mut self, parts: &Parts) -> Option<DeviceSnapshot> {
        let rows = self.segments(parts.host_segments, "host_segments");
        let segments: Vec<_> = rows.into_iter().map(|row| row.segment).collect();
        let trace = parts.host_traces.map(|value| self.trace(value, "host_traces")).unwrap_or_default();
        let has_any = !segments.is_empty() || !trace.is_empty();
        has_any.then(|| DeviceSnapshot { is_host: true, trace, segments, ..DeviceSnapshot::default() })
    }

    /// Sentences about everything that was passed over.
    fn notes(&mut self) -> Vec<String> {
        let texts = self.heap.stacks.texts();
        let named = |counts: &FxHashMap<TextId, u64>, what: &str| {
            sentence(counts.iter().map(|(id, count)| (texts.get(*id), *count)).collect(), what)
        };
        let UnknownParts { fields, values, actions, states, devices } = &self.heap.unknown;
        let devices = devices.iter().map(|(device, count)| (device.as_str(), *count)).collect();
        let notes = [
            named(fields, "fields that are not known are"),
            named(values, "values of kinds that are not known are"),
            named(actions, "entries of traces with actions that are not known are"),
            named(states, "blocks and annotations in states that are not known are"),
            sentence(devices, "segments of devices that are not known are"),
        ];
        notes.into_iter().flatten().chain(std::mem::take(&mut self.passed)).collect()
    }
}

/// `fields that are not known are passed over: vendor (1 time)`.
fn sentence(mut counts: Vec<(&str, u64)>, what: &str) -> Option<String> {
    const SHOWN: usize = 20;
    counts.sort_unstable();
    let shown: Vec<String> = counts
        .iter()
        .take(SHOWN)
        .map(|(name, count)| {
            format!("{} ({})", name.chars().take(60).collect::<String>(), counted(*count, "time"))
        })
        .collect();
    let more = counts.len().saturating_sub(SHOWN);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    (!shown.is_empty()).then(|| format!("{what} passed over: {}{more}", shown.join(", ")))
}

fn check_segments(device: &DeviceSnapshot, path: &str) -> Result<(), Misfit> {
    let pairs = device.segments.windows(2);
    for pair in pairs {
        let [below, above] = pair else { continue };
        if below.addr.saturating_add(below.size.get()) > above.addr {
            let error = FieldError::SegmentOverlap { below: below.addr, above: above.addr };
            return Err(Misfit::new(path, error));
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
                texts.get(TextId::new(text)).clone_into(&mut settings.conf);
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
    if settings.conf.is_empty() {
        settings.conf = made.join(",");
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

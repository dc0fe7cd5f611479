//! Values of a file in the making, and the rows that they become.
//!
//! A list that begins with an entry of a trace is a trace: its entries go to columns as they are appended,
//! and so do segments, blocks and annotations. Few lists and dictionaries of values are left. The place of a
//! list decides in the end: rows at a place where they do not belong are skipped.
//!
//! Later releases add fields, actions and kinds of values. Nothing of that is an error: it is passed over and
//! counted.

pub(super) mod lists;
mod metadata;
mod rows;

use blockyard_record::{PoolId, StackId, Stacks, TextId};
use rustc_hash::FxHashMap;

use super::keys as key;
use super::partial_trace::PartialTrace;
use super::trace::{DeviceTrace, EntryContext};
use super::{Annotation, FieldError, SnapshotBlock};

pub(super) use self::rows::SegmentRow;

/// The most frames of one stack; PyTorch itself cuts deeper stacks.
const MAX_STACK_FRAMES: usize = 1 << 16;

/// A value that is not finished, or that nothing has taken yet.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Value {
    None,
    Bool(bool),
    Int(i64),
    /// A whole number of 2^63 or more.
    Large(u64),
    Float(f64),
    Text(u32),
    Object(u32),
    /// Something that no snapshot needs: bytes, a number of more than 64 bits.
    Other,
}

/// The current form of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Object {
    /// Values in a slot.
    List(u32),
    /// Keys and values, in turn, in a slot.
    Dict(u32),
    Tuple(u32),
    /// Rows; the number is that of the list among its kind.
    Trace(u32),
    Segments(u32),
    Blocks(u32),
    Annotations(u32),
    /// A list of frames.
    Stack(StackId),
    /// A call of a stack, by its index.
    Frame(u32),
    /// An object that became a row.
    Taken,
}

/// A value that does not fit its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Misfit {
    /// Where, from the container on: `[17].size`.
    pub(crate) path: String,
    /// What does not fit.
    pub(crate) error: FieldError,
}

impl Misfit {
    pub(crate) fn new(path: impl Into<String>, error: FieldError) -> Self {
        Self { path: path.into(), error }
    }

    pub(crate) fn inside(mut self, outer: &str) -> Self {
        self.path.insert_str(0, outer);
        self
    }
}

/// The items of a list that became no rows.
#[derive(Clone, Debug, Default)]
pub(super) struct SkippedItems {
    /// The number of all skipped items.
    pub(super) items: usize,
    /// How many of these items lack a field that a row needs.
    pub(super) misfits: usize,
    /// The first of the misfits.
    pub(super) first: Option<Misfit>,
}

/// The parts that were skipped because this program does not know them: how often, by name.
#[derive(Clone, Debug, Default)]
pub(super) struct UnknownParts {
    pub(super) fields: FxHashMap<TextId, u64>,
    /// Known fields whose values have an unknown kind.
    pub(super) values: FxHashMap<TextId, u64>,
    pub(super) actions: FxHashMap<TextId, u64>,
    /// States of blocks, and stages of annotations.
    pub(super) states: FxHashMap<TextId, u64>,
    /// Devices of segments, in words.
    pub(super) devices: FxHashMap<String, u64>,
}

/// The objects and rows.
#[derive(Debug, Default)]
pub(crate) struct Heap {
    pub(super) stacks: Stacks,
    objects: Vec<Object>,
    slots: Vec<Vec<Value>>,
    vacant: Vec<u32>,
    pub(super) traces: Vec<DeviceTrace>,
    /// The memory over time of each trace so far.
    so_far: Vec<PartialTrace>,
    pub(super) contexts: Vec<EntryContext>,
    context_numbers: FxHashMap<EntryContext, u32>,
    /// The last context and its number, which the next entry most likely has too.
    context: (EntryContext, u32),
    pub(super) segment_lists: Vec<Vec<SegmentRow>>,
    block_lists: Vec<Vec<SnapshotBlock>>,
    pub(super) annotation_lists: Vec<Vec<Annotation>>,
    skipped: FxHashMap<Object, SkippedItems>,
    /// Blocks of the last segment that lack a field which a block cannot do without: how many, and the first.
    lost_blocks: Option<(usize, Misfit)>,
    pub(super) unknown: UnknownParts,
    frames: Vec<u32>,
    rows: usize,
}

impl Heap {
    pub(crate) fn new() -> Self {
        let context = EntryContext::default();
        Self {
            stacks: key::stacks(),
            contexts: vec![context],
            context_numbers: std::iter::once((context, 0)).collect(),
            context: (context, 0),
            ..Self::default()
        }
    }

    /// How many bytes of memory the heap takes, about.
    pub(crate) fn size(&self) -> usize {
        // A vector of values keeps a few more than it needs; what is in slots is counted when it is put
        // there.
        self.stacks.memory_size()
            + self.objects.capacity() * size_of::<Object>()
            + self.slots.capacity() * size_of::<Vec<Value>>()
            + self.rows
            + self.traces.iter().map(DeviceTrace::size).sum::<usize>()
            + self.so_far.iter().map(PartialTrace::size).sum::<usize>()
            + self.segment_lists.iter().map(Vec::capacity).sum::<usize>() * size_of::<SegmentRow>()
            + self.annotation_lists.iter().map(Vec::capacity).sum::<usize>() * size_of::<Annotation>()
            + self.skipped.capacity() * size_of::<(Object, SkippedItems)>()
            + self.contexts.capacity() * 4 * size_of::<EntryContext>()
    }

    /// The size in bytes of the largest list that grows with unfinished values.
    pub(crate) fn largest_list(&self) -> usize {
        let objects = self.objects.capacity() * size_of::<Object>();
        objects.max(self.slots.capacity() * size_of::<Vec<Value>>())
    }

    /// The part that has been read of the trace with the most entries.
    pub(crate) fn longest_trace_so_far(&self) -> Option<&PartialTrace> {
        self.so_far.iter().max_by_key(|so_far| so_far.entries())
    }

    pub(crate) fn text(&mut self, text: &str) -> Option<Value> {
        self.stacks.intern_text(text).map(|id| Value::Text(id.get()))
    }

    pub(crate) fn text_of(&self, value: Value) -> Option<&str> {
        match value {
            Value::Text(text) => Some(self.stacks.texts().get(TextId::new(text))),
            _ => None,
        }
    }

    pub(crate) fn object(&self, object: u32) -> Object {
        self.objects.get(object as usize).copied().unwrap_or(Object::Taken)
    }

    pub(crate) fn new_list(&mut self) -> Option<Value> {
        let slot = self.new_slot()?;
        self.add(Object::List(slot))
    }

    pub(crate) fn new_dict(&mut self) -> Option<Value> {
        let slot = self.new_slot()?;
        self.add(Object::Dict(slot))
    }

    pub(crate) fn new_tuple(&mut self, members: &[Value]) -> Option<Value> {
        let slot = self.new_slot()?;
        self.fill(slot, members);
        self.add(Object::Tuple(slot))
    }

    fn add(&mut self, object: Object) -> Option<Value> {
        let number = u32::try_from(self.objects.len()).ok()?;
        self.objects.push(object);
        Some(Value::Object(number))
    }

    fn new_slot(&mut self) -> Option<u32> {
        if let Some(slot) = self.vacant.pop() {
            return Some(slot);
        }
        let slot = u32::try_from(self.slots.len()).ok()?;
        self.slots.push(Vec::new());
        Some(slot)
    }

    fn fill(&mut self, slot: u32, values: &[Value]) {
        if let Some(place) = self.slots.get_mut(slot as usize) {
            let before = place.capacity();
            place.extend_from_slice(values);
            self.rows += (place.capacity() - before) * size_of::<Value>();
        }
    }

    fn release(&mut self, slot: u32) {
        if let Some(place) = self.slots.get_mut(slot as usize) {
            place.clear();
            if place.capacity() > 64 {
                self.rows = self.rows.saturating_sub(place.capacity() * size_of::<Value>());
                *place = Vec::new();
            }
            self.vacant.push(slot);
        }
    }

    pub(super) fn values(&self, slot: u32) -> &[Value] {
        self.slots.get(slot as usize).map(Vec::as_slice).unwrap_or_default()
    }

    fn pool_id(&self, value: Value, path: &str) -> Result<PoolId, Misfit> {
        let wrong = || self.wrong(value, path, "a pair of numbers");
        let Value::Object(object) = value else { return Err(wrong()) };
        let (Object::Tuple(slot) | Object::List(slot)) = self.object(object) else { return Err(wrong()) };
        let [capture, user] = *self.values(slot) else { return Err(wrong()) };
        // Numbers beyond 32 bits are those of a pool that was destroyed.
        let part = |value| self.unsigned(value, path).map(|number| u32::try_from(number).unwrap_or(u32::MAX));
        Ok(PoolId { capture: part(capture)?, user: part(user)? })
    }

    pub(super) fn unsigned(&self, value: Value, path: &str) -> Result<u64, Misfit> {
        match value {
            Value::Int(number) => {
                u64::try_from(number).map_err(|_| Misfit::new(path, FieldError::Negative(number)))
            }
            Value::Large(number) => Ok(number),
            other => Err(self.wrong(other, path, "a whole number")),
        }
    }

    /// An address or a handle: some releases wrote large ones as negative numbers.
    fn addr(&self, value: Value, path: &str) -> Result<u64, Misfit> {
        match value {
            Value::Int(number) => Ok(number.cast_unsigned()),
            other => self.unsigned(other, path),
        }
    }

    fn text_id(&self, value: Value, path: &str) -> Result<TextId, Misfit> {
        match value {
            Value::Text(text) => Ok(TextId::new(text)),
            Value::None => Ok(key::EMPTY),
            other => Err(self.wrong(other, path, "a text")),
        }
    }

    pub(super) fn wrong(&self, value: Value, path: &str, expected: &'static str) -> Misfit {
        Misfit::new(path, FieldError::OtherType { found: self.describe(value), expected })
    }

    pub(super) fn describe(&self, value: Value) -> String {
        match value {
            Value::None => "None".to_owned(),
            Value::Bool(true) => "True".to_owned(),
            Value::Bool(false) => "False".to_owned(),
            Value::Int(number) => format!("the number {number}"),
            Value::Large(number) => format!("the number {number}"),
            Value::Float(number) => format!("the number {number}"),
            Value::Text(_) => {
                let text: String = self.text_of(value).unwrap_or_default().chars().take(40).collect();
                format!("the text \"{text}\"")
            }
            Value::Object(object) => match self.object(object) {
                Object::Dict(_) | Object::Frame(_) => "a dictionary".to_owned(),
                Object::Tuple(_) => "a tuple".to_owned(),
                Object::Taken => "something that stands elsewhere already".to_owned(),
                _ => "a list".to_owned(),
            },
            Value::Other => "something else".to_owned(),
        }
    }

    pub(super) fn count_unknown(&mut self, key: TextId) {
        count_one(self.unknown.fields.entry(key).or_default());
    }

    /// The value of a field that a row can do without. A value of a kind that is not known is counted.
    fn optional<T>(&mut self, key: TextId, value: Result<T, Misfit>) -> Option<T> {
        value.inspect_err(|_| count_one(self.unknown.values.entry(key).or_default())).ok()
    }
}

fn missing(path: &str) -> Misfit {
    Misfit::new(path, FieldError::Missing)
}

/// Keys and values of a dictionary; keys that are not texts are passed over.
fn fields(row: &[Value]) -> impl Iterator<Item = (TextId, Value)> + '_ {
    row.chunks_exact(2).filter_map(|pair| match *pair {
        [Value::Text(key), value] => Some((TextId::new(key), value)),
        _ => None,
    })
}

fn count_one(count: &mut u64) {
    *count = count.saturating_add(1);
}

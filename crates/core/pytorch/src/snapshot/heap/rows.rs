//! Makes rows of dictionaries of values: entries, segments, blocks, annotations, stacks.

use blockyard_record::{BlockState, Bytes, PoolKind, StackId, StreamId, TextId, TraceAction, TraceEntry};
use blockyard_rules::size::SMALL_SEGMENT_SIZE;

use super::lists::RowKind;
use super::{Heap, MAX_STACK_FRAMES, Misfit, Object, Value, count_one, fields, missing};
use crate::snapshot::keys as key;
use crate::snapshot::trace::{EntryContext, SnapshotEntry, TensorAnnotation};
use crate::snapshot::{Annotation, FieldError, SnapshotBlock, SnapshotSegment};

/// The row that an item of a trace becomes.
pub(super) enum Row {
    Entry(SnapshotEntry),
    Annotation(TensorAnnotation),
    /// An action of a later release.
    Unknown(TextId),
}

/// A segment, and the device that its dictionary names: in words where no device has such a number.
#[derive(Debug)]
pub(in crate::snapshot) struct SegmentRow {
    pub(in crate::snapshot) segment: SnapshotSegment,
    pub(in crate::snapshot) unknown_device: Option<Box<str>>,
}

/// A field that a row cannot do without.
type NeededField<T> = Option<Result<T, Misfit>>;

fn needed<T>(field: NeededField<T>, path: &str) -> Result<T, Misfit> {
    field.ok_or_else(|| missing(path))?
}

impl Heap {
    /// An item of a trace. A field of an action that is not known may be of any kind.
    pub(super) fn entry(&mut self, row: &[Value]) -> Result<Row, Misfit> {
        let (mut action, mut addr, mut size): (NeededField<TextId>, NeededField<u64>, NeededField<u64>) =
            (None, None, None);
        let (mut stream, mut time_us, mut stack) = (StreamId::DEFAULT, 0, StackId::EMPTY);
        let mut context = EntryContext::default();
        for (key, value) in fields(row) {
            match key {
                key::ACTION => action = Some(self.text_id(value, ".action")),
                key::ADDR => addr = Some(self.addr(value, ".addr")),
                key::DEVICE_FREE => addr = Some(self.unsigned(value, ".device_free")),
                key::SIZE => size = Some(self.unsigned(value, ".size")),
                key::STREAM => {
                    let handle = self.addr(value, "");
                    stream = self.optional(key, handle).map_or(stream, StreamId::new);
                }
                key::TIME_US => {
                    let time = self.unsigned(value, "");
                    time_us = self.optional(key, time).unwrap_or(0);
                }
                key::FRAMES => {
                    let found = self.stack(value);
                    stack = self.optional(key, found).unwrap_or_default();
                    context.has_empty_stack = stack == StackId::EMPTY;
                }
                other => self.entry_context(&mut context, other, value),
            }
        }
        let name = needed(action, ".action")?;
        let action = match key::action(name) {
            Some(action) => Some(action),
            None if name == key::ANNOTATE => None,
            None => return Ok(Row::Unknown(name)),
        };
        let size = Bytes::new(needed(size, ".size")?);
        let is_oom = action == Some(TraceAction::OutOfMemory);
        let addr = needed(addr, if is_oom { ".device_free" } else { ".addr" })?;
        let context = self.context(context);
        Ok(match action {
            Some(action) => {
                let entry = TraceEntry { action, addr, size, stream };
                Row::Entry(SnapshotEntry { entry, time_us, stack, context })
            }
            None => {
                Row::Annotation(TensorAnnotation { after: 0, addr, size, stream, time_us, stack, context })
            }
        })
    }

    fn entry_context(&mut self, context: &mut EntryContext, key: TextId, value: Value) {
        match key {
            key::COMPILE_CONTEXT => {
                let text = self.text_id(value, "");
                context.compile_context = self.optional(key, text).filter(|text| *text != key::NOT_AVAILABLE);
            }
            key::USER_METADATA => {
                let text = self.metadata(value);
                context.user_metadata = self.optional(key, text).filter(|text| *text != key::EMPTY);
            }
            key::INTERNAL_METADATA => {
                let text = self.metadata(value);
                context.internal_metadata = self.optional(key, text).filter(|text| *text != key::EMPTY);
            }
            key::POOL_ID | key::SEGMENT_POOL_ID => {
                let pool = self.pool_id(value, "");
                context.pool_id = self.optional(key, pool);
            }
            // The place of the trace in the file already names the device.
            key::DEVICE => {}
            other => self.count_unknown(other),
        }
    }

    fn context(&mut self, context: EntryContext) -> u32 {
        if self.context.0 == context {
            return self.context.1;
        }
        // After 2^32 contexts, which no file has, entries have the first one: the empty context.
        let next = u32::try_from(self.contexts.len()).unwrap_or(0);
        let number = *self.context_numbers.entry(context).or_insert(next);
        if number == next && next > 0 {
            self.contexts.push(context);
        }
        self.context = (context, number);
        number
    }

    pub(super) fn segment(&mut self, row: &[Value]) -> Result<SegmentRow, Misfit> {
        let (mut addr, mut size): (NeededField<u64>, NeededField<u64>) = (None, None);
        let mut segment = SnapshotSegment::default();
        let (mut is_small, mut unknown_device, mut blocks) = (None, None, None);
        for (key, value) in fields(row) {
            match key {
                key::DEVICE => match self.device_index(value) {
                    Some(device) => segment.device = device,
                    None => unknown_device = Some(self.describe(value).into_boxed_str()),
                },
                key::ADDRESS => addr = Some(self.addr(value, ".address")),
                key::TOTAL_SIZE => size = Some(self.unsigned(value, ".total_size")),
                key::STREAM => {
                    let handle = self.addr(value, "");
                    segment.stream = self.optional(key, handle).map_or(segment.stream, StreamId::new);
                }
                key::ALLOCATED_SIZE => segment.sums[0] = self.sum(key, value),
                key::ACTIVE_SIZE => segment.sums[1] = self.sum(key, value),
                key::REQUESTED_SIZE => segment.sums[2] = self.sum(key, value),
                key::SEGMENT_TYPE => {
                    let text = self.text_id(value, "");
                    is_small = self.optional(key, text).map(|text| text == key::SMALL);
                }
                key::SEGMENT_POOL_ID => {
                    let pool = self.pool_id(value, "");
                    segment.pool_id = self.optional(key, pool).unwrap_or(segment.pool_id);
                }
                key::IS_EXPANDABLE => segment.is_expandable = value == Value::Bool(true),
                key::FRAMES => {
                    let stack = self.stack(value);
                    segment.stack = self.optional(key, stack).unwrap_or_default();
                }
                key::BLOCKS => blocks = Some(value),
                other => self.count_unknown(other),
            }
        }
        segment.addr = needed(addr, ".address")?;
        segment.size = Bytes::new(needed(size, ".total_size")?);
        if let Some(blocks) = blocks {
            segment.blocks = self.take_blocks(blocks)?;
        }
        // Segments of the small pool have one size, and no others have it.
        let is_small = is_small.unwrap_or(segment.size == SMALL_SEGMENT_SIZE);
        segment.pool = if is_small { PoolKind::Small } else { PoolKind::Large };
        segment.place_blocks()?;
        Ok(SegmentRow { segment, unknown_device })
    }

    /// The number of a device: `0`, or `"cuda:0"`.
    fn device_index(&self, value: Value) -> Option<u32> {
        match value {
            Value::Int(device) => u32::try_from(device).ok(),
            Value::Text(_) => self.text_of(value)?.rsplit(':').next()?.parse().ok(),
            _ => None,
        }
    }

    fn sum(&mut self, key: TextId, value: Value) -> Bytes {
        let sum = self.unsigned(value, "");
        Bytes::new(self.optional(key, sum).unwrap_or(0))
    }

    fn take_blocks(&mut self, value: Value) -> Result<Vec<SnapshotBlock>, Misfit> {
        let Some(number) = self.as_rows(value, RowKind::Blocks) else {
            return Err(self.wrong(value, ".blocks", "a list of blocks"));
        };
        if let Value::Object(object) = value {
            self.set(object, Object::Taken);
        }
        let passed = self.take_skipped(RowKind::Blocks, number);
        let blocks = self.block_lists.get_mut(number as usize).map(std::mem::take).unwrap_or_default();
        // A segment none of whose blocks can be read would look free.
        match passed.first.map(|misfit| misfit.inside(".blocks")) {
            Some(misfit) if blocks.is_empty() => return Err(misfit),
            first => self.lost_blocks = first.map(|first| (passed.misfits, first)),
        }
        Ok(blocks)
    }

    /// A block; `None` where its state is not known.
    pub(super) fn block(&mut self, row: &[Value]) -> Result<Option<SnapshotBlock>, Misfit> {
        let (mut state, mut size): (NeededField<TextId>, NeededField<u64>) = (None, None);
        let (mut addr, mut requested) = (None, None);
        let mut block = SnapshotBlock::default();
        for (key, value) in fields(row) {
            match key {
                key::ADDRESS | key::ADDR => addr = Some(self.addr(value, ".address")),
                key::SIZE => size = Some(self.unsigned(value, ".size")),
                key::REQUESTED_SIZE => {
                    let bytes = self.unsigned(value, "");
                    requested = self.optional(key, bytes);
                }
                key::FRAMES => {
                    let stack = self.stack(value);
                    block.stack = self.optional(key, stack).unwrap_or_default();
                }
                key::STATE => state = Some(self.text_id(value, ".state")),
                // Releases before 2.1 kept the requested size of a block in a list.
                key::HISTORY => {
                    let newest = self.newest_of_history(value);
                    if let Some((real_size, stack)) = self.optional(key, newest).flatten() {
                        requested = Some(real_size);
                        block.stack = stack;
                    }
                }
                other => self.count_unknown(other),
            }
        }
        block.state = match needed(state, ".state")? {
            key::ACTIVE_ALLOCATED => BlockState::Allocated,
            key::ACTIVE_PENDING_FREE | key::ACTIVE_AWAITING_FREE => BlockState::PendingFree,
            key::INACTIVE => BlockState::Inactive,
            other => {
                count_one(self.unknown.states.entry(other).or_default());
                return Ok(None);
            }
        };
        block.addr = addr.transpose()?;
        block.size = Bytes::new(needed(size, ".size")?);
        block.requested = requested.map(Bytes::new);
        Ok(Some(block))
    }

    fn newest_of_history(&mut self, value: Value) -> Result<Option<(u64, StackId)>, Misfit> {
        let Value::Object(object) = value else { return Ok(None) };
        let Object::List(slot) = self.object(object) else { return Ok(None) };
        let Some(Value::Object(newest)) = self.values(slot).first().copied() else { return Ok(None) };
        let Object::Dict(slot) = self.object(newest) else { return Ok(None) };
        let row = self.values(slot).to_vec();
        let (mut size, mut stack) = (None, StackId::EMPTY);
        for (key, value) in fields(&row) {
            match key {
                key::REAL_SIZE => size = Some(self.unsigned(value, "")?),
                key::FRAMES => stack = self.stack(value)?,
                _ => {}
            }
        }
        Ok(size.map(|size| (size, stack)))
    }

    /// The beginning or the end of a named stretch; `None` where its stage is not known.
    pub(super) fn annotation(&mut self, row: &[Value]) -> Result<Option<Annotation>, Misfit> {
        let (mut name, mut stage): (NeededField<TextId>, NeededField<TextId>) = (None, None);
        let mut annotation = Annotation::default();
        for (key, value) in fields(row) {
            match key {
                key::NAME => name = Some(self.text_id(value, ".name")),
                key::STAGE => stage = Some(self.text_id(value, ".stage")),
                // -1 stands for every device.
                key::DEVICE => annotation.device = self.device_index(value),
                key::TIME_US => {
                    let time = self.unsigned(value, "");
                    annotation.time_us = self.optional(key, time).unwrap_or(0);
                }
                other => self.count_unknown(other),
            }
        }
        annotation.is_end = match needed(stage, ".stage")? {
            key::START => false,
            key::END => true,
            other => {
                count_one(self.unknown.states.entry(other).or_default());
                return Ok(None);
            }
        };
        annotation.name = needed(name, ".name")?;
        Ok(Some(annotation))
    }

    /// Makes a stack of a list of frames; the object is the stack from now on.
    pub(in crate::snapshot) fn stack(&mut self, value: Value) -> Result<StackId, Misfit> {
        let object = match value {
            Value::Object(object) => object,
            Value::None => return Ok(StackId::EMPTY),
            other => return Err(self.wrong(other, "", "a list of frames")),
        };
        let slot = match self.object(object) {
            Object::Stack(stack) => return Ok(stack),
            Object::List(slot) => slot,
            _ => return Err(self.wrong(value, "", "a list of frames")),
        };
        let count = self.values(slot).len();
        if count > MAX_STACK_FRAMES {
            return Err(Misfit::new("", FieldError::StackDepth(count)));
        }
        let mut frames = std::mem::take(&mut self.frames);
        frames.clear();
        for index in 0..count {
            let frame = self.values(slot).get(index).copied().unwrap_or(Value::None);
            let frame = self.frame(frame);
            frames.extend(self.optional(key::FRAMES, frame));
        }
        let stack = self.stacks.intern_stack(&frames);
        self.frames = frames;
        let stack = stack.ok_or_else(|| Misfit::new("", FieldError::StackCount))?;
        self.release(slot);
        self.set(object, Object::Stack(stack));
        Ok(stack)
    }

    fn frame(&mut self, value: Value) -> Result<u32, Misfit> {
        let Value::Object(object) = value else { return Err(self.wrong(value, "", "a frame")) };
        let slot = match self.object(object) {
            Object::Frame(frame) => return Ok(frame),
            Object::Dict(slot) => slot,
            _ => return Err(self.wrong(value, "", "a frame")),
        };
        let row = self.slots.get_mut(slot as usize).map(std::mem::take).unwrap_or_default();
        let (mut name, mut filename, mut line) = (key::EMPTY, key::EMPTY, 0);
        for (key, value) in fields(&row) {
            match key {
                key::NAME => {
                    let text = self.text_id(value, "");
                    name = self.optional(key, text).unwrap_or(key::EMPTY);
                }
                key::FILENAME => {
                    let text = self.text_id(value, "");
                    filename = self.optional(key, text).unwrap_or(key::EMPTY);
                    filename = self.with_slashes(filename);
                }
                // Frames of C++ have no line, or a negative one.
                key::LINE => {
                    line = match value {
                        Value::Int(line) => u32::try_from(line).unwrap_or(0),
                        Value::None => 0,
                        other => {
                            let wrong = Err(self.wrong(other, "", "a line's number"));
                            self.optional(key, wrong).unwrap_or(0)
                        }
                    }
                }
                other => self.count_unknown(other),
            }
        }
        if let Some(place) = self.slots.get_mut(slot as usize) {
            *place = row;
        }
        let frame = self.stacks.intern_frame(name, filename, line);
        let frame = frame.ok_or_else(|| Misfit::new("", FieldError::FrameCount))?.get();
        self.release(slot);
        self.set(object, Object::Frame(frame));
        Ok(frame)
    }

    /// The name of a file with slashes, as all rules about files expect: Windows has backslashes.
    fn with_slashes(&mut self, file: TextId) -> TextId {
        let text = self.stacks.texts().get(file);
        if !text.contains('\\') {
            return file;
        }
        let text = text.replace('\\', "/");
        self.stacks.intern_text(&text).unwrap_or(file)
    }
}

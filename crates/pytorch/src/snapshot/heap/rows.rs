//! Dictionaries of values become rows: entries, segments, blocks, annotations, stacks.

use blockyard_record::{BlockState, Bytes, PoolKind, StackId, StreamId, TraceEntry};

use super::{DEEPEST_STACK, Heap, Misfit, Object, Value, count_one, fields, missing};
use crate::snapshot::keys as key;
use crate::snapshot::trace::{EntryContext, SnapshotEntry};
use crate::snapshot::{Annotation, FieldError, SnapshotBlock, SnapshotSegment};

impl Heap {
    /// An entry of a trace; `None` for an action that is not known.
    pub(super) fn entry(&mut self, row: &[Value]) -> Result<Option<SnapshotEntry>, Misfit> {
        let (mut action, mut addr, mut size) = (None, None, None);
        let (mut stream, mut time_us, mut stack) = (StreamId::DEFAULT, 0, StackId::EMPTY);
        let mut context = EntryContext::default();
        for (key, value) in fields(row) {
            match key {
                key::ACTION => action = Some(self.text_id(value, ".action")?),
                key::ADDR => addr = Some(self.addr(value, ".addr")?),
                key::DEVICE_FREE => addr = Some(self.unsigned(value, ".device_free")?),
                key::SIZE => size = Some(self.unsigned(value, ".size")?),
                key::STREAM => stream = StreamId::new(self.addr(value, ".stream")?),
                key::TIME_US => time_us = self.unsigned(value, ".time_us")?,
                key::FRAMES => {
                    stack = self.stack(value).map_err(|misfit| misfit.inside(".frames"))?;
                    context.has_empty_stack = stack == StackId::EMPTY;
                }
                key::COMPILE_CONTEXT => {
                    let text = self.text_id(value, ".compile_context")?;
                    context.compile_context = Some(text).filter(|text| *text != key::NOT_AVAILABLE);
                }
                key::USER_METADATA => {
                    let text = self.text_id(value, ".user_metadata")?;
                    context.user_metadata = Some(text).filter(|text| *text != key::EMPTY);
                }
                key::POOL_ID | key::SEGMENT_POOL_ID => {
                    context.pool_id = Some(self.pool_id(value, ".pool_id")?);
                }
                // The place of the trace in the file says the same.
                key::DEVICE => {}
                other => self.count_unknown(other),
            }
        }
        let Some(name) = action else { return Err(missing(".action")) };
        let Some(action) = key::action(name) else {
            count_one(self.unknown_actions.entry(name).or_default());
            return Ok(None);
        };
        let size = Bytes::new(size.ok_or_else(|| missing(".size"))?);
        let is_oom = action == blockyard_record::TraceAction::OutOfMemory;
        let addr = addr.ok_or_else(|| missing(if is_oom { ".device_free" } else { ".addr" }))?;
        let context = self.context(context);
        Ok(Some(SnapshotEntry { entry: TraceEntry { action, addr, size, stream }, time_us, stack, context }))
    }

    fn context(&mut self, context: EntryContext) -> u32 {
        if self.context.0 == context {
            return self.context.1;
        }
        let next = u32::try_from(self.contexts.len()).unwrap_or(0);
        let number = *self.context_numbers.entry(context).or_insert(next);
        if number == next && next > 0 {
            self.contexts.push(context);
        }
        self.context = (context, number);
        number
    }

    pub(super) fn segment(&mut self, row: &[Value]) -> Result<SnapshotSegment, Misfit> {
        let (mut addr, mut size) = (None, None);
        let mut segment = SnapshotSegment::default();
        let mut is_small = None;
        for (key, value) in fields(row) {
            match key {
                key::DEVICE => {
                    let device = self.unsigned(value, ".device")?;
                    segment.device = u32::try_from(device)
                        .map_err(|_| Misfit::new(".device", FieldError::DeviceIndex(device)))?;
                }
                key::ADDRESS => addr = Some(self.addr(value, ".address")?),
                key::TOTAL_SIZE => size = Some(self.unsigned(value, ".total_size")?),
                key::STREAM => segment.stream = StreamId::new(self.addr(value, ".stream")?),
                key::ALLOCATED_SIZE => segment.sums[0] = Bytes::new(self.unsigned(value, ".allocated_size")?),
                key::ACTIVE_SIZE => segment.sums[1] = Bytes::new(self.unsigned(value, ".active_size")?),
                key::REQUESTED_SIZE => segment.sums[2] = Bytes::new(self.unsigned(value, ".requested_size")?),
                key::SEGMENT_TYPE => is_small = Some(self.text_id(value, ".segment_type")? == key::SMALL),
                key::SEGMENT_POOL_ID => segment.pool_id = self.pool_id(value, ".segment_pool_id")?,
                key::IS_EXPANDABLE => segment.is_expandable = value == Value::Bool(true),
                key::FRAMES => {
                    segment.stack = self.stack(value).map_err(|misfit| misfit.inside(".frames"))?;
                }
                key::BLOCKS => segment.blocks = self.take_blocks(value)?,
                other => self.count_unknown(other),
            }
        }
        segment.addr = addr.ok_or_else(|| missing(".address"))?;
        segment.size = Bytes::new(size.ok_or_else(|| missing(".total_size"))?);
        // Segments of the small pool have one size, and no others have it.
        let is_small = is_small.unwrap_or(segment.size == crate::before::SMALL_SEGMENT);
        segment.pool = if is_small { PoolKind::Small } else { PoolKind::Large };
        segment.place_blocks()?;
        Ok(segment)
    }

    fn take_blocks(&mut self, value: Value) -> Result<Vec<SnapshotBlock>, Misfit> {
        match value {
            Value::Object(object) => match self.object(object) {
                Object::Blocks(list) => {
                    self.set(object, Object::Taken);
                    let blocks = self.block_lists.get_mut(list as usize).map(std::mem::take);
                    Ok(blocks.unwrap_or_default())
                }
                Object::List(slot) if self.values(slot).is_empty() => Ok(Vec::new()),
                Object::Stack(StackId::EMPTY) => Ok(Vec::new()),
                Object::List(_) => Err(missing(".blocks[0].state")),
                Object::Taken => Err(Misfit::new(".blocks", FieldError::SharedBlocks)),
                _ => {
                    let found = "something else".to_owned();
                    Err(Misfit::new(".blocks", FieldError::OtherType { found, expected: "a list of blocks" }))
                }
            },
            other => Err(self.wrong(other, ".blocks", "a list of blocks")),
        }
    }

    pub(super) fn block(&mut self, row: &[Value]) -> Result<SnapshotBlock, Misfit> {
        let (mut state, mut size, mut requested) = (None, None, None);
        let mut block = SnapshotBlock::default();
        for (key, value) in fields(row) {
            match key {
                key::ADDRESS | key::ADDR => block.addr = Some(self.addr(value, ".address")?),
                key::SIZE => size = Some(self.unsigned(value, ".size")?),
                key::REQUESTED_SIZE => requested = Some(self.unsigned(value, ".requested_size")?),
                key::FRAMES => block.stack = self.stack(value).map_err(|misfit| misfit.inside(".frames"))?,
                key::STATE => state = Some(self.text_id(value, ".state")?),
                // Releases before 2.1 kept the requested size of a block in a list.
                key::HISTORY => {
                    let newest = self.newest_of_history(value).map_err(|misfit| misfit.inside(".history"))?;
                    if let Some((real_size, stack)) = newest {
                        requested = Some(real_size);
                        block.stack = stack;
                    }
                }
                other => self.count_unknown(other),
            }
        }
        let state = state.ok_or_else(|| missing(".state"))?;
        block.state = match state {
            key::ACTIVE_ALLOCATED => BlockState::Allocated,
            key::ACTIVE_PENDING_FREE | key::ACTIVE_AWAITING_FREE => BlockState::PendingFree,
            key::INACTIVE => BlockState::Inactive,
            other => {
                let text: String = self.stacks.texts().get(other).chars().take(40).collect();
                return Err(Misfit::new(".state", FieldError::BlockState(text)));
            }
        };
        block.size = Bytes::new(size.ok_or_else(|| missing(".size"))?);
        block.requested = requested.map(Bytes::new);
        Ok(block)
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
                key::REAL_SIZE => size = Some(self.unsigned(value, "[0].real_size")?),
                key::FRAMES => stack = self.stack(value).map_err(|misfit| misfit.inside("[0].frames"))?,
                _ => {}
            }
        }
        Ok(size.map(|size| (size, stack)))
    }

    pub(super) fn annotation(&mut self, row: &[Value]) -> Result<Annotation, Misfit> {
        let (mut name, mut stage) = (None, None);
        let mut annotation = Annotation::default();
        for (key, value) in fields(row) {
            match key {
                key::NAME => name = Some(self.text_id(value, ".name")?),
                key::STAGE => stage = Some(self.text_id(value, ".stage")?),
                key::DEVICE => {
                    // -1 stands for every device.
                    annotation.device = match value {
                        Value::Int(device) => u32::try_from(device).ok(),
                        _ => None,
                    };
                }
                key::TIME_US => annotation.time_us = self.unsigned(value, ".time_us")?,
                other => self.count_unknown(other),
            }
        }
        annotation.name = name.ok_or_else(|| missing(".name"))?;
        annotation.is_end = match stage.ok_or_else(|| missing(".stage"))? {
            key::START => false,
            key::END => true,
            other => {
                let text: String = self.stacks.texts().get(other).chars().take(40).collect();
                return Err(Misfit::new(".stage", FieldError::Stage(text)));
            }
        };
        Ok(annotation)
    }

    /// The stack that a list of frames is; the list is that stack from now on.
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
        if count > DEEPEST_STACK {
            return Err(Misfit::new("", FieldError::StackDepth(count)));
        }
        let mut frames = std::mem::take(&mut self.frames);
        frames.clear();
        for index in 0..count {
            let frame = self.values(slot).get(index).copied().unwrap_or(Value::None);
            frames.push(self.frame(frame).map_err(|misfit| misfit.inside(&format!("[{index}]")))?);
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
                key::NAME => name = self.text_id(value, ".name")?,
                key::FILENAME => filename = self.text_id(value, ".filename")?,
                // Frames of C++ have no line, or a negative one.
                key::LINE => {
                    line = match value {
                        Value::Int(line) => u32::try_from(line).unwrap_or(0),
                        Value::None => 0,
                        other => return Err(self.wrong(other, ".line", "a line's number")),
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
}

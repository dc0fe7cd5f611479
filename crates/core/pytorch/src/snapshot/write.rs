//! Snapshots as pickles, for `_memory_viz.py` and the page on pytorch.org.

use std::io::{self, Write};

use blockyard_record::{Bytes, FrameId, PoolId, StackId, TextId, TraceAction, TraceEntry};
use rustc_hash::FxHashMap;

use super::{
    Annotation, DeviceSnapshot, SnapshotBlock, SnapshotEntry, SnapshotFile, SnapshotSegment, TensorAnnotation,
};
use crate::pickle::{PickleWriter, opcode as op};

/// Entries of a trace, in order.
pub type Entries<'a> = Box<dyn Iterator<Item = SnapshotEntry> + 'a>;

impl SnapshotFile {
    /// Writes the snapshot as a pickle of protocol 4 with PyTorch's own keys in PyTorch's order.
    ///
    /// Equal texts, frames and stacks are written once, so the file is smaller than PyTorch's.
    ///
    /// # Errors
    ///
    /// The errors of `out`, and [`io::ErrorKind::InvalidInput`] for a text of more than 4 GiB.
    pub fn write_pickle(&self, out: impl Write) -> io::Result<()> {
        self.write(out, false, &items)
    }

    /// Writes the snapshot as [`SnapshotFile::write_pickle`] does, with other entries than those of the
    /// devices' traces. The entries are written as they come, and as PyTorch writes them: each allocation has
    /// its own list of frames and `compile_context`, so the file is as large as PyTorch's. Texts that the
    /// program gave to tensors are left out.
    ///
    /// # Errors
    ///
    /// The errors of [`SnapshotFile::write_pickle`].
    pub fn write_pickle_with<'a>(
        &'a self,
        out: impl Write,
        entries: impl Fn(&'a DeviceSnapshot) -> Entries<'a>,
    ) -> io::Result<()> {
        self.write(out, true, &|device| Box::new(entries(device).map(Item::Entry)))
    }

    fn write<'a>(
        &'a self,
        out: impl Write,
        has_own_lists: bool,
        entries: &dyn Fn(&'a DeviceSnapshot) -> Items<'a>,
    ) -> io::Result<()> {
        let mut writer = Writer {
            pickle: PickleWriter::new(out)?,
            file: self,
            has_own_lists,
            keys: FxHashMap::default(),
            texts: FxHashMap::default(),
            frames: FxHashMap::default(),
            stacks: FxHashMap::default(),
        };
        writer.snapshot(entries)?;
        writer.pickle.finish()
    }
}

/// An item of a trace.
#[derive(Clone, Copy)]
enum Item {
    Entry(SnapshotEntry),
    Annotation(TensorAnnotation),
}

type Items<'a> = Box<dyn Iterator<Item = Item> + 'a>;

/// The entries of a trace, and the texts that the program gave to tensors between them.
fn items(device: &DeviceSnapshot) -> Items<'_> {
    let annotations = device.trace.tensor_annotations();
    let before = move |index: usize| {
        let start = annotations.partition_point(|annotation| annotation.after < index);
        let annotations = annotations.get(start..).unwrap_or_default().iter();
        annotations.take_while(move |annotation| annotation.after == index).copied().map(Item::Annotation)
    };
    let entries = device.trace.iter().enumerate();
    let items = entries.flat_map(move |(index, entry)| before(index).chain([Item::Entry(entry)]));
    Box::new(items.chain(before(device.trace.len())))
}

struct Writer<'a, W: Write> {
    pickle: PickleWriter<W>,
    file: &'a SnapshotFile,
    /// Whether allocations share no lists of frames, as in PyTorch's files.
    has_own_lists: bool,
    /// The place in the memo of each value that was written.
    keys: FxHashMap<String, u32>,
    texts: FxHashMap<TextId, u32>,
    frames: FxHashMap<FrameId, u32>,
    stacks: FxHashMap<StackId, u32>,
}

impl<'a, W: Write> Writer<'a, W> {
    fn snapshot(&mut self, entries: &dyn Fn(&'a DeviceSnapshot) -> Items<'a>) -> io::Result<()> {
        let file = self.file;
        self.pickle.opcode(op::EMPTY_DICT)?;
        self.pickle.memoize()?;
        self.pickle.opcode(op::MARK)?;
        self.key("segments")?;
        let segments = file.devices.iter().flat_map(|device| &device.segments);
        self.list(segments, Self::segment)?;
        self.key("device_traces")?;
        let count = file.devices.iter().map(|device| device.index as usize + 1).max().unwrap_or(0).min(4096);
        let traces = (0..count).map(|index| {
            let device = file.devices.iter().find(|device| device.index as usize == index);
            device.map_or_else(|| Box::new(std::iter::empty()) as Items<'a>, entries)
        });
        self.list(traces, |writer, trace| writer.list(trace, Self::item))?;
        self.key("allocator_settings")?;
        self.settings()?;
        self.key("external_annotations")?;
        self.list(&file.annotations, Self::annotation)?;
        if let Some(host) = &file.host {
            self.key("host_segments")?;
            self.list(&host.segments, Self::host_segment)?;
            self.key("host_traces")?;
            self.list(entries(host), Self::item)?;
        }
        if !file.keepers.is_empty() {
            self.key("blockyard_keepers")?;
            self.pickle.text(&file.keepers)?;
        }
        self.pickle.opcode(op::SETITEMS)
    }

    fn list<T>(
        &mut self,
        items: impl IntoIterator<Item = T>,
        mut write: impl FnMut(&mut Self, T) -> io::Result<()>,
    ) -> io::Result<()> {
        self.pickle.opcode(op::EMPTY_LIST)?;
        self.pickle.memoize()?;
        let mut open = 0;
        for item in items {
            if open == 0 {
                self.pickle.opcode(op::MARK)?;
            }
            write(self, item)?;
            open = (open + 1) % crate::pickle::BATCH;
            if open == 0 {
                self.pickle.opcode(op::APPENDS)?;
            }
        }
        if open > 0 { self.pickle.opcode(op::APPENDS) } else { Ok(()) }
    }

    fn dict(&mut self, write: impl FnOnce(&mut Self) -> io::Result<()>) -> io::Result<()> {
        self.pickle.opcode(op::EMPTY_DICT)?;
        self.pickle.memoize()?;
        self.pickle.opcode(op::MARK)?;
        write(self)?;
        self.pickle.opcode(op::SETITEMS)
    }

    fn key(&mut self, key: &str) -> io::Result<()> {
        if let Some(entry) = self.keys.get(key) {
            return self.pickle.get(*entry);
        }
        let entry = self.pickle.text(key)?;
        self.keys.insert(key.to_owned(), entry);
        Ok(())
    }

    fn pair(&mut self, key: &str, value: u64) -> io::Result<()> {
        self.key(key)?;
        self.pickle.number(value)
    }

    fn text(&mut self, text: TextId) -> io::Result<()> {
        if let Some(entry) = self.texts.get(&text) {
            return self.pickle.get(*entry);
        }
        let entry = self.pickle.text(self.file.stacks.texts().get(text))?;
        self.texts.insert(text, entry);
        Ok(())
    }

    fn stack(&mut self, stack: StackId) -> io::Result<()> {
        if let Some(entry) = self.stacks.get(&stack) {
            return self.pickle.get(*entry);
        }
        self.pickle.opcode(op::EMPTY_LIST)?;
        let entry = self.pickle.memoize()?;
        self.stacks.insert(stack, entry);
        if stack == StackId::EMPTY {
            return Ok(());
        }
        let file = self.file;
        self.pickle.opcode(op::MARK)?;
        for frame in file.stacks.frames(stack) {
            self.write_frame(frame)?;
        }
        self.pickle.opcode(op::APPENDS)
    }

    fn write_frame(&mut self, id: FrameId) -> io::Result<()> {
        if let Some(entry) = self.frames.get(&id) {
            return self.pickle.get(*entry);
        }
        self.pickle.opcode(op::EMPTY_DICT)?;
        let entry = self.pickle.memoize()?;
        self.frames.insert(id, entry);
        let frame = self.file.stacks.frame(id);
        self.pickle.opcode(op::MARK)?;
        self.key("name")?;
        self.key(frame.name)?;
        self.key("filename")?;
        self.key(frame.filename)?;
        self.pair("line", frame.line.into())?;
        self.pickle.opcode(op::SETITEMS)
    }

    fn write_pool_id(&mut self, pool_id: PoolId) -> io::Result<()> {
        self.pickle.number(pool_id.capture.into())?;
        self.pickle.number(pool_id.user.into())?;
        self.pickle.opcode(op::TUPLE2)?;
        self.pickle.memoize().map(|_| ())
    }

    fn segment(&mut self, segment: &SnapshotSegment) -> io::Result<()> {
        self.segment_of(segment.device.into(), segment)
    }

    fn host_segment(&mut self, segment: &SnapshotSegment) -> io::Result<()> {
        self.segment_of(-1, segment)
    }

    fn segment_of(&mut self, device: i64, segment: &SnapshotSegment) -> io::Result<()> {
        let sums = segment.sums.map(Bytes::get);
        self.dict(|writer| {
            writer.key("device")?;
            writer.pickle.signed(device)?;
            writer.pair("address", segment.addr)?;
            writer.pair("total_size", segment.size.get())?;
            writer.pair("allocated_size", sums[0])?;
            writer.pair("active_size", sums[1])?;
            writer.pair("requested_size", sums[2])?;
            writer.pair("stream", segment.stream.get())?;
            writer.key("segment_type")?;
            writer.key(&segment.pool.to_string())?;
            writer.key("segment_pool_id")?;
            writer.write_pool_id(segment.pool_id)?;
            writer.key("is_expandable")?;
            writer.pickle.boolean(segment.is_expandable)?;
            writer.key("frames")?;
            writer.stack(segment.stack)?;
            writer.key("blocks")?;
            writer.list(&segment.blocks, Self::block)
        })
    }

    fn block(&mut self, block: &SnapshotBlock) -> io::Result<()> {
        self.dict(|writer| {
            writer.pair("address", block.addr())?;
            writer.pair("size", block.size.get())?;
            writer.pair("requested_size", block.requested.unwrap_or_default().get())?;
            writer.key("state")?;
            writer.key(block.state.name())?;
            writer.key("frames")?;
            writer.stack(block.stack)
        })
    }

    fn item(&mut self, item: Item) -> io::Result<()> {
        match item {
            Item::Entry(SnapshotEntry { entry, time_us, stack, context }) => {
                let TraceEntry { action, addr, size, stream } = entry;
                let is_new = matches!(action, TraceAction::Alloc | TraceAction::SegmentAlloc);
                let annotation = TensorAnnotation { after: 0, addr, size, stream, time_us, stack, context };
                self.entry(action.name(), &annotation, is_new)
            }
            Item::Annotation(annotation) => self.entry("annotate", &annotation, false),
        }
    }

    fn entry(&mut self, action: &str, entry: &TensorAnnotation, is_new: bool) -> io::Result<()> {
        let TensorAnnotation { addr, size, stream, time_us, stack, context, .. } = *entry;
        let context = self.file.contexts.get(context as usize).copied().unwrap_or_default();
        let addr_key = if action == TraceAction::OutOfMemory.name() { "device_free" } else { "addr" };
        self.dict(|writer| {
            writer.key("action")?;
            writer.key(action)?;
            writer.pair(addr_key, addr)?;
            writer.pair("size", size.get())?;
            writer.pair("stream", stream.get())?;
            writer.pair("time_us", time_us)?;
            if !context.lacks_compile_context {
                writer.key("compile_context")?;
                match context.compile_context {
                    Some(text) => writer.text(text)?,
                    None if writer.has_own_lists => {
                        writer.pickle.text("N/A")?;
                    }
                    None => writer.key("N/A")?,
                }
            }
            if !context.lacks_user_metadata {
                writer.key("user_metadata")?;
                match context.user_metadata {
                    Some(text) => writer.text(text)?,
                    None => writer.key("")?,
                }
            }
            if let Some(pool) = context.pool_id {
                writer.key("pool_id")?;
                writer.write_pool_id(pool)?;
            }
            if let Some(text) = context.internal_metadata {
                writer.key("internal_metadata")?;
                writer.text(text)?;
            }
            if stack == StackId::EMPTY && !context.has_empty_stack {
                return Ok(());
            }
            writer.key("frames")?;
            if writer.has_own_lists && is_new && stack != StackId::EMPTY {
                writer.stacks.remove(&stack);
            }
            writer.stack(stack)
        })
    }

    fn annotation(&mut self, annotation: &Annotation) -> io::Result<()> {
        self.dict(|writer| {
            writer.key("stage")?;
            writer.key(if annotation.is_end { "END" } else { "START" })?;
            writer.key("name")?;
            writer.text(annotation.name)?;
            writer.key("device")?;
            match annotation.device {
                Some(device) => writer.pickle.number(device.into())?,
                None => writer.pickle.signed(-1)?,
            }
            writer.pair("time_us", annotation.time_us)
        })
    }

    fn settings(&mut self) -> io::Result<()> {
        let file = self.file;
        self.dict(|writer| {
            for (name, value) in &file.settings.values {
                writer.key(name)?;
                writer.setting(name, value)?;
            }
            Ok(())
        })
    }

    /// A setting as PyTorch's type for it.
    fn setting(&mut self, name: &str, value: &str) -> io::Result<()> {
        match (name, value, value.parse::<i64>(), value.parse::<f64>()) {
            ("PYTORCH_CUDA_ALLOC_CONF", ..) => self.pickle.text(value).map(|_| ()),
            ("garbage_collection_threshold", _, _, Ok(number)) => self.pickle.float(number),
            ("roundup_power2_divisions", ..) => {
                let divisions = value.split(',').filter_map(|pair| {
                    let (size, divisions) = pair.split_once(':')?;
                    Some((size, divisions.parse::<u64>().ok()?))
                });
                self.dict(|writer| {
                    for (size, divisions) in divisions {
                        writer.pair(size, divisions)?;
                    }
                    Ok(())
                })
            }
            (_, "True" | "False", ..) => self.pickle.boolean(value == "True"),
            (_, _, Ok(number), _) => self.pickle.signed(number),
            (_, _, _, Ok(number)) => self.pickle.float(number),
            _ => self.pickle.text(value).map(|_| ()),
        }
    }
}

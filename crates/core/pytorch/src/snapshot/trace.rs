//! The events of one device, in columns.

use blockyard_record::{Bytes, PoolId, StackId, StreamId, TextId, TraceAction, TraceEntry};
use rustc_hash::FxHashMap;

/// PyTorch's trace of one device: 35 bytes an entry.
#[derive(Clone, Debug, Default)]
pub struct DeviceTrace {
    actions: Vec<TraceAction>,
    addrs: Vec<u64>,
    sizes: Vec<u64>,
    /// Indices into `stream_handles`.
    streams: Vec<u16>,
    stream_handles: Vec<StreamId>,
    stream_numbers: FxHashMap<StreamId, u16>,
    times: Vec<u64>,
    stacks: Vec<StackId>,
    /// Indices into the contexts of the file.
    contexts: Vec<u32>,
    tensor_annotations: Vec<TensorAnnotation>,
}

/// The context of an entry: its stack and annotations. Most entries of a file share a few contexts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct EntryContext {
    /// The compilation of `torch.compile` at that time: a text of the file's stacks.
    pub compile_context: Option<TextId>,
    /// The text that the program set with `_set_memory_metadata`: a text of the file's stacks.
    pub user_metadata: Option<TextId>,
    /// PyTorch's own words about the allocation, which it writes since 2.15: a text of the file's stacks.
    pub internal_metadata: Option<TextId>,
    /// The memory pool, which PyTorch writes since 2.12.
    pub pool_id: Option<PoolId>,
    /// Whether the file has a list of frames that is empty, where other entries without a stack have none.
    pub has_empty_stack: bool,
    /// Whether entries are written without `user_metadata`, as PyTorch up to 2.9 writes them.
    pub lacks_user_metadata: bool,
    /// Whether entries are written without `compile_context`, as PyTorch up to 2.7 writes them.
    pub lacks_compile_context: bool,
}

/// A text that the program gave to a tensor with `torch.cuda.memory._annotate_tensor`: an entry of the trace
/// that changes no memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TensorAnnotation {
    /// How many entries of the trace come before the annotation.
    pub after: usize,
    /// Where the tensor's block starts.
    pub addr: u64,
    /// The size of the block.
    pub size: Bytes,
    /// The stream of the block.
    pub stream: StreamId,
    /// When, in microseconds; 0 where the file does not say.
    pub time_us: u64,
    /// The stack that it was recorded with.
    pub stack: StackId,
    /// The context of the annotation, as an index into
    /// [`SnapshotFile::contexts`](super::SnapshotFile::contexts): the text is the `user_metadata`.
    pub context: u32,
}

/// One entry with all its facts of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SnapshotEntry {
    /// The action of the entry.
    pub entry: TraceEntry,
    /// When, in microseconds; 0 where the file does not say.
    pub time_us: u64,
    /// The stack that it was recorded with.
    pub stack: StackId,
    /// The context of the entry, as an index into [`SnapshotFile::contexts`](super::SnapshotFile::contexts).
    pub context: u32,
}

impl DeviceTrace {
    /// The number of entries.
    #[must_use]
    pub fn len(&self) -> usize {
        self.actions.len()
    }

    /// Whether the list is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.actions.is_empty()
    }

    /// The entry with this index.
    #[must_use]
    pub fn entry(&self, index: usize) -> Option<TraceEntry> {
        let stream = usize::from(*self.streams.get(index)?);
        Some(TraceEntry {
            action: *self.actions.get(index)?,
            addr: *self.addrs.get(index)?,
            size: Bytes::new(*self.sizes.get(index)?),
            stream: *self.stream_handles.get(stream)?,
        })
    }

    /// The entry with this index, and its context.
    #[must_use]
    pub fn get(&self, index: usize) -> Option<SnapshotEntry> {
        Some(SnapshotEntry {
            entry: self.entry(index)?,
            time_us: *self.times.get(index)?,
            stack: *self.stacks.get(index)?,
            context: *self.contexts.get(index)?,
        })
    }

    /// All entries in order.
    #[must_use]
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = SnapshotEntry> + '_ {
        (0..self.len()).filter_map(|index| self.get(index))
    }

    /// The texts that the program gave to tensors, in order.
    #[must_use]
    pub fn tensor_annotations(&self) -> &[TensorAnnotation] {
        &self.tensor_annotations
    }

    /// Adds an annotation after the entries so far.
    pub(crate) fn annotate(&mut self, annotation: TensorAnnotation) {
        self.tensor_annotations.push(TensorAnnotation { after: self.len(), ..annotation });
    }

    /// The handles of the streams that entries name, in the order of their first mention.
    #[must_use]
    pub fn streams(&self) -> &[StreamId] {
        &self.stream_handles
    }

    /// The entries from `start` on, as a ring buffer keeps them that was too small for the earlier entries.
    #[must_use]
    pub fn from(&self, start: usize) -> Self {
        let mut index = 0;
        let mut trace = self.without(|_| {
            index += 1;
            index <= start
        });
        let lost = self.tensor_annotations.iter().take_while(|annotation| annotation.after < start).count();
        trace.tensor_annotations.drain(..lost);
        trace
    }

    /// The entries for which `is_left_out` returns `false`, as a trace recorded with `skip_actions` has them.
    #[must_use]
    pub fn without(&self, mut is_left_out: impl FnMut(&TraceEntry) -> bool) -> Self {
        let mut trace = Self::default();
        let mut annotations = self.tensor_annotations.iter().peekable();
        for (index, entry) in self.iter().enumerate() {
            while let Some(annotation) = annotations.next_if(|annotation| annotation.after <= index) {
                trace.annotate(*annotation);
            }
            if !is_left_out(&entry.entry) {
                trace.push(&entry);
            }
        }
        for annotation in annotations {
            trace.annotate(*annotation);
        }
        trace
    }

    /// Bytes of memory.
    #[must_use]
    pub fn size(&self) -> usize {
        self.actions.capacity()
            + (self.addrs.capacity() + self.sizes.capacity() + self.times.capacity()) * size_of::<u64>()
            + self.streams.capacity() * size_of::<u16>()
            + (self.stacks.capacity() + self.contexts.capacity()) * size_of::<u32>()
            + self.tensor_annotations.capacity() * size_of::<TensorAnnotation>()
    }

    /// Adds an entry; returns whether a number was left for its stream.
    pub fn push(&mut self, entry: &SnapshotEntry) -> bool {
        let TraceEntry { action, addr, size, stream } = entry.entry;
        let last = self.streams.last().copied();
        let is_same = |last: &u16| self.stream_handles.get(usize::from(*last)) == Some(&stream);
        let Some(index) = last.filter(is_same).or_else(|| self.stream_number(stream)) else { return false };
        self.actions.push(action);
        self.addrs.push(addr);
        self.sizes.push(size.get());
        self.streams.push(index);
        self.times.push(entry.time_us);
        self.stacks.push(entry.stack);
        self.contexts.push(entry.context);
        true
    }

    fn stream_number(&mut self, stream: StreamId) -> Option<u16> {
        let next = u16::try_from(self.stream_handles.len()).ok()?;
        let index = *self.stream_numbers.entry(stream).or_insert(next);
        if index == next {
            self.stream_handles.push(stream);
        }
        Some(index)
    }

    pub(crate) fn shrink(&mut self) {
        self.actions.shrink_to_fit();
        self.addrs.shrink_to_fit();
        self.sizes.shrink_to_fit();
        self.streams.shrink_to_fit();
        self.times.shrink_to_fit();
        self.stacks.shrink_to_fit();
        self.contexts.shrink_to_fit();
        self.tensor_annotations.shrink_to_fit();
    }
}

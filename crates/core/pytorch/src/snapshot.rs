//! PyTorch's memory snapshots, which `torch.cuda.memory._dump_snapshot` writes.
//!
//! [`read`] takes a snapshot from any reader: a pickle of protocol 2 to 5, also packed with gzip or zstd or
//! inside a zip archive, the JSON and the HTML that `_memory_viz.py` writes, `_snapshot()` as a dictionary or
//! a bare list of segments.
//!
//! No code of a file ever runs: the pickle machine has no opcode that imports or calls anything.

mod container;
mod dialect;
mod error;
mod finish;
mod follow;
mod from_recording;
mod html;
mod json;
mod keys;
mod memories;
mod partial_trace;
mod trace;
mod write;
mod zip;

pub(crate) mod heap;

use std::io::Read;
use std::sync::Arc;

use blockyard_record::{BlockState, Bytes, OnDone, PoolId, PoolKind, StackId, Stacks, StreamId, TextId};
use blockyard_rules::{Dialect, Release};

use self::container::Content;
use self::heap::{Heap, Misfit};
use crate::pickle::{Input, Machine};

pub use self::container::{FileKind, file_kind};
pub use self::error::{ContainerError, Excess, FieldError, OtherFile, PickleError, SnapshotError};
pub use self::follow::{FollowedBytes, FollowedDevice};
pub use self::memories::{MemoryName, MemoryNameError, memory_name};
pub use self::partial_trace::PartialTrace;
pub use self::trace::{DeviceTrace, EntryContext, SnapshotEntry, TensorAnnotation};
pub use self::write::Entries;

/// A memory snapshot of PyTorch, as the file has it.
#[derive(Clone, Debug, Default)]
pub struct SnapshotFile {
    /// The devices that have segments or a trace, by ascending index.
    pub devices: Vec<DeviceSnapshot>,
    /// Host (pinned) memory, which PyTorch writes since 2.14; `None` if the file has none.
    ///
    /// [`SnapshotFile::host_place`] is the place of host memory in [`SnapshotFile::memories`]: after all
    /// devices.
    pub host: Option<DeviceSnapshot>,
    /// The settings of the allocator, as far as the file has them.
    pub settings: SnapshotSettings,
    /// Whose allocator it was, as far as sizes of blocks tell.
    pub dialect: Dialect,
    /// Where named stretches of the program begin and end, in the order of the file.
    pub annotations: Vec<Annotation>,
    /// All stacks, frames and texts.
    pub stacks: Arc<Stacks>,
    /// The contexts of trace entries.
    pub contexts: Vec<EntryContext>,
    /// The objects of the program that kept blocks, as JSON that the crate `lab` reads; empty in files that
    /// neither a dry run nor a simulation wrote, and where nothing grew.
    pub keepers: String,
    /// Sentences about parts of the file that were not read.
    pub notes: Vec<String>,
}

/// The snapshot of one device, or of host memory.
#[derive(Clone, Debug, Default)]
pub struct DeviceSnapshot {
    /// The device's index; 0 for host memory.
    pub index: u32,
    /// Whether this is host (pinned) memory, which another allocator than that of a GPU hands out.
    pub is_host: bool,
    /// The trace, in order.
    pub trace: DeviceTrace,
    /// The segments when the snapshot was taken, by ascending address.
    pub segments: Vec<SnapshotSegment>,
}

/// A segment when the snapshot was taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SnapshotSegment {
    /// The device's index.
    pub device: u32,
    /// The address of the first byte.
    pub addr: u64,
    /// The size of the segment in bytes.
    pub size: Bytes,
    /// The stream that may use it.
    pub stream: StreamId,
    /// The memory pool that owns it.
    pub pool_id: PoolId,
    /// Whether it belongs to the small or to the large block pool.
    pub pool: PoolKind,
    /// Whether its memory is mapped page by page.
    pub is_expandable: bool,
    /// The sums that PyTorch reported: allocated, active and requested bytes.
    pub sums: [Bytes; 3],
    /// The stack that it was made from.
    pub stack: StackId,
    /// The blocks of the segment by ascending address.
    pub blocks: Vec<SnapshotBlock>,
}

/// A block of a [`SnapshotSegment`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SnapshotBlock {
    /// The address of the block; until the segment is complete, the address in the file.
    addr: Option<u64>,
    /// The size of the block in bytes.
    pub size: Bytes,
    /// The size of the last request for the block; `None` if the file does not have it.
    pub requested: Option<Bytes>,
    /// The state of the block.
    pub state: BlockState,
    /// The stack of its allocation.
    pub stack: StackId,
}

/// A moment at which a named stretch of the program begins or ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Annotation {
    /// The name of the annotation: a text of the file's stacks.
    pub name: TextId,
    /// Whether the stretch ends here.
    pub is_end: bool,
    /// The device that it belongs to; `None` for all.
    pub device: Option<u32>,
    /// When, in microseconds.
    pub time_us: u64,
}

/// The settings of the allocator, if the file has them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SnapshotSettings {
    /// The text of `PYTORCH_CUDA_ALLOC_CONF`, or one that means the same as the values that the file has.
    pub conf: String,
    /// Each setting as the file has it, in its order.
    pub values: Vec<(String, String)>,
}

impl SnapshotFile {
    /// The release of PyTorch that wrote the file, as far as its pinned memory, the setting
    /// `max_round_threshold` and the pools of its trace entries say ([`Release::of_snapshot`]).
    #[must_use]
    pub fn release(&self) -> Release {
        let has_setting = |name: &str| self.settings.values.iter().any(|(known, _)| known == name);
        let has_pool = |context: &EntryContext| context.pool_id.is_some();
        let has_pinned = self.host.is_some() || has_setting("max_round_threshold");
        Release::of_snapshot(has_pinned, self.contexts.iter().any(has_pool)).with_dialect(self.dialect)
    }

    /// The text of the settings under which the device made its segments. A file without settings, as of
    /// `torch_npu`, shows one of them.
    #[must_use]
    pub fn conf_of(&self, device: &DeviceSnapshot) -> &str {
        let has_settings = !(self.settings.conf.is_empty() && self.settings.values.is_empty());
        let expands = || device.segments.iter().any(|segment| segment.is_expandable);
        if has_settings || !expands() { &self.settings.conf } else { "expandable_segments:True" }
    }
}

impl SnapshotSettings {
    /// `max_split_size` in bytes; -1 where it is not limited.
    #[must_use]
    pub fn max_split_size(&self) -> i64 {
        let value = self.values.iter().find(|(name, _)| name == "max_split_size");
        let bytes = value.and_then(|(_, value)| value.parse().ok()).unwrap_or(-1);
        if bytes <= 0 || bytes == i64::MAX { -1 } else { bytes }
    }
}

/// How much of a file is read, so that no file can take all memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The longest content, unpacked, in bytes.
    pub content: u64,
    /// The most memory that reading may take, in bytes; the check is approximate.
    pub memory: usize,
}

impl Default for Limits {
    /// 16 GiB of content; 8 GiB of memory, 3 GiB where addresses have 32 bits.
    fn default() -> Self {
        let memory = usize::try_from(8_u64 << 30).unwrap_or(3 << 30);
        Self { content: 16 << 30, memory }
    }
}

impl Default for SnapshotSegment {
    fn default() -> Self {
        Self {
            device: 0,
            addr: 0,
            size: Bytes::ZERO,
            stream: StreamId::DEFAULT,
            pool_id: PoolId::DEFAULT,
            pool: PoolKind::Large,
            is_expandable: false,
            sums: [Bytes::ZERO; 3],
            stack: StackId::EMPTY,
            blocks: Vec::new(),
        }
    }
}

impl Default for SnapshotBlock {
    fn default() -> Self {
        Self {
            addr: None,
            size: Bytes::ZERO,
            requested: None,
            state: BlockState::Inactive,
            stack: StackId::EMPTY,
        }
    }
}

impl SnapshotBlock {
    /// The address of the first byte.
    #[must_use]
    pub fn addr(&self) -> u64 {
        self.addr.unwrap_or_default()
    }
}

impl SnapshotSegment {
    /// Gives each block its address: the one in the file, or else the end of the block before it.
    fn place_blocks(&mut self) -> Result<(), Misfit> {
        let end = self.addr.checked_add(self.size.get());
        let end = end.ok_or_else(|| Misfit::new(".total_size", FieldError::SegmentEnd))?;
        let mut next = self.addr;
        for (index, block) in self.blocks.iter_mut().enumerate() {
            let addr = *block.addr.get_or_insert(next);
            let wrong = |error| Misfit::new(format!(".blocks[{index}]"), error);
            if addr < next {
                return Err(wrong(FieldError::BlockOverlap));
            }
            next = addr
                .checked_add(block.size.get())
                .filter(|after| *after <= end)
                .ok_or_else(|| wrong(FieldError::BlockEnd))?;
        }
        Ok(())
    }
}

/// Reads a snapshot; `on_done` gets how many bytes of the reader have been read.
///
/// # Errors
///
/// [`SnapshotError`] says what is wrong, at which byte of the unpacked content and where in the snapshot.
pub fn read(reader: impl Read, on_done: OnDone<'_, u64>) -> Result<SnapshotFile, SnapshotError> {
    read_within(reader, Limits::default(), on_done)
}

/// Reads a snapshot as [`read`] does, within the caller's limits.
///
/// # Errors
///
/// The errors of [`read`]; [`SnapshotError::TooLarge`] beyond a limit.
pub fn read_within(
    reader: impl Read,
    limits: Limits,
    on_done: OnDone<'_, u64>,
) -> Result<SnapshotFile, SnapshotError> {
    read_with_partial_trace(reader, limits, on_done, &mut |_| ())
}

/// Reads a snapshot as [`read_within`] does. Every 64 KiB of a pickle, `on_trace` gets the part of the
/// longest trace that has been read, so that a figure can grow while a long file is read.
///
/// # Errors
///
/// The errors of [`read_within`].
pub fn read_with_partial_trace(
    reader: impl Read,
    limits: Limits,
    on_done: OnDone<'_, u64>,
    on_trace: &mut dyn FnMut(&PartialTrace),
) -> Result<SnapshotFile, SnapshotError> {
    let counted = container::CountingReader::new(reader);
    let packed = counted.count();
    let mut report = |_: u64| on_done(packed.get());
    let mut heap = Heap::new();
    let root = match container::open(Box::new(counted))? {
        Content::Pickle(mut reader) => {
            let input = Input::new(&mut reader, limits.content, &mut report);
            let root = Machine::new(input, &mut heap, limits.memory, on_trace).run()?;
            container::finish(reader)?;
            root
        }
        Content::Json(reader) => {
            json::read(reader.take(limits.content), &mut heap, limits.memory, &mut report)?
        }
    };
    finish::finish(heap, root)
}

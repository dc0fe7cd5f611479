//! The texts that a program gave to tensors, as names of their allocations.

use std::collections::BTreeMap;

use crate::snapshot::{DeviceSnapshot, SnapshotFile, TensorAnnotation};
use blockyard_record::{AllocationId, Snapshot, TextId, counted};
use rustc_hash::FxHashMap;

use crate::trace::layout::TraceMemory;

/// The names so far, on the way through a trace.
pub(crate) struct Names<'a> {
    file: &'a SnapshotFile,
    coming: &'a [TensorAnnotation],
    /// The last allocation at each address; empty for a trace without annotations.
    allocations: FxHashMap<u64, AllocationId>,
    found: BTreeMap<AllocationId, Vec<TextId>>,
    /// Annotations of memory that holds no block.
    unplaced: usize,
}

impl<'a> Names<'a> {
    pub(crate) fn of(file: &'a SnapshotFile, device: &'a DeviceSnapshot, start: &Snapshot) -> Self {
        let coming = device.trace.tensor_annotations();
        let blocks = start.segments.iter().flat_map(|segment| &segment.blocks);
        let allocations = blocks.filter(|_| !coming.is_empty());
        let allocations = allocations.filter_map(|block| Some((block.addr.get(), block.allocation?)));
        Self { file, coming, allocations: allocations.collect(), found: BTreeMap::new(), unplaced: 0 }
    }

    pub(crate) fn allocate(&mut self, addr: u64, allocation: AllocationId) {
        if !self.coming.is_empty() {
            self.allocations.insert(addr, allocation);
        }
    }

    /// Assigns the annotations before the entry with this index to the allocations at their addresses.
    pub(crate) fn pass(&mut self, index: usize, layout: &TraceMemory) {
        while let Some((next, coming)) = self.coming.split_first() {
            if next.after > index {
                break;
            }
            self.coming = coming;
            let context = self.file.contexts.get(next.context as usize);
            let Some(text) = context.and_then(|context| context.user_metadata) else { continue };
            let start = layout.active_start(next.addr);
            let Some(allocation) = start.and_then(|start| self.allocations.get(&start)) else {
                self.unplaced += 1;
                continue;
            };
            let texts = self.found.entry(*allocation).or_default();
            if !texts.contains(&text) {
                texts.push(text);
            }
        }
    }

    pub(crate) fn note(&self) -> Option<String> {
        let verb = if self.unplaced == 1 { "names" } else { "name" };
        let count = counted(self.unplaced, "annotation");
        (self.unplaced > 0)
            .then(|| format!("{count} of a tensor {verb} memory that holds no block; left out"))
    }

    /// The name of each allocation that has one, by ascending number: its texts.
    pub(crate) fn into_names(self) -> Vec<(AllocationId, String)> {
        let texts = self.file.stacks.texts();
        let join =
            |names: Vec<TextId>| names.into_iter().map(|name| texts.get(name)).collect::<Vec<_>>().join(", ");
        self.found.into_iter().map(|(allocation, names)| (allocation, join(names))).collect()
    }
}

//! The requests of a run with other sizes and lifetimes.

use std::collections::{HashMap, HashSet};

use blockyard_record::{Bytes, StreamId};
use blockyard_workload::{Request, TensorId};

use super::training::{Block, Training};
use crate::Run;

/// Requests that are being changed.
pub(super) struct ChangedRequests<'a> {
    training: &'a Training<'a>,
    sizes: HashMap<TensorId, Bytes>,
    dropped: HashSet<TensorId>,
    /// Requests with the index of the old request before which each comes.
    added: Vec<(usize, Request)>,
    next_tensor: u32,
}

impl<'a> ChangedRequests<'a> {
    pub(super) fn of(training: &'a Training<'a>) -> Self {
        let tensors = training.run.requests().iter().filter_map(|request| match request {
            Request::Allocate { tensor, .. } => Some(tensor.get().saturating_add(1)),
            _ => None,
        });
        let next_tensor = tensors.max().unwrap_or_default();
        Self { training, sizes: HashMap::new(), dropped: HashSet::new(), added: Vec::new(), next_tensor }
    }

    /// Whether nothing was changed.
    pub(super) fn is_unchanged(&self) -> bool {
        self.sizes.is_empty() && self.dropped.is_empty() && self.added.is_empty()
    }

    /// Gives a block one in `parts` of its bytes.
    pub(super) fn divide(&mut self, block: &Block, parts: u64) {
        self.scale(block, (1, parts));
    }

    /// Gives a block a share of its bytes, as parts and how many parts the whole has.
    pub(super) fn scale(&mut self, block: &Block, (parts, of): (u64, u64)) {
        self.sizes.insert(block.tensor, Bytes::new(block.size.get().saturating_mul(parts).div_ceil(of)));
    }

    /// Leaves a block out.
    pub(super) fn drop(&mut self, block: &Block) {
        self.dropped.insert(block.tensor);
    }

    /// Gives a block other times of life.
    pub(super) fn live(&mut self, block: &Block, lives: &[(usize, usize)]) {
        self.drop(block);
        for (from, to) in lives {
            self.add((*from, *to), block.size, block.stream);
        }
    }

    /// Adds a block that is made before the old request `from` and freed before the old request `to`.
    pub(super) fn add(&mut self, (from, to): (usize, usize), size: Bytes, stream: StreamId) {
        let tensor = self.allocate(from, size, stream);
        self.free(to, tensor);
    }

    pub(super) fn allocate(&mut self, at: usize, size: Bytes, stream: StreamId) -> TensorId {
        let tensor = TensorId::new(self.next_tensor);
        self.next_tensor = self.next_tensor.saturating_add(1);
        self.added.push((at, Request::Allocate { tensor, size, stream }));
        tensor
    }

    pub(super) fn free(&mut self, at: usize, tensor: TensorId) {
        self.added.push((at, Request::Free { tensor }));
    }

    /// The run with the changed requests.
    pub(super) fn finish(mut self) -> Run {
        // The order of requests before one old request is that in which they were added.
        self.added.sort_by_key(|(at, _)| *at);
        let mut added = self.added.into_iter().peekable();
        let requests = self.training.run.requests().iter().take(self.training.end);
        let mut changed = Vec::with_capacity(self.training.end);
        for (index, request) in requests.enumerate() {
            while let Some((_, request)) = added.next_if(|(at, _)| *at <= index) {
                changed.push(request);
            }
            let mut request = *request;
            match &mut request {
                Request::Allocate { tensor, .. }
                | Request::Free { tensor }
                | Request::RecordStream { tensor, .. }
                    if self.dropped.contains(tensor) =>
                {
                    continue;
                }
                Request::Allocate { tensor, size, .. } => {
                    *size = self.sizes.get(tensor).copied().unwrap_or(*size);
                }
                _ => {}
            }
            changed.push(request);
        }
        self.training.run.with_requests(changed)
    }
}

//! Which operations may follow each other, so that each operation has one right answer on both allocators.
//!
//! PyTorch keeps some things in hash tables, whose order nothing may rely on: the streams of pending frees,
//! the frees deferred during a capture (up to release 2.12 each scope on a pool is one), pools out of use,
//! pools with `use_on_oom`. A sequence has at most one of each at a time, so that only one order exists.
//!
//! Also left out, because PyTorch is wrong there:
//!
//! * The end of a pool that has expandable segments. Its memory is counted per call, not per page, so that it
//!   may be deleted while it has blocks, or trip an assertion.
//! * `max_split_size_mb` set lower than before, or at all after a time without it. PyTorch then releases a
//!   split block as if it were a whole segment: the device refuses, or the heap is damaged.
//! * A split limit beside segments of both kinds, expandable ones switched on or off at run time: while they
//!   are on, whole segments beyond the limit are split, and PyTorch releases parts of them.
//! * A scope for one stream on a pool with `use_on_oom`. A request of another stream that fails opens a
//!   second scope on it, and gets the error "already recording to `mempool_id`" in place of memory.
//! * Frees deferred during a capture, once a tensor whose use by a stream was noted inside of a capture was
//!   freed outside. PyTorch keeps such notes by the address of the block object on the host and does not drop
//!   them then, so that a later block object at this address gets them.
//! * Operations that an assertion refuses: a pool is deleted while a scope is open, two scopes on one pool; up
//!   to 2.7, `empty_cache` in a capture; up to 2.10, requests that fail after a pool with `use_on_oom` was
//!   deleted.

use std::collections::{BTreeMap, BTreeSet};

use blockyard_allocator::PoolOptions;
use blockyard_record::{Bytes, PoolId, StreamId};
use blockyard_rules::Release;

use crate::sequence::{Operation, Sequence};

const EXPANDS: &str = "expandable_segments:True";
const EXPANSION: &str = "expandable_segments:";
const SPLIT_LIMIT: &str = "max_split_size_mb:";

/// The sequence with only those operations that may follow each other, tensors and pools numbered again.
///
/// Every part of a sequence becomes a sequence again this way.
pub fn restricted(sequence: &Sequence) -> Sequence {
    let mut rules = Rules::new(sequence);
    let mut operations = Vec::with_capacity(sequence.operations.len());
    for operation in &sequence.operations {
        operations.extend(rules.admit(operation));
    }
    sequence.with(operations)
}

/// Decides for each operation whether it may follow the operations before.
#[derive(Debug)]
pub struct Rules {
    release: Release,
    has_expandable: bool,
    /// Whether both kinds of segments, expandable and others, may exist.
    is_mixed: bool,
    /// `max_split_size_mb`, in MiB.
    split_limit: u64,
    tensors: u32,
    /// Live tensors by their old numbers.
    live: BTreeMap<u32, Tensor>,
    pools: BTreeMap<PoolId, KnownPool>,
    user_pools: u32,
    capture_pools: u32,
    /// Open scopes, the one opened last at the end.
    scopes: Vec<(PoolId, Option<StreamId>)>,
    pending: Vec<PendingFree>,
    /// Whether PyTorch has notes of streams for blocks that do not exist any more.
    has_stale_notes: bool,
}

#[derive(Debug)]
struct Tensor {
    number: u32,
    stream: StreamId,
    pool: Option<PoolId>,
    recorded: BTreeSet<StreamId>,
    was_recorded_in_capture: bool,
}

/// The users of a pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Uses {
    Owned,
    /// Nobody uses the pool, but it may have segments, which the next full release releases.
    Left,
    /// Nobody uses the pool, and it is deleted.
    Gone,
}

#[derive(Debug)]
struct KnownPool {
    number: PoolId,
    serves_on_oom: bool,
    uses: Uses,
    live: u32,
}

/// A free that waits, as the operations show.
#[derive(Debug)]
struct PendingFree {
    streams: BTreeSet<StreamId>,
    unfinished: BTreeSet<StreamId>,
    is_deferred: bool,
}

impl Rules {
    /// The rules before the first operation of the sequence.
    #[must_use]
    pub fn new(sequence: &Sequence) -> Self {
        Self {
            release: sequence.release,
            has_expandable: sequence.conf.contains(EXPANDS),
            is_mixed: false,
            split_limit: split_limit(&sequence.conf),
            tensors: 0,
            live: BTreeMap::new(),
            pools: BTreeMap::new(),
            user_pools: 0,
            capture_pools: 0,
            scopes: Vec::new(),
            pending: Vec::new(),
            has_stale_notes: false,
        }
    }

    /// The release of PyTorch whose library runs the sequence.
    pub fn release(&self) -> Release {
        self.release
    }

    /// Whether the allocator assumes that a graph is being captured.
    fn is_capturing(&self) -> bool {
        if self.release.scopes_are_captures() {
            !self.scopes.is_empty()
        } else {
            self.scopes.iter().any(|(pool, _)| pool.capture > 0)
        }
    }

    /// The operation with tensors and pools numbered again, if it may come now; otherwise `None`, and the
    /// rules are unchanged.
    pub fn admit(&mut self, operation: &Operation) -> Option<Operation> {
        match operation {
            Operation::Allocate { tensor, size, stream } => Some(self.allocate(*tensor, *size, *stream)),
            Operation::Free { tensor } => self.free(*tensor),
            Operation::RecordStream { tensor, stream } => {
                let is_capturing = self.is_capturing();
                let live = self.live.get_mut(tensor)?;
                if live.stream != *stream {
                    live.recorded.insert(*stream);
                    live.was_recorded_in_capture |= is_capturing;
                }
                Some(Operation::RecordStream { tensor: live.number, stream: *stream })
            }
            Operation::Advance { stream } => {
                for pending in self.pending.iter_mut().filter(|pending| !pending.is_deferred) {
                    pending.unfinished.retain(|other| stream.is_some_and(|stream| stream != *other));
                }
                Some(operation.clone())
            }
            Operation::EmptyCache => {
                if self.release.has_active_pool() && self.is_capturing() {
                    let in_pool = self.scopes.iter().any(|(pool, _)| pool.capture == 0);
                    return in_pool.then(|| operation.clone());
                }
                if !self.is_capturing() {
                    self.pending.clear();
                }
                Some(operation.clone())
            }
            Operation::ApplySettings { text } => {
                let (expands, limit) = (text.contains(EXPANDS), split_limit(text));
                let is_lower = limit < self.split_limit && self.tensors > 0;
                let is_mixed = self.is_mixed || text.contains(EXPANSION) && self.tensors > 0;
                let has_unused = self.pools.values().any(|pool| pool.uses == Uses::Left);
                // Up to 2.9 PyTorch reads past the end of such a text.
                let is_open = self.release.has_one_parser()
                    && text.rfind('[').is_some_and(|open| text.rfind(']').is_none_or(|close| close < open));
                if is_open || is_lower || is_mixed && limit != u64::MAX || expands && has_unused {
                    return None;
                }
                self.is_mixed = is_mixed;
                self.has_expandable |= expands;
                self.split_limit = limit;
                Some(operation.clone())
            }
            Operation::CreatePool { pool_id, options } => {
                // An option that the release does not have is left away.
                let never_splits = options.never_splits && self.release.minor() >= 10;
                let serves_on_oom = options.serves_on_oom && self.release.minor() >= 8;
                let options = &PoolOptions { never_splits, serves_on_oom };
                let is_second_lender =
                    options.serves_on_oom && self.pools.values().any(|pool| pool.serves_on_oom);
                if self.pools.contains_key(pool_id) || is_second_lender {
                    return None;
                }
                let number = self.make_pool(*pool_id, options.serves_on_oom);
                Some(Operation::CreatePool { pool_id: number, options: *options })
            }
            Operation::EnterPool { pool_id, stream } => self.enter(*pool_id, *stream),
            Operation::LeavePool { pool_id } => {
                let at = self.scopes.iter().position(|(open, _)| open == pool_id)?;
                let behind = self.scopes.get(at + 1..)?;
                // A context ends only after those inside of it.
                if self.release.has_active_pool() && behind.iter().any(|(open, _)| open.capture == 0) {
                    return None;
                }
                self.scopes.remove(at);
                self.pools.get(pool_id).map(|pool| Operation::LeavePool { pool_id: pool.number })
            }
            Operation::DestroyPool { pool_id } => self.destroy(*pool_id),
            Operation::SetFraction { .. }
            | Operation::ResetPeak
            | Operation::TellSettings
            | Operation::ResetAccumulated
            | Operation::Snapshot => Some(operation.clone()),
        }
    }

    fn allocate(&mut self, tensor: u32, size: Bytes, stream: StreamId) -> Operation {
        let is_served = size > Bytes::ZERO && size < Bytes::new(1 << 60);
        if is_served && !self.is_capturing() {
            self.process();
        }
        let mut open = self.scopes.iter().filter(|(_, only)| only.is_none_or(|only| only == stream));
        let open = if self.release.last_scope_counts() { open.next_back() } else { open.next() };
        let pool = open.map(|(pool, _)| *pool);
        if let Some(pool) = pool.and_then(|pool| self.pools.get_mut(&pool)) {
            pool.live += 1;
        }
        let number = self.tensors;
        self.tensors += 1;
        self.live.insert(
            tensor,
            Tensor { number, stream, pool, recorded: BTreeSet::new(), was_recorded_in_capture: false },
        );
        Operation::Allocate { tensor: number, size, stream }
    }

    /// Completes pending frees as an allocation outside of a capture does.
    fn process(&mut self) {
        self.pending.retain_mut(|pending| {
            // A deferred free gets its events only now.
            let stays = pending.is_deferred || !pending.unfinished.is_empty();
            pending.is_deferred = false;
            stays
        });
    }

    fn free(&mut self, tensor: u32) -> Option<Operation> {
        let live = self.live.get(&tensor)?;
        if !live.recorded.is_empty() {
            let is_deferred = self.is_capturing();
            let on_one_stream = live.recorded.len() == 1
                && self.pending.iter().all(|pending| pending.streams == live.recorded);
            let has_deferred = self.pending.iter().any(|pending| pending.is_deferred);
            let has_one_order = self.pending.is_empty() || on_one_stream && !has_deferred;
            if !has_one_order || is_deferred && self.has_stale_notes {
                return None;
            }
            self.has_stale_notes |= live.was_recorded_in_capture && !is_deferred;
            let streams = live.recorded.clone();
            self.pending.push(PendingFree { unfinished: streams.clone(), streams, is_deferred });
        }
        let live = self.live.remove(&tensor)?;
        if let Some(pool) = live.pool.and_then(|pool| self.pools.get_mut(&pool)) {
            pool.live -= 1;
        }
        Some(Operation::Free { tensor: live.number })
    }

    fn make_pool(&mut self, pool_id: PoolId, serves_on_oom: bool) -> PoolId {
        let number = if pool_id.capture == 0 {
            self.user_pools += 1;
            PoolId { capture: 0, user: self.user_pools }
        } else {
            self.capture_pools += 1;
            PoolId { capture: self.capture_pools, user: 0 }
        };
        self.pools.insert(pool_id, KnownPool { number, serves_on_oom, uses: Uses::Owned, live: 0 });
        number
    }

    fn enter(&mut self, pool_id: PoolId, stream: Option<StreamId>) -> Option<Operation> {
        let is_known = self.pools.contains_key(&pool_id);
        let is_first_capture = !is_known && pool_id.capture > 0;
        let is_open = self.scopes.iter().any(|(open, _)| *open == pool_id);
        if is_open || !(is_known || is_first_capture) {
            return None;
        }
        // A graph is captured into its own pool once.
        if is_known && (pool_id.capture > 0 || self.pools[&pool_id].uses != Uses::Owned) {
            return None;
        }
        if stream.is_some() && is_known && self.pools[&pool_id].serves_on_oom {
            return None;
        }
        let number = if is_known { self.pools[&pool_id].number } else { self.make_pool(pool_id, false) };
        self.scopes.push((pool_id, stream));
        Some(Operation::EnterPool { pool_id: number, stream })
    }

    fn destroy(&mut self, id: PoolId) -> Option<Operation> {
        let has_unused = self.pools.values().any(|pool| pool.uses == Uses::Left);
        let pool = self.pools.get_mut(&id)?;
        if pool.serves_on_oom && !self.release.lends_before_releases() {
            return None;
        }
        if pool.uses != Uses::Owned || self.has_expandable || has_unused || !self.scopes.is_empty() {
            return None;
        }
        let is_gone = id.capture == 0 && pool.live == 0 && !pool.serves_on_oom && self.pending.is_empty();
        pool.uses = if is_gone { Uses::Gone } else { Uses::Left };
        Some(Operation::DestroyPool { pool_id: pool.number })
    }
}

fn split_limit(settings: &str) -> u64 {
    let limit = settings.split(SPLIT_LIMIT).nth(1);
    let digits = limit.and_then(|rest| rest.split(',').next());
    digits.and_then(|digits| digits.parse().ok()).unwrap_or(u64::MAX)
}

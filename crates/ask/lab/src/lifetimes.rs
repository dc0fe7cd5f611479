//! How long every allocation of a run lives.

use std::collections::HashMap;

use blockyard_record::{Bytes, StreamId};
use blockyard_rules::size;
use blockyard_workload::{Request, TensorId};

use crate::Run;

/// One allocation of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Lifetime {
    /// The index of the request that makes the allocation.
    pub(crate) request: usize,
    /// The index of the request that frees the allocation; the number of requests if none does.
    pub(crate) freed: usize,
    /// The index of the request after which nothing uses the allocation any more: later than `freed` if other
    /// streams use it.
    pub(crate) done: usize,
    /// The size of the allocation in bytes, rounded up to 512.
    pub(crate) size: Bytes,
    /// The requested bytes.
    pub(crate) requested: Bytes,
}

/// The allocations of a run in the order of their requests, without those of zero bytes and the one that
/// failed when the run was recorded.
pub(crate) fn lifetimes(run: &Run) -> Vec<Lifetime> {
    let requests = run.requests();
    let mut all = Vec::new();
    let mut live: HashMap<TensorId, (usize, Vec<StreamId>)> = HashMap::new();
    let mut pending: Vec<(usize, Vec<StreamId>)> = Vec::new();
    for (index, request) in requests.iter().enumerate() {
        match *request {
            Request::Allocate { tensor, size, stream: _ } => {
                let Some(rounded) = size::least(size).filter(|_| !size.is_zero()) else {
                    continue;
                };
                if run.recorded_oom() == Some(index) {
                    continue;
                }
                live.insert(tensor, (all.len(), Vec::new()));
                all.push(Lifetime {
                    request: index,
                    freed: requests.len(),
                    done: requests.len(),
                    size: rounded,
                    requested: size,
                });
            }
            Request::Free { tensor } => {
                let Some((place, streams)) = live.remove(&tensor) else { continue };
                if let Some(lifetime) = all.get_mut(place) {
                    lifetime.freed = index;
                    if streams.is_empty() {
                        lifetime.done = index;
                    } else {
                        pending.push((place, streams));
                    }
                }
            }
            Request::RecordStream { tensor, stream } => {
                if let Some((_, streams)) = live.get_mut(&tensor) {
                    streams.push(stream);
                }
            }
            Request::Advance { stream } => complete(&mut pending, stream, &mut all, index),
            Request::EmptyCache => complete(&mut pending, None, &mut all, index),
            _ => {}
        }
    }
    all
}

/// Completes the work of a stream, or of all streams for `None`.
fn complete(
    pending: &mut Vec<(usize, Vec<StreamId>)>,
    stream: Option<StreamId>,
    all: &mut [Lifetime],
    index: usize,
) {
    pending.retain_mut(|(place, streams)| {
        streams.retain(|other| stream.is_some_and(|stream| *other != stream));
        if let (true, Some(lifetime)) = (streams.is_empty(), all.get_mut(*place)) {
            lifetime.done = index;
        }
        !streams.is_empty()
    });
}

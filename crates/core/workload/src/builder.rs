//! Builds workloads request by request.

use blockyard_record::{Bytes, PoolId, StreamId, index_u32, next_u32};

use crate::names::TensorName;
use crate::request::{Request, TensorId};
use crate::workload::Workload;

/// Makes a [`Workload`] request by request. Texts, recorded runs and scripts all become workloads this way;
/// an edit by hand changes a text.
///
/// The builder numbers tensors, streams, pools and settings, and keeps a name and a source line where the
/// caller gives them. It does not check whether a request makes sense.
///
/// ```
/// use blockyard_record::Bytes;
/// use blockyard_workload::{Request, WorkloadBuilder};
///
/// let mut builder = WorkloadBuilder::new();
/// let stream = builder.stream("side");
/// builder.label("setup");
/// builder.at_line(2);
/// let weights = builder.allocate(Bytes::mib(3), stream);
/// builder.at_line(3);
/// builder.push(Request::Free { tensor: weights });
///
/// let allocate = Request::Allocate { tensor: weights, size: Bytes::mib(3), stream };
/// assert_eq!(builder.finish().requests(), [allocate, Request::Free { tensor: weights }]);
/// ```
#[derive(Clone, Debug, Default)]
pub struct WorkloadBuilder {
    workload: Workload,
    tensors: u32,
    line: Option<u32>,
}

impl WorkloadBuilder {
    /// A builder without requests.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The requests so far.
    #[must_use]
    pub fn requests(&self) -> &[Request] {
        self.workload.requests()
    }

    /// Adds a stream with the next handle; handles are 1, 2, 3 and so on.
    pub fn stream(&mut self, name: &str) -> StreamId {
        self.workload.streams.push(name.to_owned());
        StreamId::new(self.workload.streams.len() as u64)
    }

    /// Adds a name for the next memory pool; numbers are 1, 2, 3 and so on. A request makes the pool.
    pub fn pool(&mut self, name: &str) -> PoolId {
        self.workload.pools.push(name.to_owned());
        PoolId { capture: 0, user: index_u32(self.workload.pools.len()) }
    }

    /// Adds a text of settings, and returns its number for [`Request::Set`].
    pub fn settings(&mut self, text: &str) -> u32 {
        self.workload.settings.push(text.to_owned());
        index_u32(self.workload.settings.len().saturating_sub(1))
    }

    /// Says which device and which settings the workload is meant for.
    pub fn header(&mut self, capacity: Option<Bytes>, conf: Option<&str>) {
        self.workload.capacity = capacity;
        self.workload.conf = conf.map(str::to_owned);
    }

    /// The source line of the requests that follow, counted from 1. A workload has lines for all of its
    /// requests or for none.
    pub fn at_line(&mut self, line: u32) {
        self.line = Some(line);
    }

    /// Labels the requests that follow.
    pub fn label(&mut self, text: impl Into<String>) {
        let next = index_u32(self.workload.requests.len());
        self.workload.labels.push((next, text.into()));
    }

    /// Adds a request. The requests of allocations come from [`WorkloadBuilder::allocate`], which numbers tensors.
    pub fn push(&mut self, request: Request) {
        self.workload.requests.push(request);
        self.workload.lines.extend(self.line);
    }

    /// Adds the allocation of a tensor without a name.
    pub fn allocate(&mut self, size: Bytes, stream: StreamId) -> TensorId {
        let tensor = self.tensor();
        self.push(Request::Allocate { tensor, size, stream });
        tensor
    }

    pub(crate) fn allocate_as(&mut self, name: TensorName, size: Bytes, stream: StreamId) -> TensorId {
        self.workload.names.push(name);
        self.allocate(size, stream)
    }

    /// Takes the number of the next tensor: for a tensor that is allocated before the first request, or by
    /// the next request.
    pub fn tensor(&mut self) -> TensorId {
        TensorId::new(next_u32(&mut self.tensors))
    }

    pub(crate) fn names(&self) -> &[TensorName] {
        &self.workload.names
    }

    /// The source line of a request.
    pub(crate) fn line(&self, request: usize) -> Option<u32> {
        self.workload.line(request)
    }

    pub(crate) fn set_bases(&mut self, bases: Vec<String>) {
        self.workload.bases = bases;
    }

    /// The workload.
    #[must_use]
    pub fn finish(self) -> Workload {
        self.workload
    }
}

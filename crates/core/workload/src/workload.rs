//! Workloads: lists of requests with the names of their text.

use std::borrow::Cow;

use blockyard_record::{Bytes, PoolId, StreamId};
use serde::{Deserialize, Serialize};

use crate::error::ParseError;
use crate::expand::{expand, length};
use crate::names::TensorName;
use crate::request::{Request, TensorId};

/// A list of requests, with the names that the source text uses for tensors, streams and pools.
///
/// Plain data. Requests that come from a recording have neither names nor lines; labels can be set on any.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Workload {
    pub(crate) requests: Vec<Request>,
    pub(crate) labels: Vec<(u32, String)>,
    /// The line of each request, or empty.
    pub(crate) lines: Vec<u32>,
    /// The name of each tensor, or empty.
    pub(crate) names: Vec<TensorName>,
    /// The texts that the names refer to.
    pub(crate) bases: Vec<String>,
    /// Declared streams, of which the first has handle 1.
    pub(crate) streams: Vec<String>,
    /// Declared memory pools, of which the first has the number (0,1).
    pub(crate) pools: Vec<String>,
    /// The texts that [`Request::Set`] refers to.
    pub(crate) settings: Vec<String>,
    /// The device's capacity; `None` if the text does not name one.
    pub(crate) capacity: Option<Bytes>,
    /// The value of `PYTORCH_CUDA_ALLOC_CONF`; `None` if the text does not name one.
    pub(crate) conf: Option<String>,
}

impl Workload {
    /// The bytes of the device of a workload whose text names none.
    pub const DEFAULT_CAPACITY: Bytes = Bytes::gib(1);

    /// Reads the workload language, which the crate's documentation describes.
    ///
    /// # Errors
    ///
    /// The first thing in the text that is wrong, with its place.
    pub fn parse(text: &str) -> Result<Self, ParseError> {
        expand(text, |_, _| ())
    }

    /// An estimate of how long a text's workload runs, to decide where to run it: its requests and labels,
    /// counted without running its loops.
    ///
    /// # Errors
    ///
    /// The first thing in the text that is wrong; some errors show only when the loops run.
    pub fn length(text: &str) -> Result<u64, ParseError> {
        length(text)
    }

    /// A workload without names, lines and labels, such as one from a recording.
    #[must_use]
    pub fn from_requests(requests: Vec<Request>) -> Self {
        Self { requests, ..Self::default() }
    }

    /// Other requests that refer to the same streams, pools and settings; without names, lines and labels.
    #[must_use]
    pub fn with_requests(&self, requests: Vec<Request>) -> Self {
        let Self { streams, pools, settings, .. } = self.clone();
        Self { requests, streams, pools, settings, ..Self::default() }
    }

    /// The same requests, lines and settings without labels and names: tensors have no names, and streams and
    /// memory pools have numbers instead.
    #[must_use]
    pub fn without_names(&self) -> Self {
        let numbered =
            |noun: &str, count: usize| (1..=count).map(|number| format!("{noun} {number}")).collect();
        Self {
            labels: Vec::new(),
            names: Vec::new(),
            bases: Vec::new(),
            streams: numbered("stream", self.streams.len()),
            pools: numbered("pool", self.pools.len()),
            ..self.clone()
        }
    }

    /// The requests, in the order in which they are made.
    #[must_use]
    pub fn requests(&self) -> &[Request] {
        &self.requests
    }

    /// The step labels by ascending index, each with the index of the request after it.
    ///
    /// Several labels may share an index. The index of a label after the last request is the number of
    /// requests.
    #[must_use]
    pub fn labels(&self) -> &[(u32, String)] {
        &self.labels
    }

    /// Replaces the step labels; sorts them by index and keeps the order of those that share one.
    pub fn set_labels(&mut self, mut labels: Vec<(u32, String)>) {
        labels.sort_by_key(|(index, _)| *index);
        self.labels = labels;
    }

    /// The line, counted from 1, that made a request; `None` where no text did.
    ///
    /// All requests of a loop's round carry the lines of the loop's statements.
    #[must_use]
    pub fn line(&self, request: usize) -> Option<u32> {
        self.lines.get(request).copied()
    }

    /// The name of a tensor in the text: `a`, `x[3]`; `None` if the tensor has no name.
    ///
    /// Tensors that live one after the other may have the same name.
    #[must_use]
    pub fn tensor_name(&self, tensor: TensorId) -> Option<Cow<'_, str>> {
        let name = self.names.get(tensor.get() as usize)?;
        let base = self.bases.get(name.base as usize)?;
        Some(name.with_base(base))
    }

    /// The name of a stream in the text: `default` for stream 0, the declared name otherwise.
    #[must_use]
    pub fn stream_name(&self, stream: StreamId) -> Option<&str> {
        let Some(place) = stream.get().checked_sub(1) else { return Some("default") };
        self.streams.get(usize::try_from(place).ok()?).map(String::as_str)
    }

    /// The name of a memory pool in the text; `None` if the text declares no pool with this number.
    #[must_use]
    pub fn pool_name(&self, pool_id: PoolId) -> Option<&str> {
        let place = pool_id.user.checked_sub(1).filter(|_| pool_id.capture == 0)?;
        self.pools.get(usize::try_from(place).ok()?).map(String::as_str)
    }

    /// The capacity of the device that the text is written for: its line `capacity 64 MiB`.
    #[must_use]
    pub fn capacity(&self) -> Option<Bytes> {
        self.capacity
    }

    /// The value of `PYTORCH_CUDA_ALLOC_CONF` that the text is written for: its line `conf
    /// expandable_segments:True`.
    #[must_use]
    pub fn conf(&self) -> Option<&str> {
        self.conf.as_deref()
    }

    /// The settings text with this number, which [`Request::Set`] has.
    #[must_use]
    pub fn settings(&self, number: u32) -> Option<&str> {
        self.settings.get(usize::try_from(number).ok()?).map(String::as_str)
    }

    /// The declared streams in order, which have the handles 1, 2, 3 and so on; without the default stream.
    #[must_use]
    pub fn streams(&self) -> impl ExactSizeIterator<Item = (StreamId, &str)> {
        self.streams
            .iter()
            .enumerate()
            .map(|(place, name)| (StreamId::new((place as u64).saturating_add(1)), name.as_str()))
    }
}

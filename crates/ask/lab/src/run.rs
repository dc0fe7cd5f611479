//! A run as its requests, the subject of every question.

mod recorded;

pub(crate) use recorded::Figures;

use std::borrow::Cow;
use std::sync::Arc;

use blockyard_device::RecordedDevice;
use blockyard_record::{Bytes, DeviceAddr, OnDone, StackId, Stacks};
use blockyard_replay::PreparedWorkload;
use blockyard_rules::Release;
use blockyard_workload::{Request, Workload};

use crate::devices::Devices;
use crate::keepers::FoundKeepers;
use crate::outcome::outcome;
use crate::request_numbers::{RequestNumbers, asks_for_memory, request_text};
use crate::state::DeviceState;
use crate::{ChangeKind, Conditions, LabError, Limit};

/// One run of a program as its requests. Every question is about a `Run`.
#[derive(Clone, Debug)]
pub struct Run {
    /// The name of the run.
    pub name: String,
    /// The name of the file, without the device that the name of the run has.
    pub(crate) file: String,
    /// `PYTORCH_CUDA_ALLOC_CONF` of the run.
    pub conf: String,
    /// The release of PyTorch that the run was made with; the default release if it is not known.
    pub release: Release,
    /// All bytes of the device.
    pub capacity: Bytes,
    /// Whether `capacity` is an assumption, because nothing in the file shows the memory of the device.
    pub(crate) is_capacity_assumed: bool,
    /// The device in words, as a part of a sentence; `None` if only its memory is known.
    pub(crate) device_words: Option<String>,
    /// The limit that the file implies, found by a replay.
    implied_limit: Option<Limit>,
    /// The addresses of the segments of a recorded run, for the devices of its replays.
    addresses: Arc<Addresses>,
    requests: RunRequests,
    /// What the recorded run did, where the file shows it.
    pub(crate) recorded: RecordedFacts,
    notes: Vec<RunNote>,
    /// The memory of the device, if the run has no request.
    state: Option<Arc<DeviceState>>,
}

/// The requests of a run and their stacks.
#[derive(Clone, Debug)]
struct RunRequests {
    workload: Workload,
    plan: PreparedWorkload,
    /// The indices of the requests that reset statistics.
    resets: Vec<usize>,
    numbers: RequestNumbers,
    /// The stack of each request; empty where none were recorded.
    stack_of: Vec<StackId>,
    stacks: Arc<Stacks>,
    /// The indices of requests for parameters and states of an optimizer, ascending; empty unless the program
    /// names them.
    unfreeable: Arc<[usize]>,
}

impl RunRequests {
    fn new(workload: Workload) -> Self {
        let is_reset = |request: &Request| matches!(request, Request::ResetPeak | Request::ResetAccumulated);
        let requests = workload.requests().iter().enumerate();
        let resets = requests.filter(|(_, request)| is_reset(request)).map(|(index, _)| index).collect();
        Self {
            plan: PreparedWorkload::new(&workload),
            workload,
            resets,
            numbers: RequestNumbers::default(),
            stack_of: Vec::new(),
            stacks: Arc::default(),
            unfreeable: Arc::default(),
        }
    }

    /// Other requests, with the labels and facts of the requests that are in their places now.
    fn replaced(&self, requests: Vec<Request>) -> Self {
        let (count, is_shorter) = (requests.len(), requests.len() < self.workload.requests().len());
        let labels = self.workload.labels().iter().filter(|(at, _)| !is_shorter || (*at as usize) < count);
        let mut workload = self.workload.with_requests(requests);
        workload.set_labels(labels.cloned().collect());
        Self {
            numbers: self.numbers.clone(),
            stack_of: self.stack_of.iter().take(count).copied().collect(),
            stacks: Arc::clone(&self.stacks),
            unfreeable: Arc::clone(&self.unfreeable),
            ..Self::new(workload)
        }
    }
}

/// What a run did when it was recorded.
#[derive(Clone, Debug, Default)]
pub(crate) struct RecordedFacts {
    /// The most bytes that the run had reserved; `None` if its snapshot does not show them.
    pub(crate) reserved: Option<Bytes>,
    /// The bytes that blocks hold at the end of a snapshot.
    pub(crate) held_at_end: Bytes,
    /// The index of the request that failed first.
    oom: Option<usize>,
    /// The requests that the run was refused, ascending.
    refused: Vec<usize>,
    /// The objects of the program that kept blocks, and the index of the run's device; `None` where the file
    /// has none.
    keepers: Option<(Arc<str>, usize)>,
    continues_after_oom: bool,
    /// Whether the recording has no request after the failed one.
    ends_at_failure: bool,
    /// The devices of the file, if it has several.
    pub(crate) devices: Option<Arc<Devices>>,
    /// The other devices of the file, by PyTorch's numbers, if the run failed.
    pub(crate) others: Arc<[(u32, Run)]>,
}

/// A fact that is not known about a run.
#[derive(Clone, Debug)]
enum RunNote {
    /// A file of this kind does not say how much memory the device has.
    AssumedCapacity {
        file: &'static str,
        capacity: Bytes,
    },
    /// The sizes of failed requests are known after rounding alone.
    FailedSizes(String),
    Other(String),
}

impl RunNote {
    fn sentence(&self) -> String {
        match self {
            Self::AssumedCapacity { file, capacity } => format!(
                "{file} does not say how much memory the device has: {capacity} are assumed where nothing limits the run"
            ),
            Self::FailedSizes(text) | Self::Other(text) => text.clone(),
        }
    }
}

/// The addresses of the segments of a recorded run, in the order in which the driver gave them; empty for a
/// workload.
#[derive(Debug, Default)]
struct Addresses {
    segments: Vec<(DeviceAddr, Bytes)>,
    /// The first addresses of expandable segments.
    ranges: Vec<DeviceAddr>,
}

impl Run {
    /// The run of a workload on its own device. The run continues after a request that runs out of memory.
    #[must_use]
    pub fn from_workload(name: &str, workload: Workload, conf: &str, capacity: Bytes) -> Self {
        let recorded = RecordedFacts { continues_after_oom: true, ..RecordedFacts::default() };
        Self { recorded, ..Self::new(name, workload, conf, capacity) }
    }

    /// The run of a device whose snapshot has no request: its [`verdict`](crate::verdict()) is about this memory,
    /// and each other question ends in [`LabError::NoTrace`].
    pub(crate) fn from_state(name: &str, conf: &str, release: Release, state: DeviceState) -> Self {
        let workload = Workload::default();
        let capacity = Workload::DEFAULT_CAPACITY;
        Self { release, state: Some(Arc::new(state)), ..Self::new(name, workload, conf, capacity) }
    }

    /// The name of the file; several runs have one file if it has several devices.
    pub fn file(&self) -> &str {
        &self.file
    }

    /// The memory of the device, if the run has no request.
    pub(crate) fn state(&self) -> Option<&DeviceState> {
        self.state.as_deref()
    }

    /// The bytes that blocks hold at the end of the run, as its snapshot has them; 0 for other runs.
    pub fn held_at_end(&self) -> Bytes {
        self.recorded.held_at_end
    }

    /// The order of the devices of one snapshot, the greatest first: a device that ran out of memory, then one that
    /// holds more bytes at its end, then one with more requests.
    pub fn device_order(&self) -> (bool, Bytes, usize) {
        (self.recorded.oom.is_some(), self.recorded.held_at_end, self.requests().len())
    }

    /// Whether the run has requests. A device whose snapshot has none has a verdict alone.
    pub fn has_requests(&self) -> bool {
        self.state.is_none()
    }

    /// Nothing, if the run has requests.
    ///
    /// # Errors
    ///
    /// [`LabError::NoTrace`] if it has none.
    pub(crate) fn require_requests(&self) -> Result<(), LabError> {
        if self.state.is_some() { Err(LabError::NoTrace) } else { Ok(()) }
    }

    fn new(name: &str, workload: Workload, conf: &str, capacity: Bytes) -> Self {
        Self {
            name: name.to_owned(),
            file: name.to_owned(),
            conf: conf.to_owned(),
            release: Release::default(),
            capacity,
            is_capacity_assumed: false,
            device_words: None,
            implied_limit: None,
            addresses: Arc::default(),
            requests: RunRequests::new(workload),
            recorded: RecordedFacts::default(),
            notes: Vec::new(),
            state: None,
        }
    }

    /// The requests of the run, in order.
    pub fn requests(&self) -> &[Request] {
        self.requests.workload.requests()
    }

    /// The requests of the run with names and labels.
    pub fn workload(&self) -> &Workload {
        &self.requests.workload
    }

    /// How many of the recorded requests before this one were allocations that did not fail.
    pub(crate) fn served_before(&self, request: usize) -> usize {
        let requests = self.requests().iter().enumerate().take(request).skip(self.requests_from_before());
        let asked = requests.filter(|(_, request)| asks_for_memory(request)).count();
        asked.saturating_sub(self.recorded.refused.partition_point(|refused| *refused < request))
    }

    /// The objects of the program that kept blocks, and the index of the run's device.
    ///
    /// The text is read here and not with the run, so that a page without questions has no reader of JSON.
    pub(crate) fn found_keepers(&self) -> Option<(FoundKeepers, usize)> {
        self.recorded.keepers.as_ref().map(|(text, device)| (FoundKeepers::read(text), *device))
    }

    /// Says which device of the program the run is of.
    pub(crate) fn set_device(&mut self, index: u32) {
        if let Some((_, device)) = &mut self.recorded.keepers {
            *device = index as usize;
        }
    }

    /// The settings, device and limit of the run itself.
    pub fn conditions(&self) -> Conditions {
        Conditions::with_conf(&self.conf)
    }

    /// The index of the request that failed first when the run was recorded.
    pub fn recorded_oom(&self) -> Option<usize> {
        self.recorded.oom
    }

    /// The limit that the run's file implies, under which its questions are answered; see
    /// [`Run::limit_under`].
    ///
    /// A run that went out of memory shows which requests were served and which were refused, and so the
    /// bounds of its limit. A run with garbage collection shows a memory fraction.
    pub fn implied_limit(&self) -> Option<Limit> {
        self.implied_limit
    }

    pub(crate) fn set_implied_limit(&mut self, limit: Limit) {
        self.implied_limit = Some(limit);
    }

    /// The stack of a request, innermost frame first; for a workload the line of its text. Empty if neither
    /// is known.
    pub fn stack(&self, request: usize) -> Vec<String> {
        if let Some(line) = self.requests.workload.line(request) {
            return vec![format!("line {line}")];
        }
        self.requests.stacks.frame_texts(self.stack_id(request))
    }

    /// Whether any request has a stack.
    pub(crate) fn has_stacks(&self) -> bool {
        self.requests.stack_of.iter().any(|stack| *stack != StackId::EMPTY)
    }

    /// The number of a request's stack, where stacks were recorded.
    pub(crate) fn stack_number(&self, request: usize) -> Option<u32> {
        Some(self.stack_id(request)).filter(|stack| *stack != StackId::EMPTY).map(StackId::get)
    }

    /// Sets the stack of each request, and adds labels.
    pub(crate) fn set_stacks(
        &mut self,
        stacks: Arc<Stacks>,
        stack_of: Vec<StackId>,
        labels: Vec<(u32, String)>,
    ) {
        let requests = &mut self.requests;
        requests.stacks = stacks;
        requests.stack_of = stack_of;
        let mut all = requests.workload.labels().to_vec();
        all.extend(labels);
        requests.workload.set_labels(all);
    }

    /// Whether a request is known to be for a parameter or a state of an optimizer, which a training cannot
    /// free.
    pub(crate) fn is_unfreeable(&self, request: usize) -> bool {
        self.requests.unfreeable.binary_search(&request).is_ok()
    }

    /// Says which requests are for parameters and states of an optimizer: their indices, ascending.
    pub(crate) fn set_unfreeable(&mut self, requests: Vec<usize>) {
        self.requests.unfreeable = requests.into();
    }

    /// The run with other requests. What is known about a request stays at its place.
    pub(crate) fn replaced(&self, requests: Vec<Request>) -> Self {
        Self { requests: self.requests.replaced(requests), ..self.clone() }
    }

    /// Says that the capacity of the run is an assumption.
    pub(crate) fn assume_capacity(&mut self, file: &'static str) {
        self.is_capacity_assumed = true;
        self.notes.push(RunNote::AssumedCapacity { file, capacity: self.capacity });
    }

    /// Whether a device of this capacity is the assumed one.
    pub(crate) fn is_assumed(&self, capacity: Bytes) -> bool {
        self.is_capacity_assumed && capacity == self.capacity
    }

    pub(crate) fn add_note(&mut self, note: String) {
        self.notes.push(RunNote::Other(note));
    }

    /// Drops the note that the sizes of failed requests are not known exactly.
    pub(crate) fn drop_note_on_failed_sizes(&mut self) {
        self.notes.retain(|note| !matches!(note, RunNote::FailedSizes(_)));
    }

    pub(crate) fn add_notes(&mut self, notes: &[String]) {
        self.notes.extend(notes.iter().cloned().map(RunNote::Other));
    }

    /// How many of the first requests stand for memory from before the recording.
    pub fn requests_from_before(&self) -> usize {
        self.requests.numbers.from_before
    }

    /// The number of a request for people: that of its step in the figures of the run, counted from 1. A request
    /// that stands for memory from before the recording has the number 0, since no figure shows it.
    pub fn request_number(&self, index: usize) -> u64 {
        self.requests.numbers.of(index)
    }

    /// The number of the last of the first `done` requests; 0 if it has none.
    pub(crate) fn number_of_last(&self, done: usize) -> u64 {
        done.checked_sub(1).map_or(0, |index| self.request_number(index))
    }

    /// The index of the request with a number: of several, the one that asks for memory.
    pub fn request_index(&self, number: u64) -> Option<usize> {
        self.requests.numbers.index(number, self.requests())
    }

    /// How many requests the run has for people: the number of the last one.
    pub fn request_count(&self) -> u64 {
        self.number_of_last(self.requests().len())
    }

    /// The place of a request among those that ask for memory from before the recording, counted from 1; `None`
    /// for later requests.
    pub(crate) fn earlier_block(&self, request: usize) -> Option<u64> {
        self.requests.numbers.earlier_block(request, self.requests())
    }

    /// The index of the request for a block from before the recording, counted from 1.
    pub(crate) fn earlier_request(&self, block: u64) -> Option<usize> {
        self.requests.numbers.earlier_request(block, self.requests())
    }

    /// The change that frees the tensors of these requests.
    pub(crate) fn frees(&self, requests: impl Iterator<Item = usize>, bytes: Bytes) -> ChangeKind {
        let (mut numbers, mut earlier) = (Vec::new(), Vec::new());
        for request in requests {
            match self.earlier_block(request) {
                Some(block) => earlier.push(block),
                None => numbers.push(self.request_number(request)),
            }
        }
        ChangeKind::FreeTensors { requests: numbers, earlier, bytes }
    }

    /// The same run with other requests, without names and stacks.
    pub(crate) fn with_requests(&self, requests: Vec<Request>) -> Self {
        let numbers = self.requests.numbers.of_changed(self.requests(), &requests);
        let mut run =
            Self::new(&self.name, self.requests.workload.with_requests(requests), &self.conf, self.capacity);
        run.requests.numbers = numbers;
        run.release = self.release;
        run.addresses = Arc::clone(&self.addresses);
        run.is_capacity_assumed = self.is_capacity_assumed;
        run.implied_limit = self.implied_limit;
        run.recorded.continues_after_oom = self.recorded.continues_after_oom;
        run.recorded.ends_at_failure = self.recorded.ends_at_failure;
        run
    }

    /// The same run with requests that go on where its own end. It ends at the first request that fails.
    pub(crate) fn continued(&self, requests: Vec<Request>) -> Self {
        Self { recorded: RecordedFacts::default(), ..self.with_requests(requests) }
    }

    /// Whether the program continues after a request that fails. Otherwise the run ends at the failure.
    pub fn continues_after_oom(&self) -> bool {
        self.recorded.continues_after_oom
    }

    /// Whether the recording ends at a failed request. The later requests of the program are not in such a
    /// recording, so that no replay can say that the whole program fits.
    pub fn ends_at_failure(&self) -> bool {
        self.recorded.ends_at_failure
    }

    /// Sentences about facts that are not known about the run.
    pub fn notes(&self) -> Vec<String> {
        self.notes.iter().map(RunNote::sentence).collect()
    }

    /// The notes under a capacity that is given, which makes the note about an assumed one wrong.
    pub fn notes_with_capacity(&self) -> impl Iterator<Item = String> {
        let notes = self.notes.iter().filter(|note| !matches!(note, RunNote::AssumedCapacity { .. }));
        notes.map(RunNote::sentence)
    }

    /// The same requests as a run whose own settings, device and limit are these.
    #[must_use]
    pub fn under(&self, conditions: &Conditions) -> Self {
        let mut run = self.clone();
        run.conf.clone_from(&conditions.conf);
        run.release = conditions.release_of(self);
        run.capacity = conditions.capacity_of(self);
        run.is_capacity_assumed &= conditions.capacity.is_none();
        run.implied_limit = self.limit_under(conditions);
        run
    }

    /// The run up to the request that runs out of memory under its own settings; the whole run if no request
    /// does. If only bounds of the limit are known, the run ends at the later of the two requests.
    ///
    /// # Errors
    ///
    /// [`LabError::Cancelled`], [`LabError::Config`] for wrong settings.
    pub fn until_oom(&self, on_done: OnDone) -> Result<Cow<'_, Self>, LabError> {
        if self.recorded.continues_after_oom {
            return Ok(Cow::Borrowed(self));
        }
        let mut done = 0;
        for fixed in self.fixed_conditions(&self.conditions()) {
            let failed = outcome(self, &fixed, 0, on_done)?.failed;
            done = failed.map_or(self.requests().len(), |failed| failed.saturating_add(1)).max(done);
        }
        Ok(self.until(done))
    }

    /// The run under conditions up to its first failure, which is its request number `failed`, even if the program
    /// goes on after it.
    pub(crate) fn until_failure(
        &self,
        conditions: &Conditions,
        failed: usize,
        on_done: OnDone,
    ) -> Result<Self, LabError> {
        let under = self.under(conditions);
        let cut = if under.continues_after_oom() { under.until(failed) } else { under.until_oom(on_done)? };
        Ok(cut.into_owned())
    }

    /// The run of the first `done` requests, of which the last runs out of memory.
    pub(crate) fn until(&self, done: usize) -> Cow<'_, Self> {
        if done >= self.requests().len() {
            return Cow::Borrowed(self);
        }
        let mut run = self.replaced(self.requests().iter().take(done).copied().collect());
        let last = request_text(self.number_of_last(done));
        run.add_note(format!("the run ends with out of memory after {last}"));
        Cow::Owned(run)
    }

    /// The run of the first `done` requests, and of requests with their stacks that come after them. It ends at the
    /// first request that fails.
    pub(crate) fn with_rest(&self, done: usize, rest: impl IntoIterator<Item = (Request, StackId)>) -> Self {
        let mut run = Self { recorded: RecordedFacts::default(), ..self.until(done).into_owned() };
        let (rest, stacks): (Vec<Request>, Vec<StackId>) = rest.into_iter().unzip();
        run.requests = run.requests.replaced([run.requests(), &rest].concat());
        if run.has_stacks() {
            run.requests.stack_of.extend(stacks);
        }
        run
    }

    /// The stack of a request, as other devices of the file name it.
    pub(crate) fn stack_id(&self, request: usize) -> StackId {
        self.requests.stack_of.get(request).copied().unwrap_or(StackId::EMPTY)
    }

    /// A device of this size that gives the recorded addresses as long as the replay asks for the recorded
    /// segments.
    pub(crate) fn device(&self, capacity: Bytes) -> RecordedDevice {
        let Addresses { segments, ranges } = &*self.addresses;
        RecordedDevice::new(capacity, segments.iter().copied(), ranges.iter().copied(), [])
    }

    pub(crate) fn plan(&self) -> &PreparedWorkload {
        &self.requests.plan
    }

    /// The requests that reset statistics, as indices.
    pub(crate) fn resets(&self) -> &[usize] {
        &self.requests.resets
    }

    /// How many requests of the run ask for memory.
    pub fn allocations(&self) -> usize {
        self.requests().iter().filter(|request| asks_for_memory(request)).count()
    }

    fn start_allocations(&self) -> usize {
        let before = self.requests().iter().take(self.requests_from_before());
        before.filter(|request| asks_for_memory(request)).count()
    }
}

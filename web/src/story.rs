//! The story of the first screen: a program of a few lines that the reader writes by pressing buttons, and
//! its run.

mod effect;

use blockyard_figure::PlayerAction;
use blockyard_record::{BlockState, Breakdown, Bytes, MemoryState, StepOutcome, StreamId};
use blockyard_workload::edit::{EditAction, insert};
use blockyard_workload::{Request, TensorId, Workload};
use effect::LineEffect;
pub(crate) use effect::nvidia_smi;
use leptos::prelude::*;

use crate::browser;
use crate::ptr_eq::PtrEq;
use crate::run::{Attempt, Input, Run};
use crate::session::{Feature, Source};
use crate::workload::{History, SettingsTexts};

/// The bytes that `nvidia-smi` shows of a process beside the memory that the allocator has reserved. Measured
/// on an H200 with PyTorch 2.11, CUDA 13.0 and the driver 580.159, after `torch.cuda.synchronize()`; the
/// number grew by the reserved bytes exactly.
pub(crate) const CONTEXT: Bytes = Bytes::mib(518);
/// The bytes of [`CONTEXT`] after the first kernel, whose code is loaded then.
pub(crate) const CONTEXT_AFTER_KERNEL: Bytes = Bytes::mib(610);

/// The settings under which the second situation is replayed.
pub(crate) const EXPANDABLE: &str = "expandable_segments:True";

/// The most lines of a story; further lines are refused.
const MAX_STEPS: usize = 400;

/// A situation in which the reader begins.
#[derive(Debug, PartialEq)]
pub(crate) struct Situation {
    title: &'static str,
    /// The requests before the reader's requests.
    text: &'static str,
    /// The requests of `text` in Python, a line each.
    pub(crate) python: &'static [&'static str],
    capacity: &'static str,
    /// The fewest bytes that the ruler shows.
    pub(crate) least_shown: Bytes,
    /// The sizes that the reader may choose, and how they are written in Python. The first is chosen.
    pub(crate) sizes: &'static [(Bytes, &'static str)],
}

/// An H200 whose CUDA context has taken its part of the memory. The ruler has room for three segments of 20
/// MiB.
static CACHING: Situation = Situation {
    title: "caching",
    text: "",
    python: &["import torch", "# CUDA has started; there is no tensor yet"],
    // The H200's 150,109,880,320 bytes without the bytes of the context.
    capacity: "149566717952",
    least_shown: Bytes::mib(64),
    sizes: &[(Bytes::mib(3), "3 * 2**20"), (Bytes::kib(512), "512 * 2**10"), (Bytes::mib(30), "30 * 2**20")],
};

/// A GPU of 24 GiB whose CUDA context has taken its part of the memory. The free memory is in seven pieces.
static FRAGMENTATION: Situation = Situation {
    title: "fragmentation",
    text: "repeat 6 as i { batch[i] = alloc 3.5 GiB }\nfree batch[*]\nrepeat 6 as i { result[i] = alloc 2 GiB }\n",
    python: &[
        "# six batches of 3.5 GiB come and go, six results of 2 GiB stay",
        "batch = [torch.empty(7 * 2**29, dtype=torch.uint8, device=\"cuda\") for i in range(6)]",
        "del batch",
        "result = [torch.empty(2 * 2**30, dtype=torch.uint8, device=\"cuda\") for i in range(6)]",
    ],
    capacity: "24058 MiB",
    least_shown: Bytes::ZERO,
    sizes: &[(Bytes::gib(3), "3 * 2**30"), (Bytes::gib(1), "2**30")],
};

/// The program so far, with its former versions.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Story {
    history: History,
    settings: SettingsTexts,
}

impl Story {
    pub(crate) fn new() -> Self {
        Self { history: History::new(CACHING.text.to_owned()), settings: CACHING.settings("") }
    }

    pub(crate) fn situation(&self) -> &'static Situation {
        if self.settings.title == CACHING.title { &CACHING } else { &FRAGMENTATION }
    }

    pub(crate) fn is_first(&self) -> bool {
        self.situation() == &CACHING
    }

    pub(crate) fn is_expandable(&self) -> bool {
        self.settings.conf == EXPANDABLE
    }

    pub(crate) fn can_undo(&self) -> bool {
        self.history.can_undo()
    }

    /// Runs the program.
    pub(crate) fn run(&self) -> PtrEq<Run> {
        let SettingsTexts { title, conf, capacity } = self.settings.clone();
        let text = self.history.text().to_owned();
        match crate::run::attempt(&Input { title, text, conf, capacity, is_on_gpu: false }) {
            Attempt::Ran(run) => run,
            _ => PtrEq::new(Run::empty()),
        }
    }

    /// Adds a line at the end; `run` is the run of the program so far.
    fn act(&mut self, run: &Run, action: EditAction) {
        let done = run.workload.requests().len();
        if done >= MAX_STEPS {
            return;
        }
        if let Ok(edit) = insert(self.history.text(), &run.workload, done, action) {
            self.history.replace(edit.text, &self.settings);
        }
    }

    /// Begins in a situation.
    fn begin(&mut self, situation: &Situation) {
        self.history.replace(situation.text.to_owned(), &self.settings);
        self.settings = situation.settings("");
    }

    /// Runs the same lines under expandable segments, or under the defaults again.
    fn turn(&mut self, now_millis: f64) {
        let conf = if self.is_expandable() { "" } else { EXPANDABLE };
        let text = self.history.text().to_owned();
        self.history.change_settings(text, now_millis, &self.settings);
        self.settings = self.situation().settings(conf);
    }

    fn restore(&mut self, to: fn(&mut History, &SettingsTexts) -> Option<SettingsTexts>) {
        if let Some(settings) = to(&mut self.history, &self.settings) {
            self.settings = settings;
        }
    }
}

impl Situation {
    fn settings(&self, conf: &str) -> SettingsTexts {
        let (title, capacity) = (self.title.to_owned(), self.capacity.to_owned());
        SettingsTexts { title, conf: conf.to_owned(), capacity }
    }

    /// How many requests are before the reader's requests.
    fn given(&self) -> usize {
        Workload::parse(self.text).map_or(0, |workload| workload.requests().len())
    }

    /// A request of the reader as it is typed in Python.
    fn python(&self, run: &Run, request: &Request) -> String {
        let name = |tensor: TensorId| run.workload.tensor_name(tensor).unwrap_or_default();
        match *request {
            Request::Allocate { tensor, size, .. } => {
                let written = self.sizes.iter().find(|(bytes, _)| *bytes == size);
                let written =
                    written.map_or_else(|| size.get().to_string(), |(_, python)| (*python).to_owned());
                format!("{} = torch.empty({written}, dtype=torch.uint8, device=\"cuda\")", name(tensor))
            }
            Request::Free { tensor } => format!("del {}", name(tensor)),
            _ => "torch.cuda.empty_cache()".to_owned(),
        }
    }
}

/// An action that the reader can take next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NextStep {
    Create,
    Delete,
    EmptyCache,
    TurnPage,
    Replay,
    Undo,
}

/// The moment after the last line of a story, and the effect of the line.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct StoryMoment {
    /// The effect of the line, in one to three sentences.
    pub(crate) answer: String,
    /// PyTorch's message, if the last line ran out of memory.
    pub(crate) failure: Option<String>,
    /// The memory before the line and after it.
    pub(crate) before: Breakdown,
    pub(crate) after: Breakdown,
    /// The program in Python, with whether the line failed.
    pub(crate) lines: Vec<(String, bool)>,
    /// The tensor that was made last of those that exist.
    pub(crate) last_tensor: Option<TensorId>,
    /// Whether the reader has written a line.
    pub(crate) has_acted: bool,
    /// The action that the page offers as the next one.
    pub(crate) next: Option<NextStep>,
}

/// PyTorch's message on a GPU whose CUDA context has taken its part: the replay's device has the memory that
/// the context left.
fn of_whole_gpu(message: &str, left: Bytes, reserved: Bytes) -> String {
    let gib = |bytes: Bytes| {
        let hundredths = bytes.get().saturating_mul(100).saturating_add(1 << 29) >> 30;
        format!("{}.{:02} GiB", hundredths / 100, hundredths % 100)
    };
    let (before, whole) = (gib(left), gib(left.saturating_add(CONTEXT)));
    let used = gib(reserved.saturating_add(CONTEXT));
    let process =
        format!("Including non-PyTorch memory, this process has {used} memory in use. Of the allocated");
    let message = message.replacen("Of the allocated", &process, 1);
    message.replacen(&format!("total capacity of {before}"), &format!("total capacity of {whole}"), 1)
}

impl StoryMoment {
    pub(crate) fn of(story: &Story, run: &Run) -> Self {
        let recording = &run.recording;
        let requests = run.workload.requests();
        let situation = story.situation();
        let given = situation.given();
        let failure = |step: usize| match recording.outcome(step) {
            StepOutcome::OutOfMemory(message) => Some(message.clone()),
            _ => None,
        };
        let mut tensors = Vec::new();
        let setting = story.is_expandable().then(|| format!("# PYTORCH_ALLOC_CONF={EXPANDABLE}"));
        let mut lines: Vec<_> = setting.into_iter().map(|line| (line, false)).collect();
        lines.extend(situation.python.iter().map(|line| ((*line).to_owned(), false)));
        for (step, request) in requests.iter().enumerate() {
            let has_failed = failure(step).is_some();
            match request {
                Request::Allocate { tensor, .. } if !has_failed => tensors.push(*tensor),
                Request::Free { tensor } => tensors.retain(|other| other != tensor),
                _ => {}
            }
            if step >= given {
                lines.push((situation.python(run, request), has_failed));
            }
        }
        let last = requests.len().checked_sub(1).filter(|step| *step >= given);
        let end = recording.event_count();
        let begin = last.and_then(|step| recording.step(step)).map_or(end, |bounds| bounds.start);
        let state =
            |events: usize| recording.state_at(events).unwrap_or_else(|_| MemoryState::new(Bytes::ZERO));
        let (before, after) = (state(begin), state(end));
        let request = last.and_then(|step| requests.get(step));
        let failure = last.and_then(failure);
        let failure = failure
            .map(|message| of_whole_gpu(&message, recording.info().capacity, after.breakdown().reserved()));
        let effect = LineEffect {
            story,
            before: before.breakdown(),
            after: after.breakdown(),
            largest: largest_cached(&before),
            has_failed: failure.is_some(),
        };
        let next = match request {
            Some(_) if effect.has_failed => Some(NextStep::Replay),
            Some(Request::Allocate { .. }) if story.is_first() => Some(NextStep::Delete),
            Some(Request::Allocate { .. }) => None,
            Some(Request::Free { .. }) if story.is_first() => Some(NextStep::EmptyCache),
            Some(Request::EmptyCache) if effect.after.reserved().is_zero() => Some(NextStep::TurnPage),
            _ => Some(NextStep::Create),
        };
        Self {
            answer: effect.text(request),
            failure,
            lines,
            last_tensor: tensors.last().copied(),
            has_acted: request.is_some(),
            next,
            before: effect.before,
            after: effect.after,
        }
    }
}

fn largest_cached(state: &MemoryState) -> Bytes {
    let segments = state.snapshot().segments;
    let blocks = segments.iter().flat_map(|segment| &segment.blocks);
    let cached = blocks.filter(|block| block.state == BlockState::Inactive);
    cached.map(|block| block.size).max().unwrap_or_default()
}

/// The story of the first screen, and its run.
pub(crate) struct StorySignals {
    /// The lines that the reader has written, with their undo history.
    pub(crate) state: RwSignal<Story>,
    pub(crate) run: Memo<PtrEq<Run>>,
    /// The moment after the last line.
    pub(crate) moment: Memo<StoryMoment>,
}

impl StorySignals {
    pub(crate) fn new() -> Self {
        let state = RwSignal::new(Story::new());
        let run = Memo::new(move |_| state.with(Story::run));
        let moment = Memo::new(move |_| state.with(|story| StoryMoment::of(story, &run.get())));
        Self { state, run, moment }
    }
}

impl Feature<StorySignals> {
    /// Shows the story as the reader left it.
    pub(crate) fn show(self) {
        self.session.show(Source::Story);
        self.go_to_end();
    }

    /// Creates a tensor in the story.
    pub(crate) fn create(self, size: Bytes) {
        self.act(EditAction::Allocate { size, stream: StreamId::DEFAULT });
    }

    /// Deletes the tensor of the story that was created last.
    pub(crate) fn delete(self) {
        if let Some(tensor) = self.moment.with_untracked(|moment| moment.last_tensor) {
            self.act(EditAction::Free { tensor });
        }
    }

    pub(crate) fn act(self, action: EditAction) {
        let run = self.session.run.get_untracked();
        self.change(|story| story.act(&run, action));
    }

    /// Goes on to the second situation, or back to the first.
    pub(crate) fn turn_page(self) {
        self.change(|story| {
            let next = if story.is_first() { &FRAGMENTATION } else { &CACHING };
            story.begin(next);
        });
    }

    /// Runs the same lines under other settings.
    pub(crate) fn replay(self) {
        self.change(|story| story.turn(browser::now_millis()));
    }

    pub(crate) fn undo(self) {
        self.change(|story| story.restore(History::undo));
    }

    pub(crate) fn redo(self) {
        self.change(|story| story.restore(History::redo));
    }

    fn change(self, change: impl FnOnce(&mut Story)) {
        // The selected id may belong to another block in the next figure.
        self.session.figures().select(None);
        self.state.update(change);
        self.go_to_end();
    }

    /// The cursor of the story is always at its end.
    fn go_to_end(self) {
        self.session.dispatch(PlayerAction::Loaded { is_at_end: false });
        self.session.dispatch(PlayerAction::End);
    }
}

#[cfg(test)]
mod tests {
    use wasm_bindgen_test::wasm_bindgen_test as test;

    use super::*;

    fn moment(story: &Story) -> StoryMoment {
        StoryMoment::of(story, &story.run())
    }

    fn act(story: &mut Story, action: EditAction) -> StoryMoment {
        let run = story.run();
        story.act(&run, action);
        moment(story)
    }

    fn create(story: &mut Story, size: Bytes) -> StoryMoment {
        act(story, EditAction::Allocate { size, stream: StreamId::DEFAULT })
    }

    fn delete(story: &mut Story) -> StoryMoment {
        let tensor = moment(story).last_tensor.unwrap();
        act(story, EditAction::Free { tensor })
    }

    fn says(moment: &StoryMoment, parts: &[&str]) {
        for part in parts {
            assert!(moment.answer.contains(part), "{part:?} is missing: {}", moment.answer);
        }
    }

    #[test]
    fn each_line_is_answered_with_the_numbers_of_the_run() {
        let mut story = Story::new();
        says(&moment(&story), &["518 MiB", "CUDA context"]);
        let moment = create(&mut story, Bytes::mib(3));
        says(&moment, &["3 MiB", "segment of 20 MiB", "538 MiB"]);
        assert_eq!(
            moment.lines.last().unwrap().0,
            "a = torch.empty(3 * 2**20, dtype=torch.uint8, device=\"cuda\")"
        );
        says(&create(&mut story, Bytes::mib(3)), &["14 MiB", "stays at 538 MiB"]);
        says(&delete(&mut story), &["did not fall", "538 MiB", "fell by 3 MiB, to 3 MiB"]);
        says(&act(&mut story, EditAction::EmptyCache), &["Nothing was given back", "17 MiB"]);
        let moment = delete(&mut story);
        assert_eq!(moment.lines.last().unwrap().0, "del a");
        let moment = act(&mut story, EditAction::EmptyCache);
        says(&moment, &["Now it falls", "20 MiB", "518 MiB"]);
        assert_eq!(moment.next, Some(NextStep::TurnPage));
        says(&act(&mut story, EditAction::EmptyCache), &["nothing is cached"]);
        says(&create(&mut story, Bytes::kib(512)), &["segment of 2 MiB", "520 MiB"]);
    }

    #[test]
    fn a_line_is_taken_back_with_its_bytes() {
        let mut story = Story::new();
        let begun = moment(&story);
        create(&mut story, Bytes::mib(3));
        story.restore(History::undo);
        assert_eq!(moment(&story), begun);
        story.restore(History::redo);
        assert_eq!(moment(&story).after.reserved(), Bytes::mib(20));
    }

    #[test]
    fn what_fits_in_bytes_fits_only_in_one_piece() {
        let mut story = Story::new();
        story.begin(&FRAGMENTATION);
        let begun = moment(&story);
        assert_eq!(FRAGMENTATION.given(), 18);
        says(&begun, &["12 GiB", "11.49 GiB", "3 GiB"]);
        let moment = create(&mut story, Bytes::gib(3));
        says(&moment, &["11.49 GiB", "1.5 GiB", "2.49 GiB", "3 GiB"]);
        assert!(
            moment.failure.as_ref().unwrap().starts_with("CUDA out of memory. Tried to allocate 3.00 GiB")
        );
        // 21 GiB are reserved, and the context has its part.
        let process = "is free. Including non-PyTorch memory, this process has 21.51 GiB memory in use. Of the allocated memory 12.00 GiB";
        assert!(moment.failure.as_ref().unwrap().contains(process), "{:?}", moment.failure);
        assert_eq!(moment.before, moment.after);
        story.turn(0.0);
        let moment = self::moment(&story);
        assert_eq!(moment.failure, None);
        says(&moment, &["one piece", "3 GiB"]);
        assert_eq!(moment.after.allocated(), Bytes::gib(15));
        story.restore(History::undo);
        assert!(self::moment(&story).failure.is_some());
    }
}

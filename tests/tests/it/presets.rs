//! The claims of the labels and comments of the presets hold in their runs.

use std::ops::ControlFlow;

use blockyard_figure::describe_step;
use blockyard_record::{Breakdown, Bytes, Event, Recording, Stats, StepOutcome};
use blockyard_replay::job::{Job, JobOutput, perform};
use blockyard_workload::presets::{Preset, presets};

fn preset(id: &str) -> &'static Preset {
    presets().iter().find(|preset| preset.id == id).expect("the preset is there")
}

fn play(preset: &Preset, text: &str) -> JobOutput {
    let job = Job::Run {
        title: preset.title.to_owned(),
        text: text.to_owned(),
        conf: String::new(),
        capacity: preset.capacity,
    };
    perform(&job, &mut |_| ControlFlow::Continue(())).expect("a preset runs")
}

/// A preset that ran, by the labels of its chapters.
struct PlayedPreset {
    recording: Recording,
}

impl PlayedPreset {
    fn of(id: &str) -> Self {
        let preset = preset(id);
        Self { recording: play(preset, preset.text).recording }
    }

    /// The steps of the chapter whose label begins like this.
    fn chapter(&self, label: &str) -> std::ops::Range<usize> {
        let labels = self.recording.labels();
        let place =
            labels.iter().position(|other| other.text.starts_with(label)).expect("the label is there");
        let end = labels.get(place + 1).map_or(self.recording.step_count(), |next| next.step as usize);
        labels[place].step as usize..end
    }

    fn breakdown(&self, label: &str) -> Breakdown {
        self.recording.breakdown_after(self.chapter(label).end - 1).unwrap()
    }

    fn stats(&self, label: &str) -> Stats {
        let end = self.recording.step(self.chapter(label).end - 1).unwrap().end;
        *self.recording.state_at(end).unwrap().stats()
    }

    fn events(&self, label: &str) -> Vec<Event> {
        let steps = self.chapter(label).map(|step| self.recording.step(step).unwrap());
        steps
            .flat_map(|step| step.start..step.end)
            .map(|event| self.recording.event(event).unwrap())
            .collect()
    }

    fn new_segments(&self, label: &str) -> usize {
        self.events(label).iter().filter(|event| matches!(event, Event::SegmentAllocated { .. })).count()
    }
}

fn mib(count: u64) -> Bytes {
    Bytes::mib(count)
}

#[test]
fn only_the_preset_on_fragmentation_fails_and_only_in_its_last_request() {
    for preset in presets() {
        let recording = play(preset, preset.text).recording;
        let failed_steps = recording.failed_steps();
        if preset.id == "fragmentation" {
            let last = recording.step_count() - 1;
            assert!(matches!(failed_steps, [(step, StepOutcome::OutOfMemory(_))] if *step as usize == last));
        } else {
            assert!(failed_steps.is_empty(), "{}: {failed_steps:?}", preset.id);
        }
        for step in 0..recording.step_count() {
            assert_eq!(recording.breakdown_after(step).unwrap().capacity(), preset.capacity, "{}", preset.id);
        }
    }
}

#[test]
fn a_step_has_the_last_label_that_does_not_come_after_it() {
    for preset in presets() {
        let recording = play(preset, preset.text).recording;
        for step in 0..=recording.step_count() {
            let expected = recording.labels().iter().rposition(|label| label.step as usize <= step);
            assert_eq!(recording.label_index_at(step), expected, "{}, step {step}", preset.id);
        }
    }
}

#[test]
fn terms_shows_each_class_and_both_peaks() {
    let story = PlayedPreset::of("terms");
    let first = story.breakdown("Reserved: 3 MiB asked");
    assert_eq!((first.allocated(), first.reserved(), first.cached), (mib(3), mib(20), mib(17)));

    let second = story.breakdown("Cached bytes serve");
    assert_eq!((second.allocated(), second.cached), (mib(8), mib(12)));
    assert_eq!(story.new_segments("Cached bytes serve"), 0);

    let rounding = story.breakdown("Rounding: 11 MiB asked, 12 MiB given");
    assert_eq!((rounding.requested, rounding.rounding, rounding.cached), (mib(19), mib(1), Bytes::ZERO));

    let small = story.breakdown("Small tensors");
    assert_eq!(small.rounding, mib(1) + Bytes::new(24));
    for class in [small.requested, small.rounding, small.cached, small.free] {
        assert!(!class.is_zero(), "{small:?}");
    }

    let freed = story.breakdown("A free fills the cache");
    assert_eq!(freed.allocated(), small.allocated().saturating_sub(mib(5)));
    assert_eq!((freed.reserved(), freed.free), (small.reserved(), small.free));

    assert_eq!(story.new_segments("Peaks"), 1);
    let peaks = story.stats("Peaks");
    assert_eq!(peaks.allocated_bytes.all.peak, (mib(35) + Bytes::new(1024)).signed());
    assert_eq!(peaks.reserved_bytes.all.peak, mib(42).signed());
    assert_eq!(story.breakdown("Peaks").allocated(), mib(15) + Bytes::new(1024));

    assert_eq!(story.breakdown("empty_cache").reserved(), mib(22), "the hole in the shared segment stays");
    let emptied = story.stats("empty_cache");
    assert_eq!((emptied.num_device_free, emptied.reserved_bytes.all.peak), (1, mib(42).signed()));

    let reset = story.stats("reset_peak");
    assert_eq!(reset.allocated_bytes.all.peak, reset.allocated_bytes.all.current);
    assert_eq!(reset.reserved_bytes.all.peak, mib(22).signed());
    assert_eq!(story.breakdown("Back to an empty device").free, preset("terms").capacity);
}

#[test]
fn two_tensors_are_764_mib_then_382_to_the_byte() {
    let story = PlayedPreset::of("two-tensors");
    let one = story.breakdown("x = torch.ones");
    assert_eq!((one.requested.get(), one.reserved().get()), (400_000_000, 400_556_032));
    let both = story.breakdown("y = torch.ones");
    assert_eq!((both.allocated().get(), both.reserved().get()), (801_112_064, 801_112_064));
    let deleted = story.breakdown("del y");
    assert_eq!((deleted.allocated().get(), deleted.reserved().get()), (400_556_032, 801_112_064));
    let emptied = story.breakdown("torch.cuda.empty_cache()");
    assert_eq!((emptied.allocated().get(), emptied.reserved().get()), (400_556_032, 400_556_032));
    let stats = story.stats("torch.cuda.empty_cache()");
    assert_eq!(stats.reserved_bytes.all.peak, 801_112_064);
    assert_eq!(stats.allocated_bytes.all.peak, 801_112_064);
}

#[test]
fn training_takes_more_memory_in_its_second_step_and_none_after_it() {
    let story = PlayedPreset::of("training");
    assert_eq!(story.breakdown("model").allocated(), Bytes::kib(4 * (16 * 1024 + 8)));
    assert_eq!(story.new_segments("model"), 5, "four weights, and one segment for all biases");

    let forward = story.breakdown("step 1: forward").allocated();
    assert!(story.breakdown("step 1: backward").allocated() < forward, "activations go while gradients come");

    let optimizer = story.events("step 1: optimizer.step()");
    assert!(optimizer.iter().all(|event| !matches!(event, Event::SegmentAllocated { .. })));
    let halves =
        optimizer.iter().filter(|event| matches!(event, Event::Split { size, .. } if *size == mib(16)));
    assert_eq!(halves.count(), 4, "cached blocks of 32 MiB are split in two");

    let peak = |label: &str| story.stats(label).reserved_bytes.all.peak;
    assert!(peak("step 2: backward") > peak("step 1: optimizer.zero_grad()"));
    for step in ["step 3: forward", "step 3: backward", "step 4: forward", "step 4: backward"] {
        assert_eq!(story.new_segments(step), 0, "{step}");
        assert_eq!(peak(step), peak("step 2: backward"), "{step}");
    }
}

#[test]
fn fragmentation_ends_out_of_memory_with_more_unused_than_was_asked() {
    let story = PlayedPreset::of("fragmentation");
    let side_by_side = story.breakdown("Short-lived and long-lived");
    assert_eq!((side_by_side.allocated(), side_by_side.reserved()), (mib(100), mib(100)));
    assert_eq!(story.new_segments("Short-lived and long-lived"), 5);
    let freed = story.breakdown("The short-lived ones go");
    assert_eq!((freed.allocated(), freed.cached), (mib(20), mib(80)));
    assert_eq!(story.new_segments("What fits a hole"), 0);
    assert_eq!(story.breakdown("empty_cache cannot help").reserved(), mib(100));

    let last = story.breakdown("40 MiB: out of memory with 108 MiB unused");
    assert_eq!((last.free, last.cached), (mib(28), mib(80)));
    assert!(last.free.saturating_add(last.cached) > mib(40));
    let end = story.recording.state_at(story.recording.event_count()).unwrap();
    let cached = end.snapshot().segments.into_iter().flat_map(|segment| segment.blocks);
    let holes: Vec<Bytes> = cached.filter(|block| !block.state.is_active()).map(|block| block.size).collect();
    assert_eq!(holes, [mib(8); 10]);
    let events = story.events("40 MiB");
    assert!(events.iter().any(|event| matches!(event, Event::RetryStarted)));
    assert!(events.iter().all(|event| !matches!(event, Event::SegmentReleased { .. })));
}

#[test]
fn the_cure_that_the_preset_on_fragmentation_names_works() {
    let preset = preset("fragmentation");
    let together = "    temporary[i] = alloc 8 MiB\n    result[i] = alloc 2 MiB\n";
    let apart = "    result[i] = alloc 2 MiB\n}\nrepeat 10 as i {\n    temporary[i] = alloc 8 MiB\n";
    assert!(preset.text.contains(together));
    let cured = play(preset, &preset.text.replace(together, apart)).recording;
    assert!(cured.failed_steps().is_empty(), "{:?}", cured.failed_steps());
}

#[test]
fn streams_do_not_share_and_a_free_waits() {
    let story = PlayedPreset::of("streams");
    assert_eq!(story.breakdown("The default stream leaves").cached, mib(12));
    assert_eq!(story.new_segments("The side stream cannot use them"), 1);
    assert_eq!(story.new_segments("The default stream can"), 0);

    let waiting = story.breakdown("A free that has to wait");
    assert_eq!((waiting.allocated(), waiting.pending), (Bytes::ZERO, mib(12)));
    assert_eq!(story.new_segments("Pending bytes serve nobody"), 1);
    assert_eq!(story.breakdown("Pending bytes serve nobody").pending, mib(12));

    assert_eq!(story.new_segments("The default stream catches up"), 0);
    assert_eq!(story.breakdown("The default stream catches up").pending, Bytes::ZERO);

    let last = story.events("empty_cache waits for the device");
    let place = |wanted: fn(&Event) -> bool| last.iter().position(wanted).expect("it happens");
    let waits = place(|event| matches!(event, Event::StreamsSynchronized));
    let completes = place(|event| matches!(event, Event::FreeCompleted { .. }));
    let releases = place(|event| matches!(event, Event::SegmentReleased { .. }));
    assert!(waits < completes && completes < releases);
    assert_eq!(story.breakdown("empty_cache waits").reserved(), mib(12), "only e stays");
}

#[test]
fn caching_asks_the_device_only_in_the_first_iteration_and_after_empty_cache() {
    let story = PlayedPreset::of("caching");
    let chapters = [
        ("First iteration", 3),
        ("Iteration 2", 0),
        ("Iteration 3", 0),
        ("empty_cache", 0),
        ("Iteration 4", 3),
        ("Iteration 5", 0),
    ];
    for (label, segments) in chapters {
        assert_eq!(story.new_segments(label), segments, "{label}");
    }
    assert_eq!(story.stats("empty_cache").num_device_free, 3);
    assert_eq!(story.breakdown("empty_cache").free, preset("caching").capacity);
}

#[test]
fn pools_keep_their_segments_and_one_lends() {
    let story = PlayedPreset::of("pools");
    assert_eq!(story.new_segments("Requests inside"), 1);
    assert_eq!(story.breakdown("Requests inside").cached, mib(12));
    assert_eq!(story.new_segments("Requests outside"), 1);
    assert_eq!(story.new_segments("A block returns"), 0);
    assert_eq!(story.breakdown("empty_cache leaves").reserved(), mib(40));
    let words = describe_step(&story.recording, story.chapter("empty_cache leaves").start).sentence;
    assert!(words.starts_with("the wholly cached 20 MiB belong to memory pools"), "{words}");
    assert!(words.ends_with("12 MiB stay cached beside blocks that are in use"), "{words}");
    assert_eq!(story.breakdown("The end of the pool").reserved(), mib(20));
    assert_eq!(story.breakdown("A pool that serves others").free, mib(4));
    assert_eq!(story.new_segments("Out of memory, almost"), 0);
    assert_eq!(story.breakdown("Out of memory, almost").allocated(), mib(38));
}

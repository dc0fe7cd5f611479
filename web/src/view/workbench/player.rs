//! The player's controls.

use blockyard_figure::{MoveUnit, PlayerAction};
use blockyard_record::Recording;
use leptos::ev;
use leptos::html;
use leptos::prelude::*;

use crate::browser;
use crate::effect::effect;
use crate::frames::{self, Slot};
use crate::numbers::{grouped_count, grouped_signed};
use crate::session::Session;
use crate::view::figure::{mini_map, timeline};
use crate::view::icon::Icon;
use crate::view::kit::{choice, choices, click, flag, icon_button, on, play_button, select, text};
use crate::view::workbench::step::step_text;

/// The list has at most this many labels, since nobody reads a longer list.
const MAX_LABELS: usize = 2000;

/// The player, and below it the timeline with a slider.
pub(crate) fn over_time(session: Session) -> AnyView {
    view! {
        {player(session)}
        <div class="over-time">
            {timeline::timeline(session)}
            {mini_map::mini_map(session)}
            {slider(session)}
        </div>
    }
    .into_any()
}

pub(crate) fn player(session: Session) -> AnyView {
    let is_file = Memo::new(move |_| session.shows_recording());
    let is_not_file = flag(move || !is_file.get());
    view! {
        <section class="player" aria-label="Player">
            {move || if is_file.get() { steps(session) } else { buttons(session) }}
            <span class="position" data-testid="position">{text(move || position(session))}</span>
            <span class="quiet" data-testid="what-happens" hidden=is_not_file>{text(move || what_happens(session))}</span>
            {device_calls(session)}
            {label_picker(session)}
            {move || (!is_file.get()).then(|| of_workload(session))}
        </section>
    }
    .into_any()
}

fn action(
    session: Session,
    icon: Icon,
    id: &'static str,
    label: &'static str,
    action: PlayerAction,
) -> AnyView {
    icon_button("icon", id, icon, label, click(move || session.dispatch(action)))
}

/// The buttons of a file: a reader looks for moments in the figures, and goes from there step by step.
fn steps(session: Session) -> AnyView {
    view! {
        <span class="cluster">
            {action(session, Icon::Back, "back", "Back (left arrow)", PlayerAction::Back)}
            {action(session, Icon::Forward, "forward", "Forward (right arrow)", PlayerAction::Forward)}
        </span>
    }
    .into_any()
}

/// The buttons of a workload and of a program, which are played.
fn buttons(session: Session) -> AnyView {
    view! {
        <span class="cluster">
            {action(session, Icon::Start, "start", "To the start (Home)", PlayerAction::Start)}
            {action(session, Icon::Back, "back", "Back (left arrow)", PlayerAction::Back)}
            {play_button(session, ["Play (Space)", "Pause (Space)"])}
            {action(session, Icon::Forward, "forward", "Forward (right arrow)", PlayerAction::Forward)}
            {action(session, Icon::End, "end", "To the end (End)", PlayerAction::End)}
        </span>
    }
    .into_any()
}

/// What only workloads and programs have: the steps that failed, and events as moves.
fn of_workload(session: Session) -> AnyView {
    let has_failures = Memo::new(move |_| !session.run.get().recording.failed_steps().is_empty());
    view! {
        <span class="cluster" hidden=flag(move || !has_failures.get())>
            {action(session, Icon::PreviousFailedStep, "previous-failed-step", "Previous failed request ({)", PlayerAction::PreviousFailedStep)}
            {action(session, Icon::NextFailedStep, "next-failed-step", "Next failed request (})", PlayerAction::NextFailedStep)}
        </span>
        {units(session)}
    }
    .into_any()
}

/// The request of the step under the cursor, and whether it failed. Reads signals.
fn what_happens(session: Session) -> String {
    let run = session.run.get();
    let step = session.player.with(|player| player.current_step(&run.recording));
    let title = step.map(|step| step_text(&run, step).title).unwrap_or_default();
    if session.lab().fails_now() { format!("{title}: out of memory") } else { title }
}

/// How often the allocator has called the device so far. Caching saves the difference to the number of
/// requests.
fn device_calls(session: Session) -> AnyView {
    let words = text(move || {
        let calls = session.with_state(|_, state| {
            let stats = state.stats();
            format!(
                "cudaMalloc {} · cudaFree {}",
                grouped_signed(stats.num_device_alloc),
                grouped_signed(stats.num_device_free)
            )
        });
        calls.unwrap_or_default()
    });
    view! {
        <span
            class="quiet"
            data-testid="device-calls"
            title="How often the allocator took a segment from the device so far, and released one"
        >
            {words}
        </span>
    }
    .into_any()
}

/// Moves the player on every frame for as long as it plays.
pub(crate) fn play_by_itself(session: Session) {
    let is_playing = Memo::new(move |_| session.player.with(|player| player.is_playing));
    effect(move || {
        if is_playing.get() {
            tick(session, browser::now_millis());
        }
    });
}

fn tick(session: Session, before_millis: f64) {
    frames::plan(Slot::Play, move || {
        if !session.player.with_untracked(|player| player.is_playing) {
            return;
        }
        let now = browser::now_millis();
        // A hidden page gets no frames. The time in which it was hidden is not played.
        let elapsed_millis = (now - before_millis).clamp(0.0, 250.0);
        session.dispatch(PlayerAction::Tick { elapsed_millis });
        if let Some(stop) = session.stop_at.get_untracked()
            && session.player.with_untracked(|player| player.steps >= stop)
        {
            session.dispatch(PlayerAction::Pause);
        }
        tick(session, now);
    });
}

fn position(session: Session) -> String {
    let run = session.run.get();
    session.player.with(|player| match player.unit {
        MoveUnit::Step => {
            format!(
                "request {} of {}",
                grouped_count(player.steps),
                grouped_count(run.recording.step_count())
            )
        }
        MoveUnit::Event => {
            format!(
                "event {} of {}",
                grouped_count(player.cursor),
                grouped_count(run.recording.event_count())
            )
        }
    })
}

pub(crate) fn slider(session: Session) -> AnyView {
    let node = NodeRef::<html::Input>::new();
    // One effect sets the maximum before the value, because the browser would cut off a value above the old
    // maximum.
    effect(move || {
        let Some(input) = node.get() else { return };
        let run = session.run.get();
        let (value, max) = session.player.with(|player| match player.unit {
            MoveUnit::Step => (player.steps, run.recording.step_count()),
            MoveUnit::Event => (player.cursor, run.recording.event_count()),
        });
        input.set_max(&max.to_string());
        input.set_value(&value.to_string());
    });
    let seek = on(move |event: ev::Event| {
        let Ok(value) = event_target_value(&event).parse::<usize>() else { return };
        frames::plan(Slot::Seek, move || {
            session.dispatch(PlayerAction::Pause);
            session.dispatch(match session.player.with_untracked(|player| player.unit) {
                MoveUnit::Step => PlayerAction::SeekStep(value),
                MoveUnit::Event => PlayerAction::SeekEvent(value),
            });
        });
    });
    let value = text(move || {
        let run = session.run.get();
        let label = current_label(session, &run.recording);
        match label.and_then(|index| run.recording.labels().get(index)) {
            Some(label) => format!("{}: {}", position(session), label.text),
            None => position(session),
        }
    });
    view! {
        <input
            node_ref=node
            type="range"
            min="0"
            step="1"
            data-testid="scrub"
            aria-label="Position"
            aria-valuetext=value
            on:input=seek
        />
    }
    .into_any()
}

/// The index of the label of the current step. Reads signals.
fn current_label(session: Session, recording: &Recording) -> Option<usize> {
    let step = session.player.with(|player| player.current_step(recording))?;
    recording.label_index_at(step)
}

fn label_picker(session: Session) -> AnyView {
    let options = Signal::derive(move || {
        let run = session.run.get();
        let labels = run.recording.labels().iter().take(MAX_LABELS).enumerate();
        let labels = labels.map(|(index, label)| (index.to_string(), label.text.clone()));
        std::iter::once((String::new(), "Jump to …".to_owned())).chain(labels).collect()
    });
    let current = text(move || {
        let run = session.run.get();
        current_label(session, &run.recording).map(|index| index.to_string()).unwrap_or_default()
    });
    let jump = move |value: String| {
        let run = session.run.get_untracked();
        if let Some(label) = value.parse::<usize>().ok().and_then(|index| run.recording.labels().get(index)) {
            session.dispatch(PlayerAction::Pause);
            session.dispatch(PlayerAction::SeekStep(label.step as usize + 1));
        }
    };
    let is_hidden = flag(move || session.run.get().recording.labels().is_empty());
    view! {
        <span class="labels" hidden=is_hidden>{select("labels", "Jump to a label", options, current, jump)}</span>
    }
    .into_any()
}

fn units(session: Session) -> AnyView {
    let unit = Memo::new(move |_| session.player.with(|player| player.unit));
    let unit_button = move |of: MoveUnit, label: &'static str, id: &'static str| {
        choice(
            id,
            label,
            flag(move || unit.get() == of),
            click(move || session.dispatch(PlayerAction::SetUnit(of))),
        )
    };
    let units = vec![
        unit_button(MoveUnit::Step, "Requests", "unit-step"),
        unit_button(MoveUnit::Event, "Events", "unit-event"),
    ];
    choices("What one move is", Signal::stored(false), units)
}

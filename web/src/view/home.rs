//! The first page: a sentence, a figure that plays, three doors.

use blockyard_figure::PlayerAction;
use leptos::html;
use leptos::prelude::*;

use crate::commands::sentence;
use crate::files::{SAMPLES, Samples};
use crate::session::{Place, Session};
use crate::view::icon::Icon;
use crate::view::kit::{button, click, text};
use crate::view::scrubber::scrubber;
use crate::view::stage::stage;
use crate::view::step::step_words;
use crate::view::{header, messages};

pub(crate) fn home(session: Session, samples: Samples) -> AnyView {
    view! {
        <main class="home">
            <h1>"See why PyTorch holds more GPU memory than your tensors use."</h1>
            <p class="lead">
                "You deleted the tensor. "<code>"memory_allocated()"</code>" fell; "<code>"nvidia-smi"</code>
                " did not. This is what happened:"
            </p>
            <div class="living">
                {stage(session, false)}
                {caption(session)}
                {scrubber(session)}
            </div>
            <div class="doors">
                {learn(session)}
                {files(session, samples)}
                {workbench(session)}
            </div>
        </main>
    }
    .into_any()
}

/// The play button, and the step under the cursor in words.
pub(crate) fn caption(session: Session) -> AnyView {
    let words = text(move || {
        let run = session.run.get();
        let count = run.recording.step_count();
        match session.player.with(|player| player.current_step(&run.recording)) {
            Some(step) => {
                let words = step_words(&run, step);
                format!("Step {} of {count}: {}. {}", step + 1, words.title, sentence(&words.sentence))
            }
            None => format!("An empty device, and {count} steps to come."),
        }
    });
    let is_playing = Memo::new(move |_| session.player.with(|player| player.is_playing));
    let label = text(move || if is_playing.get() { "Pause" } else { "Play" }.to_owned());
    view! {
        <p class="caption">
            <button
                type="button"
                class="icon primary"
                data-testid="play"
                aria-label=label
                title=label
                on:click=click(move || session.dispatch(PlayerAction::Toggle))
            >
                {move || if is_playing.get() { Icon::Pause.view() } else { Icon::Play.view() }}
            </button>
            <span data-testid="caption">{words}</span>
        </p>
    }
    .into_any()
}

/// A button that leads back to the card that the reader saw last, if there is one.
pub(crate) fn continue_button(session: Session) -> Option<AnyView> {
    let (id, card) = untrack(|| session.last_card())?;
    let title = blockyard_lessons::course().find(|lesson| lesson.id == id)?.title;
    let go = click(move || session.go_to(Place::Lesson { id: id.clone(), card }));
    Some(
        view! {
            <button type="button" class="primary large" data-testid="continue" on:click=go>
                {format!("Continue: {title}, card {}", card + 1)}
            </button>
        }
        .into_any(),
    )
}

fn learn(session: Session) -> AnyView {
    let has_begun = untrack(|| session.last_card()).is_some();
    view! {
        <section class="door">
            <h2>"Learn"</h2>
            <p>"Short lessons. Predict what happens, then watch the real allocator answer."</p>
            <p class="go">
                {continue_button(session)}
                {button(
                    if has_begun { "link" } else { "primary large" },
                    "door-learn",
                    if has_begun { "From the start" } else { "Start, 3 minutes" },
                    "",
                    click(move || session.go_to(first_lesson())),
                )}
                {button("link", "door-lessons", "All lessons", "", click(move || session.go_to(Place::Lessons)))}
            </p>
        </section>
    }
    .into_any()
}

/// The place that the button of "Learn" leads to.
fn first_lesson() -> Place {
    let first = blockyard_lessons::course().next();
    first.map_or(Place::Lessons, |lesson| Place::Lesson { id: lesson.id.to_owned(), card: 0 })
}

fn files(session: Session, samples: Samples) -> AnyView {
    let picker = NodeRef::<html::Input>::new();
    let open = click(move || {
        if let Some(input) = picker.get_untracked() {
            input.click();
        }
    });
    let entries = SAMPLES
        .iter()
        .map(|sample| {
            let open = click(move || samples.open(session, sample));
            button("link", sample.door_id, sample.title, sample.summary, open)
        })
        .collect::<Vec<_>>();
    view! {
        <section class="door">
            <h2>"Open a file"</h2>
            <p>"A memory snapshot or a recording of PyTorch, a workload, a lesson. Drop it anywhere; nothing is uploaded. Or a sample: "<span class="samples">{entries}</span></p>
            <p class="go">
                {button("large", "door-open", "Choose a file …", "", open)}
                {header::file_input(session, picker, "door-file")}
            </p>
            <p class="quiet small">"A copy of the file stays in this browser's cache until the next file, or until you press Forget."</p>
            {messages::kept_file(session, "forget-home")}
        </section>
    }
    .into_any()
}

fn workbench(session: Session) -> AnyView {
    view! {
        <section class="door">
            <h2>"Workbench"</h2>
            <p>"Allocate, free, change the settings, and see every byte: by hand or as a short text."</p>
            <p class="go">
                {button("large", "door-workbench", "Open the workbench", "", click(move || session.go_to(Place::Workbench)))}
                {button("link", "door-program", "Run a PyTorch program", "Paste a training script and see each line's memory", click(move || session.go_to(Place::Program)))}
            </p>
        </section>
    }
    .into_any()
}

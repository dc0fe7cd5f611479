//! The first page: three doors, and below them a story that the reader's hand drives.

use blockyard_budget::VariedNumber;
use blockyard_gpus::GpuProfile;
use blockyard_record::{Breakdown, Bytes};
use blockyard_workload::edit::EditAction;
use leptos::ev;
use leptos::prelude::*;

use crate::files::{SAMPLES, Samples};
use crate::navigation::{CardPlace, Place, TeachersPage};
use crate::program::{DEFAULT_GPU, ProgramInput};
use crate::session::Session;
use crate::story::{CONTEXT, CONTEXT_AFTER_KERNEL, EXPANDABLE, NextStep, Story, nvidia_smi};
use crate::view::figure::stage::stage;
use crate::view::kit::{FilePicker, Handler, Options, button, click, flag, on, select, text, text_area};
use crate::view::program::options_of;
use crate::view::{header, messages};

pub(crate) fn home(session: Session, samples: Samples) -> AnyView {
    view! {
        <main class="home">
            <h1>"See why PyTorch holds more GPU memory than your tensors use."</h1>
            <div class="doors">
                {files(session, samples)}
                {fit(session)}
                {learn(session)}
            </div>
            <h2>"What nvidia-smi shows, and why"</h2>
            <p class="story-answer" data-testid="answer">{text(move || session.story().moment.get().answer)}</p>
            <div class="story">
                {stage(session, true)}
                {readouts(session)}
                <div class="story-below">
                    {hand(session)}
                    {program(session)}
                </div>
            </div>
            {failure(session)}
            <p class="go">{button("link", "door-answer", ANSWER_LABEL, "", go_to_lesson(session, ANSWER_LESSON))}</p>
        </main>
    }
    .into_any()
}

/// The function that takes one number out of the breakdown of a moment.
type BreakdownNumber = fn(&Breakdown) -> Bytes;

/// The numbers that a reader would ask PyTorch and the driver for, and the change of each by the last line.
fn readouts(session: Session) -> AnyView {
    let rows: [(&str, &str, BreakdownNumber); 3] = [
        ("memory_allocated()", "readout-allocated", Breakdown::allocated),
        ("memory_reserved()", "readout-reserved", Breakdown::reserved),
        ("nvidia-smi", "readout-nvidia-smi", nvidia_smi),
    ];
    let rows = rows.map(|(name, id, bytes)| {
        let module = if name.ends_with(')') { "torch.cuda." } else { "" };
        let now = text(move || bytes(&session.story().moment.get().after).to_string());
        let change = text(move || change(session, bytes));
        view! {
            <div>
                <dt><code><span>{module}</span>{name}</code></dt>
                <dd><b data-testid=id>{now}</b><span>{change}</span></dd>
            </div>
        }
        .into_any()
    });
    let note = format!(
        "= reserved + CUDA context: {CONTEXT} measured on an H200, {CONTEXT_AFTER_KERNEL} after a first kernel; libraries such as cuBLAS add to it. It differs by GPU and driver."
    );
    view! {
        <div class="readouts">
            <dl>{rows.into_iter().collect::<Vec<_>>()}</dl>
            <p class="quiet">{note}</p>
        </div>
    }
    .into_any()
}

/// `+20 MiB`, `no change`; empty before the first line.
fn change(session: Session, bytes: BreakdownNumber) -> String {
    session.story().moment.with(|moment| {
        let (before, after) = (bytes(&moment.before), bytes(&moment.after));
        if !moment.has_acted {
            String::new()
        } else if after > before {
            format!("+{}", after.saturating_sub(before))
        } else if after < before {
            format!("\u{2212}{}", before.saturating_sub(after))
        } else {
            "no change".to_owned()
        }
    })
}

/// The buttons of the reader's actions. A button without an action stays in place, because it may have the
/// focus.
fn hand(session: Session) -> AnyView {
    let chosen = RwSignal::new(0_usize);
    let sizes = Memo::new(move |_| session.story().state.with(|story| story.situation().sizes));
    let options = Signal::derive(move || {
        let sizes = sizes.get().iter().enumerate();
        sizes.map(|(index, (size, _))| (index.to_string(), size.to_string())).collect()
    });
    let create = click(move || {
        if let Some((size, _)) = sizes.get_untracked().get(chosen.get_untracked()) {
            session.story().create(*size);
        }
    });
    let turn_page = click(move || {
        chosen.set(0);
        session.story().turn_page();
    });
    let choose = move |value: String| chosen.set(value.parse().unwrap_or_default());
    let next = Memo::new(move |_| session.story().moment.with(|moment| moment.next));
    let class =
        move |step: NextStep| text(move || if next.get() == Some(step) { "primary" } else { "" }.to_owned());
    let act = move |id: &'static str, step: NextStep, label: Signal<String>, is_off: Signal<bool>, act| {
        view! {
            <button type="button" class=class(step) data-testid=id aria-disabled=text(move || is_off.get().to_string()) on:click=act>
                {label}
            </button>
        }
        .into_any()
    };
    let word = |label: &'static str| Signal::stored(label.to_owned());
    let is_on = Signal::stored(false);
    let is_first = flag(move || session.story().state.with(Story::is_first));
    let has_none = flag(move || session.story().moment.with(|moment| moment.last_tensor.is_none()));
    let replay = text(move || {
        let is_expandable = session.story().state.with(Story::is_expandable);
        format!("Replay under {}", if is_expandable { "the defaults" } else { EXPANDABLE })
    });
    let page = text(move || {
        if is_first.get() { "Next: it fits, and it does not fit" } else { "Back to the empty GPU" }.to_owned()
    });
    view! {
        <div class="story-hand" role="group" aria-label="What to do">
            <span class="cluster">
                {act("story-create", NextStep::Create, word("Allocate a tensor"), is_on, create)}
                {select("story-size", "Size of the tensor", options, text(move || chosen.get().to_string()), choose)}
                {act("story-delete", NextStep::Delete, word("Free it"), has_none, click(move || session.story().delete()))}
                {act(
                    "story-empty-cache",
                    NextStep::EmptyCache,
                    word("torch.cuda.empty_cache()"),
                    is_on,
                    click(move || session.story().act(EditAction::EmptyCache)),
                )}
            </span>
            <span class="cluster">
                {act("story-next", NextStep::TurnPage, page, is_on, turn_page)}
                <span hidden=is_first>
                    {act("story-replay", NextStep::Replay, replay, is_on, click(move || session.story().replay()))}
                </span>
                {act(
                    "story-undo",
                    NextStep::Undo,
                    word("Undo"),
                    flag(move || !session.story().state.with(Story::can_undo)),
                    click(move || session.story().undo()),
                )}
            </span>
        </div>
    }
    .into_any()
}

/// The program so far, as it would be typed in Python. It is scrolled to its end.
fn program(session: Session) -> AnyView {
    let lines = move || {
        let lines = session.story().moment.get().lines.into_iter();
        let line = |(line, has_failed): (String, bool)| {
            let error = if has_failed { "\ntorch.OutOfMemoryError" } else { "" };
            // The setting stays in sight while the lines below scroll.
            let is_setting = line.starts_with("# PYTORCH_ALLOC_CONF");
            view! { <li class:is-setting=is_setting>{line}<em>{error}</em></li> }.into_any()
        };
        lines.map(line).collect::<Vec<_>>()
    };
    view! {
        <div class="story-program" role="region" aria-label="The program so far" tabindex="0" data-testid="story-program">
            <ol>{lines}</ol>
        </div>
    }
    .into_any()
}

fn failure(session: Session) -> AnyView {
    let message = move || {
        let message = session.story().moment.get().failure;
        message.map(|text| view! { <p class="failure" data-testid="failure">{text}</p> }.into_any())
    };
    view! { {message} }.into_any()
}

/// A button that leads back to the card that the reader saw last, if there is one.
pub(crate) fn continue_button(session: Session, class: &'static str) -> Option<AnyView> {
    let (id, card) = untrack(|| session.lessons().last_card.get())?;
    let title = blockyard_lessons::course().find(|lesson| lesson.id == id)?.title;
    let go = click(move || {
        session.navigation().go_to(Place::Lesson { id: id.clone(), card: CardPlace::At(card) });
    });
    Some(button(class, "continue", format!("Continue: {title}, card {}", card + 1), "", go))
}

fn learn(session: Session) -> AnyView {
    let has_begun = untrack(|| session.lessons().last_card.get()).is_some();
    let first = go_to_lesson(session, FIRST_LESSON);
    view! {
        <section class="door">
            <h2>"Learn"</h2>
            <p>"Short lessons. Predict what happens, and the allocator answers."</p>
            <p class="go">
                {continue_button(session, "")}
                {button(if has_begun { "link" } else { "" }, "door-learn", FIRST_LABEL, "", first)}
                {button("link", "door-lessons", "All lessons", "", click(move || session.navigation().go_to(Place::Lessons)))}
                {button("link", "door-teachers", "For teachers", "Plans, class sheets, answer keys, grades of a class", click(move || session.navigation().go_to(Place::Teachers(TeachersPage::Plan))))}
            </p>
        </section>
    }
    .into_any()
}

fn go_to_lesson(session: Session, id: &'static str) -> Handler<ev::MouseEvent> {
    click(move || session.navigation().go_to(Place::Lesson { id: id.to_owned(), card: CardPlace::FIRST }))
}

/// The lesson with which a newcomer begins, and the lesson about the events of the story, each with the
/// label of its button. The minutes of a lesson are in its file, which this screen does without.
const FIRST_LESSON: &str = "tensor";
const FIRST_LABEL: &str = "Chapter 1: what a tensor costs, 10 minutes";
const ANSWER_LESSON: &str = "nvidia-smi";
const ANSWER_LABEL: &str = "Chapter 2: why nvidia-smi did not fall, 11 minutes";

fn files(session: Session, samples: Samples) -> AnyView {
    let picker = FilePicker::new();
    let entries = SAMPLES
        .iter()
        .map(|sample| {
            let open = click(move || samples.open(session, sample));
            button("link", format!("door-{}", sample.name), sample.title, sample.summary, open)
        })
        .collect::<Vec<_>>();
    view! {
        <section class="door">
            <h2>"Drop a file"</h2>
            <p>"A memory snapshot of PyTorch, anywhere on this page. Nothing is uploaded."</p>
            <p class="go">
                {button("primary large", "door-open", "Choose a file …", "A memory snapshot, a recording, a workload or a lesson. A copy of the file stays in this browser's cache until the next file, or until you press Forget", picker.press())}
                {header::file_input(session, picker, "door-file")}
            </p>
            {messages::kept_file(session, "forget-home")}
            <p>"Or a sample: "<span class="samples">{entries}</span></p>
        </section>
    }
    .into_any()
}

/// The program that the door runs when no script is pasted.
const FIT_EXAMPLE: &str = "\
import torch
from torch import nn

batch_size = 8
model = nn.Sequential(nn.Linear(1024, 4096), nn.GELU(), nn.Linear(4096, 1024)).cuda()
optimizer = torch.optim.AdamW(model.parameters())
for step in range(3):
    inputs = torch.randn(batch_size, 512, 1024, device=\"cuda\")
    loss = nn.functional.mse_loss(model(inputs), inputs)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
";

/// The choice of a GPU that is not in the list.
const OTHER_GPU: &str = "other";

/// A field for a training script, the GPU, and the number that varies.
fn fit(session: Session) -> AnyView {
    let script = RwSignal::new(String::new());
    let gpu = RwSignal::new(DEFAULT_GPU.to_owned());
    let varied = RwSignal::new(String::new());
    let memory = RwSignal::new("16".to_owned());
    let named = GpuProfile::ALL.iter().map(|gpu| (gpu.id, gpu.title));
    let named = named.chain([(OTHER_GPU, "Other: \u{2026} GiB")]);
    let gpus: Options = named.map(|(id, title)| (id.to_owned(), title.to_owned())).collect();
    let is_named = flag(move || gpu.with(|gpu| gpu != OTHER_GPU));
    let options = Signal::derive(move || script.with(|text| options_of(&VariedNumber::all(text, ""))));
    // The number that was chosen for another script does not count.
    let chosen = text(move || {
        options.with(|options| {
            let chosen = options.iter().find(|(name, _)| varied.with(|varied| varied == name));
            chosen.or(options.first()).map(|(name, _)| name.clone()).unwrap_or_default()
        })
    });
    let run = click(move || {
        let pasted = Some(script.get_untracked()).filter(|text| !text.trim().is_empty());
        let text = pasted.unwrap_or_else(|| FIT_EXAMPLE.to_owned());
        let input = match gpu.get_untracked() {
            gpu if gpu == OTHER_GPU => {
                let capacity = format!("{} GiB", memory.get_untracked().trim());
                ProgramInput { text, capacity, ..ProgramInput::default() }
            }
            gpu => ProgramInput { text, gpu, ..ProgramInput::default() },
        };
        session.program().open_and_fit(input, untrack(|| chosen.get()));
    });
    view! {
        <section class="door">
            <h2>"Will it fit?"</h2>
            <p>"Paste a training script. It runs here, without a GPU, until the largest batch that fits is known."</p>
            {text_area("field mono", "door-script", "Training script", "import torch … (empty: an example)", script)}
            <p class="go">
                {button("large", "door-fit", "Find the largest", "", run)}
                {select("door-gpu", "GPU", Signal::stored(gpus), text(move || gpu.get()), move |id| gpu.set(id))}
                <span hidden=is_named>
                    <input type="number" class="field" min="1" data-testid="door-memory" aria-label="Memory of the GPU in GiB"
                        prop:value=text(move || memory.get()) on:input=on(move |event: ev::Event| memory.set(event_target_value(&event))) />
                    " GiB"
                </span>
                <span hidden=flag(move || options.with(|options| options.len() < 2))>
                    {select("door-varied", "The number that varies", options, chosen, move |name| varied.set(name))}
                </span>
            </p>
        </section>
    }
    .into_any()
}

#[cfg(test)]
mod tests {
    use wasm_bindgen_test::wasm_bindgen_test as test;

    use super::*;

    /// The first screen, the lessons and their buttons say the same.
    #[test]
    fn the_lessons_behind_the_buttons_have_the_minutes_and_the_context_of_this_screen() {
        for (id, label) in [(FIRST_LESSON, FIRST_LABEL), (ANSWER_LESSON, ANSWER_LABEL)] {
            let file = blockyard_lessons::lessons().iter().find(|file| file.id == id).expect("a lesson");
            let lesson = blockyard_lessons::Lesson::parse(file.text).expect("it can be read");
            let minutes = lesson.minutes().expect("it has minutes");
            assert!(label.ends_with(&format!(", {minutes} minutes")), "{minutes}");
            let place = blockyard_lessons::course().position(|lesson| lesson.id == id);
            let number = place.map(|place| format!("Chapter {}", place + 1));
            assert_eq!(number.as_deref(), label.split(':').next());
        }
        assert_eq!(blockyard_lessons::course().next().map(|lesson| lesson.id), Some(FIRST_LESSON));
        let file =
            blockyard_lessons::lessons().iter().find(|file| file.id == ANSWER_LESSON).expect("a lesson");
        let lesson = blockyard_lessons::Lesson::parse(file.text).expect("it can be read");
        let played = lesson.play().expect("it plays");
        let of = |name: &str| {
            let found = played.measured.iter().find(|measured| measured.name == name);
            found.map(|measured| measured.size).unwrap_or_default()
        };
        assert_eq!(of("context"), CONTEXT);
        assert_eq!(of("context").saturating_add(of("kernels")), CONTEXT_AFTER_KERNEL);
    }
}

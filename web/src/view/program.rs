//! Python programs: the editor with the memory of each line, the output, and the figures of the run.

mod again;
mod editor;
mod ended;
mod fit;
mod holding;
mod origin;
mod output;

use blockyard_gpus::GpuProfile;
use blockyard_rules::Release;
use leptos::ev;
use leptos::prelude::*;

use crate::navigation::{CardPlace, Place};
use crate::program::{AliveBytes, ProgramInput, ProgramStatus};
use crate::program::{EXAMPLES, release_of};
use crate::python_program::PYTHON;
use crate::session::Session;
use crate::story::CONTEXT;
use crate::view::figure::{allocations, map, stage};
use crate::view::kit::{Options, button, click, flag, on, select, text};
use crate::view::workbench::{lab, player, step};

/// The id of the text field, by which the page's keys find the field.
pub(crate) use editor::PROGRAM_ID;

/// The numbers of a program as options of a list.
pub(crate) use fit::options_of;

/// The view of a failed program, run again with a change.
pub(crate) use again::{again, memory_need};

pub(crate) fn program(session: Session) -> AnyView {
    let alive = Memo::new(move |_| {
        let Some(result) = session.shown_program() else { return AliveBytes::default() };
        session.with_state(|_, state| AliveBytes::of(&result, state)).unwrap_or_default()
    });
    let has_run = Memo::new(move |_| session.shown_program().is_some());
    let figures = move || if has_run.get() { figures(session, alive) } else { invitation(session) };
    let is_busy = is_busy(session);
    // Until the new run exists, and if it has no result, the figures show the run before.
    let has_failed = Memo::new(move |_| {
        session.program().status.with(|status| matches!(status, ProgramStatus::Failed(_)))
    });
    let is_old = flag(move || (is_busy.get() || has_failed.get()) && has_run.get());
    let old_words = text(move || {
        let what = if has_failed.get() { "The program has no result." } else { "The program runs." };
        format!("{what} Below is still the run before.")
    });
    view! {
        <main class="program">
            <h1 class="visually-hidden">"A PyTorch program"</h1>
            <section class="panel code" aria-label="Program">
                {bar(session)}
                {editor::editor(session, alive)}
                {device(session)}
            </section>
            {output::output(session)}
            <div class="figures" class:shows-old=is_old aria-busy=text(move || (is_old.get() && is_busy.get()).to_string())>
                <p class="panel old-run" role="status" data-testid="old-run" hidden=flag(move || !is_old.get())>
                    {old_words}
                </p>
                {fit::fit(session)}
                {figures}
            </div>
        </main>
    }
    .into_any()
}

/// Whether the program runs, or waits for Python.
fn is_busy(session: Session) -> Memo<bool> {
    Memo::new(move |_| session.program().status.with(ProgramStatus::is_busy))
}

fn bar(session: Session) -> AnyView {
    let is_busy = is_busy(session);
    let options = Signal::derive(move || {
        let mut options: Options =
            EXAMPLES.iter().map(|example| (example.id.to_owned(), example.title.to_owned())).collect();
        options.insert(0, (String::new(), "Your own".to_owned()));
        options
    });
    let current = text(move || {
        session.program().shown_example().map(|example| example.id.to_owned()).unwrap_or_default()
    });
    let pick = move |id: String| session.program().open_example(&id);
    view! {
        <div class="bar">
            <h2><label for=PROGRAM_ID>"Program"</label></h2>
            {select("example", "Example programs", options, current, pick)}
            <span class="spacer"></span>
            <span hidden=flag(move || is_busy.get())>
                {button("primary", "run-program", "Run", "Run it (Ctrl+Enter)", click(move || session.program().run()))}
            </span>
            <span hidden=flag(move || !is_busy.get())>
                {button("primary", "stop-program", "Stop", "Stop it at once", click(move || session.program().stop()))}
            </span>
        </div>
    }
    .into_any()
}

/// The GPU and the release of PyTorch that the program runs on, and its settings; another choice runs the
/// program again.
fn device(session: Session) -> AnyView {
    let gpus = GpuProfile::ALL.iter().map(|gpu| (gpu.id.to_owned(), gpu.title.to_owned()));
    let gpus: Options = gpus.collect();
    let input = session.program().input;
    let gpu = text(move || input.with(|input| input.gpu.clone()));
    let pick = move |id: String| {
        input.update(|input| input.gpu = id);
        session.program().run_with_other_settings();
    };
    let releases: Options =
        Release::ALL.iter().map(|known| (known.name().to_owned(), known.name().to_owned())).collect();
    let release = text(move || input.with(|input| input.release.name().to_owned()));
    let take = move |name: String| {
        input.update(|input| input.release = release_of(&name));
        session.program().run_with_other_settings();
    };
    view! {
        <div class="device">
            <label class="conf">
                "Arguments "
                {field(session, "program-arguments", "field mono", "--batch-size 8", |input| &mut input.arguments)}
            </label>
            <label>"GPU "{select("program-gpu", "GPU", Signal::stored(gpus), gpu, pick)}</label>
            <label>
                "PyTorch "{select("program-release", "Release of PyTorch", Signal::stored(releases), release, take)}
            </label>
            <label class="memory">
                "Memory "{field(session, "program-capacity", "field", "all of it", |input| &mut input.capacity)}
            </label>
            <label class="conf">
                "PYTORCH_CUDA_ALLOC_CONF "
                {field(session, "program-config", "field mono", "defaults", |input| &mut input.conf)}
            </label>
        </div>
    }
    .into_any()
}

/// A text of the program's input; another text runs the program again.
fn field(
    session: Session,
    id: &'static str,
    class: &'static str,
    placeholder: &'static str,
    of: fn(&mut ProgramInput) -> &mut String,
) -> AnyView {
    let input = session.program().input;
    // A typed text is kept at once, so that a run after another choice of the form uses it.
    let keep = on(move |event: ev::Event| input.update(|input| *of(input) = event_target_value(&event)));
    let change = on(move |event: ev::Event| {
        input.update(|input| *of(input) = event_target_value(&event));
        session.program().run_with_other_settings();
    });
    view! {
        <input
            type="text"
            class=class
            data-testid=id
            placeholder=placeholder
            spellcheck="false"
            prop:value=text(move || of(&mut input.get()).clone())
            on:input=keep
            on:change=change
        />
    }
    .into_any()
}

/// The text in place of the figures before the first run.
fn invitation(session: Session) -> AnyView {
    let words = text(move || {
        session.program().status.with(|status| {
            if status.is_busy() {
                return status.text();
            }
            "The program has not run yet: Run starts it. Or paste a training script of your own. It needs no PyTorch and no GPU: \
             Blockyard knows what PyTorch's operators allocate, and shows each line's memory. Nothing leaves your browser."
                .to_owned()
        })
    });
    view! {
        <section class="panel invitation" data-testid="invitation">
            <p>{words}</p>
            <p class="quiet">
                "Numbers of tensors on the GPU are not computed: "<code>"loss.item()"</code>" prints "<code>"?"</code>
                ". Numbers that no recording of a real GPU supports are marked as estimated. The page runs "{PYTHON}
                " with Python's own library, without the modules for networks, processes and terminals."
            </p>
        </section>
    }
    .into_any()
}

fn figures(session: Session, alive: Memo<AliveBytes>) -> AnyView {
    view! {
        <section class="panel transport" aria-label="Run">
            {player::over_time(session)}
        </section>
        <section class="panel stage-panel" aria-label="Memory of the device">
            {stage::stage(session, true)}
            {set_aside(session)}
            {holding::categories(alive)}
        </section>
        {holding::lines(session, alive)}
        {answers(session)}
        {origin::origin(session)}
        {step::step(session)}
        {map::map(session)}
        {allocations::allocations(session)}
    }
    .into_any()
}

/// The sentence about the non-PyTorch memory of the program's GPU: why `nvidia-smi` shows more from the start
/// than in the lesson.
fn set_aside(session: Session) -> AnyView {
    let content = move || {
        let program = stage::non_pytorch_of_program(session)?;
        let non_pytorch = program.details.non_pytorch;
        let measured = blockyard_lab::non_pytorch_measured_text(&program.simulation().gpu);
        let go = click(move || {
            session.navigation().go_to(Place::Lesson { id: "nvidia-smi".to_owned(), card: CardPlace::FIRST });
        });
        let lesson = button("link", "set-aside-lesson", "What nvidia-smi shows", "", go);
        Some(view! {
            <p class="quiet" data-testid="set-aside">
                {format!(
                    "{non_pytorch} are set aside from the start for what a training has taken beside PyTorch's memory after its first step ({measured}). With a tensor and no kernel, nvidia-smi shows {CONTEXT} beside the segments of an H200: "
                )}
                {lesson}
            </p>
        })
    };
    view! { {content} }.into_any()
}

/// The verdict about the run and the questions about it, which are asked when the reader unfolds them.
fn answers(session: Session) -> AnyView {
    // The run for which the answers are open: another run is another question.
    let open_for = RwSignal::new(None);
    let is_open = Memo::new(move |_| open_for.get() == Some(session.run.get()));
    let toggle = click(move || {
        open_for.set((!is_open.get_untracked()).then(|| session.run.get_untracked()));
        let has_verdict = || session.lab().answers().is_some_and(|answers| answers.verdict.is_some());
        if is_open.get_untracked() && !untrack(has_verdict) {
            session.lab().ask_verdict();
        }
    });
    let content = move || is_open.get().then(|| lab::lab(session));
    view! {
        <section class="panel program-answers" aria-label="Answers">
            <h2>
                <button
                    type="button"
                    class="unfold"
                    data-testid="program-answers"
                    aria-expanded=text(move || is_open.get().to_string())
                    on:click=toggle
                >
                    "What happened, and what would other settings do?"
                </button>
            </h2>
            {content}
        </section>
    }
    .into_any()
}

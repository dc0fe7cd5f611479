//! Whether the program runs to its end with a change: it is run again, with a setting that the verdict
//! recommends or on another GPU.

use blockyard_gpus::GpuProfile;
use blockyard_lab::{FindingTopic, VerdictAnswer, VerdictKind, context_and_libraries};
use leptos::prelude::*;

use crate::browser;
use crate::messages::sentence;
use crate::program::{ProgramEnd, ProgramInput, ProgramResult, ProgramTrial};
use crate::ptr_eq::PtrEq;
use crate::session::Session;
use crate::view::kit::{self, button, click, flag, select, text};

/// At most this many settings have a button.
const MAX_SETTINGS: usize = 3;

/// The memory of a GPU on which everything fits that a page can run.
const ENOUGH: &str = "1 TiB";

/// A program that took longer runs again only when the reader asks for it.
const MAX_SECONDS: u32 = 20;

/// The runs of the program with changes; empty unless a program failed.
pub(crate) fn again(session: Session, found: &VerdictAnswer) -> AnyView {
    let Some(shown) = untrack(|| session.shown_program()) else { return ().into_any() };
    if !matches!(found.kind, VerdictKind::Leak | VerdictKind::OutOfMemory)
        || shown.end() == ProgramEnd::Finished
    {
        return ().into_any();
    }
    let settings = settings_of(found);
    if let Some(conf) = settings.first() {
        run_at_first(session, conf.clone(), with_setting(&shown, conf));
    }
    let failed_at = match shown.end() {
        ProgramEnd::OutOfMemory(line) => line,
        _ => 0,
    };
    view! {
        <section class="program-again" aria-label="The program with a change" aria-live="polite" data-testid="program-again">
            <h3>"Does the program run to its end?"</h3>
            {ended(session, failed_at)}
            {running(session)}
            {choices(session, &shown, settings)}
            {whole_need(session, &shown)}
        </section>
    }
    .into_any()
}

/// The memory that a program which ran out of memory needs. It is below the changes with which the failed
/// request passes, since none of these says whether the next request passes too. Empty for other runs.
pub(crate) fn memory_need(session: Session) -> AnyView {
    let Some(shown) = untrack(|| session.shown_program()) else { return ().into_any() };
    let ProgramEnd::OutOfMemory(failed_at) = shown.end() else { return ().into_any() };
    view! {
        <section class="program-again" aria-label="The memory that the program needs" aria-live="polite" data-testid="program-need">
            <p class="quiet">
                "Each of these lets the request pass that failed, and the program may fail at the next one. A smaller batch or smaller tensors need less from the start."
            </p>
            {ended(session, failed_at)}
            {running(session)}
            {whole_need(session, &shown)}
        </section>
    }
    .into_any()
}

/// The runs with a change that have ended.
fn ended(session: Session, failed_at: u32) -> AnyView {
    let rows = move || {
        let trials = session.program().trials_of_shown().unwrap_or_default();
        let rows = trials.ended.into_iter().map(|trial| row(session, &trial, failed_at));
        rows.collect::<Vec<_>>()
    };
    view! { <ul>{rows}</ul> }.into_any()
}

/// A button that runs the program to its end on a GPU that has enough for everything.
fn whole_need(session: Session, shown: &ProgramResult) -> AnyView {
    let input = ProgramInput { capacity: ENOUGH.to_owned(), ..shown.input.clone() };
    let run = click(move || session.program().try_program(format!("{ENOUGH} of memory"), input.clone()));
    let title =
        "Runs the program on a GPU with memory for everything, and says how much the program reserves";
    button("", "again-need", "How much memory does the whole program need?", title, run)
}

/// The settings with which the request passes, the recommended one first.
fn settings_of(found: &VerdictAnswer) -> Vec<String> {
    let passing = found.findings.iter().filter(|finding| finding.about == FindingTopic::Helps);
    let passing = passing.flat_map(|finding| &finding.settings);
    let mut settings: Vec<String> = Vec::new();
    for conf in found.setting.iter().chain(passing) {
        if settings.len() < MAX_SETTINGS && !settings.contains(conf) {
            settings.push(conf.clone());
        }
    }
    settings
}

fn with_setting(shown: &ProgramResult, conf: &str) -> ProgramInput {
    ProgramInput { conf: conf.to_owned(), ..shown.input.clone() }
}

fn words_of_setting(conf: &str) -> String {
    if conf.is_empty() { "the default settings".to_owned() } else { conf.to_owned() }
}

/// Runs the program with the recommended setting, unless anything was tried for this run or the program takes
/// long.
fn run_at_first(session: Session, conf: String, input: ProgramInput) {
    let program = session.program();
    let is_new = move || {
        let trials = untrack(|| program.trials_of_shown()).unwrap_or_default();
        let is_searching = untrack(|| program.fit_of_shown()).is_some_and(|search| search.running.is_some());
        trials.ended.is_empty() && trials.running.is_none() && !is_searching
    };
    if program.seconds.get_untracked() > MAX_SECONDS || !is_new() {
        return;
    }
    // Signals are written after the view is made.
    let _ = browser::after_millis(0, move || {
        if is_new() {
            program.try_program(words_of_setting(&conf), input);
        }
    });
}

fn row(session: Session, trial: &ProgramTrial, failed_at: u32) -> AnyView {
    let input = trial.input.clone();
    let line = trial.line().map(|line| {
        let go = click(move || session.program().go_to_line(line));
        let label = format!("Show line {line}");
        view! { " "{button("link", "again-line", label, "Shows the line in the program", go)} }.into_any()
    });
    let show = trial.end.is_ok().then(|| {
        let act = click(move || session.program().show_trial(input.clone()));
        let title = "Runs the program with this change in place of the run that is shown";
        view! { " "{button("link", "again-show", "Show this run", title, act)} }.into_any()
    });
    let is_right = matches!(trial.end, Ok((ProgramEnd::Finished, _)));
    // The memory of the whole GPU is written, which a person looks for in a list of GPUs.
    let in_all = match trial.end {
        Ok((ProgramEnd::Finished, reserved)) => {
            let all = reserved.saturating_add(context_and_libraries());
            format!(" With the CUDA context and libraries that is a GPU of {} in all.", all.enough_text())
        }
        _ => String::new(),
    };
    view! { <li class:is-right=is_right><strong>{sentence(&trial.text(failed_at))}</strong>{in_all}{line}{show}</li> }.into_any()
}

/// The progress of the run, compared with the time that the run without the change took.
fn running(session: Session) -> AnyView {
    let running = Memo::new(move |_| session.program().trials_of_shown().and_then(|trials| trials.running));
    let words = text(move || {
        running.get().map_or_else(String::new, |trial| {
            let before = session.program().seconds.get();
            let before = if before == 0 { "less than 1 s".to_owned() } else { format!("{before} s") };
            format!(
                "The program runs with {} for {} s; as it was it took {before}.",
                trial.change, trial.seconds
            )
        })
    });
    let cancel = click(move || session.program().cancel_trial());
    kit::running(
        ["again-running", "again-cancel"],
        flag(move || running.with(Option::is_none)),
        words,
        cancel,
    )
}

/// The settings and the GPUs with which the program can be run again.
fn choices(session: Session, shown: &PtrEq<ProgramResult>, settings: Vec<String>) -> AnyView {
    let chips = settings.into_iter().map(|conf| {
        let (words, input) = (words_of_setting(&conf), with_setting(shown, &conf));
        let label = words.clone();
        let run = click(move || session.program().try_program(words.clone(), input.clone()));
        button("chip mono", "again-setting", label, "", run)
    });
    let chips = chips.collect::<Vec<_>>();
    let gpus = other_gpus(&shown.input);
    let mut options = vec![(String::new(), "a GPU".to_owned())];
    options.extend(gpus.iter().map(|(id, words)| (id.clone(), words.clone())));
    let input = shown.input.clone();
    let pick = move |id: String| {
        if let Some((id, words)) = gpus.iter().find(|(known, _)| *known == id) {
            // The typed memory belongs to the other GPU.
            let input = ProgramInput { gpu: id.clone(), capacity: String::new(), ..input.clone() };
            session.program().try_program(words.clone(), input);
        }
    };
    view! {
        <div class="cluster" role="group" aria-label="Run the program again with">
            <span class="quiet">"Run it again with"</span>
            {chips}
            {select("again-gpu", "Run the program on another GPU", Signal::stored(options), Signal::stored(String::new()), pick)}
        </div>
    }
    .into_any()
}

/// The ids of the GPUs that the program did not run on with all their memory, and their names with it.
fn other_gpus(input: &ProgramInput) -> Vec<(String, String)> {
    let is_other = |id: &str| id != input.gpu || !input.capacity.trim().is_empty();
    let others = GpuProfile::ALL.iter().filter(|gpu| is_other(gpu.id));
    others.map(|gpu| (gpu.id.to_owned(), format!("{} ({})", gpu.title, gpu.total_memory))).collect()
}

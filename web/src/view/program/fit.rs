//! "Will it fit?": the largest value of a number of the program that fits the GPU, a safe one, and the curve
//! of peaks; for a program that the page cannot run, the command that asks the same.

use blockyard_budget::VariedNumber;
use blockyard_figure::{Size, fit_curves};
use leptos::prelude::*;

use crate::browser;
use crate::effect::effect;
use crate::messages::sentence;
use crate::program::{FitVariant, ProgramInput, ProgramResult, dry_run_command, fit_command};
use crate::session::Session;
use crate::view::kit::{self, Options, button, click, flag, select, text};
use crate::view::program::output::last_run;
use crate::view::workbench::lab::{figure, line_to_copy};

const HEIGHT_PX: f32 = 260.0;

/// The question with its answer; empty before the first run, and for a program without a number to vary.
pub(super) fn fit(session: Session) -> AnyView {
    let program = session.program();
    let is_possible = Memo::new(move |_| program.fit_of_shown().is_some());
    let running = Memo::new(move |_| program.fit_of_shown().and_then(|search| search.running));
    let is_open = move || {
        let search = program.fit_of_shown();
        search.is_some_and(|search| search.variants.iter().any(|variant| variant.found.is_none()))
    };
    let can_begin = Memo::new(move |_| running.get().is_none() && is_open());
    let words = text(move || {
        let name = program.fit_of_shown().map(|search| search.number.name).unwrap_or_default();
        running.get().map_or_else(String::new, |(value, seconds)| {
            format!("The program runs with {name} {value} for {seconds} s.")
        })
    });
    let numbers = Memo::new(move |_| {
        let input = session.shown_program().map(|shown| shown.input.clone());
        input.map(|input| VariedNumber::all(&input.text, &input.arguments)).unwrap_or_default()
    });
    let options = Signal::derive(move || options_of(&numbers.get()));
    let chosen = text(move || program.fit_of_shown().map(|search| search.number.name).unwrap_or_default());
    // The search that the first screen asked for begins when the program has run.
    effect(move || {
        if program.wants_fit.get() && last_run(session).is_some() {
            // Signals are written after the effect.
            let _ = browser::after_millis(0, move || program.find_wanted_fit());
        }
    });
    let title = "Runs the program with other values on this GPU until the largest that fits is known";
    view! {
        <section class="panel fit" aria-label="Will it fit?" data-testid="fit" hidden=flag(move || !is_possible.get())>
            <div class="cluster" hidden=flag(move || !can_begin.get())>
                {button("", "fit-find", "Will it fit? Find the largest", title, click(move || program.find_fit()))}
                {select("fit-varied", "The number that varies", options, chosen, move |name| program.varied.set(name))}
            </div>
            {kit::running(["fit-running", "fit-cancel"], flag(move || running.with(Option::is_none)), words, click(move || program.cancel_fit()))}
            {move || answers(session)}
            {curve(session)}
        </section>
    }
    .into_any()
}

/// The numbers of a program as options of a list.
pub(crate) fn options_of(numbers: &[VariedNumber]) -> Options {
    numbers.iter().map(|number| (number.name.clone(), number.name.clone())).collect()
}

/// The answers so far. Reads signals.
fn answers(session: Session) -> Vec<AnyView> {
    let Some(search) = session.program().fit_of_shown() else { return Vec::new() };
    let answer = |variant: &FitVariant| {
        let words = sentence(&search.text(variant)?);
        let safe = search.safe_text(variant).map(|words| format!(" {}", sentence(&words)));
        let found = variant.found.clone()?.ok().and_then(|found| found.largest);
        let show = found.map(|largest| {
            let input = search.input(variant, largest.value);
            let act = click(move || session.program().show_trial(input.clone()));
            let title = "Runs the program with this value in place of the run that is shown";
            view! { " "{button("link", "fit-show", "Show this run", title, act)} }
        });
        let released = search.released_text(variant).map(|words| format!(" {words}"));
        Some(
            view! { <p data-testid="fit-answer"><strong>{words}</strong>{safe}{released}{show}</p> }
                .into_any(),
        )
    };
    search.variants.iter().filter_map(answer).collect()
}

/// The curve of peaks, once two values have run.
fn curve(session: Session) -> AnyView {
    let found = Memo::new(move |_| {
        let search = session.program().fit_of_shown()?;
        Some((search.number.name.clone(), search.curves())).filter(|(_, curves)| !curves.is_empty())
    });
    let content = move || {
        let (name, curves) = found.get()?;
        let runs: usize = curves.iter().map(|curve| curve.points.len()).sum();
        let label = format!("Peak memory over {name}: {runs} runs, with the limit of the GPU");
        let curves = figure(session, "fit-curve", label, HEIGHT_PX, move |width_px| {
            fit_curves(&name, &curves, Size::new(width_px, HEIGHT_PX))
        });
        Some(
            view! { {curves} <p class="quiet">"Solid: the peak of reserved memory. Dotted: of allocated memory."</p> },
        )
    };
    view! { {content} }.into_any()
}

/// The command for a program that imports a library which the page does not have; `None` for other programs.
pub(super) fn command(shown: &ProgramResult) -> Option<AnyView> {
    let library = missing_library(shown)?;
    let numbers = VariedNumber::all(&shown.input.text, &shown.input.arguments);
    let option = numbers.iter().find(|number| number.is_option());
    let option = option.map(|number| number.name.as_str());
    let ProgramInput { gpu, arguments, .. } = &shown.input;
    // A program without an option, as one of the Trainer of transformers, is run as it is.
    let (line, what) = match option {
        Some(_) => (fit_command("train.py", option, gpu, arguments), "finds the largest value that fits"),
        None => (dry_run_command("train.py", gpu, arguments), "says whether the program fits"),
    };
    let words = format!(
        "This page does not have {library}. With an installed PyTorch and without a GPU, this command {what}; train.py stands for your program:"
    );
    Some(view! { <p>{words}</p>{line_to_copy("fit-command", line)} }.into_any())
}

/// The library that the program imports and that is not there.
fn missing_library(shown: &ProgramResult) -> Option<String> {
    let traceback = shown.details.traceback.as_deref()?;
    let line = traceback.lines().find(|line| line.starts_with("ModuleNotFoundError: "))?;
    line.split('\'').nth(1).map(str::to_owned)
}

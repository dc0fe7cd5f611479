//! The switch between the virtual device and the reader's GPU, and the results of the checks of block data on
//! the GPU.

use blockyard_record::{Bytes, counted};
use blockyard_replay::StepDataCheck;
use leptos::prelude::*;

use crate::gpu::{Adapter, GpuState};
use crate::messages::sentence;
use crate::numbers::grouped_count;
use crate::run::Attempt;
use crate::session::Session;
use crate::view::kit::{Handler, click, flag, text};

pub(crate) fn switch(session: Session) -> AnyView {
    let is_absent =
        flag(move || !matches!(session.workload().gpu.get(), GpuState::Present | GpuState::Open(_)));
    let never = Signal::stored(false);
    let on_gpu = session.workload().is_on_gpu;
    let pick = move |is_gpu: bool| click(move || session.workload().run_on_gpu(is_gpu));
    let limits_and_checks = text(move || limits_and_checks(session));
    view! {
        <div class="runs-on">
            <span class="segmented" role="group" aria-label="What the workload runs on" aria-describedby="gpu-status">
                {side("device-virtual", "Virtual", "No hardware: only the allocator", never, flag(move || !on_gpu.get()), pick(false))}
                {side(
                    "device-gpu",
                    "This GPU (WebGPU)",
                    "Every segment is a buffer on your GPU; the capacity is the most that the run takes of it",
                    is_absent,
                    flag(move || on_gpu.get()),
                    pick(true),
                )}
            </span>
            <span class="quiet" id="gpu-status" data-testid="gpu-status">{text(move || status(session))}</span>
            <p class="quiet" data-testid="gpu-found" hidden=flag(move || limits_and_checks.get().is_empty())>{limits_and_checks}</p>
        </div>
    }
    .into_any()
}

fn side(
    id: &'static str,
    label: &'static str,
    title: &'static str,
    is_off: Signal<bool>,
    is_chosen: Signal<bool>,
    act: Handler<leptos::ev::MouseEvent>,
) -> AnyView {
    let pressed = text(move || is_chosen.get().to_string());
    view! {
        <button type="button" data-testid=id title=title aria-pressed=pressed disabled=is_off on:click=act>
            {label}
        </button>
    }
    .into_any()
}

/// The name of the GPU, or why no GPU can be used.
fn status(session: Session) -> String {
    match session.workload().gpu.get() {
        GpuState::Absent(why) => sentence(&why),
        GpuState::Open(adapter) if session.workload().is_on_gpu.get() => {
            let kind = if adapter.is_software { ", on the processor" } else { "" };
            format!("{}{kind}", adapter.name)
        }
        _ => String::new(),
    }
}

/// The limits of the GPU, and the result of the data checks of the whole run.
fn limits_and_checks(session: Session) -> String {
    match session.workload().gpu.get() {
        GpuState::Open(adapter) if session.workload().is_on_gpu.get() => {
            let checks = session.workload().attempt.with(|attempt| match attempt {
                Attempt::Ran(run) => run.data_checks.as_deref().map(checks_of_run),
                _ => None,
            });
            format!("{} {}", limits(&adapter), checks.unwrap_or_default())
        }
        _ => String::new(),
    }
}

fn limits(adapter: &Adapter) -> String {
    let (buffer, binding) = (Bytes::new(adapter.largest_buffer), Bytes::new(adapter.largest_binding));
    format!("Segments up to {buffer}, {binding} a pass.")
}

/// The data checks of all steps, in a sentence.
fn checks_of_run(steps: &[StepDataCheck]) -> String {
    // One run checks far fewer than 2^64 bytes.
    let checked = steps.iter().fold(Bytes::ZERO, |sum, step| sum.saturating_add(step.checked));
    let wrong = steps.iter().filter(|step| step.wrong > 0).count();
    let found = match wrong {
        0 => "all as written".to_owned(),
        many => format!("damaged in {}", counted(many, "request")),
    };
    format!("{checked} of block data checked: {found}.")
}

/// The sentence about the data that the step under the cursor wrote to the memory of the GPU, and about the
/// check of earlier data.
pub(crate) fn data_check(session: Session) -> AnyView {
    let step = Memo::new(move |_| {
        let run = session.run.get();
        let step = session.player.with(|player| player.current_step(&run.recording))?;
        run.data_checks.as_ref()?.get(step).copied()
    });
    let line = move || {
        step.get().map(|step| {
            let class = if step.wrong > 0 { "failure" } else { "data-check" };
            view! { <p class=class data-testid="data-check">{checks_text(&step)}</p> }.into_any()
        })
    };
    view! { {line} }.into_any()
}

fn checks_text(step: &StepDataCheck) -> String {
    let filled = if step.filled.is_zero() {
        String::new()
    } else {
        format!("filled {} with a separate pattern; ", step.filled)
    };
    let checked = match step.blocks {
        0 => "nothing to check".to_owned(),
        many => format!("checked {}, {}", counted(many, "block"), step.checked),
    };
    let found = match (step.wrong, step.blocks) {
        (0, 0) => String::new(),
        (0, _) => ": all as written".to_owned(),
        (wrong, _) => format!(": {} words are not what was written", grouped_count(wrong as usize)),
    };
    format!("On the GPU: {filled}{checked}{found}.")
}

//! What is chosen in the figures: a block, or allocations, with the lines of the program that made them.

use blockyard_figure::{block_facts, bytes_of, frame_text, range_sums};
use blockyard_record::{BlockId, BlockState, Bytes, Event, Frame, Recording, StackId, counted};
use leptos::prelude::*;

use crate::browser;
use crate::messages::sentence;
use crate::numbers::grouped_count;
use crate::session::Session;
use crate::view::figure::allocations::allocation_lines;
use crate::view::icon::Icon;
use crate::view::kit::{button, click, facts, flag, icon_button};
use crate::view::workbench::step::step_text;

/// The panel of an opened file with what is chosen; hidden while nothing is.
pub(crate) fn panel(session: Session) -> AnyView {
    let figures = session.figures();
    let is_empty = flag(move || {
        figures.selected().is_none()
            && figures.picked.with(Option::is_none)
            && figures.steps_range().is_none()
            && !figures.is_event_chosen.get()
    });
    view! { <section class="panel chosen" aria-label="Chosen" hidden=is_empty>{chosen(session)}</section> }
        .into_any()
}

/// The sums of the brushed range, and the chosen block, or else the chosen allocations, or else the chosen
/// event.
pub(crate) fn chosen(session: Session) -> AnyView {
    let selected = Memo::new(move |_| session.figures().selected());
    let range = Memo::new(move |_| session.figures().steps_range());
    let sums = move || range.get().and_then(|range| range_card(session, range));
    let content = move || match selected.get() {
        Some(block) => Some(block_card(session, block)),
        None => allocations_card(session).or_else(|| event_card(session)),
    };
    view! { {sums}{content} }.into_any()
}

/// What happened in the brushed range. Reads signals.
fn range_card(session: Session, (first, last): (usize, usize)) -> Option<AnyView> {
    let columns = session.figures().columns()?;
    let sums = range_sums(&columns.allocations, first, last);
    let sum = |(count, bytes): (usize, Bytes)| format!("{bytes} in {}", counted(count, "allocation"));
    let (peak, at) = sums.peak;
    let rows = [
        ("allocated", sum(sums.made)),
        ("freed", sum(sums.freed)),
        ("allocated and still there", sum(sums.kept)),
        ("most active", format!("{peak} after request {}", grouped_count(at))),
    ];
    let title = format!("After request {} up to request {}", grouped_count(first), grouped_count(last));
    let let_go = click(move || {
        session.figures().let_go_of_range();
    });
    let zoom = click(move || {
        session.figures().zoom_to_range();
    });
    Some(
        view! {
            <section class="block" data-testid="range" aria-label="Brushed range">
                <header>
                    <strong>{title}</strong>
                    {icon_button("icon plain", "zoom-to-range", Icon::ZoomToRange, "Show this range alone (Z)", zoom)}
                    {icon_button("icon plain", "release-range", Icon::Close, "Let go of the range (Esc)", let_go)}
                </header>
                {facts(rows.into_iter().map(|(label, value)| (label.to_owned(), value)))}
            </section>
        }
        .into_any(),
    )
}

/// The event under the cursor of an opened file, if it is chosen: its own lines and its effect. Reads
/// signals.
fn event_card(session: Session) -> Option<AnyView> {
    if !session.figures().is_event_chosen.get() || !session.shows_recording() {
        return None;
    }
    let run = session.run.get();
    let step = session.player.with(|player| player.current_step(&run.recording))?;
    let words = step_text(&run, step);
    let lines = stack_view(&run.recording, stack_of_step(&run.recording, step));
    let title = format!("Request {}: {}", grouped_count(step + 1), words.title);
    let let_go = click(move || session.figures().is_event_chosen.set(false));
    Some(
        view! {
            <section class="block" data-testid="event" aria-label="Chosen event">
                <header>
                    <strong>{title}</strong>
                    {icon_button("icon plain", "release-event", Icon::Close, "Choose nothing (Esc)", let_go)}
                </header>
                {lines}
                <p class="quiet">{sentence(&words.sentence)}</p>
            </section>
        }
        .into_any(),
    )
}

/// The stack that asked for the memory which a step allocates or frees; empty for a step that does neither.
fn stack_of_step(recording: &Recording, step: usize) -> StackId {
    let events = recording.step(step).map(|events| events.start..events.end).unwrap_or_default();
    let start = events.start;
    let allocation = events.filter_map(|index| recording.event(index)).find_map(|event| match event {
        Event::Allocated { allocation, .. } => Some(allocation),
        Event::FreeRequested { block, .. } => recording.state_at(start).ok()?.block(block)?.allocation,
        _ => None,
    });
    allocation.map_or(StackId::EMPTY, |allocation| recording.allocation_stack(allocation))
}

fn block_card(session: Session, block: BlockId) -> AnyView {
    let known = Memo::new(move |_| {
        session.with_state(|run, state| block_facts(&run.recording, state, block)).flatten()
    });
    let body = move || match known.get() {
        Some(known) => facts(known.into_iter().map(|(label, value)| (label.to_owned(), value))),
        None => view! { <p class="quiet">"It does not exist at this moment."</p> }.into_any(),
    };
    let stack = Memo::new(move |_| {
        let stack = session.with_state(|run, state| {
            let allocation = state.block(block)?.allocation?;
            Some(run.recording.allocation_stack(allocation))
        });
        stack.flatten().unwrap_or(StackId::EMPTY)
    });
    let lines = move || session.run.with(|run| stack_view(&run.recording, stack.get()));
    let can_free = Memo::new(move |_| {
        let is_allocated = session.with_state(|_, state| {
            state.block(block).is_some_and(|block| block.state == BlockState::Allocated)
        });
        session.shows_text() && is_allocated == Some(true)
    });
    let streams = move || {
        let run = session.run.get();
        let streams = run.workload.streams().map(|(stream, name)| {
            let title = "record_stream: its free will wait for that stream's work";
            let record = click(move || session.workload().record_stream(block, stream));
            button("", "", format!("Use on {name}"), title, record)
        });
        streams.collect::<Vec<_>>()
    };
    view! {
        <section class="block" aria-label="Chosen block" data-testid="block">
            <header>
                <h2>{format!("Block #{block}")}</h2>
                <span class="cluster" hidden=flag(move || !can_free.get())>
                    {button("primary", "free-block", "Free", "Free the block after this request (F)", click(move || session.workload().free_block(block)))}
                    {streams}
                </span>
                {icon_button("icon plain", "unpin", Icon::Close, "Release (Esc)", click(move || session.figures().select(None)))}
            </header>
            {lines}
            {body}
        </section>
    }
    .into_any()
}

/// The chosen allocations with their stack; `None` if nothing is chosen. Reads signals.
fn allocations_card(session: Session) -> Option<AnyView> {
    let picked = session.figures().picked.get()?;
    let columns = session.figures().columns()?;
    let (allocations, recording) = (&columns.allocations, &columns.recording);
    let bytes = bytes_of(allocations, &picked.rows);
    let first = *picked.rows.first()?;
    let stack_of = |row: usize| allocations.id(row).map(|id| recording.allocation_stack(id));
    let stack = stack_of(first)?;
    let is_one_stack = picked.rows.iter().all(|row| stack_of(*row) == Some(stack));
    let stack = if is_one_stack { stack } else { StackId::EMPTY };
    let facts = match (picked.rows.as_slice(), allocations.get(first)) {
        ([only], Some(found)) => allocation_lines(&columns, *only, &found).join("\n"),
        _ => String::new(),
    };
    let stacks = recording.stacks();
    let frames = stacks.frames(stack).map(|frame| frame_text(stacks.frame(frame)));
    let copied =
        std::iter::once(facts.clone()).filter(|facts| !facts.is_empty()).chain(frames).collect::<Vec<_>>();
    let copied = copied.join("\n");
    let words = format!("{bytes} in {}", counted(picked.rows.len(), "allocation"));
    let (has_facts, has_lines) = (!facts.is_empty(), !copied.is_empty());
    Some(
        view! {
            <section class="block" data-testid="picked" aria-label="Chosen allocations">
                <header>
                    <strong>{picked.title.clone()}</strong>
                    <span class="quiet">{words}</span>
                    <span hidden=!has_lines>
                        {button("plain", "copy-stack", "Copy", "Copy these lines", click(move || browser::copy(&copied)))}
                    </span>
                    {icon_button("icon plain", "unpick", Icon::Close, "Choose nothing (Esc)", click(move || { session.figures().unpick(); }))}
                </header>
                {stack_view(recording, stack)}
                <pre hidden=!has_facts>{facts}</pre>
            </section>
        }
        .into_any(),
    )
}

/// The lines of the program's own code in a stack, innermost first. The frames of libraries are folded below
/// them. Empty for a stack without frames.
fn stack_view(recording: &Recording, stack: StackId) -> AnyView {
    let stacks = recording.stacks();
    let (of_library, own): (Vec<_>, Vec<_>) =
        stacks.frames(stack).map(|frame| stacks.frame(frame)).partition(Frame::is_of_library);
    let listed = |frames: Vec<_>| frames.into_iter().map(frame_text).collect::<Vec<_>>().join("\n");
    if own.is_empty() && of_library.is_empty() {
        return ().into_any();
    }
    let has_own = !own.is_empty();
    let count = of_library.len();
    let folded = (count > 0).then(|| {
        view! {
            <details open=!has_own>
                <summary>{format!("{} of libraries", counted(count, "frame"))}</summary>
                <pre>{listed(of_library)}</pre>
            </details>
        }
    });
    view! {
        <pre class="own-lines" hidden=!has_own>{listed(own)}</pre>
        {folded}
    }
    .into_any()
}

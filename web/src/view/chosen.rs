//! What is chosen in the figures: a block, or allocations, with the lines of the program that made them.

use blockyard_figure::{block_facts, bytes_of, frame_text};
use blockyard_record::{BlockId, BlockState, Frame, Recording, StackId, counted};
use leptos::prelude::*;

use crate::browser;
use crate::session::Session;
use crate::view::allocations::allocation_lines;
use crate::view::icon::Icon;
use crate::view::kit::{button, click, facts, flag, icon_button};

/// The panel of an opened file with what is chosen; hidden while nothing is.
pub(crate) fn panel(session: Session) -> AnyView {
    let is_empty = flag(move || {
        session.figures().selected().is_none() && session.figures().picked.with(Option::is_none)
    });
    view! { <section class="panel chosen" aria-label="Chosen" hidden=is_empty>{chosen(session)}</section> }
        .into_any()
}

/// The chosen block, or else the chosen allocations.
pub(crate) fn chosen(session: Session) -> AnyView {
    let selected = Memo::new(move |_| session.figures().selected());
    let content = move || match selected.get() {
        Some(block) => Some(block_card(session, block)),
        None => allocations_card(session),
    };
    view! { {content} }.into_any()
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
                    {button("primary", "free-block", "Free", "Free the block after this step (F)", click(move || session.workload().free_block(block)))}
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

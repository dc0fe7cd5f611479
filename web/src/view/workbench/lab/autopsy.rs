//! What is in the way of the request with which a run went out of memory.

use blockyard_figure::{PinnedBlock, PinnedRow, pinned_segments, pinned_segments_height};
use blockyard_lab::{Autopsy, ChangeKind, PinnedSegment, PinningBlock};
use blockyard_record::{Bytes, frame_text, grouped, own_line};
use leptos::prelude::*;

use super::parts::figure;
use crate::session::Session;

/// At most this many segments are drawn. Further rows would not explain more.
const MAX_ROWS: usize = 8;

/// What is in the way of the request that failed; empty for a run without a failure.
pub(super) fn in_the_way(session: Session) -> AnyView {
    let found = Memo::new(move |_| session.lab().answers().and_then(|answers| answers.autopsy));
    let content = move || found.get().and_then(|found| (*found).as_ref().map(|found| pinned(session, found)));
    view! { {content} }.into_any()
}

/// The segments with free bytes, and the live blocks that keep them from serving the request or from being
/// released.
fn pinned(session: Session, autopsy: &Autopsy) -> AnyView {
    let freed: FreedBlocks =
        autopsy.failure.changes.iter().find_map(|change| freed_by(&change.kind)).unwrap_or_default();
    let has_freed_block =
        |segment: &PinnedSegment| segment.blocks.iter().any(|block| is_among(&freed, block));
    // The segments in which a proposed free makes room come first.
    let (with_freed, others): (Vec<_>, Vec<_>) =
        autopsy.failure.pinned_by.iter().partition(|segment| has_freed_block(segment));
    let has_freed = !with_freed.is_empty();
    let shown: Vec<&PinnedSegment> = with_freed.into_iter().chain(others).take(MAX_ROWS).collect();
    if shown.is_empty() {
        return ().into_any();
    }
    let rows: Vec<PinnedRow> = shown.iter().map(|segment| row(segment, &freed)).collect();
    let needed = autopsy.failure.request.rounded;
    let label =
        format!("{needed} to scale beside {} segments that have free bytes and live blocks", rows.len());
    let height = pinned_segments_height(rows.len());
    let drawn = figure(session, "lab-pinned", label, height, move |width_px| {
        pinned_segments(needed, &rows, width_px)
    });
    let items = shown.iter().map(|segment| {
        let blocks = segment.blocks.iter().take(4).map(|block| {
            let name = block
                .name
                .clone()
                .or_else(|| block.request.map(|request| format!("request {}", grouped(request))))
                .or_else(|| block.earlier.map(|_| "memory from before the recording".to_owned()));
            let frame =
                own_line(&block.stack).map(|line| format!(" in {}", frame_text(line))).unwrap_or_default();
            format!("{} of {}{frame}", block.size, name.unwrap_or_else(|| "an earlier run".to_owned()))
        });
        let blocks: Vec<String> = blocks.collect();
        // `blocks` lists only the largest blocks of a segment with many.
        let more = segment.block_count.saturating_sub(blocks.len() as u64);
        let more = if more > 0 { format!(" and {} more", grouped(more)) } else { String::new() };
        let text = format!(
            "{} with {} free, the largest hole {}: kept by {}{more}",
            segment.size,
            segment.free,
            segment.largest_free,
            blocks.join(", ")
        );
        view! { <li>{text}</li> }.into_any()
    });
    let items = items.collect::<Vec<_>>();
    view! {
        <h3>"What is in the way"</h3>
        {drawn}
        {has_freed.then_some(view! {
            <p class="quiet" data-testid="freed">"With the dashed blocks freed before, the request passes."</p>
        })}
        <details><summary>"The same in words"</summary><ul class="quiet" data-testid="pinned">{items}</ul></details>
    }
    .into_any()
}

/// The requests whose tensors a change frees, and the blocks from before the recording, counted from 1.
type FreedBlocks = (Vec<u64>, Vec<u64>);

fn freed_by(change: &ChangeKind) -> Option<FreedBlocks> {
    match change {
        ChangeKind::FreeTensors { requests, earlier, .. } => Some((requests.clone(), earlier.clone())),
        _ => None,
    }
}

fn is_among((requests, earlier): &FreedBlocks, block: &PinningBlock) -> bool {
    let is_in = |freed: &[u64], number: Option<u64>| number.is_some_and(|number| freed.contains(&number));
    is_in(requests, block.request) || is_in(earlier, block.earlier)
}

fn row(segment: &PinnedSegment, freed: &FreedBlocks) -> PinnedRow {
    // No block begins before its segment.
    let blocks = segment.blocks.iter().map(|block| PinnedBlock {
        offset: Bytes::new(block.addr.get().saturating_sub(segment.addr.get())),
        size: block.size,
        name: block.name.clone().unwrap_or_default(),
        is_freed: is_among(freed, block),
    });
    PinnedRow { size: segment.size, largest_free: segment.largest_free, blocks: blocks.collect() }
}

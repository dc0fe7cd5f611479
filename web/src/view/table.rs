//! The segment map as a table, for readers who use a screen reader or want to copy values.

use blockyard_figure::{SegmentRow, breakdown_text, map_table, timeline_text};
use blockyard_record::PoolId;
use leptos::prelude::*;

use crate::browser::Delay;
use crate::effect::effect;
use crate::numbers::grouped_signed;
use crate::session::Session;
use crate::view::kit::text;

/// The table is made again when the cursor has rested for this long.
const REST_MILLIS: i32 = 180;
/// The most segments, and blocks in all, that the table has.
const MAX_SEGMENTS: usize = 100;
const MAX_BLOCKS: usize = 400;

pub(crate) fn table(session: Session) -> AnyView {
    // Nobody can read a table that changes sixty times a second, so it waits until the cursor rests.
    let rests = RwSignal::new(0_u32);
    let delay = Delay::new();
    effect(move || {
        session.run.track();
        session.player.track();
        delay.start(REST_MILLIS, move || {
            // The table may have been removed while the timer ran.
            let _ = rests.try_update(|rests| *rests = rests.wrapping_add(1));
        });
    });
    let rows = Memo::new(move |_| {
        rests.track();
        session.with_state_now(|run, state| map_table(state, &run.recording)).unwrap_or_default()
    });
    let breakdown = text(move || {
        session.with_state(|run, state| breakdown_text(state, &run.recording)).unwrap_or_default()
    });
    let timeline = Memo::new(move |_| {
        let run = session.run.get();
        timeline_text(&run.series, &run.recording)
    });
    view! {
        <div class="pad" data-testid="table">
            <h2>"Memory of the device"</h2>
            <p>{breakdown}</p>
            <h2>"Over time"</h2>
            <p>{text(move || timeline.get())}</p>
            {move || rows.with(|rows| segments(rows))}
        </div>
    }
    .into_any()
}

fn segments(rows: &[SegmentRow]) -> AnyView {
    let mut room = MAX_BLOCKS;
    let mut bodies = Vec::new();
    for row in rows.iter().take(MAX_SEGMENTS) {
        if room == 0 {
            break;
        }
        bodies.push(segment(row, room));
        // The last segment may have more blocks than there is room for.
        room = room.saturating_sub(row.blocks.len());
    }
    let hidden = rows.len() - bodies.len();
    let rest = (hidden > 0).then(|| {
        view! { <p class="quiet">{format!("and {hidden} more segments, which the map shows")}</p> }.into_any()
    });
    view! {
        <div class="scroll-x" tabindex="0" role="group" aria-label="Segments and blocks">
            <table>
                <caption>"Segments and their blocks"</caption>
                <thead>
                    <tr>
                        <th scope="col">"Block"</th>
                        <th scope="col">"State"</th>
                        <th scope="col">"Size"</th>
                        <th scope="col">"Requested"</th>
                        <th scope="col">"Offset"</th>
                    </tr>
                </thead>
                {bodies}
            </table>
        </div>
        {rest}
    }
    .into_any()
}

fn segment(row: &SegmentRow, room: usize) -> AnyView {
    let private = match row.pool_id {
        PoolId::DEFAULT => String::new(),
        pool => format!(", memory pool {pool}"),
    };
    let title = format!(
        "Segment {} at {}: {}, {} pool, {}{private}",
        row.segment, row.addr, row.size, row.pool, row.stream_name
    );
    let blocks = row
        .blocks
        .iter()
        .take(room)
        .map(|block| {
            view! {
                <tr>
                    <td>{block.name.clone()}</td>
                    <td>{block.state}</td>
                    <td title=grouped_signed(block.size.signed())>{block.size.to_string()}</td>
                    <td title=grouped_signed(block.requested.signed())>{block.requested.to_string()}</td>
                    <td>{block.offset.to_string()}</td>
                </tr>
            }
            .into_any()
        })
        .collect::<Vec<_>>();
    let hidden = row.blocks.len().saturating_sub(room);
    let rest = (hidden > 0).then(|| {
        view! { <tr><td colspan="5" class="quiet">{format!("and {hidden} more blocks")}</td></tr> }.into_any()
    });
    view! {
        <tbody>
            <tr><th scope="rowgroup" colspan="5">{title}</th></tr>
            {blocks}
            {rest}
        </tbody>
    }
    .into_any()
}

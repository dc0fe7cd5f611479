//! The least memory that any allocator needs for the run, beside a planned layout that is drawn as address
//! over time.

use blockyard_figure::{PlacedBlock, PlannedLayout, planned_layout};
use blockyard_lab::Bound;
use blockyard_record::{Bytes, grouped};
use leptos::prelude::*;

use super::parts::{figure_over_requests, files, table};
use crate::lab::{Cell, Sheet};
use crate::ptr_eq::PtrEq;
use crate::session::Session;

const HEIGHT_PX: f32 = 300.0;

pub(super) fn bound(session: Session, bound: &PtrEq<Bound>) -> AnyView {
    let run = session.run.get_untracked();
    let reserved = run.series.peaks().1;
    let least = bound.lower_bound;
    let plan = planned(bound, reserved);
    let label = format!("A planned layout of {} allocations, address over time", bound.layout.len());
    let extent = (plan.requests, HEIGHT_PX);
    let drawn = figure_over_requests(session, "lab-layout", label, extent, move |part, size| {
        planned_layout(&plan, part, size)
    });
    view! {
        <section aria-label="Answer" data-testid="answer-bound">
            <p>
                {format!(
                    "{least} are allocated at request {}. A layout that knows every lifetime beforehand needs {}; this run reserves {reserved}.",
                    grouped(bound.request),
                    bound.layout_peak,
                )}
            </p>
            {table("Bounds", &bounds_sheet(bound, reserved), &[])}
            {drawn}
            <p class="quiet">
                "Each block from its request to its end, at the place where the plan puts it. Streams share memory here, which a program would have to wait for."
            </p>
            {files(session, "bound", layout_sheet(bound))}
        </section>
    }
    .into_any()
}

/// The bound, the planned layout and this run, each with its distance from the bound.
fn bounds_sheet(bound: &Bound, reserved: Bytes) -> Sheet {
    let least = bound.lower_bound;
    let rows = [
        ("allocated bytes at their peak: no allocator needs less", least),
        ("a planned layout", bound.layout_peak),
        ("reserved by this run", reserved),
    ];
    let rows = rows.map(|(name, bytes)| {
        // Sizes of device memory are far below 2^63 bytes, so the difference does not overflow.
        let change = bytes.signed().saturating_sub(least.signed());
        vec![
            Cell::text(name),
            Cell::Bytes(bytes),
            if change == 0 { Cell::Nothing } else { Cell::Change(change) },
        ]
    });
    Sheet { head: vec!["", "bytes", "above the bound"], rows: rows.to_vec() }
}

/// The planned layout, a row for each allocation.
fn layout_sheet(bound: &Bound) -> Sheet {
    let rows = bound.layout.iter().map(|placed| {
        vec![
            Cell::Count(placed.request),
            Cell::Count(placed.until),
            Cell::Bytes(placed.offset),
            Cell::Bytes(placed.size),
        ]
    });
    Sheet { head: vec!["request", "until", "offset", "size"], rows: rows.collect() }
}

/// The planned layout as the figure draws it.
fn planned(bound: &Bound, reserved: Bytes) -> PlannedLayout {
    // Requests are counted from 1, and the figure counts from 0.
    let blocks = bound.layout.iter().map(|placed| PlacedBlock {
        from: placed.request.saturating_sub(1),
        until: placed.until.saturating_sub(1),
        offset: placed.offset,
        size: placed.size,
    });
    let requests = bound.layout.iter().map(|placed| placed.until).max().unwrap_or(1);
    PlannedLayout {
        blocks: blocks.collect(),
        requests,
        lower_bound: bound.lower_bound,
        reserved: Some(reserved),
    }
}

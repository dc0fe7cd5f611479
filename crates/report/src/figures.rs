//! The figures: memory over time, and the segments at one moment.

use std::fmt::Write as _;

use blockyard_figure::{
    BreakdownClass, Changes, Scene, Series, Size, Stage, StageView, Theme, TimelineView, breakdown_text,
    timeline, timeline_cursor, timeline_text,
};
use blockyard_record::{Bytes, PoolId, Recording, grouped};

use crate::html::{escaped, share, two_sizes};
use crate::moment::{Moment, MomentKind};

/// Figures are laid out for a screen or a sheet of paper, and for a phone; the style shows one of the two.
const WIDE: Size = Size::new(960.0, 300.0);
const NARROW: Size = Size::new(360.0, 240.0);

pub(crate) fn write(
    out: &mut String,
    recording: &Recording,
    series: &Series,
    moment: &Moment,
    pool_name: &dyn Fn(PoolId) -> Option<String>,
) {
    out.push_str("<h3>Memory over time</h3>\n");
    if moment.kind == MomentKind::Only {
        out.push_str(
            "<p>The snapshot has no trace, so only the moment at which it was taken is known. \
             <code>torch.cuda.memory._record_memory_history()</code> switches the trace on.</p>\n",
        );
    } else {
        let words = timeline_text(series, recording);
        figure(out, "Memory over time", &words, &caption(recording, moment), &|size| {
            over_time(recording, series, moment, size)
        });
    }
    let _ = writeln!(out, "<h3>Segments {}</h3>", moment.when());
    let last = moment.steps.checked_sub(1);
    let bounds = last.and_then(|step| recording.step(step));
    let changes = bounds.map_or_else(Changes::default, |step| Changes::of(recording, step.start, step.end));
    let stage = Stage::new(&moment.state, recording, &changes, last, pool_name);
    let words = breakdown_text(&moment.state, recording);
    figure(out, "Segments", &words, SEGMENTS, &|size| {
        let view = StageView { is_patterned: true, ..StageView::default() };
        stage.scene(&view, size.width_px)
    });
    classes(out, moment, recording.known_capacity());
}

const SEGMENTS: &str = "The bar is the device, the brackets above are what is reserved and allocated. Below, on the same ruler, stand \
                        the segments with their blocks.";

fn over_time(recording: &Recording, series: &Series, moment: &Moment, size: Size) -> Scene {
    let view = TimelineView::fit(recording.step_count());
    let mut scene = timeline(series, recording, &view, None, size);
    let cursor = timeline_cursor(Some(recording), &scene, &view, None, moment.steps);
    scene.marks.extend(cursor.marks);
    scene
}

fn caption(recording: &Recording, moment: &Moment) -> String {
    let what = match moment.kind {
        MomentKind::OutOfMemory => "the first request that ran out of memory",
        _ => "the moment when most bytes were allocated",
    };
    let (step, all) = (grouped(moment.steps as u64), grouped(recording.step_count() as u64));
    format!("The thick vertical line marks {what}: step {step} of {all}. A step is one request.")
}

/// One drawing in two widths.
fn figure(out: &mut String, title: &str, words: &str, caption: &str, draw: &dyn Fn(Size) -> Scene) {
    out.push_str("<figure>\n");
    for (class, size) in [("wide", WIDE), ("narrow", NARROW)] {
        let svg = draw(size).to_svg(Theme::Page, title, words);
        let _ = writeln!(out, "<div class=\"{class}\">{svg}</div>");
    }
    let _ = writeln!(out, "<figcaption>{}</figcaption>\n</figure>", escaped(caption));
}

/// Every byte of the device in one class.
fn classes(out: &mut String, moment: &Moment, capacity: Option<Bytes>) {
    let breakdown = moment.state.breakdown();
    let reserved = breakdown.reserved();
    out.push_str(
        "<table class=\"numbers\">\n<thead><tr><th>Bytes</th><th>of reserved</th><th>Class</th></tr></thead>\n<tbody>\n",
    );
    let sums = [("allocated", breakdown.allocated()), ("reserved", reserved)];
    let classes = BreakdownClass::ALL.into_iter().filter(|class| *class != BreakdownClass::Free);
    let classes: Vec<_> = classes.map(|class| (class, class.bytes(&breakdown))).collect();
    for (class, bytes) in classes {
        let meaning = escaped(class.meaning());
        let name = format!("<strong>{}</strong> <span class=\"quiet\">{meaning}</span>", class.name());
        row(out, bytes, &share(bytes, reserved), &name);
    }
    for (name, bytes) in sums {
        row(out, bytes, &share(bytes, reserved), &format!("<strong>{name}</strong>"));
    }
    if let Some(capacity) = capacity {
        row(out, capacity, "", "<strong>memory of the device</strong>");
    }
    out.push_str("</tbody>\n</table>\n");
}

/// A row whose first cell has the bytes; `what` is HTML.
pub(crate) fn row(out: &mut String, bytes: Bytes, share: &str, what: &str) {
    let _ = writeln!(
        out,
        "<tr><td class=\"bytes\">{}</td><td>{}</td><td class=\"what\">{what}</td></tr>",
        two_sizes(bytes),
        escaped(share)
    );
}

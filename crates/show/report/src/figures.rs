//! The figures: memory over time, and the segments at one moment.

use std::fmt::Write as _;

use blockyard_figure::{
    BreakdownClass, Changes, Role, Scene, Series, Size, Stage, StageView, Theme, TimelineView,
    breakdown_text, timeline, timeline_cursor, timeline_line, timeline_plot, timeline_text,
};
use blockyard_record::{Bytes, PoolId, Recording, grouped};

use crate::html::{escaped, percent, two_sizes};
use crate::moment::{Moment, MomentKind};

/// Figures are laid out for a screen or a sheet of paper, and for a phone; the style shows one of the two.
const SIZES: [(&str, Size); 2] = [("wide", Size::new(960.0, 300.0)), ("narrow", Size::new(360.0, 240.0))];

/// The figures of one device.
pub(crate) struct DeviceFigures<'a> {
    /// The number of the device in the report.
    pub(crate) device_index: usize,
    pub(crate) recording: &'a Recording,
    pub(crate) series: &'a Series,
    pub(crate) moment: &'a Moment,
    /// The first and the last step of the growth from iteration to iteration; `None` without growth.
    pub(crate) grows: Option<(usize, usize)>,
}

pub(crate) fn write(
    out: &mut String,
    shown: &DeviceFigures<'_>,
    pool_name: &dyn Fn(PoolId) -> Option<String>,
) {
    let DeviceFigures { recording, series, moment, .. } = *shown;
    let _ = writeln!(out, "<h3 id=\"over-time-{}\">Memory over time</h3>", shown.device_index);
    if moment.kind == MomentKind::Only {
        out.push_str(
            "<p>The snapshot has no trace, so only the moment at which it was taken is known. \
             <code>torch.cuda.memory._record_memory_history()</code> switches the trace on.</p>\n",
        );
    } else {
        let words = timeline_text(series, recording);
        write_figure(out, "Memory over time", &words, &caption(shown), &SIZES, &|size| {
            over_time(shown, size)
        });
    }
    let _ = writeln!(out, "<h3 id=\"segments-{}\">Segments {}</h3>", shown.device_index, moment.when());
    let last = moment.steps.checked_sub(1);
    let bounds = last.and_then(|step| recording.step(step));
    let changes = bounds.map_or_else(Changes::default, |step| Changes::of(recording, step.start, step.end));
    let stage = Stage::new(&moment.state, recording, &changes, last, pool_name)
        .with_limit(series.process_limit(moment.steps));
    let words = breakdown_text(&moment.state, recording);
    write_figure(out, "Segments", &words, SEGMENTS, &SIZES, &|size| {
        let view = StageView::default();
        stage.scene(&view, size.width_px)
    });
    write_classes(out, moment, recording.known_capacity());
}

const SEGMENTS: &str = "The bar is the device, the brackets above are what is reserved and allocated. Below, on \
                        the same ruler, are the segments with their blocks.";

fn over_time(shown: &DeviceFigures<'_>, size: Size) -> Scene {
    let DeviceFigures { recording, series, moment, .. } = *shown;
    let view = TimelineView::fit(recording.step_count());
    let mut scene = timeline(series, recording, &view, None, size);
    let plot = timeline_plot(series, size);
    let cursor = timeline_cursor(Some(recording), &scene, &plot, &view, None, moment.steps);
    scene.marks.extend(cursor.marks);
    for step in shown.grows.iter().flat_map(|(first, last)| [*first, *last]) {
        timeline_line(&mut scene, &view, None, step, Role::Selection, &plot);
    }
    scene
}

fn caption(shown: &DeviceFigures<'_>) -> String {
    let DeviceFigures { recording, moment, .. } = *shown;
    let what = match moment.kind {
        MomentKind::OutOfMemory => "the first request that ran out of memory",
        _ => "the moment when most bytes were allocated",
    };
    let (step, all) = (grouped(moment.steps), grouped(recording.step_count()));
    let grows = shown.grows.map_or_else(String::new, |(first, last)| {
        format!(
            " The dashed lines mark the first and the last allocation of what grows most: requests {} and {}.",
            grouped(first),
            grouped(last)
        )
    });
    format!("The thick vertical line marks {what}: request {step} of {all}.{grows}")
}

/// Writes a drawing in two widths, each with the class of the style that shows this width.
pub(crate) fn write_figure(
    out: &mut String,
    title: &str,
    words: &str,
    caption: &str,
    sizes: &[(&str, Size)],
    draw: &dyn Fn(Size) -> Scene,
) {
    out.push_str("<figure>\n");
    for (class, size) in sizes {
        let svg = draw(*size).to_svg(Theme::Page, title, words);
        let _ = writeln!(out, "<div class=\"{class}\">{svg}</div>");
    }
    let _ = writeln!(out, "<figcaption>{}</figcaption>\n</figure>", escaped(caption));
}

/// Every byte of the device in one class.
fn write_classes(out: &mut String, moment: &Moment, capacity: Option<Bytes>) {
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
        write_row(out, bytes, &percent(bytes, reserved), &name);
    }
    for (name, bytes) in sums {
        write_row(out, bytes, &percent(bytes, reserved), &format!("<strong>{name}</strong>"));
    }
    if let Some(capacity) = capacity {
        write_row(out, capacity, "", "<strong>memory of the device</strong>");
    }
    out.push_str("</tbody>\n</table>\n");
}

/// A row whose first cell has the bytes; `what` is HTML.
pub(crate) fn write_row(out: &mut String, bytes: Bytes, share: &str, what: &str) {
    let _ = writeln!(
        out,
        "<tr><td class=\"bytes\">{}</td><td>{}</td><td class=\"what\">{what}</td></tr>",
        two_sizes(bytes),
        escaped(share)
    );
}

//! `blockyard autopsy`: why a run went out of memory, as text and as JSON.

use std::fmt::Write as _;

use blockyard_answers::{AutopsyAnswer, PinnedSegment};
use blockyard_lab::{Autopsy, Run, autopsy as ask, request_text};
use blockyard_record::{StreamId, counted, frame_text, grouped, own_line};

use super::{ConfOptions, QuestionReply, add_notes};
use crate::exit_status::ExitStatus;
use crate::progress::Bar;

/// How many pinned segments and changes the text shows; JSON has all.
const MAX_ROWS: usize = 5;

pub(crate) fn answer(run: &Run, bar: &Bar, options: &ConfOptions) -> anyhow::Result<QuestionReply> {
    let conditions = options.of_run(run);
    let found = ask(run, &conditions, &mut |progress| bar.report(&progress))?;
    let (text, status) = match &found {
        Some(found) => (text(found), ExitStatus::Negative),
        None => ("does not go out of memory\n".to_owned(), ExitStatus::Positive),
    };
    let json = match found {
        Some(found) => AutopsyAnswer {
            conf: conditions.conf,
            cause: Some(found.cause),
            limit: Some(found.limit),
            notes: found.notes,
            failure: Some(found.failure),
        },
        None => AutopsyAnswer {
            limit: run.limit_under(&conditions),
            conf: conditions.conf,
            cause: None,
            notes: run.notes(),
            failure: None,
        },
    };
    Ok(QuestionReply { text, json: json.into(), status })
}

fn text(found: &Autopsy) -> String {
    let failure = &found.failure;
    let request = &failure.request;
    let stream = if request.stream == StreamId::DEFAULT {
        String::new()
    } else {
        format!(" on stream {}", request.stream)
    };
    let name = request.name.as_ref().map_or_else(String::new, |name| format!(" for {name}"));
    let mut text =
        format!("{}, {}{name}{stream}: out of memory\n", request_text(request.request), request.size);
    let _ = writeln!(text, "  cause: {}", failure.sentence);
    if let Some(line) = own_line(&request.stack) {
        let _ = writeln!(text, "  asked for in {}", frame_text(line));
    }
    let memory = &failure.memory;
    let _ = writeln!(
        text,
        "  reserved {}: allocated {}, cached here {} (largest block {}), on other streams {}, in other pools {}",
        memory.reserved,
        memory.allocated,
        memory.cached_here,
        memory.largest_cached_here,
        memory.cached_other_streams,
        memory.cached_other_pools
    );
    for segment in failure.pinned_by.iter().take(MAX_ROWS) {
        pins(&mut text, segment);
    }
    let more = failure.pinned_by.len().saturating_sub(MAX_ROWS);
    if more > 0 {
        let _ = writeln!(text, "    and {more} more segments");
    }
    for change in &failure.changes {
        let _ = writeln!(text, "  helps, proved by a replay: {}", change.sentence);
    }
    for change in &failure.in_vain {
        let tried = if change.depends_on_limit { "not sure" } else { "tried without success" };
        let _ = writeln!(text, "  {tried}: {}", change.sentence);
    }
    add_notes(&mut text, &found.notes);
    text
}

fn pins(text: &mut String, segment: &PinnedSegment) {
    let _ = writeln!(
        text,
        "  pinned: a segment of {} with {} free, by {} allocated in {}",
        segment.size,
        segment.free,
        segment.live,
        counted(segment.block_count, "block"),
    );
    for block in segment.blocks.iter().take(3) {
        let request = match (block.request, block.earlier) {
            (Some(request), _) => format!(" of request {}", grouped(request)),
            (None, Some(_)) => " from before the recording".to_owned(),
            (None, None) => String::new(),
        };
        let name = block.name.as_ref().map_or_else(String::new, |name| format!(", {name}"));
        let frame = own_line(&block.stack).map_or_else(String::new, |line| format!(", {}", frame_text(line)));
        let _ = writeln!(text, "    {}{request}{name}{frame}", block.size);
    }
}

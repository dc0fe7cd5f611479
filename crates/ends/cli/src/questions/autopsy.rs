//! `blockyard autopsy`: why a run went out of memory, as text and as JSON.

use std::fmt::Write as _;
use std::process::ExitCode;

use anyhow::bail;
use blockyard_answers::{
    AutopsyAnswer, AutopsyFailure, ChangeAnswer, ChangeKindAnswer, ChangeValue, FailedAllocationAnswer,
    MemoryAtFailureAnswer, OomCauseAnswer, PinnedSegmentAnswer, PinningBlockAnswer,
};
use blockyard_lab::{Autopsy, Change, ChangeKind, PinnedSegment, Run, autopsy as ask};
use blockyard_record::{OomCause, PoolId, StreamId, frame_text, grouped, own_line};

use super::{AutopsyQuestion, FileOptions, QuestionReply, each, limit_json};
use crate::exit_status::ExitStatus;
use crate::progress::Bar;

/// How many pinned segments and changes the text shows; JSON has all.
const MAX_ROWS: usize = 5;

pub(crate) fn autopsy(options: &FileOptions<AutopsyQuestion>) -> anyhow::Result<ExitCode> {
    each(&options.files, options.json, |run, bar| answer(run, bar, &options.question))
}

pub(super) fn answer(run: &Run, bar: &Bar, options: &AutopsyQuestion) -> anyhow::Result<QuestionReply> {
    let conditions = options.conditions.of_run_with(run, options.conf.as_deref());
    let found = ask(run, &conditions, &mut |progress| bar.report(&progress))?;
    let Some(found) = found else {
        let json = AutopsyAnswer {
            cause: None,
            limit: run.limit_under(&conditions).map(limit_json),
            conf: conditions.conf,
            notes: run.notes().to_vec(),
            failure: None,
        };
        let text = "does not go out of memory\n".to_owned();
        return Ok(QuestionReply { json: json.into(), text, status: ExitStatus::Positive });
    };
    Ok(QuestionReply {
        text: text(&found),
        json: to_json(found, conditions.conf)?.into(),
        status: ExitStatus::Negative,
    })
}

fn to_json(found: Autopsy, conf: String) -> anyhow::Result<AutopsyAnswer> {
    let Autopsy { failed: request, memory, .. } = found;
    Ok(AutopsyAnswer {
        conf,
        cause: Some(cause_json(found.cause)?),
        limit: Some(limit_json(found.limit)),
        notes: found.notes,
        failure: Some(AutopsyFailure {
            sentence: found.sentence,
            request: FailedAllocationAnswer {
                request: request.number,
                allocations_before: request.allocations_before,
                size: request.size.get(),
                rounded: request.rounded.get(),
                segment_size: request.segment_size.get(),
                stream: request.stream.get(),
                pool_id: pool_json(request.pool_id),
                pool: request.pool.to_string(),
                name: request.name,
                stack: request.stack,
            },
            memory: MemoryAtFailureAnswer {
                reserved: memory.reserved.get(),
                allocated: memory.allocated.get(),
                live: memory.live.get(),
                pending: memory.pending.get(),
                cached_here: memory.cached_on_stream.get(),
                largest_cached_here: memory.largest_cached_on_stream.get(),
                cached_other_streams: memory.cached_other_streams.get(),
                cached_other_pools: memory.cached_other_pools.get(),
            },
            pinned_by: found.pinned_by.into_iter().map(pinned_json).collect(),
            changes: found.changes.into_iter().map(change_json).collect(),
            in_vain: found.unhelpful_changes.into_iter().map(change_json).collect(),
        }),
    })
}

/// The cause as JSON.
pub(super) fn cause_json(cause: OomCause) -> anyhow::Result<OomCauseAnswer> {
    Ok(match cause {
        OomCause::RequestAboveLimit => OomCauseAnswer::RequestAboveLimit,
        OomCause::LiveBytesAtLimit => OomCauseAnswer::LiveBytesAtLimit,
        OomCause::FragmentationByLiveBlocks => OomCauseAnswer::FragmentationByLiveBlocks,
        OomCause::CachedInAnotherStream => OomCauseAnswer::CachedInAnotherStream,
        OomCause::CachedInPrivatePool => OomCauseAnswer::CachedInPrivatePool,
        OomCause::WaitingForAnotherStream => OomCauseAnswer::WaitingForAnotherStream,
        OomCause::PoolNotSearchedAgain => OomCauseAnswer::PoolNotSearchedAgain,
        OomCause::RoundingBySetting => OomCauseAnswer::RoundingBySetting,
        OomCause::MemoryOfOthers => OomCauseAnswer::MemoryOfOthers,
        // A new cause must get a name in the JSON of answers before it can be printed.
        _ => bail!("the cause {cause:?} has no name in the JSON of answers"),
    })
}

fn pool_json(pool: PoolId) -> (u64, u64) {
    (pool.capture.into(), pool.user.into())
}

fn pinned_json(segment: PinnedSegment) -> PinnedSegmentAnswer {
    let blocks = segment.blocks.into_iter().map(|block| PinningBlockAnswer {
        addr: block.addr.get(),
        size: block.size.get(),
        request: block.request,
        name: block.name,
        stack: block.stack,
    });
    PinnedSegmentAnswer {
        addr: segment.addr.get(),
        size: segment.size.get(),
        stream: segment.stream.get(),
        pool_id: pool_json(segment.pool_id),
        pool: segment.pool.to_string(),
        free: segment.free.get(),
        largest_free: segment.largest_free.get(),
        live: segment.live.get(),
        block_count: segment.block_count,
        blocks: blocks.collect(),
    }
}

fn change_json(change: Change) -> ChangeAnswer {
    let (kind, value) = match change.kind {
        ChangeKind::Setting(conf) => (ChangeKindAnswer::Setting, Some(ChangeValue::Setting(conf))),
        ChangeKind::FreeTensors { requests, bytes } => {
            (ChangeKindAnswer::FreeTensors, Some(ChangeValue::Tensors { requests, bytes: bytes.get() }))
        }
        ChangeKind::DefaultPool => (ChangeKindAnswer::DefaultPool, None),
        ChangeKind::OneStream => (ChangeKindAnswer::OneStream, None),
        ChangeKind::Synchronize => (ChangeKindAnswer::Synchronize, None),
        ChangeKind::Limit(limit) => (ChangeKindAnswer::Limit, Some(ChangeValue::Limit(limit.get()))),
    };
    ChangeAnswer {
        kind,
        value,
        proved: change.is_proved,
        depends_on_limit: change.depends_on_limit,
        sentence: change.sentence,
    }
}

fn text(found: &Autopsy) -> String {
    let request = &found.failed;
    let stream = if request.stream == StreamId::DEFAULT {
        String::new()
    } else {
        format!(" on stream {}", request.stream)
    };
    let name = request.name.as_ref().map_or_else(String::new, |name| format!(" for {name}"));
    let mut text =
        format!("request {}, {}{name}{stream}: out of memory\n", grouped(request.number), request.size);
    let _ = writeln!(text, "  cause: {}", found.sentence);
    if let Some(line) = own_line(&request.stack) {
        let _ = writeln!(text, "  asked for in {}", frame_text(line));
    }
    let memory = &found.memory;
    let _ = writeln!(
        text,
        "  reserved {}: live {}, cached here {} (largest block {}), on other streams {}, in other pools {}",
        memory.reserved,
        memory.allocated,
        memory.cached_on_stream,
        memory.largest_cached_on_stream,
        memory.cached_other_streams,
        memory.cached_other_pools
    );
    for segment in found.pinned_by.iter().take(MAX_ROWS) {
        pins(&mut text, segment);
    }
    let more = found.pinned_by.len().saturating_sub(MAX_ROWS);
    if more > 0 {
        let _ = writeln!(text, "    and {more} more segments");
    }
    for change in &found.changes {
        let _ = writeln!(text, "  helps, proved by a replay: {}", change.sentence);
    }
    for change in &found.unhelpful_changes {
        let tried = if change.depends_on_limit { "not sure" } else { "tried without success" };
        let _ = writeln!(text, "  {tried}: {}", change.sentence);
    }
    for note in &found.notes {
        let _ = writeln!(text, "  note: {note}");
    }
    text
}

fn pins(text: &mut String, segment: &PinnedSegment) {
    let _ = writeln!(
        text,
        "  pinned: a segment of {} with {} free, by {} live in {} {}",
        segment.size,
        segment.free,
        segment.live,
        grouped(segment.block_count),
        if segment.block_count == 1 { "block" } else { "blocks" },
    );
    for block in segment.blocks.iter().take(3) {
        let request =
            block.request.map_or_else(String::new, |request| format!(" of request {}", grouped(request)));
        let name = block.name.as_ref().map_or_else(String::new, |name| format!(", {name}"));
        let frame = own_line(&block.stack).map_or_else(String::new, |line| format!(", {}", frame_text(line)));
        let _ = writeln!(text, "    {}{request}{name}{frame}", block.size);
    }
}

use std::fmt::Write as _;
use std::process::ExitCode;

use blockyard_lab::{Autopsy, Change, ChangeKind, PinnedSegment, Run, autopsy as ask};
use blockyard_record::{PoolId, StreamId, frame_words, grouped, own_line};
use serde_json::{Value, json};

use super::{Answer, Status, each, limit_json};
use crate::options::AutopsyOptions;
use crate::progress::Bar;

/// How many pinned segments and changes people see; JSON has all.
const SHOWN: usize = 5;

pub(crate) fn autopsy(options: &AutopsyOptions) -> anyhow::Result<ExitCode> {
    each(&options.files, options.json, |run, bar| answer(run, bar, options))
}

pub(super) fn answer(run: &Run, bar: &Bar, options: &AutopsyOptions) -> anyhow::Result<Answer> {
    let conditions = options.limits.conditions_with(run, options.conf.as_deref());
    let found = ask(run, &conditions, &mut |progress| bar.report(&progress))?;
    let Some(found) = found else {
        let limit = limit_json(run.limit_under(&conditions));
        let json = json!({
            "question": "autopsy", "conf": conditions.conf, "cause": null, "limit": limit, "notes": run.notes(),
        });
        return Ok(Answer { json, text: "does not go out of memory\n".to_owned(), status: Status::Fine });
    };
    Ok(Answer { json: to_json(&found, &conditions.conf), text: text(&found), status: Status::Found })
}

fn to_json(found: &Autopsy, conf: &str) -> Value {
    let request = &found.request;
    let memory = &found.memory;
    json!({
        "question": "autopsy",
        "conf": conf,
        "cause": found.cause,
        "sentence": found.sentence,
        "request": {
            "request": request.request,
            "allocations_before": request.allocations_before,
            "size": request.size.get(),
            "rounded": request.rounded.get(),
            "segment_size": request.segment_size.get(),
            "stream": request.stream.get(),
            "pool_id": pool(request.pool_id),
            "pool": request.pool.to_string(),
            "name": request.name,
            "stack": request.stack,
        },
        "limit": limit_json(Some(found.limit)),
        "memory": {
            "reserved": memory.reserved.get(),
            "allocated": memory.allocated.get(),
            "live": memory.live.get(),
            "pending": memory.pending.get(),
            "cached_here": memory.cached_here.get(),
            "largest_cached_here": memory.largest_cached_here.get(),
            "cached_other_streams": memory.cached_other_streams.get(),
            "cached_other_pools": memory.cached_other_pools.get(),
        },
        "pinned_by": found.pinned_by.iter().map(pinned_json).collect::<Vec<_>>(),
        "changes": found.changes.iter().map(change_json).collect::<Vec<_>>(),
        "in_vain": found.in_vain.iter().map(change_json).collect::<Vec<_>>(),
        "notes": found.notes,
    })
}

fn pool(pool: PoolId) -> Value {
    json!([pool.capture, pool.user])
}

fn pinned_json(segment: &PinnedSegment) -> Value {
    let blocks = segment.blocks.iter().map(|block| {
        json!({
            "addr": block.addr.get(),
            "size": block.size.get(),
            "request": block.request,
            "name": block.name,
            "stack": block.stack,
        })
    });
    json!({
        "addr": segment.addr.get(),
        "size": segment.size.get(),
        "stream": segment.stream.get(),
        "pool_id": pool(segment.pool_id),
        "pool": segment.pool.to_string(),
        "free": segment.free.get(),
        "largest_free": segment.largest_free.get(),
        "live": segment.live.get(),
        "block_count": segment.block_count,
        "blocks": blocks.collect::<Vec<_>>(),
    })
}

fn change_json(change: &Change) -> Value {
    let (kind, value) = match &change.kind {
        ChangeKind::Setting(conf) => ("setting", json!(conf)),
        ChangeKind::FreeTensors { requests, bytes } => {
            ("free_tensors", json!({"requests": requests, "bytes": bytes.get()}))
        }
        ChangeKind::DefaultPool => ("default_pool", Value::Null),
        ChangeKind::OneStream => ("one_stream", Value::Null),
        ChangeKind::Synchronize => ("synchronize", Value::Null),
        ChangeKind::Limit(limit) => ("limit", json!(limit.get())),
    };
    json!({
        "kind": kind,
        "value": value,
        "proved": change.proved,
        "depends_on_limit": change.depends_on_limit,
        "sentence": change.sentence,
    })
}

fn text(found: &Autopsy) -> String {
    let request = &found.request;
    let stream = if request.stream == StreamId::DEFAULT {
        String::new()
    } else {
        format!(" on stream {}", request.stream)
    };
    let name = request.name.as_ref().map_or_else(String::new, |name| format!(" for {name}"));
    let mut text =
        format!("request {}, {}{name}{stream}: out of memory\n", grouped(request.request), request.size);
    let _ = writeln!(text, "  cause: {}", found.sentence);
    if let Some(line) = own_line(&request.stack) {
        let _ = writeln!(text, "  asked for in {}", frame_words(line));
    }
    let memory = &found.memory;
    let _ = writeln!(
        text,
        "  reserved {}: live {}, cached here {} (largest block {}), on other streams {}, in other pools {}",
        memory.reserved,
        memory.allocated,
        memory.cached_here,
        memory.largest_cached_here,
        memory.cached_other_streams,
        memory.cached_other_pools
    );
    for segment in found.pinned_by.iter().take(SHOWN) {
        pins(&mut text, segment);
    }
    let more = found.pinned_by.len().saturating_sub(SHOWN);
    if more > 0 {
        let _ = writeln!(text, "    and {more} more segments");
    }
    for change in &found.changes {
        let _ = writeln!(text, "  helps, proved by a replay: {}", change.sentence);
    }
    for change in &found.in_vain {
        let tried = if change.depends_on_limit { "not sure" } else { "tried in vain" };
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
        let frame =
            own_line(&block.stack).map_or_else(String::new, |line| format!(", {}", frame_words(line)));
        let _ = writeln!(text, "    {}{request}{name}{frame}", block.size);
    }
}

//! `blockyard compare-allocators`: the run through other allocators, as text and as JSON.

use std::time::Instant;

use blockyard_answers::{AllocatorRow, AllocatorsAnswer, Limit};
use blockyard_lab::{Run, compare_allocators};
use blockyard_record::grouped;

use super::{AllocatorsQuestion, QuestionReply, add_notes, requests_sentence, table};
use crate::exit_status::ExitStatus;
use crate::progress::Bar;

pub(crate) fn answer(run: &Run, bar: &Bar, options: &AllocatorsQuestion) -> anyhow::Result<QuestionReply> {
    let begin = Instant::now();
    // 64 bits of nanoseconds are enough for 584 years.
    let mut now = || u64::try_from(begin.elapsed().as_nanos()).unwrap_or(u64::MAX);
    let conditions = options.conditions.of_run(run);
    let mut rows = compare_allocators(run, &conditions, &mut now, &mut |progress| bar.report(&progress))?;
    let limit = run.limit_under(&conditions);
    if options.no_times {
        for row in &mut rows {
            row.nanos_per_request = None;
        }
    }
    let mut lines = vec![
        [
            "allocator",
            "peak reserved",
            "external",
            "internal",
            "device calls",
            "ns a request",
            "out of memory",
        ]
        .map(str::to_owned)
        .to_vec(),
    ];
    lines.extend(rows.iter().map(|row| cells(row, limit)));
    if options.no_times {
        for line in &mut lines {
            line.remove(TIMES);
        }
    }
    let json =
        AllocatorsAnswer { requests: run.request_count(), limit, allocators: rows, notes: run.notes() };
    let mut text = format!("{}\n{}", requests_sentence(run, limit), table(&lines));
    add_notes(&mut text, &json.notes);
    Ok(QuestionReply { json: json.into(), text, status: ExitStatus::Positive })
}

/// The index of the column with host times.
const TIMES: usize = 5;

fn cells(row: &AllocatorRow, limit: Option<Limit>) -> Vec<String> {
    vec![
        row.name.clone(),
        grouped(row.peak_reserved.get()),
        grouped(row.external_fragmentation.get()),
        grouped(row.internal_fragmentation.get()),
        row.device_calls.map_or_else(|| "-".to_owned(), grouped),
        row.nanos_per_request.map_or_else(|| "-".to_owned(), |nanos| format!("{nanos:.0}")),
        row.out_of_memory(limit),
    ]
}

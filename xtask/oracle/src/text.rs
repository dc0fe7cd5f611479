//! Sequences with PyTorch's answers as text, for regression tests that need no library.
//!
//! The text is a workload in the project's own language, one request a line, with comments that only this
//! module reads: `#!` for lines that are not requests, `#=` after a line for PyTorch's answer (the digest of
//! all statistics, then the reply), `#:` at the end for PyTorch's trace and its final segments.
//!
//! ```text
//! # what this is about
//! #! release 2.13
//! #! device 83886080
//! #! settings max_split_size_mb:40
//! stream s1, s2, s3
//! t0 = alloc 20971521 on s1 #= 9a3f5b2c00417e6d 0x7f0000000000
//! record_stream t0 s2 #= 9a3f5b2c00417e6d done
//! #! apply roundup_power2_divisions:4 #= 9a3f5b2c00417e6d done
//! #! pool p1 no_split use_on_oom #= 9a3f5b2c00417e6d done
//! #! enter p1 on s1 #= 9a3f5b2c00417e6d done
//! #: trace segment_alloc 0x7f0000000000 23068672 1
//! #: segment 0x7f0000000000 23068672 large stream 1 pool 0.0 sums ...
//! ```
//!
//! A text written by hand needs no answers: `cargo xtask oracle --record FILE` adds them. The first pool of a
//! capture is `c1`. A text without a release is for 2.11. Out-of-memory errors are without the advice at
//! their end, which is always the same.

use anyhow::{Context, Result, bail, ensure};
use blockyard_allocator::PoolOptions;
use blockyard_record::{Bytes, PoolId, StreamId};
use blockyard_rules::Release;
use blockyard_workload::{Request, Workload};

use crate::answer::{AnswerDifference, ReturnValue, SequenceResult, StatsAfter, entry_text, segment_text};
use crate::ours;
use crate::sequence::{Operation, Sequence};

/// The beginning of the advice at the end of every out-of-memory error.
const ADVICE: &str = " If reserved but unallocated memory is large";

/// The mark of an answer that PyTorch has not given yet.
const UNANSWERED: &str = "?";

/// How many streams a sequence has beside the default stream. Each text declares all of them, used or not.
const STREAMS: u64 = 3;

/// A sequence and PyTorch's answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Fixture {
    /// The description, line by line.
    pub notes: Vec<String>,
    /// The operations.
    pub sequence: Sequence,
    /// For each operation the digest of the statistics and the reply, in words.
    pub steps: Vec<String>,
    /// The trace entries in words.
    pub trace: Vec<String>,
    /// The final segments in words.
    pub segments: Vec<String>,
}

impl Fixture {
    /// A fixture of a sequence and PyTorch's answer, which has digests of the statistics.
    #[must_use]
    pub fn new(notes: Vec<String>, sequence: Sequence, answer: &SequenceResult) -> Self {
        let steps = answer.steps.iter().map(|step| {
            let digest = match &step.stats {
                StatsAfter::Digest(digest) => *digest,
                StatsAfter::All(words) => crate::stats::digest(words),
            };
            format!("{digest:016x} {}", reply_text(&step.reply))
        });
        Self {
            notes,
            sequence,
            steps: steps.collect(),
            trace: answer.trace.iter().map(entry_text).collect(),
            segments: answer.segments.iter().map(segment_text).collect(),
        }
    }

    /// Runs the sequence on our allocator; returns the first fact that differs from PyTorch's answer.
    ///
    /// # Errors
    ///
    /// When our allocator refuses the settings, or is not valid at the end.
    pub fn check(&self) -> Result<Option<AnswerDifference>> {
        let (answer, _) = ours::answer(&self.sequence, false)?;
        let found = Self::new(Vec::new(), self.sequence.clone(), &answer);
        let lists = [
            ("answer", &self.steps, &found.steps),
            ("trace entry", &self.trace, &found.trace),
            ("final segment", &self.segments, &found.segments),
        ];
        Ok(lists.into_iter().find_map(|(what, expected, found)| {
            let longer = expected.len().max(found.len());
            let index = (0..longer).find(|index| expected.get(*index) != found.get(*index))?;
            let described =
                |list: &[String]| list.get(index).cloned().unwrap_or_else(|| "nothing".to_owned());
            let operation = (what == "answer").then_some(index);
            let what = if operation.is_some() { what.to_owned() } else { format!("{what} {index}") };
            Some(AnswerDifference { operation, what, expected: described(expected), found: described(found) })
        }))
    }

    /// The text, which [`Fixture::parse`] reads.
    pub fn text(&self) -> String {
        let Sequence { release, capacity, conf, operations } = &self.sequence;
        let mut lines: Vec<String> = self.notes.iter().map(|note| format!("# {note}")).collect();
        if *release != Release::V2_11 {
            lines.push(format!("#! release {release}"));
        }
        lines.push(format!("#! device {}", capacity.get()));
        if !conf.is_empty() {
            lines.push(format!("#! settings {conf}"));
        }
        lines.push("stream s1, s2, s3".to_owned());
        let answered = operations.iter().zip(&self.steps);
        lines.extend(answered.map(|(operation, step)| format!("{} #= {step}", operation_text(operation))));
        lines.extend(self.trace.iter().map(|entry| format!("#: trace {entry}")));
        lines.extend(self.segments.iter().map(|segment| format!("#: segment {segment}")));
        lines.push(String::new());
        lines.join("\n")
    }

    /// Reads the text of a fixture.
    ///
    /// # Errors
    ///
    /// When the text is not one of a fixture; the message has the line.
    pub fn parse(text: &str) -> Result<Self> {
        let workload = Workload::parse(text).context("the requests are not a workload")?;
        let mut requests = workload.requests().iter();
        let mut fixture = Self {
            notes: Vec::new(),
            sequence: Sequence {
                release: Release::V2_11,
                capacity: Bytes::ZERO,
                conf: String::new(),
                operations: Vec::new(),
            },
            steps: Vec::new(),
            trace: Vec::new(),
            segments: Vec::new(),
        };
        for (index, line) in text.lines().enumerate() {
            fixture.read_line(line, &mut requests).with_context(|| format!("line {}", index + 1))?;
        }
        ensure!(requests.next().is_none(), "one line has several requests");
        Ok(fixture)
    }

    fn read_line<'a>(&mut self, line: &str, requests: &mut impl Iterator<Item = &'a Request>) -> Result<()> {
        if let Some(note) = line.strip_prefix("# ") {
            self.notes.push(note.to_owned());
        } else if let Some(entry) = line.strip_prefix("#: trace ") {
            self.trace.push(entry.to_owned());
        } else if let Some(segment) = line.strip_prefix("#: segment ") {
            self.segments.push(segment.to_owned());
        } else if let Some(bytes) = line.strip_prefix("#! device ") {
            self.sequence.capacity = Bytes::new(bytes.parse().context("no number of bytes")?);
        } else if let Some(release) = line.strip_prefix("#! release ") {
            self.sequence.release = release.parse()?;
        } else if let Some(settings) = line.strip_prefix("#! settings ") {
            settings.clone_into(&mut self.sequence.conf);
        } else if !line.is_empty() && !line.starts_with("stream ") {
            let (operation, step) = line.split_once(" #= ").unwrap_or((line, UNANSWERED));
            let operation = match operation.strip_prefix("#! ") {
                Some(directive) => parse_directive(directive)?,
                None => operation_of(*requests.next().context("no request stands here")?)?,
            };
            self.sequence.operations.push(operation);
            self.steps.push(step.to_owned());
        }
        Ok(())
    }
}

fn reply_text(reply: &ReturnValue) -> String {
    match reply {
        ReturnValue::Failed(text) => {
            let (text, cut) = text.split_once(ADVICE).map_or((text.as_str(), ""), |(text, _)| (text, " ..."));
            format!("failed: {}{cut}", text.replace('\n', " "))
        }
        reply => reply.to_string(),
    }
}

fn operation_text(operation: &Operation) -> String {
    match operation {
        Operation::Allocate { tensor, size, stream } => {
            let size = size.get();
            if stream.get() == 0 {
                format!("t{tensor} = alloc {size}")
            } else {
                format!("t{tensor} = alloc {size} on {}", stream_name(*stream))
            }
        }
        Operation::Free { tensor } => format!("free t{tensor}"),
        Operation::RecordStream { tensor, stream } => {
            format!("record_stream t{tensor} {}", stream_name(*stream))
        }
        Operation::Advance { stream: Some(stream) } => format!("advance {}", stream_name(*stream)),
        Operation::Advance { stream: None } => "advance".to_owned(),
        Operation::EmptyCache => "empty_cache".to_owned(),
        Operation::SetFraction { fraction } => format!("set_fraction {fraction}"),
        Operation::ResetPeak => "reset_peak".to_owned(),
        Operation::ResetAccumulated => "reset_accumulated".to_owned(),
        Operation::Snapshot => "snapshot".to_owned(),
        Operation::ApplySettings { text } => format!("#! apply {text}"),
        Operation::TellSettings => "#! tell".to_owned(),
        Operation::CreatePool { pool_id, options } => {
            let no_split = if options.never_splits { " no_split" } else { "" };
            let use_on_oom = if options.serves_on_oom { " use_on_oom" } else { "" };
            format!("#! pool {}{no_split}{use_on_oom}", pool_name(*pool_id))
        }
        Operation::EnterPool { pool_id, stream: None } => format!("#! enter {}", pool_name(*pool_id)),
        Operation::EnterPool { pool_id, stream: Some(stream) } => {
            format!("#! enter {} on {}", pool_name(*pool_id), stream_name(*stream))
        }
        Operation::LeavePool { pool_id } => format!("#! leave {}", pool_name(*pool_id)),
        Operation::DestroyPool { pool_id } => format!("#! destroy {}", pool_name(*pool_id)),
    }
}

fn operation_of(request: Request) -> Result<Operation> {
    Ok(match request {
        Request::Allocate { tensor, size, stream } => {
            Operation::Allocate { tensor: tensor.get(), size, stream }
        }
        Request::Free { tensor } => Operation::Free { tensor: tensor.get() },
        Request::RecordStream { tensor, stream } => Operation::RecordStream { tensor: tensor.get(), stream },
        Request::Advance { stream } => Operation::Advance { stream },
        Request::EmptyCache => Operation::EmptyCache,
        Request::SetFraction { fraction } => Operation::SetFraction { fraction },
        Request::ResetPeak => Operation::ResetPeak,
        Request::ResetAccumulated => Operation::ResetAccumulated,
        Request::Snapshot => Operation::Snapshot,
        request => bail!("{request:?} cannot be in a sequence"),
    })
}

fn parse_directive(directive: &str) -> Result<Operation> {
    let (word, rest) = directive.split_once(' ').unwrap_or((directive, ""));
    if word == "apply" {
        return Ok(Operation::ApplySettings { text: rest.to_owned() });
    }
    if word == "tell" {
        return Ok(Operation::TellSettings);
    }
    let mut words = rest.split(' ');
    let pool_id = parse_pool(words.next().unwrap_or_default())?;
    let rest: Vec<&str> = words.collect();
    Ok(match word {
        "pool" => {
            let options = PoolOptions {
                never_splits: rest.contains(&"no_split"),
                serves_on_oom: rest.contains(&"use_on_oom"),
            };
            Operation::CreatePool { pool_id, options }
        }
        "enter" => {
            let stream = match rest[..] {
                [] => None,
                ["on", stream] => Some(parse_stream(stream)?),
                _ => bail!("`enter` takes a pool and `on` a stream"),
            };
            Operation::EnterPool { pool_id, stream }
        }
        "leave" => Operation::LeavePool { pool_id },
        "destroy" => Operation::DestroyPool { pool_id },
        _ => bail!("there is no directive `{word}`"),
    })
}

fn stream_name(stream: StreamId) -> String {
    if stream.get() == 0 { "default".to_owned() } else { format!("s{}", stream.get()) }
}

fn parse_stream(name: &str) -> Result<StreamId> {
    if name == "default" {
        return Ok(StreamId::DEFAULT);
    }
    let number = name.strip_prefix('s').and_then(|number| number.parse().ok());
    let number = number.filter(|number| (1..=STREAMS).contains(number));
    number.map(StreamId::new).with_context(|| format!("there is no stream `{name}`"))
}

fn pool_name(pool_id: PoolId) -> String {
    if pool_id.capture == 0 { format!("p{}", pool_id.user) } else { format!("c{}", pool_id.capture) }
}

fn parse_pool(name: &str) -> Result<PoolId> {
    let number = |prefix| name.strip_prefix(prefix).and_then(|number: &str| number.parse().ok());
    let user = number('p').map(|user| PoolId { capture: 0, user });
    let pool = user.or_else(|| number('c').map(|capture| PoolId { capture, user: 0 }));
    pool.with_context(|| format!("there is no pool `{name}`"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generate;

    #[test]
    fn what_is_written_reads_the_same() {
        for seed in 0..60 {
            let release = Release::ALL[usize::try_from(seed).unwrap() % Release::ALL.len()];
            let sequence = generate::sequence(seed, release);
            let (answer, _) = ours::answer(&sequence, false).unwrap();
            let fixture = Fixture::new(vec!["a note".to_owned()], sequence, &answer);
            let read = Fixture::parse(&fixture.text()).unwrap();
            assert_eq!(read.text(), fixture.text(), "seed {seed}");
            assert_eq!(read, fixture, "seed {seed}");
            assert_eq!(read.check().unwrap(), None, "seed {seed}");
        }
    }

    #[test]
    fn a_wrong_answer_is_reported() {
        let sequence = generate::sequence(1, Release::V2_11);
        let (answer, _) = ours::answer(&sequence, false).unwrap();
        let mut fixture = Fixture::new(Vec::new(), sequence, &answer);
        fixture.steps[2] = "0 done".to_owned();
        let difference = fixture.check().unwrap().unwrap();
        assert_eq!((difference.operation, difference.expected.as_str()), (Some(2), "0 done"));
    }

    #[test]
    fn other_texts_are_refused() {
        for text in ["a = alloc", "#! enter", "#! enter q1 #= 0 done", "#! fly p1 #= 0 done", "#! device x"] {
            assert!(Fixture::parse(text).is_err(), "{text}");
        }
    }
}

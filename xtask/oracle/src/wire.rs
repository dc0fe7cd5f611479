//! Sequences and answers as words for `native/driver.cpp`, which documents the layout.

use anyhow::{Context, Result, bail, ensure};
use blockyard_allocator::PoolOptions;
use blockyard_record::{Bytes, PoolId, StreamId, TraceAction, TraceEntry};

use crate::answer::{FinalBlock, OperationReply, Paths, ReturnValue, Segment, SequenceResult, StatsAfter};
use crate::sequence::{Operation, Sequence};

/// The request as words, without their count.
pub(crate) fn encode(sequence: &Sequence, wants_all: bool) -> Vec<u64> {
    let mut words = vec![sequence.capacity.get(), u64::from(wants_all)];
    push_text(&mut words, &sequence.conf);
    let texts: Vec<&String> = sequence
        .operations
        .iter()
        .filter_map(|operation| match operation {
            Operation::ApplySettings { text } => Some(text),
            _ => None,
        })
        .collect();
    words.push(texts.len() as u64);
    for text in texts {
        push_text(&mut words, text);
    }
    words.push(sequence.operations.len() as u64);
    let mut next_text = 0;
    for operation in &sequence.operations {
        words.extend(operation_words(operation, &mut next_text));
    }
    words
}

fn operation_words(operation: &Operation, next_text: &mut u64) -> [u64; 3] {
    match operation {
        Operation::Allocate { size, stream, .. } => [0, size.get(), stream.get()],
        Operation::Free { tensor } => [1, u64::from(*tensor), 0],
        Operation::RecordStream { tensor, stream } => [2, u64::from(*tensor), stream.get()],
        Operation::Advance { stream: Some(stream) } => [3, stream.get(), 0],
        Operation::Advance { stream: None } => [4, 0, 0],
        Operation::EmptyCache => [5, 0, 0],
        Operation::SetFraction { fraction } => [6, fraction.to_bits(), 0],
        Operation::ResetPeak => [7, 0, 0],
        Operation::ResetAccumulated => [8, 0, 0],
        Operation::ApplySettings { .. } => {
            *next_text += 1;
            [9, *next_text - 1, 0]
        }
        Operation::Snapshot => [10, 0, 0],
        Operation::CreatePool { pool_id, options: PoolOptions { never_splits, serves_on_oom } } => {
            [11, pool_number(*pool_id), u64::from(*never_splits) | u64::from(*serves_on_oom) << 1]
        }
        Operation::EnterPool { pool_id, stream } => {
            [12, pool_number(*pool_id), stream.map_or(u64::MAX, StreamId::get)]
        }
        Operation::LeavePool { pool_id } => [13, pool_number(*pool_id), 0],
        Operation::DestroyPool { pool_id } => [14, pool_number(*pool_id), 0],
        Operation::TellSettings => [15, 0, 0],
    }
}

fn pool_number(pool_id: PoolId) -> u64 {
    if pool_id.capture == 0 { u64::from(pool_id.user) << 1 } else { u64::from(pool_id.capture) << 1 | 1 }
}

fn push_text(words: &mut Vec<u64>, text: &str) {
    words.push(text.len() as u64);
    for bytes in text.as_bytes().chunks(8) {
        let mut word = [0; 8];
        word[..bytes.len()].copy_from_slice(bytes);
        words.push(u64::from_ne_bytes(word));
    }
}

/// Decodes the answer from the response's words, with the counts of the paths that PyTorch took; `operations`
/// is the number of operations.
pub(crate) fn decode(words: &[u64], operations: usize, wants_all: bool) -> Result<(SequenceResult, Paths)> {
    let mut reader = Reader { words };
    if reader.word()? != 0 {
        bail!("PyTorch's library died with status {}", reader.word()?);
    }
    let steps = (0..operations).map(|_| reader.step(wants_all)).collect::<Result<_>>()?;
    let trace = reader.list(Reader::trace_entry)?;
    let mut segments = reader.list(Reader::segment)?;
    segments.sort_by_key(|segment| segment.addr);
    let [retries, failures, waits, chosen_releases] =
        [reader.word()?, reader.word()?, reader.word()?, reader.word()?];
    ensure!(reader.words.is_empty(), "the driver sent more than an answer");
    Ok((SequenceResult { steps, trace, segments }, Paths { retries, failures, waits, chosen_releases }))
}

struct Reader<'a> {
    words: &'a [u64],
}

impl Reader<'_> {
    fn word(&mut self) -> Result<u64> {
        let (first, rest) = self.words.split_first().context("the driver's answer is cut off")?;
        self.words = rest;
        Ok(*first)
    }

    fn bytes(&mut self) -> Result<Bytes> {
        self.word().map(Bytes::new)
    }

    fn text(&mut self) -> Result<String> {
        let length = usize::try_from(self.word()?)?;
        let count = length.div_ceil(8);
        let words = self.words.get(..count).context("the driver's answer is cut off")?;
        self.words = &self.words[count..];
        let mut bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
        bytes.truncate(length);
        String::from_utf8(bytes).context("PyTorch sent something that is not text")
    }

    fn list<T>(&mut self, item: impl Fn(&mut Self) -> Result<T>) -> Result<Vec<T>> {
        let count = self.word()?;
        (0..count).map(|_| item(self)).collect()
    }

    fn step(&mut self, wants_all: bool) -> Result<OperationReply> {
        let reply = match self.word()? {
            0 => ReturnValue::Done,
            1 => ReturnValue::Address(self.word()?),
            2 => ReturnValue::Failed(self.text()?),
            3 => ReturnValue::Skipped,
            4 => ReturnValue::Settings(self.text()?),
            code => bail!("the driver answered with code {code}"),
        };
        let stats = if wants_all {
            StatsAfter::All(self.list(|reader| reader.word().map(u64::cast_signed))?)
        } else {
            StatsAfter::Digest(self.word()?)
        };
        Ok(OperationReply { reply, stats })
    }

    fn trace_entry(&mut self) -> Result<TraceEntry> {
        let action =
            TraceAction::from_number(usize::try_from(self.word()?)?).context("no such trace action")?;
        let (addr, size) = (self.word()?, self.bytes()?);
        Ok(TraceEntry { action, addr, size, stream: StreamId::new(self.word()?) })
    }

    fn segment(&mut self) -> Result<Segment> {
        let (addr, size, stream) = (self.word()?, self.bytes()?, StreamId::new(self.word()?));
        let pool_id = PoolId { capture: u32::try_from(self.word()?)?, user: u32::try_from(self.word()?)? };
        let (is_large, is_expandable) = (self.word()? != 0, self.word()? != 0);
        let sums = [self.bytes()?, self.bytes()?, self.bytes()?];
        let blocks = self.list(Self::block)?;
        Ok(Segment { addr, size, stream, pool_id, is_large, is_expandable, sums, blocks })
    }

    fn block(&mut self) -> Result<FinalBlock> {
        let (size, requested) = (self.bytes()?, self.bytes()?);
        let state = match self.word()? {
            2 => "active_allocated",
            1 => "active_pending_free",
            _ => "inactive",
        };
        Ok(FinalBlock { size, requested, state })
    }
}

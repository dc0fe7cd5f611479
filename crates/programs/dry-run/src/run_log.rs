//! The lines that a run writes while it runs, in order: the notes of the stand-in, and the events that the
//! runner saw.

use blockyard_record::Bytes;
use serde::Deserialize;

use crate::{EstimateNote, HolderCount, RunOom};

/// A line that the program printed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PrintedLine {
    /// The line without its end.
    pub text: String,
    /// The first note that was written before the line; `None` where the line is exact.
    pub why: Option<String>,
    /// How many allocations each device had made before the line was printed; empty where requests were not
    /// kept.
    pub allocations: Vec<u64>,
}

/// The bytes of one device over one iteration.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct IterationPeak {
    /// The most bytes of allocated blocks.
    pub peak_allocated: Bytes,
    /// The most bytes of segments.
    pub peak_reserved: Bytes,
    /// The bytes of allocated blocks at the end.
    pub allocated: Bytes,
}

/// An iteration: from the end of one step of the first optimizer to the end of the next.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct Iteration {
    /// The number of the iteration, counted from 1.
    pub number: u32,
    /// The bytes of each device, by the device's number.
    pub devices: Vec<IterationPeak>,
}

/// The most bytes of a device that a process which the program started took: segments and all other memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct ChildPeak {
    /// The process's number (PID).
    pub process: u32,
    /// The index of the device.
    pub device: usize,
    /// The most bytes that the process took at a time.
    #[serde(default)]
    pub bytes: Bytes,
    /// The counts of PyTorch's allocator at the process's end; `None` where the process ended before they
    /// were written, or has no PyTorch.
    #[serde(skip)]
    pub counted: Option<ChildCounts>,
}

/// The counts of PyTorch's allocator for one device at the end of a process that the program started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct ChildCounts {
    /// The most bytes of allocated blocks.
    pub peak_allocated: Bytes,
    /// The most bytes of segments.
    pub peak_reserved: Bytes,
    /// The bytes of allocated blocks at the end.
    pub allocated: Bytes,
    /// Whether a request found no memory, even if the process went on.
    pub has_run_out: bool,
}

/// All lines of a run.
#[derive(Debug, Default)]
pub(crate) struct Records {
    pub(crate) notes: Vec<EstimateNote>,
    pub(crate) lines: Vec<PrintedLine>,
    pub(crate) iterations: Vec<Iteration>,
    /// The largest numbers of each process on each device.
    pub(crate) children: Vec<ChildPeak>,
    /// The first request that ran out of memory in a process that the program started, where the run was to
    /// end there.
    pub(crate) failed_in_child: Option<RunOom>,
    /// The memory that the driver and CUDA's libraries took, each holder once, with its last count.
    pub(crate) taken: Vec<HolderCount>,
    /// Sentences that a person should read and that make no number an estimate.
    pub(crate) remarks: Vec<String>,
    /// The signal that was about to end the process.
    pub(crate) signal: Option<i32>,
    /// Whether the last line has no end yet.
    is_open: bool,
}

/// The fields that lines of several kinds have.
#[derive(Deserialize)]
struct Head {
    kind: String,
    #[serde(default)]
    text: String,
    #[serde(default)]
    number: i32,
    #[serde(default)]
    allocations: Vec<u64>,
}

impl Records {
    /// Reads all lines. If lines are damaged, a note says how many.
    pub(crate) fn read(text: &str) -> Self {
        let mut records = Self::default();
        let mut unread = 0_usize;
        for line in text.lines() {
            if records.add(line).is_err() {
                unread += 1;
            }
        }
        if unread > 0 {
            let text = format!("{unread} lines of the run's own report are damaged");
            records.notes.push(EstimateNote::estimate(text));
        }
        records
    }

    fn add(&mut self, line: &str) -> Result<(), serde_json::Error> {
        let found: Head = serde_json::from_str(line)?;
        match found.kind.as_str() {
            "printed" => self.add_output(&found.text, &found.allocations),
            "remark" => self.remarks.push(found.text),
            "signal" => self.signal = Some(found.number),
            "child" => self.add_child(serde_json::from_str(line)?),
            "child_counted" => {
                let counted = Some(serde_json::from_str(line)?);
                self.add_child(ChildPeak { counted, ..serde_json::from_str(line)? });
            }
            "child_failed" => {
                let failed = serde_json::from_str(line)?;
                self.failed_in_child.get_or_insert(failed);
            }
            "taken" => self.add_holder(serde_json::from_str(line)?),
            "step" => self.iterations.push(serde_json::from_str(line)?),
            _ => self.notes.push(serde_json::from_str(line)?),
        }
        Ok(())
    }

    fn add_holder(&mut self, taken: HolderCount) {
        let of = |taken: &HolderCount| (taken.device, taken.what.clone(), taken.ranks);
        match self.taken.iter_mut().find(|before| of(before) == of(&taken)) {
            Some(before) => before.count = before.count.max(taken.count),
            None => self.taken.push(taken),
        }
    }

    fn add_child(&mut self, child: ChildPeak) {
        let is_same =
            |before: &&mut ChildPeak| (before.process, before.device) == (child.process, child.device);
        match self.children.iter_mut().find(is_same) {
            Some(before) => {
                before.bytes = before.bytes.max(child.bytes);
                before.counted = child.counted.or(before.counted);
            }
            None => self.children.push(child),
        }
    }

    /// Adds a piece of the program's output. A line is whole once its end was printed.
    fn add_output(&mut self, text: &str, allocations: &[u64]) {
        let why = self.notes.first().map(EstimateNote::sentence);
        for piece in text.split_inclusive('\n') {
            let (piece, is_whole) = match piece.strip_suffix('\n') {
                Some(piece) => (piece, true),
                None => (piece, false),
            };
            match self.lines.last_mut() {
                Some(last) if self.is_open => {
                    last.text.push_str(piece);
                    last.why.clone_from(&why);
                    allocations.clone_into(&mut last.allocations);
                }
                _ => self.lines.push(PrintedLine {
                    text: piece.to_owned(),
                    why: why.clone(),
                    allocations: allocations.to_owned(),
                }),
            }
            self.is_open = !is_whole;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Records;

    const TEXT: &str = r#"{"kind":"printed","text":"first\nsec"}
{"kind":"step","number":1,"devices":[{"peak_allocated":10,"peak_reserved":20,"allocated":5}]}
{"kind":"printed","text":"ond\n","allocations":[4]}
{"kind":"read","bytes":4,"file":"a.py","line":3}
{"kind":"function","name":"cusolverX"}
{"kind":"printed","text":"third"}
{"kind":"remark","text":"something"}
{"kind":"signal","number":6}
"#;

    #[test]
    fn lines_that_follow_a_note_name_the_first() {
        let records = Records::read(TEXT);
        let lines: Vec<(&str, bool)> =
            records.lines.iter().map(|line| (line.text.as_str(), line.why.is_none())).collect();
        assert_eq!(lines, [("first", true), ("second", true), ("third", false)]);
        assert!(records.lines[0].allocations.is_empty());
        assert_eq!(records.lines[1].allocations, [4], "as many as at the line's end");
        let why = records.lines[2].why.as_deref().unwrap_or_default();
        assert!(why.starts_with("a.py:3: the program reads 4 bytes"), "{why}");
        assert_eq!((records.notes.len(), records.signal), (2, Some(6)));
        assert_eq!(records.iterations[0].devices[0].peak_reserved.get(), 20);
        assert_eq!(records.remarks, ["something"]);
    }

    #[test]
    fn processes_that_the_program_started_have_their_peaks() {
        let line = |process, bytes| {
            format!("{{\"kind\":\"child\",\"process\":{process},\"device\":0,\"bytes\":{bytes}}}\n")
        };
        let records = Records::read(&[line(7, 10), line(8, 5), line(7, 30), line(7, 20)].concat());
        let found: Vec<(u32, u64)> =
            records.children.iter().map(|child| (child.process, child.bytes.get())).collect();
        assert_eq!(found, [(7, 30), (8, 5)]);
        assert!(records.notes.is_empty());
    }

    #[test]
    fn damaged_lines_are_a_note() {
        let records = Records::read("{damaged\n{\"kind\":\"step\",\"number\":-1}\n{}\n");
        assert_eq!(records.notes.len(), 1);
        assert!(records.notes[0].sentence().contains("3 lines"));
    }
}

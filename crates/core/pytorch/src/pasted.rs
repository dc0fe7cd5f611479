//! Texts of PyTorch about memory other than snapshots, as people paste them: the message of
//! `torch.OutOfMemoryError`, the table of `memory_summary()`, and the events of
//! `profile.export_memory_timeline("memory.raw.json.gz")`.
//!
//! Each has a few numbers, and most questions need more: [`PastedText`] has the sentences about what the text
//! says and the one about what it cannot say. The events are requests, so that [`timeline_workload`] makes a
//! workload of them.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use blockyard_record::Bytes;
use blockyard_workload::parse_rounded_size;

/// What a text says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PastedText {
    /// What happened, in a sentence.
    pub headline: String,
    /// What else the text says, in sentences.
    pub facts: Vec<String>,
    /// What the text cannot say.
    pub unknown: &'static str,
}

impl PastedText {
    /// The facts of a text; `None` for a text of another kind. Of several messages the last one counts.
    #[must_use]
    pub fn read(text: &str) -> Option<Self> {
        // A thread quotes lines, and a terminal breaks them.
        let words = text.split_whitespace().filter(|word| *word != ">").collect::<Vec<_>>().join(" ");
        let message = words.rsplit_once("Tried to allocate ").map(|(_, message)| message);
        message.and_then(OomMessage::read).map(|message| message.facts()).or_else(|| summary(text))
    }

    /// All sentences, each on a line.
    #[must_use]
    pub fn lines(&self) -> String {
        let mut lines = self.headline.clone();
        for fact in self.facts.iter().map(String::as_str).chain([self.unknown]) {
            let _ = write!(lines, "\n  {fact}");
        }
        lines
    }
}

/// The numbers of a message.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct OomMessage {
    device: String,
    requested: Bytes,
    total: Bytes,
    free: Bytes,
    allocated: Bytes,
    cached: Bytes,
    private: Option<Bytes>,
    /// Bytes of this process, with its non-PyTorch memory.
    process: Option<Bytes>,
    limit: Option<Bytes>,
}

impl OomMessage {
    /// The numbers after "Tried to allocate ", in the form of PyTorch 2.1 and later or in the older one.
    fn read(message: &str) -> Option<Self> {
        let before = |end: &str| size_before(message, end);
        if let Some((_, old)) = message.split_once("(GPU ") {
            let device = old.split(';').next()?.trim().to_owned();
            let (allocated, reserved) = (before(" already allocated")?, before(" reserved in total")?);
            return Some(Self {
                device,
                requested: first_size(message)?,
                total: before(" total capacity")?,
                free: before(" free;")?,
                allocated,
                cached: reserved.saturating_sub(allocated),
                ..Self::default()
            });
        }
        let (_, device) = message.split_once("GPU ")?;
        let after = |start: &str| first_size(message.split_once(start)?.1);
        Some(Self {
            device: device.split(' ').next()?.to_owned(),
            requested: first_size(message)?,
            // The word was misspelled in some releases.
            total: after("total capacity of ").or_else(|| after("total capacty of "))?,
            free: before(" is free")?,
            allocated: before(" is allocated by PyTorch")?,
            cached: before(" is reserved by PyTorch but unallocated")?,
            private: after("PyTorch, with "),
            process: after("this process has "),
            limit: before(" allowed;"),
        })
    }

    fn facts(&self) -> PastedText {
        let Self { device, requested, total, free, allocated, cached, .. } = self;
        let reserved = allocated.saturating_add(*cached);
        let mut facts = Vec::new();
        let private = self.private.map(|private| format!(", {private} of it in private pools (CUDA graphs)"));
        facts.push(format!(
            "PyTorch had reserved {reserved}: {allocated} allocated{}, and {cached} cached",
            private.unwrap_or_default()
        ));
        let others = total.saturating_sub(*free).saturating_sub(reserved);
        facts.push(match self.process {
            Some(process) => format!(
                "beside that this process had {} (the CUDA context and libraries), and other processes had {}",
                process.saturating_sub(reserved),
                total.saturating_sub(*free).saturating_sub(process)
            ),
            None => format!(
                "{others} of the GPU were neither free nor reserved: the CUDA context, libraries and other processes"
            ),
        });
        let refused = self.limit.filter(|limit| reserved.saturating_add(*requested) > *limit);
        match refused {
            Some(limit) => facts.push(format!(
                "a limit refused the request, and not the GPU: {limit} may be reserved (set_per_process_memory_fraction)"
            )),
            None if free >= requested => facts.push(format!(
                "{free} were free, which is no less than {requested}: why the driver gave no segment is not in the text"
            )),
            None => {}
        }
        let left = refused.map_or(*free, |limit| limit.saturating_sub(reserved));
        let together = cached.saturating_add(left);
        facts.push(if together >= *requested {
            let why = if cached >= requested {
                format!("{cached} were cached, and no cached block was large enough: the memory is fragmented.")
            } else {
                format!("cached and free memory together ({together}) are enough:")
            };
            format!("{why} PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True may serve the request")
        } else {
            format!(
                "cached and free memory together ({together}) are {} less than the request: no setting of the \
                 allocator serves it, and the program has to hold less",
                requested.saturating_sub(together)
            )
        });
        PastedText {
            headline: format!(
                "GPU {device} ran out of memory: PyTorch tried to allocate {requested}, and {free} of {total} were free"
            ),
            facts,
            unknown: "the text does not say which lines hold the memory, how large the cached blocks are, and \
                      what came before: a snapshot does (torch.cuda.memory._dump_snapshot). Its sizes are \
                      rounded to two decimals",
        }
    }
}

/// The size at the beginning of a text: "512.00 MiB", "0 bytes".
fn first_size(text: &str) -> Option<Bytes> {
    let mut words = text.split(' ');
    let (number, unit) = (words.next()?, words.next()?);
    size(number, unit.trim_end_matches(['.', ',', ';', ')']))
}

/// The size in front of these words.
fn size_before(text: &str, end: &str) -> Option<Bytes> {
    let (before, _) = text.split_once(end)?;
    let mut words = before.rsplit(' ');
    let (unit, number) = (words.next()?, words.next()?);
    size(number, unit)
}

fn size(number: &str, unit: &str) -> Option<Bytes> {
    let unit = if unit == "bytes" { "B" } else { unit };
    parse_rounded_size(&format!("{number} {unit}")).ok()
}

/// The facts of a table of `memory_summary()`.
fn summary(text: &str) -> Option<PastedText> {
    let device = text.split_once("CUDA memory summary, device ID ")?.1.split_whitespace().next()?;
    let count = |name: &str| text.split_once(name)?.1.split_whitespace().next()?.parse::<u64>().ok();
    // The first two columns are the usage at the end and the peak.
    let row = |name: &str| {
        let line = text.lines().find(|line| line.contains(&format!("| {name} ")))?;
        let mut cells = line.split('|').skip(2);
        let mut next = || {
            let mut words = cells.next()?.split_whitespace();
            size(words.next()?, words.next()?)
        };
        Some((next()?, next()?))
    };
    let (allocated, most_allocated) = row("Allocated memory")?;
    let (reserved, most_reserved) = row("GPU reserved memory")?;
    let mut facts = vec![format!(
        "{} of the reserved memory were cached at that moment",
        reserved.saturating_sub(row("Active memory").map_or(allocated, |(active, _)| active))
    )];
    if let Some((split, most)) = row("Non-releasable memory") {
        facts.push(format!(
            "{split} of it, at most {most}, were in segments that hold an allocated block, too: empty_cache does not release these"
        ));
    }
    if let Some((requested, _)) = row("Requested memory") {
        facts.push(format!(
            "rounding took {}: {requested} were requested",
            allocated.saturating_sub(requested)
        ));
    }
    if let (Some(ooms), Some(retries)) = (count("CUDA OOMs:"), count("cudaMalloc retries:")) {
        facts.push(format!(
            "requests that ran out of memory: {ooms}; times that cached memory was released to serve one: {retries}"
        ));
    }
    Some(PastedText {
        headline: format!(
            "GPU {device}: {allocated} allocated, at most {most_allocated}; {reserved} reserved, at most {most_reserved}"
        ),
        facts,
        unknown: "the table does not say which lines hold the memory and when the peaks were, and the two \
                  peaks need not be at one moment: a snapshot says it (torch.cuda.memory._dump_snapshot). Its \
                  sizes are cut to its units",
    })
}

/// The kinds of memory in the order of the profiler's numbers (`_CATEGORY_TO_INDEX`).
const CATEGORIES: [&str; 8] = [
    "parameter",
    "optimizer_state",
    "input",
    "temporary",
    "activation",
    "gradient",
    "autograd_detail",
    "unknown",
];
/// The profiler's numbers of what happens to memory.
const CREATE: [u8; 2] = [1, 2];
const CHANGE: u8 = 3;
const DESTROY: u8 = 4;

/// The text of a workload with the requests of `export_memory_timeline` under the name `*.raw.json.gz`;
/// `None` for another text.
///
/// The file does not say which of several tensors of one size and kind is freed: it is the last one that was
/// made. So the sums at each moment are those of the run, and places in segments are not.
#[must_use]
pub fn timeline_workload(text: &str) -> Option<String> {
    if !text.trim_start().starts_with("[[") {
        return None;
    }
    let events: Vec<(i64, u8, i64, u8)> = serde_json::from_str(text).ok()?;
    let mut workload = "# Requests of a memory timeline of torch.profiler, in the order of its events. It has no stacks, no\n\
                        # streams and no device. Of several tensors of one size and kind the last one is freed first.\n\
                        capacity 1 TiB\n"
        .to_owned();
    let mut live: BTreeMap<(u64, u8), Vec<String>> = BTreeMap::new();
    let mut counts = [0_u64; CATEGORIES.len()];
    for (_, action, bytes, category) in events {
        let (size, kind) = (bytes.unsigned_abs(), usize::from(category));
        let (name, count) = (CATEGORIES.get(kind)?, counts.get_mut(kind)?);
        if size == 0 {
            continue;
        }
        if CREATE.contains(&action) {
            let tensor = format!("{name}[{count}]");
            *count = count.saturating_add(1);
            let _ = writeln!(workload, "{tensor} = alloc {size} B");
            live.entry((size, category)).or_default().push(tensor);
        } else if action == CHANGE && bytes < 0 {
            // The second event of the pair has the new kind.
            if let Some(tensor) = live.get_mut(&(size, category)).and_then(Vec::pop) {
                live.entry((size, u8::MAX)).or_default().push(tensor);
            }
        } else if action == CHANGE {
            if let Some(tensor) = live.get_mut(&(size, u8::MAX)).and_then(Vec::pop) {
                live.entry((size, category)).or_default().push(tensor);
            }
        } else if action == DESTROY {
            // Memory from before the profile that has no event is freed by none.
            if let Some(tensor) = live.get_mut(&(size, category)).and_then(Vec::pop) {
                let _ = writeln!(workload, "free {tensor}");
            }
        } else {
            return None;
        }
    }
    Some(workload)
}

#[cfg(test)]
mod tests {
    use blockyard_record::Stats;
    use blockyard_workload::Workload;

    use super::*;

    const NEW: &str = "Traceback (most recent call last):\n  File \"train.py\", line 4\ntorch.OutOfMemoryError: CUDA out of memory. \
        Tried to allocate 512.00 MiB. GPU 0 has a total capacity of 8.00 GiB of which 497.19 MiB is free. Including non-PyTorch \
        memory, this process has 7.51 GiB memory in use. Of the allocated memory 6.00 GiB is allocated by PyTorch, with 1.00 GiB \
        allocated in private pools (e.g., CUDA Graphs), and 1.00 GiB is reserved by PyTorch but unallocated. If reserved but";

    #[test]
    fn a_message_says_what_was_free_and_what_would_help() {
        let found = PastedText::read(NEW).unwrap();
        assert_eq!(
            found.headline,
            "GPU 0 ran out of memory: PyTorch tried to allocate 512 MiB, and 497.19 MiB of 8 GiB were free"
        );
        assert_eq!(
            found.facts[0],
            "PyTorch had reserved 7 GiB: 6 GiB allocated, 1 GiB of it in private pools (CUDA graphs), and 1 GiB cached"
        );
        assert!(found.facts[2].contains("the memory is fragmented"), "{found:?}");
        let quoted = NEW.replace(". ", ".\n> ");
        assert_eq!(
            PastedText::read(&quoted).unwrap().facts,
            found.facts,
            "a quoted message with broken lines"
        );
        let less = NEW.replace("1.00 GiB is reserved by PyTorch", "10.00 MiB is reserved by PyTorch");
        assert!(
            PastedText::read(&less).unwrap().facts[2].contains("are 4.81 MiB less than the request"),
            "{:?}",
            PastedText::read(&less)
        );
        assert_eq!(PastedText::read("a = alloc 3 MiB"), None);
    }

    #[test]
    fn a_limit_is_told_from_a_full_gpu() {
        let text = "CUDA out of memory. Tried to allocate 2.00 GiB. GPU 1 has a total capacty of 79.18 GiB of which 70.00 GiB is \
            free. 8.00 GiB allowed; Of the allocated memory 7.50 GiB is allocated by PyTorch, and 0 bytes is reserved by PyTorch \
            but unallocated.";
        let found = PastedText::read(text).unwrap();
        assert!(
            found.facts[2].starts_with("a limit refused the request, and not the GPU: 8 GiB may"),
            "{found:?}"
        );
        assert!(found.facts[3].contains("together (512 MiB) are 1.5 GiB less"), "{found:?}");
    }

    #[test]
    fn the_older_form_is_read() {
        let text = "RuntimeError: CUDA out of memory. Tried to allocate 20.00 MiB (GPU 0; 10.76 GiB total capacity; 9.70 GiB already \
            allocated; 5.94 MiB free; 9.80 GiB reserved in total by PyTorch) If reserved memory is >> allocated memory";
        let found = PastedText::read(text).unwrap();
        assert_eq!(
            found.headline,
            "GPU 0 ran out of memory: PyTorch tried to allocate 20 MiB, and 5.94 MiB of 10.76 GiB were free"
        );
        assert!(found.facts[2].starts_with("102.4 MiB were cached, and no cached block"), "{found:?}");
    }

    #[test]
    fn the_table_of_memory_summary_is_read_back() {
        let mut stats = Stats { num_ooms: 2, num_alloc_retries: 3, ..Stats::default() };
        (stats.allocated_bytes.all.current, stats.allocated_bytes.all.peak) = (6 << 30, 7 << 30);
        stats.active_bytes.all.current = 6 << 30;
        (stats.reserved_bytes.all.current, stats.reserved_bytes.all.peak) = (8 << 30, 9 << 30);
        let found = PastedText::read(&crate::memory_summary(&stats, 1, false)).unwrap();
        assert_eq!(found.headline, "GPU 1: 6 GiB allocated, at most 7 GiB; 8 GiB reserved, at most 9 GiB");
        assert_eq!(found.facts[0], "2 GiB of the reserved memory were cached at that moment");
        assert!(found.facts[3].ends_with("memory: 2; times that cached memory was released to serve one: 3"));
        assert!(PastedText::read(&crate::memory_summary(&stats, 1, true)).is_some());
    }

    #[test]
    fn the_events_of_a_timeline_are_requests() {
        let text = "[[-1, 1, 4096, 0], [5, 2, 1024, 3], [6, 3, -1024, 3], [6, 3, 1024, 4], [7, 2, 1024, 4], \
                    [8, 4, -1024, 4], [9, 4, -512, 7], [9, 4, -1024, 4]]";
        let workload = timeline_workload(text).unwrap();
        let requests: Vec<&str> = workload.lines().skip(3).collect();
        assert_eq!(
            requests,
            [
                "parameter[0] = alloc 4096 B",
                "temporary[0] = alloc 1024 B",
                "activation[0] = alloc 1024 B",
                "free activation[0]",
                "free temporary[0]",
            ]
        );
        assert_eq!(Workload::parse(&workload).unwrap().requests().len(), 5);
        for other in ["[1, 2]", "{}", "[[1, 9, 4, 0]]", "[[1, 2, 4, 8]]", "[[[1, 2]]]"] {
            assert_eq!(timeline_workload(other), None, "{other}");
        }
    }
}

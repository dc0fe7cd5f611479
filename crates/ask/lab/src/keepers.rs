//! Who keeps the blocks of a program that grows from iteration to iteration.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use blockyard_answers::{Keeper, ProgramLine, PutLine};
use blockyard_record::{Bytes, counted, joined, shortened_path};
use serde::Deserialize;

use crate::leaks::MIN_ITERATIONS;
use crate::{IterationSource, Leaks, Run, growth_text};

/// The most lines of a keeper that made what it keeps.
const MAX_LINES: usize = 3;

/// A variable with a graph, by the search's name.
const GRAPH: &str = "graph";

/// A keeper of less than one in this many of the bytes at the peak is not named.
const MIN_KEPT_DIVISOR: u64 = 1000;
/// How many keepers are named.
const MAX_KEEPERS: usize = 4;

/// The objects that kept blocks when the search in the program's process ended last.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct FoundKeepers {
    rows: Vec<FoundKeeper>,
    lines: Vec<ProgramLine>,
    /// How many allocations each device had had in the end.
    #[serde(default)]
    made: Vec<u64>,
    /// After how many allocations of each device an iteration ended, where the process knew.
    #[serde(default)]
    iteration_ends: Vec<Vec<u64>>,
}

/// An object that kept blocks.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
struct FoundKeeper {
    name: String,
    function: Option<String>,
    kind: String,
    is_in_module_call: bool,
    put_at: Vec<PutLine>,
    blocks: Vec<KeptBlock>,
    /// How many allocations each device had had at the search.
    made: Vec<u64>,
}

/// A kept block: device, allocations of the device before it, bytes, the place of its line counted from 1 or
/// 0, and whether a graph keeps it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
struct KeptBlock(usize, u64, Bytes, usize, bool);

/// The ends of the iterations of a device.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IterationEnds {
    /// How many allocations the device had had at each end, ascending.
    pub allocations: Vec<u64>,
    /// Whether the parts are known to be iterations of the program; else they may be layers of a network.
    pub are_known: bool,
}

impl IterationEnds {
    /// The ends by the requests of a run whose device had had `made` allocations in the end; `None` where no
    /// iterations are known, or the run has more allocations.
    fn of(run: &Run, found: &Leaks, made: u64) -> Option<Self> {
        if found.answer.steps == IterationSource::Parts || found.are_layers {
            return None;
        }
        let served = |end| run.served_before(end) as u64;
        // A history that is full has the last requests alone.
        let before = made.checked_sub(served(run.requests().len()))?;
        Some(Self {
            allocations: found.ends.iter().map(|end| before.saturating_add(served(*end))).collect(),
            are_known: found.has_known_iterations,
        })
    }
}

/// The objects of the program that keep more from iteration to iteration, by descending growth, as the file of
/// the run has them; empty where the file is not of a dry run or of a simulation.
pub fn keepers(run: &Run, found: &Leaks) -> Vec<Keeper> {
    let Some((keepers, device)) = run.found_keepers() else { return Vec::new() };
    let mut ends = vec![IterationEnds::default(); device];
    ends.push(keepers.iteration_ends(device, run, found));
    keepers.growing(&ends)
}

/// The keepers that texts name: those of the most growth that keep a share of the bytes at the peak.
pub fn shown_keepers(keepers: &[Keeper], peak: Bytes) -> impl Iterator<Item = &Keeper> {
    let is_much = move |keeper: &&Keeper| keeper.growth.get().saturating_mul(MIN_KEPT_DIVISOR) >= peak.get();
    keepers.iter().filter(is_much).take(MAX_KEEPERS)
}

/// ``each of 58 iterations kept 1 tensor (10 KiB)``.
pub fn keeper_growth_text(keeper: &Keeper) -> String {
    growth_text(keeper.iterations, "iteration", keeper.growth_tensors, keeper.growth)
}

/// ``` `history` in `main` (train.py:17 appends) keeps 60 tensors, 600 KiB, made at train.py:10```.
pub fn keeper_text(keeper: &Keeper) -> String {
    let function = keeper.function.as_ref().map_or_else(String::new, |name| format!(" in `{name}`"));
    let put: Vec<String> = keeper
        .put_at
        .iter()
        .map(|line| format!("{}:{} {}", shortened_path(&line.file), line.line, line.action))
        .collect();
    let put = if put.is_empty() { String::new() } else { format!(" ({})", put.join(", ")) };
    let made: Vec<String> =
        keeper.made_at.iter().map(|line| format!("{}:{}", shortened_path(&line.file), line.line)).collect();
    let made = if made.is_empty() { String::new() } else { format!(", made at {}", joined(&made)) };
    let graphs = match keeper.of_graphs {
        0 => String::new(),
        some if keeper.kind == GRAPH => format!(", {some} of them through its graph"),
        some => format!(", {some} of them through the graphs of the others"),
    };
    let tensors = counted(keeper.tensors, "tensor");
    format!("`{}`{function}{put} keeps {tensors}, {}{graphs}{made}", keeper.name, keeper.bytes)
}

impl FoundKeepers {
    /// Reads the JSON of the search; none for another text.
    #[must_use]
    pub fn read(text: &str) -> Self {
        serde_json::from_str(text).unwrap_or_default()
    }

    /// The ends of the iterations of a device: those that the process knew, or else those by the requests of
    /// the device's run.
    pub fn iteration_ends(&self, device: usize, run: &Run, found: &Leaks) -> IterationEnds {
        let known = self.iteration_ends.get(device).filter(|ends| ends.len() >= MIN_ITERATIONS);
        if let Some(ends) = known {
            return IterationEnds { allocations: ends.clone(), are_known: true };
        }
        let made = self.made.get(device);
        made.and_then(|made| IterationEnds::of(run, found, *made)).unwrap_or_default()
    }

    /// The objects that keep more from iteration to iteration, by descending growth. `ends` are by device.
    pub fn growing(&self, ends: &[IterationEnds]) -> Vec<Keeper> {
        let mut found: Vec<Keeper> = self.rows.iter().filter_map(|row| self.keeper(row, ends)).collect();
        found.sort_by_key(|keeper| Reverse(keeper.growth));
        found
    }

    fn keeper(&self, row: &FoundKeeper, ends: &[IterationEnds]) -> Option<Keeper> {
        let of_devices = ends.iter().enumerate().filter_map(|(device, ends)| {
            // A forward pass keeps the activations of its layers until backward: nothing grows.
            let may_be_layers = !ends.are_known && (row.is_in_module_call || row.kind == GRAPH);
            let made = row.made.get(device).copied().filter(|_| !may_be_layers)?;
            let searched = searched(&ends.allocations, made)?;
            let numbers = row.blocks.iter().filter(|block| block.0 == device).map(|block| block.1);
            let rising = rising(searched, &numbers.collect::<Vec<_>>())?;
            let (from, to) = (*searched.first()?, *searched.last()?);
            Some((device, from..to, rising))
        });
        let growing: Vec<_> = of_devices.collect();
        let (.., iterations) = growing.iter().max_by_key(|(.., rising)| *rising)?;
        let is_growth = |block: &&KeptBlock| {
            growing.iter().any(|(device, range, _)| *device == block.0 && range.contains(&block.1))
        };
        let sum = |blocks: &[&KeptBlock]| blocks.iter().map(|block| block.2).sum::<Bytes>();
        let (all, grown): (Vec<_>, Vec<_>) =
            (row.blocks.iter().collect(), row.blocks.iter().filter(is_growth).collect());
        Some(Keeper {
            name: row.name.clone(),
            function: row.function.clone(),
            kind: row.kind.clone(),
            tensors: all.len() as u64,
            of_graphs: all.iter().filter(|block| block.4).count() as u64,
            bytes: sum(&all),
            iterations: *iterations,
            growth_tensors: grown.len() as u64,
            growth: sum(&grown),
            made_at: self.made_at(&grown),
            put_at: row.put_at.clone(),
        })
    }

    /// The lines that made most of the bytes, as far as lines are known.
    fn made_at(&self, blocks: &[&KeptBlock]) -> Vec<ProgramLine> {
        let mut bytes: BTreeMap<usize, Bytes> = BTreeMap::new();
        for block in blocks.iter().filter(|block| block.3 > 0) {
            let sum = bytes.entry(block.3).or_default();
            *sum = sum.saturating_add(block.2);
        }
        let mut lines: Vec<(usize, Bytes)> = bytes.into_iter().collect();
        lines.sort_by_key(|(_, bytes)| Reverse(*bytes));
        let lines = lines.into_iter().take(MAX_LINES);
        lines.filter_map(|(line, _)| self.lines.get(line.checked_sub(1)?).cloned()).collect()
    }
}

/// The ends between which growth is searched for, those up to the search: from the second iteration's on,
/// since programs set themselves up before.
fn searched(ends: &[u64], made: u64) -> Option<&[u64]> {
    let whole = ends.partition_point(|end| *end <= made);
    let searched = ends.get(1..whole)?;
    (whole >= MIN_ITERATIONS).then_some(searched)
}

/// In how many iterations blocks were made that are still kept; `None` where it is at most half of them. A
/// program with two optimizers has two steps in an iteration.
fn rising(ends: &[u64], numbers: &[u64]) -> Option<u64> {
    let parts: BTreeSet<usize> =
        numbers.iter().map(|number| ends.partition_point(|end| end <= number)).collect();
    let count = |steps: usize| {
        let all = ends.len().saturating_sub(1) / steps;
        let inside = parts.iter().filter_map(|part| part.checked_sub(1)).map(|part| part / steps);
        let rising = inside.filter(|part| *part < all).collect::<BTreeSet<usize>>().len();
        (rising * 2 > all && all + 2 >= MIN_ITERATIONS).then_some(rising as u64)
    };
    count(1).or_else(|| count(2))
}

#[cfg(test)]
mod tests {
    use std::ops::ControlFlow;

    use blockyard_record::Bytes;
    use blockyard_workload::Workload;

    use crate::{Run, leaks};

    use super::{FoundKeepers, IterationEnds};

    /// A list with a block of 512 bytes for each of these numbers, in a run of 100 allocations.
    fn found(numbers: &[u64], kind: &str) -> FoundKeepers {
        let blocks: Vec<String> =
            numbers.iter().map(|number| format!("[0,{number},512,{},false]", number % 2)).collect();
        let row = format!(
            "{{\"name\":\"kept\",\"function\":null,\"kind\":\"{kind}\",\"is_in_module_call\":false,\
             \"put_at\":[{{\"file\":\"a.py\",\"line\":9,\"action\":\"appends\"}}],\
             \"blocks\":[{}],\"made\":[100]}}",
            blocks.join(",")
        );
        let text = format!("{{\"rows\":[{row}],\"lines\":[{{\"file\":\"a.py\",\"line\":4}}]}}");
        FoundKeepers::read(&text)
    }

    fn ends(are_known: bool) -> [IterationEnds; 1] {
        [IterationEnds { allocations: (1..=10).map(|end| end * 10).collect(), are_known }]
    }

    #[test]
    fn a_list_to_which_most_iterations_add_grows() {
        let grows = found(&[5, 15, 25, 35, 45, 55, 65, 75, 85, 95], "list").growing(&ends(true));
        let [keeper] = grows.as_slice() else { panic!("{grows:?}") };
        assert_eq!((keeper.tensors, keeper.bytes.get()), (10, 5120));
        assert_eq!((keeper.iterations, keeper.growth_tensors, keeper.growth.get()), (8, 8, 4096));
        assert_eq!((keeper.made_at[0].line, keeper.put_at[0].line), (4, 9));
    }

    #[test]
    fn what_is_made_at_once_or_replaced_does_not_grow() {
        for numbers in [&[0, 1, 2, 3, 4, 5, 6, 7, 8, 9][..], &[70, 75, 80, 85, 90, 95, 99], &[]] {
            assert_eq!(found(numbers, "list").growing(&ends(true)), [], "{numbers:?}");
        }
        let each = [15, 25, 35, 45];
        let few = [IterationEnds { allocations: vec![20, 40, 100], are_known: true }];
        assert_eq!(found(&each, "list").growing(&few), [], "too few iterations");
    }

    #[test]
    fn a_graph_grows_only_over_known_iterations() {
        let each = [25, 35, 45, 55, 65, 75, 85];
        assert_eq!(found(&each, "graph").growing(&ends(false)), []);
        assert_eq!(found(&each, "graph").growing(&ends(true)).len(), 1);
        assert_eq!(found(&each, "list").growing(&ends(false)).len(), 1);
    }

    #[test]
    fn iterations_that_the_process_knew_count_before_those_of_the_requests() {
        let text = "repeat 9 as i { a = alloc 30 MiB\n kept[i] = alloc 1 MiB\n b = alloc 2 MiB\n free a, b }";
        let run = Run::from_workload("", Workload::parse(text).unwrap(), "", Bytes::gib(1));
        let found = leaks(&run, &mut |_| ControlFlow::Continue(())).unwrap();
        let keepers =
            FoundKeepers::read(r#"{"rows":[],"lines":[],"made":[27],"iteration_ends":[[3,6,9,12]]}"#);
        let known = keepers.iteration_ends(0, &run, &found);
        assert_eq!((known.allocations.as_slice(), known.are_known), (&[3, 6, 9, 12][..], true));
        let keepers = FoundKeepers::read(r#"{"rows":[],"lines":[],"made":[30],"iteration_ends":[[30]]}"#);
        let by_requests = keepers.iteration_ends(0, &run, &found);
        // Three allocations came before the run's first request.
        assert_eq!(by_requests.allocations.last(), Some(&30));
        assert_eq!(FoundKeepers::read("no JSON").iteration_ends(0, &run, &found), IterationEnds::default());
    }

    #[test]
    fn an_iteration_may_have_two_steps() {
        let grows = found(&[25, 45, 65, 85], "list").growing(&ends(true));
        assert_eq!(grows.first().map(|keeper| keeper.iterations), Some(4));
    }
}

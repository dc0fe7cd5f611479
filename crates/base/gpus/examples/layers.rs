//! How many recorded sizes of convolutions the tables and the trees give.
//!
//!     python scripts/layers.py questions NETWORKS ANSWERS... | cargo run --release -p blockyard-gpus
//!     --features networks --example layers [TABLE]
//!
//! Reads lines of a question (`scripts/cudnn.cpp`) with cuDNN's bytes at their end. `TABLE` names a file to
//! read in place of the built-in `layers.bin`.
#![allow(clippy::print_stdout, reason = "the program prints")]

use std::collections::BTreeMap;
use std::io::BufRead as _;

use blockyard_gpus::tables::{
    LayerSize, LayerTable, Operands, WorkspaceRequest, estimate, hash, recorded_size, size_in_layers,
    size_in_networks,
};

/// A question and its answer.
struct RecordedRequest {
    head: [i64; 3],
    lists: [Vec<i64>; 6],
    bytes: u64,
}

impl RecordedRequest {
    fn read(line: &str) -> Option<Self> {
        let numbers: Vec<i64> = line.split(' ').map(str::parse).collect::<Result<_, _>>().ok()?;
        let (&bytes, numbers) = numbers.split_last()?;
        let (head, rest) = numbers.split_first_chunk::<3>()?;
        let (&dims, mut rest) = rest.split_first()?;
        let dims = usize::try_from(dims).ok()?;
        let mut lists: [Vec<i64>; 6] = Default::default();
        for (list, length) in lists.iter_mut().zip([dims + 2, dims + 2, dims + 2, dims, dims, dims]) {
            let (taken, others) = rest.split_at_checked(length)?;
            *list = taken.to_vec();
            rest = others;
        }
        Some(Self { head: *head, lists, bytes: u64::try_from(bytes).ok()? })
    }

    fn request(&self) -> WorkspaceRequest<'_> {
        let [input, filter, output, stride, padding, dilation] = &self.lists;
        WorkspaceRequest {
            operation: usize::try_from(self.head[0]).unwrap_or(0),
            dtype: self.head[1],
            element_bytes: match self.head[1] {
                8 => 4,
                9 => 8,
                _ => 2,
            },
            is_channels_last: self.head[2] != 0,
            input,
            filter,
            output,
            stride,
            padding,
            dilation,
        }
    }
}

/// The bytes that the tables of operators have, `tables.bin` and `networks.bin`; `None` where neither has the
/// question.
fn of_operators(request: &WorkspaceRequest<'_>) -> Option<u64> {
    let bytes =
        |sizes: &[i64], element: u64| sizes.iter().map(|size| size.unsigned_abs()).product::<u64>() * element;
    let at_once = i64::try_from(16 / request.element_bytes).unwrap_or(4);
    let padded = |sizes: &[i64], places: usize| {
        let mut sizes = sizes.to_vec();
        for size in sizes.iter_mut().skip(2 - places).take(places) {
            *size = (*size + at_once - 1) / at_once * at_once;
        }
        bytes(&sizes, request.element_bytes)
    };
    let operator = |pass: usize, is_transposed: bool, input: &[i64], output: &[i64]| {
        let groups = request.input.get(1)?.checked_div(*request.filter.get(1)?)?;
        let pass = i64::try_from(pass).unwrap_or(0);
        let last = i64::from(request.is_channels_last);
        let mut numbers = vec![1, pass, i64::from(is_transposed), request.dtype, last, groups];
        for list in [input, request.filter, request.stride, request.padding, request.dilation] {
            numbers.push(-1);
            numbers.extend(list);
        }
        let operands = Operands {
            plain: [input, request.filter, output].map(|sizes| bytes(sizes, request.element_bytes)),
            padded: [padded(input, 1), padded(request.filter, 2), padded(output, 1)],
            partial: bytes(request.filter, 4),
            batch: input.first()?.unsigned_abs(),
        };
        let key = hash(&numbers);
        recorded_size(key, &operands).or_else(|| size_in_networks(key, &operands))
    };
    let (own, input, output) = (request.operation, request.input, request.output);
    let other = [1, 0, 2].get(own).copied()?;
    operator(own, false, input, output).or_else(|| operator(other, true, output, input))
}

/// Sizes, and how many of them are right by each way.
#[derive(Default)]
struct Counts {
    all: u64,
    tree: u64,
    /// In the tables of operators, right there, and right by them or else by the trees.
    older: u64,
    older_right: u64,
    before: u64,
    recorded: u64,
    recorded_right: u64,
    near: u64,
    near_right: u64,
    /// The table's, else that of an operator, else the tree's.
    best: u64,
}

fn main() -> std::io::Result<()> {
    let file = std::env::args().nth(1).map(std::fs::read).transpose()?;
    let table = file.as_deref().map(LayerTable::read);
    if let Some(table) = &table {
        println!("{} layers", table.len());
    }
    let mut by_operation: BTreeMap<String, Counts> = BTreeMap::new();
    for line in std::io::stdin().lock().lines() {
        let Some(asked) = RecordedRequest::read(&line?) else { continue };
        let request = asked.request();
        let tree = estimate(&request).unwrap_or(0);
        let older = of_operators(&request);
        let found = match &table {
            Some(table) => table.find(&request),
            None => size_in_layers(&request),
        };
        let pass = ["forward", "gradient of the input", "gradient of the filter"];
        for row in [pass.get(request.operation).copied().unwrap_or("?"), "all"] {
            let counts = by_operation.entry(row.to_owned()).or_default();
            counts.all += 1;
            counts.tree += u64::from(tree == asked.bytes);
            counts.older += u64::from(older.is_some());
            counts.older_right += u64::from(older == Some(asked.bytes));
            counts.before += u64::from(older.unwrap_or(tree) == asked.bytes);
            let best = match found {
                Some(LayerSize::Recorded(size)) => {
                    counts.recorded += 1;
                    counts.recorded_right += u64::from(size == asked.bytes);
                    size
                }
                Some(LayerSize::Near(size)) => {
                    counts.near += 1;
                    counts.near_right += u64::from(size == asked.bytes);
                    size
                }
                None => older.unwrap_or(tree),
            };
            counts.best += u64::from(best == asked.bytes);
        }
    }
    for (row, counts) in by_operation {
        let Counts {
            all,
            tree,
            older,
            older_right,
            before,
            recorded,
            recorded_right,
            near,
            near_right,
            best,
        } = counts;
        println!(
            "{row}: {all} sizes; trees {tree}; tables of operators {older_right} of {older}, else trees {before}; recorded \
             {recorded_right} of {recorded}; near {near_right} of {near}; together {best}"
        );
    }
    Ok(())
}

//! How many recorded sizes of convolutions the tables and the trees give.
//!
//!     python scripts/layers.py questions NETWORKS ANSWERS... | cargo run --release -p blockyard-gpus --features networks --example layers [TABLE]
//!
//! Reads lines of a question (`scripts/cudnn.cpp`) with cuDNN's bytes at their end. `TABLE` names a file to read in place of the built-in `layers.bin`.
#![allow(clippy::print_stdout, reason = "the program prints")]

use std::collections::BTreeMap;
use std::io::BufRead as _;

use blockyard_gpus::tables::{LayerSize, LayerTable, Request, estimate, size_in_layers};

/// A question and its answer.
struct Asked {
    head: [i64; 3],
    lists: [Vec<i64>; 6],
    bytes: u64,
}

impl Asked {
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

    fn request(&self) -> Request<'_> {
        let [input, filter, output, stride, padding, dilation] = &self.lists;
        Request {
            operation: usize::try_from(self.head[0]).unwrap_or(0),
            dtype: self.head[1],
            element: match self.head[1] {
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

/// Sizes, and how many of them are right by each way.
#[derive(Default)]
struct Counts {
    all: u64,
    tree: u64,
    recorded: u64,
    recorded_right: u64,
    near: u64,
    near_right: u64,
    /// The table's, else the tree's.
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
        let Some(asked) = Asked::read(&line?) else { continue };
        let request = asked.request();
        let tree = estimate(&request).unwrap_or(0);
        let found = match &table {
            Some(table) => table.find(&request),
            None => size_in_layers(&request),
        };
        let pass = ["forward", "gradient of the input", "gradient of the filter"];
        for row in [pass.get(request.operation).copied().unwrap_or("?"), "all"] {
            let counts = by_operation.entry(row.to_owned()).or_default();
            counts.all += 1;
            counts.tree += u64::from(tree == asked.bytes);
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
                None => tree,
            };
            counts.best += u64::from(best == asked.bytes);
        }
    }
    for (row, counts) in by_operation {
        let Counts { all, tree, recorded, recorded_right, near, near_right, best } = counts;
        println!(
            "{row}: {all} sizes; trees {tree}; recorded {recorded_right} of {recorded}; near {near_right} of {near}; together {best}"
        );
    }
    Ok(())
}

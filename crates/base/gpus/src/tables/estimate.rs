//! An estimate of the workspace of cuDNN for a convolution that was not recorded.
//!
//! cuDNN's own rules choose one of its engines, and each engine has a formula for its workspace. This module
//! has the formulas; they give the bytes of all shapes that cuDNN was asked about
//! (`scripts/convolutions.py`). Only the choice is estimated: `trees.bin` holds a decision tree for each
//! operation, learned from cuDNN's answers. Callers mark each result as an estimate.

use super::trees::{Trees, with_trees};

/// A convolution as cuDNN is asked for it. A transposed one is the gradient of an input.
#[derive(Clone, Copy, Debug)]
pub struct WorkspaceRequest<'a> {
    /// 0 for the forward pass, 1 for the gradient of the input, 2 for the gradient of the filter.
    pub operation: usize,
    /// The number of the elements' type, in the order of `blockyard_torch::Dtype`: see
    /// [`dtype`](super::dtype).
    pub dtype: i64,
    /// Bytes of an element.
    pub element_bytes: u64,
    /// Whether channels lie last in memory.
    pub is_channels_last: bool,
    /// Sizes of the input.
    pub input: &'a [i64],
    /// Sizes of the filter.
    pub filter: &'a [i64],
    /// Sizes of the output.
    pub output: &'a [i64],
    /// The distance between two results, in each dimension.
    pub stride: &'a [i64],
    /// Zeros at each border.
    pub padding: &'a [i64],
    /// The distance between two elements that a filter reads, in each dimension.
    pub dilation: &'a [i64],
}

/// The number at a place counted from the end, as if all had three dimensions in space.
fn from_end(list: &[i64], place: usize, first: usize, missing: i64) -> i64 {
    let spatial = list.get(first..).unwrap_or(&[]);
    spatial.iter().rev().nth(place).copied().unwrap_or(missing)
}

fn times(factors: &[i64]) -> i64 {
    factors.iter().fold(1_i64, |product, factor| product.saturating_mul(*factor))
}

/// How many units cover a number.
fn up(number: i64, unit: i64) -> i64 {
    number.saturating_add(unit - 1).div_euclid(unit.max(1))
}

/// The sizes of a convolution that engines count with.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    batch: i64,
    channels: i64,
    filters: i64,
    groups: i64,
    /// Channels that a filter reads.
    depth: i64,
    /// Places in input, filter and output.
    places: [i64; 3],
    element: i64,
    /// Elements that are read at once: 16 bytes.
    at_once: i64,
    is_channels_last: bool,
}

impl Shape {
    /// The shape of a request; a dimension that the request does not have counts as 1.
    pub(super) fn of(request: &WorkspaceRequest<'_>) -> Self {
        let at = |list: &[i64], place: usize| list.get(place).copied().unwrap_or(1).max(1);
        let places = |list: &[i64]| times(list.get(2..).unwrap_or(&[]));
        let depth = at(request.filter, 1);
        let element = i64::try_from(request.element_bytes).unwrap_or(4).max(1);
        Self {
            batch: at(request.input, 0),
            channels: at(request.input, 1),
            filters: at(request.output, 1),
            groups: at(request.input, 1) / depth,
            depth,
            places: [places(request.input), places(request.filter), places(request.output)],
            element,
            at_once: (16 / element).max(1),
            is_channels_last: request.is_channels_last,
        }
    }

    fn rounded(&self, channels: i64) -> i64 {
        up(channels, self.at_once).saturating_mul(self.at_once)
    }

    /// Bytes of input, filter and output.
    fn plain(&self) -> [i64; 3] {
        let [input, filter, output] = self.places;
        [
            times(&[self.batch, input, self.channels, self.element]),
            times(&[self.filters, self.depth, filter, self.element]),
            times(&[self.batch, output, self.filters, self.element]),
        ]
    }

    /// Bytes of input, filter and output with channels rounded up to as many as are read at once.
    fn padded(&self) -> [i64; 3] {
        let [input, filter, output] = self.places;
        [
            times(&[self.batch, input, self.rounded(self.channels), self.element]),
            times(&[self.rounded(self.filters), self.rounded(self.depth), filter, self.element]),
            times(&[self.batch, output, self.rounded(self.filters), self.element]),
        ]
    }

    /// Which operands have their channels moved to the end: those where that changes the order.
    fn moved(&self) -> [bool; 3] {
        let [input, filter, output] = self.places;
        [(self.channels, input), (self.depth, filter), (self.filters, output)]
            .map(|(channels, places)| !self.is_channels_last && channels > 1 && places > 1)
    }

    fn copies_padded(&self) -> [i64; 3] {
        let is_ragged = |channels: i64| channels % self.at_once != 0;
        let ragged = [
            is_ragged(self.channels),
            is_ragged(self.depth) || is_ragged(self.filters),
            is_ragged(self.filters),
        ];
        let (moved, sizes) = (self.moved(), self.padded());
        std::array::from_fn(|operand| if moved[operand] || ragged[operand] { sizes[operand] } else { 0 })
    }

    fn copies(&self) -> [i64; 3] {
        let (moved, sizes) = (self.moved(), self.plain());
        std::array::from_fn(|operand| if moved[operand] { sizes[operand] } else { 0 })
    }
}

/// How an engine's workspace is computed. The bits of a code: six for the formula, twelve for a count of
/// partial filters, the others for a remainder in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Code(pub(super) u64);

/// Partial filters are added up in tiles of this many filters and numbers of a filter; and whether channels
/// are rounded up in them.
const TILES: [(i64, i64, bool); 8] = [
    (256, 128, true),
    (64, 64, true),
    (64, 32, true),
    (32, 128, true),
    (16, 64, false),
    (32, 16, false),
    (64, 16, false),
    (32, 32, false),
];
/// The first formula with partial filters, the one with a filter for each image, and the first with tiles.
pub(super) const PARTIAL: u64 = 24;
pub(super) const OF_IMAGES: u64 = 25;
const TILED: u64 = 26;
/// One more than the last formula.
pub(super) const FORMULAS: u64 = TILED + TILES.len() as u64;

impl Code {
    /// The number of the formula.
    pub(super) fn formula(self) -> u64 {
        self.0 & 63
    }

    /// The code with a count of partial filters.
    pub(super) fn with_count(self, count: u64) -> Self {
        Self(self.0 | (count & 4095) << 6)
    }

    /// Whether the formula counts partial filters.
    #[cfg(feature = "networks")]
    pub(super) fn counts(self) -> bool {
        (PARTIAL..FORMULAS).contains(&self.formula()) && self.formula() != OF_IMAGES
    }

    /// The bytes of the workspace that the code's formula gives for a shape.
    pub(super) fn bytes(self, shape: &Shape) -> i64 {
        let count = i64::try_from(self.0 >> 6 & 4095).unwrap_or(0);
        let rest = i64::try_from(self.0 >> 18).unwrap_or(i64::MAX);
        let sum = |sizes: [i64; 3], chosen: u64| {
            let sizes = sizes.into_iter().enumerate().filter(|(bit, _)| chosen >> bit & 1 == 1);
            sizes.fold(0_i64, |sum, (_, size)| sum.saturating_add(size))
        };
        let of_float = |bytes: i64| times(&[bytes / shape.element, 4]);
        let formula = self.formula();
        let taken = match formula {
            0..8 => sum(shape.copies_padded(), formula),
            8..16 => sum(shape.copies(), formula & 7),
            16..PARTIAL => sum(shape.plain(), formula & 7),
            PARTIAL => {
                sum(shape.copies_padded(), 7).saturating_add(times(&[count, of_float(shape.padded()[1])]))
            }
            OF_IMAGES => times(&[shape.batch, of_float(shape.plain()[1])]),
            _ => tiled(shape, formula - TILED, count),
        };
        taken.saturating_add(rest)
    }
}

/// Copies, partial filters, and a counter for each tile and part.
fn tiled(shape: &Shape, index: u64, count: i64) -> i64 {
    let tile = usize::try_from(index).ok().and_then(|index| TILES.get(index));
    let Some(&(rows, columns, is_padded)) = tile else { return 0 };
    let (copies, depth, filters) = if is_padded {
        (shape.copies_padded(), shape.rounded(shape.depth), shape.rounded(shape.filters))
    } else {
        (shape.copies(), shape.depth, shape.filters)
    };
    let tiles = times(&[up(filters, rows), up(times(&[depth, shape.places[1]]), columns)]);
    let partial = times(&[count, tiles, rows, columns, 4]);
    let counters = times(&[4, tiles, count.saturating_add(1)]);
    let bytes_of_copies = copies.into_iter().fold(0_i64, i64::saturating_add);
    bytes_of_copies.saturating_add(partial).saturating_add(counters)
}

/// The numbers of a convolution that the trees ask about, in the order that `trees.bin` needs (`features` in
/// `scripts/convolutions.py`).
fn features(request: &WorkspaceRequest<'_>, shape: &Shape) -> Vec<i64> {
    let in_space = |list: &[i64]| [2, 1, 0].map(|place| from_end(list, place, 2, 1));
    let setting = |list: &[i64], missing: i64| [1, 0].map(|place| from_end(list, place, 0, missing));
    let (input, filter, output) =
        (in_space(request.input), in_space(request.filter), in_space(request.output));
    let [places_in, places_of_filter, places_out] = shape.places;
    let Shape { batch, channels, filters, groups, depth, .. } = *shape;
    let per_group = filters / groups.max(1);
    let (rows_in, rows_out) = (times(&[batch, places_in]), times(&[batch, places_out]));
    let numbers_of_filter = times(&[depth, places_of_filter]);
    // The product of matrices that a convolution is.
    let (rows, columns, inner) = match request.operation {
        0 => (rows_out, filters, numbers_of_filter),
        1 => (rows_in, channels, times(&[filters, places_of_filter])),
        _ => (filters, numbers_of_filter, rows_out),
    };
    let tiles = |height: i64, width: i64| times(&[up(rows, height), up(columns, width)]);
    let [of_input, of_filter, of_output] = shape.plain();
    let mut all = vec![
        request.dtype,
        i64::from(shape.is_channels_last),
        i64::try_from(request.input.len()).unwrap_or(0) - 2,
        batch,
        channels,
        filters,
        groups,
    ];
    all.extend(input);
    all.extend(filter);
    all.extend(output);
    all.extend(setting(request.stride, 1));
    all.extend(setting(request.padding, 0));
    all.push(from_end(request.dilation, 0, 0, 1));
    all.extend([depth, per_group, places_in, places_out, places_of_filter, rows_out, rows_in]);
    all.extend([channels % 8, filters % 8, channels % 4, filters % 4, depth % 8, per_group % 8]);
    all.extend([of_input, of_filter, of_output, of_input.saturating_add(of_output)]);
    all.extend([rows, columns, inner, times(&[rows, columns]), times(&[rows, columns, inner])]);
    all.push(times(&[channels, filters]));
    all.extend([(places_out - places_in).max(0), (places_in - places_out).max(0)]);
    all.extend([places_in % 8, places_out % 8, input[2] % 8, output[2] % 8]);
    let sizes = [(64, 64), (128, 64), (64, 128), (128, 128), (256, 128), (128, 256)];
    all.extend(sizes.map(|(height, width)| tiles(height, width)));
    // An H200 runs 132 tiles at once.
    all.extend([up(tiles(128, 128), 132), up(inner, 64)]);
    all
}

/// An estimate of the bytes of the workspace; `None` for a convolution without a shape that the trees can be
/// asked about.
pub fn estimate(request: &WorkspaceRequest<'_>) -> Option<u64> {
    let shape = Shape::of(request);
    let features = features(request, &shape);
    let code = with_trees(|trees: &Trees| trees.find(request.operation, &features))?;
    u64::try_from(code.bytes(&shape)).ok()
}

//! The workspaces of cuDNN for the convolutions of known networks, by batch: `layers.bin`, which
//! `scripts/layers.py` writes from cuDNN's answers.
//!
//! A layer is a convolution without its batch, its type and its order of channels. For each pass, type and
//! order the file has the runs of batches over which the size follows one formula of
//! [`estimate`](super::estimate), so that dozens of batches take a few bytes.
//!
//! The file is compressed (zlib). In it all numbers are of seven bits a byte, lowest first; one that has a
//! sign is twice its value, or twice its distance from -1 and one more. First come the lists of batches: how
//! many, and of each its length and the steps from one batch to the next. Then how many layers there are, and
//! of each, by ascending key, the step from the key before, the length of the rest in bytes, the list, the
//! factor from a batch of the network to one of the layer, how many batches of the list were asked for, the
//! rows that there are, as bits, and each row. A row is one of six types and orders of one operation. Below
//! six a row's first number is another row of the operation, whose remainders it has but for a number that
//! follows (with a sign). Else the row has six fewer runs, and of each run the step of its first batch's
//! place in the list from the run before; twice its formula, and one more if its remainder grows with the
//! batch; how many partial filters, if the formula counts them; the remainder; and how much it grows by batch
//! (with a sign).

use std::io::Read as _;
use std::ops::Range;
use std::sync::OnceLock;

use flate2::read::ZlibDecoder;

use super::estimate::{Code, Shape, WorkspaceRequest};
use super::number;

static LAYERS: &[u8] = include_bytes!("../layers.bin");
/// A table in the same form, of fewer networks and batches.
static LARGEST: &[u8] = include_bytes!("../largest.bin");

/// A size that the table gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LayerSize {
    /// The bytes that cuDNN answered for this convolution.
    Recorded(u64),
    /// The bytes that follow from the nearest batch of this layer for which cuDNN answered.
    Near(u64),
}

/// The bytes of the workspace of a convolution whose layer is one of a known network.
pub fn size_in_layers(request: &WorkspaceRequest<'_>) -> Option<LayerSize> {
    static TABLE: OnceLock<LayerTable> = OnceLock::new();
    TABLE.get_or_init(|| LayerTable::read(LAYERS)).find(request)
}

/// The bytes of the largest workspace that any algorithm of cuDNN wants for a convolution whose layer is one of
/// a known network: under `torch.backends.cudnn.benchmark` PyTorch allocates it to try all algorithms.
pub fn largest_in_layers(request: &WorkspaceRequest<'_>) -> Option<LayerSize> {
    static TABLE: OnceLock<LayerTable> = OnceLock::new();
    TABLE.get_or_init(|| LayerTable::read(LARGEST)).find(request)
}

/// Lists of batches.
type Lists = Vec<Vec<i64>>;
/// Layers by ascending key, and where each is.
type Places = Vec<(u64, Range<usize>)>;

/// A table of layers, which are read when they are asked for.
#[derive(Clone, Debug, Default)]
pub struct LayerTable {
    bytes: Vec<u8>,
    lists: Lists,
    layers: Places,
}

/// Types and orders of channels, in the order of the rows of each operation.
const KINDS: [(i64, bool); 6] = [(8, false), (8, true), (7, false), (6, false), (7, true), (6, true)];

/// The formula that stands for no answer.
const NO_ANSWER: u64 = 62;

/// Batches over which one formula gives the size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct FormulaRange {
    /// The place of the first batch in the list.
    place: usize,
    formula: u64,
    count: u64,
    rest: i64,
    growth: i64,
}

impl FormulaRange {
    fn read(bytes: &mut &[u8], before: usize) -> Option<Self> {
        let step = usize::try_from(number(bytes)?).ok()?;
        let head = number(bytes)?;
        let formula = head >> 1;
        let count = if Code(formula).counts() { number(bytes)? } else { 0 };
        let rest = i64::try_from(number(bytes)?).ok()?;
        let growth = if head & 1 == 1 { signed(bytes)? } else { 0 };
        Some(Self { place: before.checked_add(step)?, formula, count, rest, growth })
    }

    /// The bytes for a batch by its distance from the run's first one.
    fn size(&self, above: i64, request: &WorkspaceRequest<'_>) -> Option<u64> {
        let rest = self.rest.checked_add(self.growth.checked_mul(above)?)?;
        let rest = u64::try_from(rest).ok().filter(|rest| rest >> 45 == 0)?;
        if self.formula == NO_ANSWER {
            return None;
        }
        let code = Code(rest << 18 | self.formula).with_count(self.count);
        u64::try_from(code.bytes(&Shape::of(request))).ok()
    }
}

/// Bits of a key: a hash of all numbers that distinguish a layer.
const KEY_BITS: u32 = 48;

/// The key of a layer (FNV-1a, mixed at the end; `key` in `scripts/layers.py`).
fn key(request: &WorkspaceRequest<'_>) -> u64 {
    let mut state = 0xcbf2_9ce4_8422_2325_u64;
    let mut put = |number: i64| {
        for byte in number.to_le_bytes() {
            state = (state ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    };
    put(i64::try_from(request.stride.len()).unwrap_or(0));
    let without_batch = |sizes: &'_ [i64]| sizes.get(1..).unwrap_or(&[]).to_vec();
    let lists = [without_batch(request.input), request.filter.to_vec(), without_batch(request.output)];
    lists.iter().flatten().for_each(|number| put(*number));
    [request.stride, request.padding, request.dilation].into_iter().flatten().for_each(|number| put(*number));
    state ^= state >> 29;
    state = state.wrapping_mul(0xbf58_476d_1ce4_e5b9);
    state >> (64 - KEY_BITS)
}

fn signed(bytes: &mut &[u8]) -> Option<i64> {
    let value = number(bytes)?;
    let half = i64::try_from(value >> 1).ok()?;
    Some(if value & 1 == 0 { half } else { -1 - half })
}

impl LayerTable {
    /// Reads where each layer is in a file; a file in another form has no layers.
    #[must_use]
    pub fn read(file: &[u8]) -> Self {
        let mut bytes = Vec::new();
        if ZlibDecoder::new(file).read_to_end(&mut bytes).is_err() {
            return Self::default();
        }
        let (lists, layers) = Self::places(&bytes).unwrap_or_default();
        Self { bytes, lists, layers }
    }

    fn places(bytes: &[u8]) -> Option<(Lists, Places)> {
        let mut rest = bytes;
        let mut lists = Vec::new();
        for _ in 0..number(&mut rest)? {
            let (mut list, mut batch) = (Vec::new(), 0_i64);
            for _ in 0..number(&mut rest)? {
                batch = batch.saturating_add_unsigned(number(&mut rest)?);
                list.push(batch);
            }
            lists.push(list);
        }
        let (mut layers, mut key) = (Vec::new(), 0_u64);
        for _ in 0..number(&mut rest)? {
            key = key.wrapping_add(number(&mut rest)?);
            let length = usize::try_from(number(&mut rest)?).ok()?;
            let start = bytes.len() - rest.len();
            rest = rest.get(length..)?;
            layers.push((key, start..start + length));
        }
        Some((lists, layers))
    }

    /// How many layers the table has.
    pub fn len(&self) -> usize {
        self.layers.len()
    }

    /// Whether the table has no layers.
    pub fn is_empty(&self) -> bool {
        self.layers.is_empty()
    }

    /// The bytes of a convolution's workspace; `None` where the table does not have the layer, its type or
    /// its order.
    pub fn find(&self, request: &WorkspaceRequest<'_>) -> Option<LayerSize> {
        let key = key(request);
        let first = self.layers.partition_point(|(other, _)| *other < key);
        let same = self.layers.get(first..)?.iter().take_while(|(other, _)| *other == key);
        let mut found = same.filter_map(|(_, place)| self.find_in(self.bytes.get(place.clone())?, request));
        let size = found.next()?;
        Some(match size {
            LayerSize::Near(_) => found.find(|other| matches!(other, LayerSize::Recorded(_))).unwrap_or(size),
            LayerSize::Recorded(_) => size,
        })
    }

    /// The bytes that a convolution takes by the entry of its layer.
    fn find_in(&self, mut bytes: &[u8], request: &WorkspaceRequest<'_>) -> Option<LayerSize> {
        let list = self.lists.get(usize::try_from(number(&mut bytes)?).ok()?)?;
        let factor = i64::try_from(number(&mut bytes)?).ok()?.max(1);
        let batches = list.get(..usize::try_from(number(&mut bytes)?).ok()?)?;
        let kind = KINDS.iter().position(|kind| *kind == (request.dtype, request.is_channels_last))?;
        let runs = row(&mut bytes, request.operation.checked_mul(KINDS.len())?.checked_add(kind)?)?;
        let batch = *request.input.first()?;
        let size = |place: usize| {
            let run = runs.iter().rev().find(|run| run.place <= place)?;
            run.size(batch / factor - batches.get(run.place)?, request)
        };
        if batch % factor != 0 {
            return None;
        }
        let asked = batch / factor;
        let above = batches.partition_point(|other| *other < asked);
        let distance = |place: usize| batches.get(place).map(|other| other.abs_diff(asked));
        match (above.checked_sub(1).and_then(distance), distance(above)) {
            (_, Some(0)) => size(above).map(LayerSize::Recorded),
            (Some(below), Some(over)) if over < below => size(above).map(LayerSize::Near),
            (Some(_), _) => size(above - 1).map(LayerSize::Near),
            (None, _) => size(above).map(LayerSize::Near),
        }
    }
}

/// The runs of one row of a layer; the numbers of the layer's rows are next in `bytes`.
fn row(bytes: &mut &[u8], wanted: usize) -> Option<Vec<FormulaRange>> {
    let rows = number(bytes)?;
    if wanted >= 3 * KINDS.len() || rows >> wanted & 1 == 0 {
        return None;
    }
    // Rows of the operation that were read.
    let mut read: [Vec<FormulaRange>; KINDS.len()] = Default::default();
    for row in (0..=wanted).filter(|row| rows >> row & 1 == 1) {
        let head = usize::try_from(number(bytes)?).ok()?;
        let runs = if let Some(other) = read.get(head) {
            let more = signed(bytes)?;
            let moved = |run: &FormulaRange| Some(FormulaRange { rest: run.rest.checked_add(more)?, ..*run });
            other.iter().map(moved).collect::<Option<Vec<FormulaRange>>>()?
        } else {
            let mut runs = Vec::new();
            for _ in KINDS.len()..head {
                let before = runs.last().map_or(0, |run: &FormulaRange| run.place);
                runs.push(FormulaRange::read(bytes, before)?);
            }
            runs
        };
        if row == wanted {
            return Some(runs);
        }
        if let Some(place) = read.get_mut(row % KINDS.len()) {
            *place = runs;
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use flate2::read::ZlibDecoder;

    use super::{LAYERS, LayerSize, LayerTable, largest_in_layers, size_in_layers};
    use crate::tables::WorkspaceRequest;

    /// Questions to cuDNN on an H200, each with its answer: every 6,000th of a tenth of the networks that the
    /// table is made of.
    const RECORDED: &str = include_str!("../../../../../tests/fixtures/workspaces/layers.txt");

    /// The numbers of a question in lists, and the answer.
    fn parts(line: &str) -> (Vec<Vec<i64>>, u64) {
        let numbers: Vec<i64> = line.split(' ').map(|word| word.parse().expect("a number")).collect();
        let dims = usize::try_from(numbers[3]).expect("dimensions");
        let mut at = 4;
        let lengths = [dims + 2, dims + 2, dims + 2, dims, dims, dims];
        let mut lists = vec![numbers[..4].to_vec()];
        for length in lengths {
            lists.push(numbers[at..at + length].to_vec());
            at += length;
        }
        (lists, u64::try_from(numbers[at]).expect("bytes"))
    }

    fn request(lists: &[Vec<i64>]) -> WorkspaceRequest<'_> {
        let [head, input, filter, output, stride, padding, dilation] = lists else { panic!("seven lists") };
        WorkspaceRequest {
            operation: usize::try_from(head[0]).expect("an operation"),
            dtype: head[1],
            element_bytes: if head[1] == 8 { 4 } else { 2 },
            is_channels_last: head[2] == 1,
            input,
            filter,
            output,
            stride,
            padding,
            dilation,
        }
    }

    #[test]
    fn recorded_sizes_come_back() {
        let mut count = 0;
        for line in RECORDED.lines() {
            let (lists, bytes) = parts(line);
            assert_eq!(size_in_layers(&request(&lists)), Some(LayerSize::Recorded(bytes)), "{line}");
            count += 1;
        }
        assert!(count > 300, "{count}");
    }

    /// Questions for the largest workspace, each with the answer of cuDNN on an H200: every 331st of the table.
    const LARGEST_RECORDED: &str = include_str!("../../../../../tests/fixtures/workspaces/largest.txt");

    #[test]
    fn the_largest_sizes_come_back() {
        for line in LARGEST_RECORDED.lines() {
            let (lists, bytes) = parts(line);
            assert_eq!(largest_in_layers(&request(&lists)), Some(LayerSize::Recorded(bytes)), "{line}");
        }
        assert!(LARGEST_RECORDED.lines().count() > 300);
    }

    #[test]
    fn other_batches_and_layers_are_not_recorded() {
        let (mut lists, _) = parts(RECORDED.lines().next().expect("a line"));
        lists[1][0] = 1009;
        lists[3][0] = 1009;
        assert!(matches!(size_in_layers(&request(&lists)), Some(LayerSize::Near(_))));
        lists[1][1] += 1;
        assert_eq!(size_in_layers(&request(&lists)), None);
        lists[1].clear();
        assert_eq!(size_in_layers(&request(&lists)), None);
    }

    #[test]
    fn a_file_that_is_none_has_no_layers() {
        assert!(LayerTable::read(b"no table").is_empty());
        assert!(LayerTable::read(&LAYERS[..LAYERS.len() / 2]).is_empty());
        let mut bytes = Vec::new();
        ZlibDecoder::new(LAYERS).read_to_end(&mut bytes).expect("a compressed file");
        assert!(LayerTable::places(&bytes[..bytes.len() / 2]).is_none());
        assert!(LayerTable::read(LAYERS).len() > 20_000);
    }
}

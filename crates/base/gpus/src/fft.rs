//! The workspaces of cuFFT.
//!
//! cuFFT transforms many lengths in one kernel, which needs no workspace. No rule says which lengths these
//! are: `fft.bin` lists them as an H200 with CUDA 13.0 answered. Where one kernel is not enough, the
//! workspace follows from the shape.

use std::sync::OnceLock;

/// The numbers of a transform's input and output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transform {
    /// Complex numbers to complex numbers.
    Complex,
    /// Real numbers to complex numbers.
    Real,
    /// Complex numbers back to real numbers.
    Inverse,
}

/// The precision of the numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Precision {
    /// `float16`; all lengths are powers of two.
    Half,
    /// `float32`.
    Single,
    /// `float64`.
    Double,
}

impl Precision {
    /// Bytes of a complex number.
    fn bytes(self) -> u128 {
        match self {
            Self::Half => 4,
            Self::Single => 8,
            Self::Double => 16,
        }
    }
}

/// The size of a workspace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Workspace {
    /// The bytes of the workspace.
    pub bytes: u64,
    /// Whether all lengths are among those that were recorded. Otherwise the bytes are an estimate.
    pub is_recorded: bool,
}

/// Ascending lengths.
type Lengths = Vec<u64>;

/// The recorded lengths of `fft.bin`.
struct Tables {
    /// The numbers of complex elements that a single kernel transforms: in single precision, then in double
    /// precision.
    complex: [Lengths; 2],
    /// The numbers of real elements that a single kernel transforms: in single precision, then in double
    /// precision.
    real: [Lengths; 2],
    /// The lengths of all dimensions but the last one. For each precision: the lengths that one kernel
    /// transforms, then the recorded lengths that one kernel does not transform.
    columns: [[Lengths; 2]; 2],
}

fn tables() -> &'static Tables {
    static TABLES: OnceLock<Tables> = OnceLock::new();
    TABLES.get_or_init(|| {
        let mut rest: &[u8] = include_bytes!("fft.bin");
        let mut next = || lengths(&mut rest);
        let complex_and_real = [[next(), next()], [next(), next()]];
        let [[single, real_single], [double, real_double]] = complex_and_real;
        Tables {
            complex: [single, double],
            real: [real_single, real_double],
            columns: [[next(), next()], [next(), next()]],
        }
    })
}

/// Reads a list of lengths: their count, then the difference from each length to the next.
fn lengths(rest: &mut &[u8]) -> Lengths {
    let count = super::tables::number(rest).unwrap_or(0);
    let mut last = 0_u64;
    let steps = (0..count).map_while(|_| super::tables::number(rest));
    steps
        .map(|step| {
            last = last.saturating_add(step);
            last
        })
        .collect()
}

fn has(lengths: &Lengths, length: u64) -> bool {
    lengths.binary_search(&length).is_ok()
}

/// Whether the length has no prime factor above 7.
fn is_smooth(length: u64) -> bool {
    let mut rest = length.max(1);
    for factor in [2, 3, 5, 7] {
        while rest.is_multiple_of(factor) {
            rest /= factor;
        }
    }
    rest == 1
}

/// Whether the length has no prime factor above 127: others are transformed by convolution.
fn has_small_factors(length: u64) -> bool {
    let mut rest = length.max(1);
    for factor in 2..=127 {
        while rest.is_multiple_of(factor) {
            rest /= factor;
        }
    }
    rest == 1
}

/// Half precision has kernels for powers of two up to this length.
const MAX_HALF: u64 = 8192;

/// Lengths in single precision at which the two directions differ: one kernel transforms real to complex
/// numbers, but complex to real numbers take two. On an H200 both directions took the same number of kernels
/// at all other lengths, up to 4,096 in single and up to 2,048 in double precision.
const BACK_IN_TWO: [u64; 3] = [92, 232, 248];

/// The last dimension: whether one kernel transforms it, and whether that was recorded.
fn last_in_one(length: u64, transform: Transform, precision: Precision) -> (bool, bool) {
    if length <= 1 {
        return (true, true);
    }
    let tables = tables();
    let of = if transform == Transform::Complex { &tables.complex } else { &tables.real };
    match precision {
        Precision::Half => (length.is_power_of_two() && length <= MAX_HALF, length.is_power_of_two()),
        Precision::Single => {
            let is_back_in_two = transform == Transform::Inverse && BACK_IN_TWO.contains(&length);
            (
                has(&of[0], length) && !is_back_in_two,
                length <= 4096 || (length <= 1 << 21 && is_smooth(length)),
            )
        }
        Precision::Double => (has(&of[1], length), length <= 2048 || length.is_power_of_two()),
    }
}

/// The other dimensions: whether one kernel transforms each, and whether that was recorded.
fn others_in_one(lengths: &[u64], precision: Precision) -> (bool, bool) {
    let [one, several] = &tables().columns[usize::from(precision == Precision::Double)];
    let mut found = (true, precision != Precision::Half || lengths.iter().all(|length| *length <= 1));
    for length in lengths.iter().copied().filter(|length| *length > 1) {
        let is_one = has(one, length);
        let is_recorded = is_one || has(several, length);
        // Short and smooth lengths are transformed in one kernel.
        let is_one = is_one || (!is_recorded && length < 4096 && is_smooth(length));
        found = (found.0 && is_one, found.1 && is_recorded);
    }
    found
}

/// A length as a type in which the product of four lengths does not overflow.
fn number(length: u64) -> u128 {
    u128::from(length.min(1 << 28))
}

/// Bytes of the workspace of the last dimension where one kernel is not enough. `rows` is how many rows one
/// transform has, `batch` how many transforms the plan has.
fn last_bytes(
    length: u64,
    rows: u128,
    batch: u64,
    transform: Transform,
    precision: Precision,
) -> (u128, bool) {
    let all = rows * number(batch);
    let complex = last_in_one(length, Transform::Complex, precision);
    let size = precision.bytes();
    if length > 4096 && !has_small_factors(length) {
        // By convolution with a longer sequence, whose length is about this.
        let convolution = number(length) * 65 / 16;
        let copy = if transform == Transform::Complex { 0 } else { number(length) };
        return (all * (convolution + copy) * size, false);
    }
    if transform == Transform::Complex {
        return (all * number(length) * size, true);
    }
    // Recorded for this length alone: many rows are transformed in two kernels that share the output.
    if length == 65_536 && precision == Precision::Single && all >= 128 {
        return (0, true);
    }
    if length.is_multiple_of(2) {
        // The real numbers are transformed as half as many complex numbers, which one kernel transforms in
        // place.
        let half = last_in_one(length / 2, Transform::Complex, precision);
        let kept = number(length / 2) + u128::from(!half.0);
        return (all * kept * size, half.1);
    }
    // The real numbers of two transforms are transformed at once, as complex numbers.
    let pairs = number(batch.div_ceil(2)) * rows;
    let second = (pairs * (number(length) + u128::from(!complex.0)) * size).next_multiple_of(1024);
    (pairs * number(length) * size + second, complex.1)
}

/// The workspace of a plan for `batch` transforms of these lengths; the last length is that of the last
/// dimension.
pub fn workspace(lengths: &[u64], batch: u64, transform: Transform, precision: Precision) -> Workspace {
    let Some((last, others)) = lengths.split_last() else {
        return Workspace { bytes: 0, is_recorded: true };
    };
    let rows = others.iter().fold(1_u128, |rows, length| (rows * number(*length)).min(1 << 40));
    let (in_one, last_is_recorded) = last_in_one(*last, transform, precision);
    let (mut bytes, mut is_recorded) =
        if in_one { (0, true) } else { last_bytes(*last, rows, batch, transform, precision) };
    is_recorded &= last_is_recorded;
    let (others_in_one, others_are_recorded) = others_in_one(others, precision);
    is_recorded &= others_are_recorded;
    // Back to an odd number of real numbers, several transforms of several dimensions: at 29 of 255 square
    // lengths an H200 wanted one more complex number for each row, and which ones is not regular.
    let is_odd_back = transform == Transform::Inverse && last % 2 == 1 && batch > 1 && rows > 1;
    is_recorded &= !(is_odd_back && !in_one && last_in_one(*last, Transform::Complex, precision).0);
    if !others_in_one {
        let kept = if transform == Transform::Complex { *last } else { last / 2 + 1 };
        bytes = bytes.max(rows * number(batch) * number(kept) * precision.bytes());
    }
    Workspace { bytes: u64::try_from(bytes).unwrap_or(u64::MAX), is_recorded }
}

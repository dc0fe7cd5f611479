//! The workspaces of cuSOLVER: formulas that give every recorded size.
//!
//! The numbers are those of the cuSOLVER of CUDA 13.0 on an H200, recorded twice over different shapes of up
//! to 4,200 rows: see [`is_recorded`]. The formulas were found from the first recording. The second one
//! proved all but those of `getrf`, `gesvdj`, `syevd`, `sytrf` and `ormqr`, which were then corrected and
//! give both.
//!
//! Functions named after those of LAPACK count elements, as `cusolverDn<t>..._bufferSize` does; functions
//! with `bytes` in their names count bytes, as `cusolverDnX..._bufferSize` does.

/// The type of a matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Element {
    /// `float32`.
    F32,
    /// `float64`.
    F64,
    /// `complex64`.
    C64,
    /// `complex128`.
    C128,
}

impl Element {
    /// Bytes of an element.
    pub fn bytes(self) -> u64 {
        match self {
            Self::F32 => 4,
            Self::F64 | Self::C64 => 8,
            Self::C128 => 16,
        }
    }

    fn as_u128(self) -> u128 {
        u128::from(self.bytes())
    }

    fn is_real(self) -> bool {
        matches!(self, Self::F32 | Self::F64)
    }
}

/// The most rows or columns of a recorded matrix.
const MAX_ROWS: u64 = 4200;

/// Whether a matrix is as small as the recorded ones. The formula's size of a larger matrix is an estimate:
/// cuSOLVER changes some of its blocks with the size, the last time at 4,096 rows.
pub fn is_recorded(rows: u64, columns: u64) -> bool {
    rows.max(columns) <= MAX_ROWS
}

/// A length as a type in which no product of this module overflows: a batch times two lengths times a small
/// factor is below 2^128.
fn length(number: u64) -> u128 {
    u128::from(number.min(1 << 40))
}

/// A size for a caller. A size beyond 64 bits becomes the largest number, whose allocation fails.
fn size(number: u128) -> u64 {
    u64::try_from(number).unwrap_or(u64::MAX)
}

/// Parts of a workspace begin at multiples of 32 elements.
const PART: u128 = 32;

fn round_up(number: u128, unit: u128) -> u128 {
    number.div_ceil(unit) * unit
}

/// One byte for each block of 16 times 16 elements, of rows and columns that fill blocks of 32.
fn blocks(rows: u128, columns: u128) -> u128 {
    round_up(round_up(rows, PART) * round_up(columns, PART) / 256, PART)
}

/// Elements of the workspace for LU factors with pivots (`getrf`).
pub fn getrf(element: Element, rows: u64, columns: u64) -> u64 {
    let (rows, columns) = (length(rows), length(columns));
    let short = rows.min(columns);
    let panel = short.max(PART).next_power_of_two().min(512) * 8;
    let small = 8 * round_up(short, PART) + 256 + panel.max(blocks(rows, columns));
    let groups = rows.div_ceil(2048);
    let large = 256 + 8 * round_up(short, PART) + 2048 * groups + element.as_u128() * (8192 + 256 * groups);
    let bytes = if rows > 1536 { small.max(large) } else { small };
    size(bytes / element.as_u128())
}

/// The factor of a positive matrix, in bytes.
pub fn potrf_bytes(element: Element, rows: u64, is_upper: bool) -> u64 {
    let rows = length(rows);
    size(128 + if is_upper { 32 * element.as_u128() } else { blocks(rows, rows) })
}

/// The factor of a positive matrix.
pub fn potrf(element: Element, rows: u64, is_upper: bool) -> u64 {
    potrf_bytes(element, rows, is_upper) / element.bytes()
}

/// QR factors as reflectors. The rows do not count.
pub fn geqrf(columns: u64) -> u64 {
    size((length(columns).max(256) + 512) * 1024)
}

/// QR factors as reflectors, in bytes.
pub fn geqrf_bytes(element: Element, columns: u64) -> u64 {
    geqrf(columns).saturating_mul(element.bytes()).saturating_add(128)
}

fn product_of_reflectors(rows: u128, columns: u128, reflectors: u128) -> u128 {
    let at_once = reflectors.min(128);
    33_024 + round_up(rows * at_once, PART) + round_up((2 * columns * at_once).saturating_sub(16_384), PART)
}

/// The matrix that reflectors make (`orgqr`, `ungqr`).
pub fn orgqr(rows: u64, columns: u64, reflectors: u64) -> u64 {
    size(product_of_reflectors(length(rows), length(columns), length(reflectors)))
}

fn reflected(is_left: bool, rows: u128, columns: u128, reflectors: u128) -> u128 {
    let (from_side, others) = if is_left { (512 * columns, columns) } else { (0, rows) };
    let longest = rows.max(columns);
    let edge = if longest > PART { round_up(others, PART) } else { 0 };
    65_792 + 256 * rows + from_side + round_up((longest + reflectors) * reflectors + edge, PART)
}

/// A matrix of this shape multiplied by reflectors, from the left or from the right (`ormqr`, `unmqr`).
pub fn ormqr(is_left: bool, rows: u64, columns: u64, reflectors: u64) -> u64 {
    size(reflected(is_left, length(rows), length(columns), length(reflectors)))
}

/// Singular values by QR iterations.
pub fn gesvd(rows: u64, columns: u64) -> u64 {
    let (rows, columns) = (length(rows), length(columns));
    let square = round_up(columns * columns, PART);
    let vector = round_up(columns, PART);
    if rows <= columns {
        return size(reflected(false, columns, columns, columns) + square + 3 * vector);
    }
    let copy = round_up(rows * columns, PART);
    let by_factors = u128::from(geqrf(size(columns)))
        + product_of_reflectors(rows, rows, columns)
        + copy
        + 2 * square
        + vector
        + PART;
    let direct = reflected(false, rows, columns, columns) + 2 * copy + 2 * square + 3 * vector;
    size(by_factors.max(direct))
}

/// Rotations of pairs of blocks of 32 columns.
fn rotations(columns: u128) -> u128 {
    let blocks = columns.div_ceil(PART);
    4 * blocks * blocks + blocks
}

/// Singular values by Jacobi's rotations.
pub fn gesvdj(rows: u64, columns: u64, is_economy: bool) -> u64 {
    let (rows, columns) = (length(rows), length(columns));
    let square = |side: u128| {
        3072 + round_up(2 * side * side, PART)
            + 2048 * side.div_ceil(PART).saturating_sub(1)
            + round_up(side + rotations(side), PART)
    };
    if rows == columns {
        return size(square(rows));
    }
    let (long, short) = (rows.max(columns), rows.min(columns));
    let mut factors = (u128::from(geqrf(size(short))) + PART).max(reflected(true, long, short, short));
    if !is_economy {
        let whole = 65_792 + 768 * long + round_up((long + short) * short + round_up(long, PART), PART);
        factors = factors.max(whole);
    }
    factors += round_up(short, PART);
    size(if rows > columns {
        factors.max(square(columns) + round_up(columns * columns, PART))
    } else {
        factors + round_up(rows * columns, PART)
    })
}

/// Singular values of many matrices of at most 32 rows and columns by Jacobi's rotations.
pub fn gesvdj_batched() -> u64 {
    992
}

/// Eigenvalues of a symmetric matrix by Jacobi's rotations.
pub fn syevj(rows: u64) -> u64 {
    let rows = length(rows);
    if rows >= 4096 {
        return size(5 * rows * rows / 2 + 16);
    }
    let blocks = rows.div_ceil(PART);
    size(1024 + rows * rows + rows + 1024 * blocks + rotations(rows))
}

/// Eigenvalues of many symmetric matrices by Jacobi's rotations.
pub fn syevj_batched(rows: u64, batch: u64) -> u64 {
    let (rows, batch) = (length(rows), length(batch));
    let blocks = rows.div_ceil(PART);
    size(1024 + 4 * blocks * blocks + batch * ((rows + 1) * (rows + 1) + 1024 * blocks))
}

fn divided(rows: u128, batch: u128) -> u128 {
    let before = rows.saturating_sub(1);
    let lines = round_up(batch * rows, PART);
    let reflected = batch * (65_792 + 256 * before + 512 * rows)
        + round_up(batch * before * (before + rows) + if rows > PART { lines } else { 0 }, PART);
    let product = batch * 32_896 + lines + round_up(batch * (3 * rows * rows + 124 * rows + 1), PART);
    32 + batch * (rows * rows + 2 * rows + 3) + reflected.max(product)
}

/// Eigenvalues of a symmetric matrix by division.
pub fn syevd(rows: u64) -> u64 {
    size(divided(length(rows), 1))
}

/// Eigenvalues of many symmetric matrices by division, in bytes.
pub fn syevd_bytes(element: Element, rows: u64, batch: u64) -> u64 {
    size(divided(length(rows), length(batch))).saturating_mul(element.bytes()).saturating_add(128)
}

/// Approximate singular values of many matrices, from the eigenvalues of their squares.
pub fn gesvda_batched(element: Element, rows: u64, columns: u64, batch: u64) -> u64 {
    let squares = if columns <= 32 {
        u128::from(syevj_batched(columns, batch))
    } else {
        divided(length(columns), length(batch))
    };
    let (rows, columns, batch) = (length(rows), length(columns), length(batch));
    let copy = batch * rows * columns;
    // Sums are made in twice the precision: matrices of single precision are copied for it.
    let (is_single, unit) = match element {
        Element::F32 => (true, 4),
        Element::F64 => (false, 4),
        Element::C64 => (true, 2),
        Element::C128 => (false, 2),
    };
    let squares = if is_single { squares.max(round_up(copy, unit)) } else { squares };
    let values = round_up(batch * columns, 4) / if element.is_real() { 1 } else { 2 };
    let all = round_up(batch * columns * columns, unit)
        + round_up(copy, unit)
        + values
        + round_up(2 * batch * columns, unit)
        + squares;
    size(if is_single { 2 * all } else { all })
}

/// Factors of a symmetric matrix that need not be positive.
pub fn sytrf(element: Element, rows: u64) -> u64 {
    let rows = length(rows);
    let least = match element {
        Element::F32 => 98_432,
        Element::F64 | Element::C64 => 106_624,
        Element::C128 => 176_256,
    };
    let at_once = if rows < 4096 { 64 } else { 128 };
    size((rows * at_once + 64).max(least / element.as_u128()))
}

/// Eigenvalues of any square matrix, in bytes of the device. The host's bytes are not counted.
pub fn geev_bytes(element: Element, rows: u64) -> u64 {
    let rows = length(rows);
    let before = rows.saturating_sub(1);
    let matrix = (rows * rows).max(product_of_reflectors(before, before, before));
    // Vectors; one of those of a complex matrix has real numbers.
    let halves = if element.is_real() { 8 } else { 7 };
    size(round_up(
        matrix * element.as_u128() + halves * rows * element.as_u128() / 2 + PART * element.as_u128(),
        512,
    ))
}

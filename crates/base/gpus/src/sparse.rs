//! The workspaces of cuSPARSE: formulas that give every recorded size.
//!
//! The numbers are those of the cuSPARSE of CUDA 13.0 on an H200. Most are a few counters, one for each part
//! of the nonzero elements.

/// The type of a matrix's elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Element {
    /// `float16` or `bfloat16`.
    Half,
    /// `float32`.
    F32,
    /// `float64`.
    F64,
    /// `complex64`.
    C64,
    /// `complex128`.
    C128,
}

/// A sparse matrix in compressed rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Matrix {
    /// The type of the matrix's elements.
    pub element: Element,
    /// Whether the indices are `int64`; otherwise they are `int32`.
    pub is_wide: bool,
    /// How many elements are stored (`nnz`).
    pub nonzero: u64,
}

impl Matrix {
    fn index_bytes(&self) -> u64 {
        if self.is_wide { 8 } else { 4 }
    }

    /// Counters for parts of this many elements, and one less than a counter for alignment.
    fn counters(&self, part: u64, more: u64) -> u64 {
        let index = self.index_bytes();
        self.nonzero.div_ceil(part).saturating_add(more).saturating_mul(index).saturating_add(index - 1)
    }
}

/// How a product with a dense matrix is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Algorithm {
    /// cuSPARSE chooses by the order of the dense matrices.
    Default {
        /// Whether rows of the dense matrices lie together.
        is_row_major: bool,
    },
    /// `CUSPARSE_SPMM_CSR_ALG1`.
    First,
    /// `CUSPARSE_SPMM_CSR_ALG2`.
    Second,
}

/// Bytes of the workspace of the product with a dense matrix.
pub fn product(matrix: &Matrix, algorithm: Algorithm) -> u64 {
    if matches!(matrix.element, Element::Half | Element::F32) {
        return 0;
    }
    match algorithm {
        Algorithm::First | Algorithm::Default { is_row_major: false } => matrix.counters(256, 1),
        Algorithm::Second | Algorithm::Default { is_row_major: true } => matrix.counters(24, 0),
    }
}

/// Bytes of the workspace of the product with a vector, whose result has `rows` elements.
pub fn product_with_vector(matrix: &Matrix, rows: u64) -> u64 {
    let [narrow, wide] = match matrix.element {
        Element::Half => [1024, 896],
        Element::F32 => [4096, 3072],
        Element::F64 => [3584, 3072],
        Element::C64 => [896, 512],
        Element::C128 => [384, 256],
    };
    let part = if matrix.is_wide { wide } else { narrow };
    if matrix.element == Element::Half {
        // Sums in single precision.
        let sums = rows.saturating_mul(4).saturating_add(127);
        return matrix.counters(part, 1).saturating_add(sums);
    }
    matrix.counters(part, 1)
}

/// Bytes of the workspace of a product of dense matrices at the places of a sparse matrix, and whether such
/// shapes were recorded.
pub fn product_at_places(matrix: &Matrix, rows: u64, inner: u64, columns: u64) -> (u64, bool) {
    let all = rows.saturating_mul(columns);
    let is_dense = matrix.nonzero.saturating_mul(5) >= all;
    // A dense copy of the places where rows are many and the sparse matrix is nearly dense.
    let is_copied = is_dense && rows >= 500 && inner >= 100;
    let is_recorded = !is_dense || rows <= 128 || inner <= 32 || (rows >= 500 && inner >= 100);
    let index = matrix.index_bytes();
    let bytes = if is_copied { all.saturating_mul(index).saturating_add(index - 1) } else { 1 };
    (bytes, is_recorded)
}

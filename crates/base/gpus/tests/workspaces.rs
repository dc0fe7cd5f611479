//! The sizes that NVIDIA's libraries want, against sizes recorded on an H200: `tests/fixtures/workspaces`.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test says what went wrong by ending")]

use blockyard_gpus::fft::{self, Precision, Transform};
use blockyard_gpus::layers::{Attention, BatchNorm, ctc};
use blockyard_gpus::solver::{self, Element};
use blockyard_gpus::sparse::{self, Algorithm, Matrix};

const SOLVER: &str = include_str!("../../../../tests/fixtures/workspaces/solver.txt");

const FFT: &str = include_str!("../../../../tests/fixtures/workspaces/fft.txt");

const SPARSE: &str = include_str!("../../../../tests/fixtures/workspaces/sparse.txt");

const CUDNN: &str = include_str!("../../../../tests/fixtures/workspaces/cudnn.txt");

/// A recorded line: the function, its arguments, and the size.
struct RecordedLine<'a> {
    name: &'a str,
    words: Vec<&'a str>,
    size: u64,
}

fn recorded(text: &str) -> impl Iterator<Item = RecordedLine<'_>> {
    text.lines().map(|line| {
        let mut words: Vec<&str> = line.split(' ').collect();
        let size = words.pop().unwrap().parse().unwrap();
        RecordedLine { name: words.remove(0), words, size }
    })
}

impl RecordedLine<'_> {
    fn number(&self, index: usize) -> u64 {
        self.words[index].parse().unwrap()
    }

    fn flag(&self, index: usize) -> bool {
        self.number(index) != 0
    }

    fn element(&self) -> Element {
        match self.words[0] {
            "S" => Element::F32,
            "D" => Element::F64,
            "C" => Element::C64,
            "Z" => Element::C128,
            other => panic!("no type: {other}"),
        }
    }
}

/// Every recorded size is given to the byte, and each function has at least so many lines.
fn check(text: &str, least: usize, size_of: impl Fn(&RecordedLine<'_>) -> u64) {
    let mut counts = std::collections::BTreeMap::new();
    let mut wrong = Vec::new();
    for line in recorded(text) {
        *counts.entry(line.name).or_insert(0_usize) += 1;
        let found = size_of(&line);
        if found != line.size {
            wrong.push(format!("{} {:?}: recorded {}, found {found}", line.name, line.words, line.size));
        }
    }
    assert!(wrong.is_empty(), "{} sizes differ:\n{}", wrong.len(), wrong.join("\n"));
    assert!(counts.values().all(|count| *count >= least), "{counts:?}");
}

#[test]
fn cusolver_wants_what_was_recorded() {
    check(SOLVER, 20, |line| {
        let number = |index| line.number(index);
        match line.name {
            "getrf" => solver::getrf(line.element(), number(1), number(2)),
            "potrf" => solver::potrf(line.element(), number(1), line.flag(2)),
            "Xpotrf" => solver::potrf_bytes(line.element(), number(1), line.flag(2)),
            "geqrf" => solver::geqrf(number(0)),
            "Xgeqrf" => solver::geqrf_bytes(line.element(), number(1)),
            "gqr" => solver::orgqr(number(0), number(1), number(2)),
            "mqr" => solver::ormqr(!line.flag(0), number(1), number(2), number(3)),
            "gesvd" => solver::gesvd(number(0), number(1)),
            "gesvdj" => solver::gesvdj(number(1), number(2), line.flag(0)),
            "gesvdjBatched" => solver::gesvdj_batched(),
            "gesvda" => solver::gesvda_batched(line.element(), number(1), number(2), number(3)),
            "syevj" => solver::syevj(number(0)),
            "syevjBatched" => solver::syevj_batched(number(0), number(1)),
            "syevd" => solver::syevd(number(0)),
            "Xsyevd" | "XsyevBatched" => solver::syevd_bytes(line.element(), number(1), number(2)),
            "sytrf" => solver::sytrf(line.element(), number(1)),
            "Xgeev" => solver::geev_bytes(line.element(), number(1)),
            other => panic!("no function: {other}"),
        }
    });
}

/// The workspace of a recorded plan.
fn plan(line: &RecordedLine<'_>) -> fft::Workspace {
    let precision = match line.words[0] {
        "h" => Precision::Half,
        "s" => Precision::Single,
        _ => Precision::Double,
    };
    let transform = match line.words[1] {
        "C" => Transform::Complex,
        "I" => Transform::Inverse,
        _ => Transform::Real,
    };
    let lengths: Vec<u64> = (3..line.words.len()).map(|index| line.number(index)).collect();
    fft::workspace(&lengths, line.number(2), transform, precision)
}

#[test]
fn cufft_wants_what_was_recorded() {
    let (mut sure, mut equal, mut all, mut wrong) = (0, 0, 0, Vec::new());
    for line in recorded(FFT) {
        let found = plan(&line);
        all += 1;
        sure += usize::from(found.is_recorded);
        equal += usize::from(found.bytes == line.size);
        if found.is_recorded && found.bytes != line.size {
            wrong.push(format!("{:?}: recorded {}, found {}", line.words, line.size, found.bytes));
        }
    }
    assert!(wrong.is_empty(), "{} sizes differ without a mark:\n{}", wrong.len(), wrong.join("\n"));
    assert!(
        all > 2000 && sure * 100 > all * 90 && equal * 100 > all * 90,
        "{sure} sure, {equal} equal of {all}"
    );
}

/// The sparse matrix of a line: type and indices as cuSPARSE numbers them, and its elements.
fn matrix(line: &RecordedLine<'_>) -> Matrix {
    let element = match line.number(0) {
        0 => sparse::Element::F32,
        1 => sparse::Element::F64,
        4 => sparse::Element::C64,
        5 => sparse::Element::C128,
        _ => sparse::Element::Half,
    };
    Matrix { element, is_wide: line.number(1) == 3, nonzero: line.number(2) }
}

#[test]
fn cusparse_wants_what_was_recorded() {
    check(SPARSE, 100, |line| {
        let (matrix, number) = (matrix(line), |index| line.number(index));
        match line.name {
            "SpMV" => sparse::product_with_vector(&matrix, number(3)),
            "SpMM" => {
                let algorithm = match number(3) {
                    4 => Algorithm::First,
                    6 => Algorithm::Second,
                    _ => Algorithm::Default { is_row_major: number(4) == 2 },
                };
                sparse::product(&matrix, algorithm)
            }
            "SDDMM" => sparse::product_at_places(&matrix, number(3), number(4), number(5)).0,
            other => panic!("no function: {other}"),
        }
    });
}

/// Multiprocessors of the H200 that recorded.
const MULTIPROCESSORS: u64 = 132;

#[test]
fn cudnn_wants_what_was_recorded() {
    check(CUDNN, 50, |line| {
        let number = |index| line.number(index);
        let attention = || Attention {
            batch: number(0),
            heads: number(1),
            key_heads: number(2),
            queries: number(3),
            keys: number(4),
            width: number(5),
            element_bytes: 2,
        };
        let norm = || BatchNorm { is_half: line.flag(0), channels: number(1), rows: number(2) };
        match line.name {
            "forward" => attention().forward(MULTIPROCESSORS),
            "backward" => {
                let shape = attention();
                // The graph's own tensors: a sum and a gradient in single precision for each query.
                let queries = shape.batch * shape.heads * shape.queries;
                shape.backward() + queries * 4 + queries * shape.width * 4
            }
            "norm" => norm().forward(),
            "norm_backward" => norm().backward(),
            "ctc" => ctc(number(0), number(1), number(2)),
            other => panic!("no function: {other}"),
        }
    });
}

#[test]
fn no_shape_overflows() {
    for number in [0, 1, u64::from(u32::MAX), u64::MAX] {
        for element in [Element::F32, Element::F64, Element::C64, Element::C128] {
            let _ = solver::getrf(element, number, number);
            let _ = solver::gesvda_batched(element, number, number, number);
            let _ = solver::syevd_bytes(element, number, number);
            let _ = solver::geev_bytes(element, number);
            let _ = solver::sytrf(element, number);
        }
        let (batch, heads, queries, keys, width) = (number, number, number, number, number);
        let shape = Attention { batch, heads, key_heads: 1, queries, keys, width, element_bytes: 2 };
        let _ = (shape.backward(), shape.forward(132), Attention { queries: 1, ..shape }.forward(132));
        let norm = BatchNorm { channels: number, rows: number, is_half: true };
        let _ = (norm.forward(), norm.backward(), ctc(number, number, number));
        let _ = fft::workspace(&[number; 4], number, Transform::Real, Precision::Double);
        let _ = solver::gesvd(number, number);
        let _ = solver::orgqr(number, number, number);
        let _ = solver::gesvdj(number, 1, false);
        let _ = solver::ormqr(true, number, number, number);
        let _ = solver::syevj_batched(number, number);
    }
}

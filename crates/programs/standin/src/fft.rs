//! cuFFT: plans and the workspaces that they want, as recorded.
#![expect(unsafe_code, reason = "functions are exported under cuFFT's names")]

use std::ffi::{c_int, c_longlong};

use blockyard_gpus::fft::{Precision, Transform, workspace};

use crate::abi::{In, Out};
use crate::libraries::{NOT_INITIALIZED, SUCCESS, create, destroy, is_of};
use crate::{non_pytorch, report};

const PLAN: &str = "cuFFT plan";
/// `CUFFT_INVALID_SIZE`.
const INVALID_SIZE: c_int = 8;
/// `CUFFT_INVALID_TYPE`.
const INVALID_TYPE: c_int = 3;

/// The handle of a plan, which is a small number for cuFFT's callers.
fn handle(plan: c_int) -> usize {
    usize::try_from(plan).unwrap_or(0)
}

/// The transform between two types, by CUDA's numbers for them.
fn transform(input: c_int, output: c_int) -> Option<(Transform, Precision)> {
    Some(match (input, output) {
        (4, 4) => (Transform::Complex, Precision::Single),
        (5, 5) => (Transform::Complex, Precision::Double),
        (6, 6) => (Transform::Complex, Precision::Half),
        (0, 4) => (Transform::Real, Precision::Single),
        (4, 0) => (Transform::Inverse, Precision::Single),
        (1, 5) => (Transform::Real, Precision::Double),
        (5, 1) => (Transform::Inverse, Precision::Double),
        (2, 6) => (Transform::Real, Precision::Half),
        (6, 2) => (Transform::Inverse, Precision::Half),
        _ => return None,
    })
}

entries! {
    fn cufftCreate(to: Out<c_int>) -> c_int {
        let mut made = 0_usize;
        non_pytorch::follow(non_pytorch::NonPytorchUse::Fft);
        let status = create(Out::of(&mut made), PLAN);
        to.put(c_int::try_from(made).unwrap_or(0));
        status
    }

    fn cufftDestroy(plan: c_int) -> c_int {
        destroy(handle(plan), PLAN)
    }

    fn cufftXtMakePlanMany(
        plan: c_int,
        rank: c_int,
        sizes: In<c_longlong>,
        in_embed: In<c_longlong>,
        in_stride: c_longlong,
        _in_distance: c_longlong,
        in_type: c_int,
        out_embed: In<c_longlong>,
        out_stride: c_longlong,
        _out_distance: c_longlong,
        out_type: c_int,
        batch: c_longlong,
        to: Out<usize>,
        _execution: c_int,
    ) -> c_int {
        if !is_of(handle(plan), PLAN) {
            return NOT_INITIALIZED;
        }
        let Some((transform, precision)) = transform(in_type, out_type) else { return INVALID_TYPE };
        let lengths = sizes.list(usize::try_from(rank.clamp(0, 3)).unwrap_or(0));
        let lengths: Vec<u64> = lengths.iter().filter_map(|length| u64::try_from(*length).ok()).collect();
        let (Ok(batch), 1..=3) = (u64::try_from(batch), lengths.len()) else { return INVALID_SIZE };
        let found = workspace(&lengths, batch, transform, precision);
        // Numbers that do not lie together were not recorded. Without an embedding the strides are not read.
        let is_apart = |embed: In<c_longlong>, stride| embed.get().is_some() && stride != 1;
        if !found.is_recorded || is_apart(in_embed, in_stride) || is_apart(out_embed, out_stride) {
            report::report_estimate("what cuFFT takes for a Fourier transform of this length is not recorded, and is estimated");
        }
        to.put(usize::try_from(found.bytes).unwrap_or(usize::MAX));
        SUCCESS
    }
}

setting! { cufftSetAutoAllocation cufftSetStream cufftSetWorkArea }

computing! { cufftXtExec }

#[cfg(test)]
mod tests {

    use super::{INVALID_SIZE, cufftCreate, cufftDestroy, cufftXtMakePlanMany};
    use crate::abi::{In, Out};
    use crate::libraries::{NOT_INITIALIZED, SUCCESS};

    #[test]
    fn a_plan_says_what_it_wants() {
        let mut plan = 0;
        assert_eq!(cufftCreate(Out::of(&mut plan)), SUCCESS);
        let make = |plan, lengths: &[i64], bytes: &mut usize| {
            let rank = i32::try_from(lengths.len()).unwrap();
            let (sizes, none) = (In::of(lengths), In::null);
            cufftXtMakePlanMany(plan, rank, sizes, none(), 1, 1, 0, none(), 1, 1, 4, 2, Out::of(bytes), 4)
        };
        let mut bytes = 7;
        assert_eq!(make(plan, &[400], &mut bytes), SUCCESS);
        assert_eq!(bytes, 0);
        assert_eq!(make(plan, &[3000], &mut bytes), SUCCESS);
        assert_eq!(bytes, 24_000);
        let back = cufftXtMakePlanMany(
            plan,
            1,
            In::of(&[232]),
            In::null(),
            1,
            1,
            4,
            In::null(),
            1,
            1,
            0,
            2,
            Out::of(&mut bytes),
            4,
        );
        assert_eq!((back, bytes), (SUCCESS, 1856));
        assert_eq!(make(plan, &[], &mut bytes), INVALID_SIZE);
        assert_eq!(make(0, &[400], &mut bytes), NOT_INITIALIZED);
        assert_eq!(cufftDestroy(plan), SUCCESS);
        assert_eq!(cufftDestroy(plan), NOT_INITIALIZED);
    }
}

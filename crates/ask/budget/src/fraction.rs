//! A limit in bytes as PyTorch takes it: a fraction of the device.

use blockyard_record::Bytes;

/// The argument of `torch.cuda.set_per_process_memory_fraction` under which PyTorch allows exactly `limit`
/// bytes, or the most bytes below `limit` that a number of 64 bits can give.
///
/// Until 2.12 PyTorch multiplies the total by the fraction and cuts off parts of a byte ([`Bytes::share`]).
/// So the quotient may lose a byte, and the next larger number gives this byte back. From 2.13 on PyTorch
/// rounds the product, and the same number gives the same limit. `None` if the limit is 0 or above the total.
#[expect(
    clippy::cast_precision_loss,
    reason = "PyTorch multiplies in the same precision; totals of devices are far below 2^53"
)]
pub fn memory_fraction(limit: Bytes, total: Bytes) -> Option<f64> {
    if limit == Bytes::ZERO || limit > total {
        return None;
    }
    let quotient = limit.get() as f64 / total.get() as f64;
    let near = [quotient, quotient.next_up(), quotient.next_down()];
    let near = || near.into_iter().filter(|fraction| *fraction <= 1.0);
    // The simplest number first: a half stays 0.5.
    near()
        .find(|fraction| total.share(*fraction) == limit)
        .or_else(|| near().find(|fraction| total.share(*fraction) < limit))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_limit_is_what_pytorch_allows() {
        let h100 = Bytes::new(85_019_590_656);
        for limit in [Bytes::gib(16), Bytes::gib(24), Bytes::new(1), Bytes::new(85_019_590_655), h100] {
            assert_eq!(h100.share(memory_fraction(limit, h100).unwrap()), limit);
        }
        assert_eq!(memory_fraction(h100, h100), Some(1.0));
        assert_eq!(memory_fraction(Bytes::gib(8), Bytes::gib(16)), Some(0.5));
        assert_eq!(memory_fraction(Bytes::ZERO, h100), None);
        assert_eq!(memory_fraction(Bytes::gib(80), h100), None);
    }

    proptest! {
        #[test]
        fn no_byte_is_lost(limit in 1_u64..400_000_000_000, more in 0_u64..400_000_000_000) {
            let total = Bytes::new(limit.saturating_add(more));
            let fraction = memory_fraction(Bytes::new(limit), total).unwrap();
            prop_assert_eq!(total.share(fraction).get(), limit);
        }
    }
}

//! How many bytes of addresses an expandable segment reserves.

use crate::Bytes;

/// The value of `expandable_segments_reserve`: a share of the device, or GiB.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum AddressReserve {
    /// A share of the bytes of the device, above 0: `0.5`.
    Share(f64),
    /// GiB, above 0: `40G`.
    Gib(f64),
}

impl AddressReserve {
    /// Reads a value; `None` for a text that PyTorch ignores with a warning.
    pub(super) fn read(text: &str) -> Option<Self> {
        let (number, is_share) = match text.strip_suffix(['g', 'G']) {
            Some(number) => (number, false),
            None => (text, true),
        };
        // C++'s `from_chars` takes no plus sign.
        let value: f64 = number.strip_prefix('+').map_or(number, |_| "").parse().ok()?;
        if !(value.is_finite() && value > 0.0) {
            return None;
        }
        Some(if is_share { Self::Share(value) } else { Self::Gib(value) })
    }

    /// The bytes on a device of `total` bytes, as they are before the limit of nine eighths of the device.
    #[must_use]
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "PyTorch computes in doubles and cuts off; what is too large becomes the largest number"
    )]
    pub fn bytes(self, total: Bytes) -> Bytes {
        let bytes = match self {
            Self::Share(share) => share * total.get() as f64,
            Self::Gib(gib) => gib * f64::from(1_u32 << 30),
        };
        Bytes::new(bytes as u64)
    }
}

/// PyTorch's warning about a value that [`AddressReserve::read`] does not read.
pub(super) fn ignored(text: &str) -> String {
    format!(
        "Ignoring invalid expandable-segment reserve value '{text}' in PYTORCH_CUDA_ALLOC_CONF (expected a positive, finite \
         fraction like 0.5 or an absolute size like 40G); using default."
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read_as_the_library_of_2_15_reads_them() {
        for text in
            ["0", "-1", "abc", "0.5x", "nan", "inf", "1G2", "0x1p-1", "G", "1e400", "+0.5", "", "True"]
        {
            assert_eq!(AddressReserve::read(text), None, "{text}");
        }
        let gib = Bytes::gib(1);
        for (text, wanted) in
            [("0.5", 1 << 29), (".5", 1 << 29), ("0.5G", 1 << 29), ("0.5g", 1 << 29), ("1e-3", 1_073_741)]
        {
            assert_eq!(
                AddressReserve::read(text).map(|reserve| reserve.bytes(gib).get()),
                Some(wanted),
                "{text}"
            );
        }
        assert_eq!(AddressReserve::Gib(1e30).bytes(gib).get(), u64::MAX);
    }
}

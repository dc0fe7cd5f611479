//! Fractions, as far as the interpreter needs them: `int / int` and `float.as_integer_ratio()`.

use core::cmp::Ordering;
use malachite_base::num::conversion::traits::RoundingInto;
use malachite_base::rounding_modes::RoundingMode;
use malachite_bigint::{BigInt, BigUint, Sign};
use num_integer::Integer;
use num_traits::{One, ToPrimitive, Zero};

/// Bits of the significand of an `f64`, the hidden one included.
const PRECISION: i64 = 53;
/// The exponent of the smallest subnormal number.
const SMALLEST_EXPONENT: i64 = -1074;

/// A fraction; the denominator is not zero.
#[derive(Clone, Debug)]
pub struct Rational {
    is_negative: bool,
    numerator: BigUint,
    denominator: BigUint,
}

/// The error for a float that is infinite or not a number.
#[derive(Clone, Copy, Debug)]
pub struct NotFinite;

impl Rational {
    /// `numerator / denominator`; the caller has checked that the denominator is not zero.
    #[must_use]
    pub fn from_integers_ref(numerator: &BigInt, denominator: &BigInt) -> Self {
        Self {
            is_negative: (numerator.sign() == Sign::Minus) != (denominator.sign() == Sign::Minus),
            numerator: numerator.magnitude().clone(),
            denominator: denominator.magnitude().clone(),
        }
    }

    /// The numerator and the denominator, without the sign.
    #[must_use]
    pub fn into_numerator_and_denominator(self) -> (BigUint, BigUint) {
        (self.numerator, self.denominator)
    }

    /// The nearest float of the absolute value, ties to even.
    fn magnitude(&self) -> f64 {
        if self.numerator.is_zero() || self.denominator.is_zero() {
            return 0.0;
        }
        // A quotient of at least 55 bits: 53, one to round by, and one below that says "not exact", as the
        // remainder does.
        let excess = bits(&self.numerator) - bits(&self.denominator);
        let shift = (excess - PRECISION - 2).max(SMALLEST_EXPONENT - 2);
        let (numerator, denominator) = if shift >= 0 {
            (self.numerator.clone(), &self.denominator << shift.unsigned_abs())
        } else {
            (&self.numerator << shift.unsigned_abs(), self.denominator.clone())
        };
        let (quotient, remainder) = numerator.div_rem(&denominator);
        // At most 56 bits, so that this never fails.
        let quotient = quotient.to_u64().unwrap_or(u64::MAX) | u64::from(!remainder.is_zero());
        // Rounding to the significand (fewer bits for subnormal numbers), ties to even, by hand: then scaling
        // is exact.
        let length = i64::from(u64::BITS - quotient.leading_zeros());
        let drop = (length - PRECISION).max(SMALLEST_EXPONENT - shift).max(0);
        let unit = 1_u64 << drop;
        let rest = quotient & (unit - 1);
        let mut kept = quotient >> drop;
        if rest * 2 > unit || (rest * 2 == unit && kept & 1 == 1) {
            kept += 1;
        }
        scale(kept, shift + drop)
    }
}

/// The number of bits, as a signed number to compute with.
fn bits(value: &BigUint) -> i64 {
    i64::try_from(value.bits()).unwrap_or(i64::MAX / 4)
}

/// `value * 2^exponent` of a value of at most 53 bits (or 2^53) and an exponent that is not below the
/// smallest.
fn scale(value: u64, exponent: i64) -> f64 {
    if exponent > 1023 {
        return f64::INFINITY;
    }
    #[expect(clippy::cast_precision_loss, reason = "at most 2^53")]
    let value = value as f64;
    // In two steps, since 2^-1074 alone is a subnormal number and its inverse has no float.
    let half = exponent / 2;
    value * power_of_two(half) * power_of_two(exponent - half)
}

fn power_of_two(exponent: i64) -> f64 {
    f64::from_bits((u64::try_from(exponent + 1023).unwrap_or(0)) << 52)
}

impl RoundingInto<f64> for Rational {
    fn rounding_into(self, mode: RoundingMode) -> (f64, Ordering) {
        let RoundingMode::Nearest = mode;
        let magnitude = self.magnitude();
        // The interpreter reads the direction only where the value is the largest float, which is exact here.
        (if self.is_negative { -magnitude } else { magnitude }, Ordering::Equal)
    }
}

impl TryFrom<f64> for Rational {
    type Error = NotFinite;

    fn try_from(value: f64) -> Result<Self, NotFinite> {
        if !value.is_finite() {
            return Err(NotFinite);
        }
        let bits = value.to_bits();
        let exponent = i64::try_from((bits >> 52) & 0x7ff).unwrap_or(0);
        let fraction = bits & ((1 << 52) - 1);
        let (significand, exponent) = if exponent == 0 {
            (fraction, SMALLEST_EXPONENT)
        } else {
            (fraction | (1 << 52), exponent - 1075)
        };
        let (mut numerator, mut denominator) = (BigUint::from(significand), BigUint::one());
        if exponent >= 0 {
            numerator <<= exponent.unsigned_abs();
        } else {
            denominator <<= exponent.unsigned_abs();
        }
        let divisor = numerator.gcd(&denominator);
        if !divisor.is_zero() {
            numerator /= &divisor;
            denominator /= &divisor;
        }
        Ok(Self { is_negative: value.is_sign_negative(), numerator, denominator })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn divide(numerator: i128, denominator: i128) -> f64 {
        Rational::from_integers_ref(&BigInt::from(numerator), &BigInt::from(denominator))
            .rounding_into(RoundingMode::Nearest)
            .0
    }

    #[test]
    fn division_rounds_once_to_nearest_even() {
        for (numerator, denominator, expected) in [
            (1, 3, 1.0_f64 / 3.0),
            (-1, 3, -1.0 / 3.0),
            (6, -2, -3.0),
            (0, 5, 0.0),
            ((1 << 53) + 1, 1, 9_007_199_254_740_992.0),
            ((1 << 54) + 6, 2, 9_007_199_254_740_996.0),
            (i128::MAX, 1, 170_141_183_460_469_231_731_687_303_715_884_105_727.0),
            (10_i128.pow(30), 7, 1.428_571_428_571_428_5e29),
            (12_345_678_901_234_567_890_123, 987_654_321, 12_499_999_887_343.75),
        ] {
            assert_eq!(
                divide(numerator, denominator).to_bits(),
                expected.to_bits(),
                "{numerator}/{denominator}"
            );
        }
    }

    #[test]
    fn division_reaches_subnormal_and_infinite_values() {
        let ratio = |numerator: BigInt, denominator: BigInt| {
            Rational::from_integers_ref(&numerator, &denominator).rounding_into(RoundingMode::Nearest).0
        };
        let one = BigInt::from(1);
        assert_eq!(ratio(one.clone(), one.clone() << 1074).to_bits(), 1);
        assert_eq!(ratio(one.clone(), one.clone() << 1075).to_bits(), 0);
        assert_eq!(ratio(BigInt::from(3), one.clone() << 1075).to_bits(), 2);
        assert_eq!(ratio(one.clone(), one.clone() << 1022).to_bits(), f64::MIN_POSITIVE.to_bits());
        assert!(ratio(one.clone() << 1024, one.clone()).is_infinite());
        assert_eq!(ratio(one.clone() << 1023, one).to_bits(), 2_f64.powi(1023).to_bits());
    }

    #[test]
    fn a_float_is_a_ratio_in_lowest_terms() {
        let ratio = |value: f64| Rational::try_from(value).map(Rational::into_numerator_and_denominator).ok();
        assert_eq!(ratio(0.75), Some((BigUint::from(3_u32), BigUint::from(4_u32))));
        assert_eq!(ratio(-8.0), Some((BigUint::from(8_u32), BigUint::from(1_u32))));
        assert_eq!(ratio(f64::NAN), None);
    }
}

//! The two traits of `malachite-base` that the interpreter names, written again.

/// The module `num`: traits of numbers.
pub mod num {
    /// The module `basic`: traits of primitive numbers.
    pub mod basic {
        /// The module `floats`: the trait of floating-point numbers.
        pub mod floats {
            /// A float of the machine.
            pub trait PrimitiveFloat: Copy {
                /// Zero with the sign bit set.
                fn is_negative_zero(self) -> bool;
            }

            impl PrimitiveFloat for f64 {
                fn is_negative_zero(self) -> bool {
                    self.to_bits() == (-0.0_f64).to_bits()
                }
            }
        }
    }
    /// Conversions from one kind of number to another.
    pub mod conversion {
        /// The traits of conversions.
        pub mod traits {
            use crate::rounding_modes::RoundingMode;
            use core::cmp::Ordering;

            /// A conversion that rounds, and says in which direction.
            pub trait RoundingInto<T> {
                /// The rounded value, and how it compares with the exact value.
                fn rounding_into(self, mode: RoundingMode) -> (T, Ordering);
            }
        }
    }
}

/// The module of rounding modes.
pub mod rounding_modes {
    /// How a value that has no exact counterpart is rounded.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum RoundingMode {
        /// To the nearest value, ties to the even one.
        Nearest,
    }
}

//! The two traits of `malachite-base` that the interpreter names, written again.

/// Numbers.
pub mod num {
    /// Primitive numbers.
    pub mod basic {
        /// Floating-point numbers.
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
    /// From one kind of number to another.
    pub mod conversion {
        /// The trait of that.
        pub mod traits {
            use crate::rounding_modes::RoundingMode;
            use core::cmp::Ordering;

            /// A conversion that rounds, and says to which side.
            pub trait RoundingInto<T> {
                /// The value, and how it compares to the exact one.
                fn rounding_into(self, mode: RoundingMode) -> (T, Ordering);
            }
        }
    }
}

/// Ways to round.
pub mod rounding_modes {
    /// How a value that has no exact counterpart is rounded.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum RoundingMode {
        /// To the nearest value, ties to the even one.
        Nearest,
    }
}

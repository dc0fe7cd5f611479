//! The orders of addresses that the stand-in knows.

/// In which order a device gives the addresses of segments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DriverAddressOrder {
    /// The order of NVIDIA's driver.
    #[default]
    Driver,
    /// The lowest free addresses first.
    Rising,
    /// The highest free addresses first.
    Falling,
}

impl DriverAddressOrder {
    /// All orders, the driver's first.
    pub const ALL: [Self; 3] = [Self::Driver, Self::Rising, Self::Falling];

    /// The name of the order, as `STANDIN_ADDRESSES` has it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Driver => "driver",
            Self::Rising => "rising",
            Self::Falling => "falling",
        }
    }
}

//! The clock of PyTorch's entries: the processor's counter on x86-64, else nanoseconds since 1970.

use std::time::SystemTime;

/// Makes the times of entries microseconds since 1970, by two looks at both clocks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clock {
    first: Look,
    last: Look,
}

/// Both clocks at one moment.
#[derive(Clone, Copy, Debug)]
struct Look {
    ticks: i128,
    nanos: i128,
}

impl Look {
    fn now() -> Self {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let nanos = i128::try_from(now.as_nanos()).unwrap_or_default();
        #[cfg(target_arch = "x86_64")]
        // SAFETY: each processor of x86-64 has the counter.
        let ticks = i128::from(unsafe { std::arch::x86_64::_rdtsc() });
        #[cfg(not(target_arch = "x86_64"))]
        let ticks = nanos;
        Self { ticks, nanos }
    }
}

impl Clock {
    /// Looks for the first time.
    pub(super) fn now() -> Self {
        let first = Look::now();
        Self { first, last: first }
    }

    /// Looks again: times near this moment are known best.
    pub(super) fn set(&mut self) {
        self.last = Look::now();
    }

    /// The microseconds since 1970 of an entry's time.
    pub(super) fn micros(&self, ticks: u64) -> u64 {
        let (from, to) = (&self.first, &self.last);
        let since = (i128::from(ticks) - to.ticks) * (to.nanos - from.nanos);
        let nanos = to.nanos + since.checked_div(to.ticks - from.ticks).unwrap_or(0);
        u64::try_from(nanos / 1000).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_microseconds_since_1970() {
        let look = |ticks, nanos| Look { ticks, nanos };
        // Two ticks a nanosecond.
        let clock = Clock { first: look(1_000, 5_000_000), last: look(5_000, 5_002_000) };
        assert_eq!(
            [1_000, 3_000, 5_000, 7_000].map(|ticks| clock.micros(ticks)),
            [5_000, 5_001, 5_002, 5_003]
        );
        // One look alone.
        assert_eq!(Clock { first: clock.last, ..clock }.micros(7), 5_002);
    }
}

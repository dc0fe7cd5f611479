//! Which peaks of a run depend on the addresses that a driver gives segments.

use blockyard_device::{AddressOrder, VirtualDevice};
use blockyard_record::{Bytes, NullSink, OnDone, Stats};
use blockyard_replay::{Progress, Replayer};
use blockyard_workload::Request;

use crate::{LabError, Run};

/// The peaks of a run, and its bytes at the end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RunBytes {
    /// The most bytes of allocated blocks at one time.
    pub peak_allocated: Bytes,
    /// The most bytes of segments at one time.
    pub peak_reserved: Bytes,
    /// Bytes of allocated blocks at the end.
    pub allocated_at_end: Bytes,
}

/// A run at its recorded addresses and under other orders of addresses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AddressDependence {
    /// The run at the recorded addresses.
    pub recorded: RunBytes,
    /// The least value of each number in all orders, the recorded one included.
    pub least: RunBytes,
    /// The largest value of each number in all orders, the recorded one included.
    pub most: RunBytes,
    /// How many other orders were tried.
    pub orders: usize,
    /// How many allocations came before allocated or reserved bytes differed for the first time, that
    /// allocation included; `None` if they never differed.
    pub first_difference: Option<u64>,
}

/// Replays a run with its segments at the recorded addresses and in eight other orders of addresses, under
/// its own settings.
///
/// Best fit takes the lower of two free blocks of one size, so that the reserved bytes may depend on the
/// addresses of segments, and the allocated bytes too, since a block that is not split counts whole. These
/// orders are a sample of all that a driver could do.
///
/// # Errors
///
/// [`LabError::Cancelled`], [`LabError::Config`] for wrong settings, [`LabError::Run`] where the requests
/// cannot be replayed.
pub fn address_dependence(run: &Run, on_done: OnDone) -> Result<AddressDependence, LabError> {
    let fixed = run.fixed_conditions(&run.conditions());
    // Fixed conditions have a first element always: those at the lower bound of the limit.
    let fixed = fixed.first().ok_or(LabError::NoTrace)?;
    let config = fixed.config()?;
    let mut recorded = fixed.replayer(run, &config, NullSink)?;
    let mut others = Vec::with_capacity(AddressOrder::OTHER_ORDERS);
    for order in AddressOrder::others(None) {
        let device = VirtualDevice::new(fixed.capacity).with_order(order);
        others.push(Replayer::new(run.plan(), &config, device, NullSink).map_err(LabError::Run)?);
    }
    let mut allocations = 0_u64;
    let mut first_difference = None;
    for (at, request) in run.requests().iter().enumerate() {
        if Progress::is_due(at) && on_done(at).is_break() {
            return Err(LabError::Cancelled);
        }
        allocations = allocations.saturating_add(u64::from(matches!(request, Request::Allocate { .. })));
        let end = at.saturating_add(1);
        while recorded.run_to(end)?.is_some() {}
        let own = now(&recorded.stats());
        for other in &mut others {
            while other.run_to(end)?.is_some() {}
            if now(&other.stats()) != own {
                first_difference.get_or_insert(allocations);
            }
        }
    }
    let own = bytes(&recorded.stats());
    let all = others.iter().map(|other| bytes(&other.stats()));
    let (least, most) = all.fold((own, own), |(least, most), found| {
        let each = |of: fn(Bytes, Bytes) -> Bytes, before: RunBytes| RunBytes {
            peak_allocated: of(before.peak_allocated, found.peak_allocated),
            peak_reserved: of(before.peak_reserved, found.peak_reserved),
            allocated_at_end: of(before.allocated_at_end, found.allocated_at_end),
        };
        (each(Bytes::min, least), each(Bytes::max, most))
    });
    Ok(AddressDependence { recorded: own, least, most, orders: AddressOrder::OTHER_ORDERS, first_difference })
}

/// Allocated bytes and their peak, then reserved bytes and their peak.
fn now(stats: &Stats) -> [i64; 4] {
    let (allocated, reserved) = (stats.allocated_bytes.all, stats.reserved_bytes.all);
    [allocated.current, allocated.peak, reserved.current, reserved.peak]
}

fn bytes(stats: &Stats) -> RunBytes {
    let (allocated, reserved) = (stats.allocated_bytes.all, stats.reserved_bytes.all);
    RunBytes {
        peak_allocated: allocated.peak_bytes(),
        peak_reserved: reserved.peak_bytes(),
        allocated_at_end: allocated.current_bytes(),
    }
}

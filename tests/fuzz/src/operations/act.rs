//! One operation of each kind, and its expected result.

use blockyard_allocator::{AllocError, CachingAllocator, PoolOptions};
use blockyard_record::{Bytes, DeviceAddr};

use super::world::{LiveAllocation, World};
use crate::input::Input;

type Outcome = Result<(), AllocError>;

/// The expected result of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rule {
    /// The operation works.
    Works,
    /// The operation works, or the device fails and nothing changes.
    WorksOrNothing,
    /// The operation works, or memory runs out.
    MayRunOut,
    /// The operation is refused, and nothing changes.
    Refused,
    /// The call is not one that an allocator can refuse, and changes nothing visible.
    ChangesNothing,
}

/// Runs the next operation of the input; returns the reason if the operation must have changed nothing.
pub(super) fn act(world: &mut World, input: &mut Input<'_>) -> Option<String> {
    let failed = world.failed();
    let (rule, outcome) = match input.byte() % 32 {
        0..=5 => allocate_addr(world, input),
        6..=8 => allocate_handle(world, input),
        9..=12 => free_addr(world, input),
        13..=14 => free_handle(world, input),
        15..=16 => record_stream(world, input),
        17 => advance(world, input),
        18 => (Rule::Works, world.shared.with(CachingAllocator::empty_cache)),
        19 => set_fraction(world, input),
        20 => apply_settings(world, input),
        21..=24 => pools(world, input),
        25 => statistics(world, input),
        26 => arm(world, input),
        27..=29 => unknown_addr(world, input),
        _ => other_allocator(world, input),
    };
    let device_failed = world.failed() > failed;
    judge(rule, outcome, device_failed)
}

fn judge(rule: Rule, outcome: Outcome, device_failed: bool) -> Option<String> {
    let error = match outcome {
        Ok(()) => {
            assert_ne!(rule, Rule::Refused, "nothing was refused");
            return (rule == Rule::ChangesNothing).then(|| "what changes nothing".to_owned());
        }
        Err(error) => error,
    };
    let text = format!("{rule:?}: {error}");
    match error {
        AllocError::Device(_) => {
            assert!(device_failed, "the device did not fail: {text}");
            assert_ne!(rule, Rule::Refused, "the device was asked: {text}");
            (rule == Rule::WorksOrNothing).then_some(text)
        }
        AllocError::OutOfMemory(_) => {
            assert_eq!(rule, Rule::MayRunOut, "{text}");
            None
        }
        _ => {
            assert_eq!(rule, Rule::Refused, "{text}");
            Some(text)
        }
    }
}

fn allocation_rule(world: &World, size: Bytes, outcome: &Outcome) -> Rule {
    let is_refused = matches!(outcome, Err(AllocError::NoVirtualMemory)) && !world.has_pages;
    if size >= Bytes::new(1 << 60) || is_refused { Rule::Refused } else { Rule::MayRunOut }
}

fn allocate_addr(world: &mut World, input: &mut Input<'_>) -> (Rule, Outcome) {
    let (size, stream) = (input.size(), input.stream());
    let outcome = world.shared.allocate(size, stream).map(|addr| {
        assert_eq!(addr == DeviceAddr::default(), size.is_zero());
        if !size.is_zero() {
            let before = world.addresses.insert(addr, (size, stream));
            assert_eq!(before, None, "the address was in use");
        }
    });
    (allocation_rule(world, size, &outcome), outcome)
}

fn allocate_handle(world: &mut World, input: &mut Input<'_>) -> (Rule, Outcome) {
    let (size, stream) = (input.size(), input.stream());
    let result = world.shared.with(|allocator| allocator.allocate(size, stream));
    let outcome = result.map(|handle| {
        assert_eq!(handle.id().is_none(), size.is_zero());
        world.handles.push(LiveAllocation { handle, size, stream });
    });
    (allocation_rule(world, size, &outcome), outcome)
}

fn free_addr(world: &mut World, input: &mut Input<'_>) -> (Rule, Outcome) {
    let Some(addr) = pick_addr(world, input) else {
        return (Rule::ChangesNothing, world.shared.free(DeviceAddr::default()));
    };
    let outcome = world.shared.free(addr);
    if outcome.is_ok() {
        world.addresses.remove(&addr);
        world.note_gone(addr);
    }
    (Rule::WorksOrNothing, outcome)
}

fn pick_addr(world: &World, input: &mut Input<'_>) -> Option<DeviceAddr> {
    let index = usize::from(input.byte()).checked_rem(world.addresses.len())?;
    world.addresses.keys().nth(index).copied()
}

fn free_handle(world: &mut World, input: &mut Input<'_>) -> (Rule, Outcome) {
    let Some(index) = usize::from(input.byte()).checked_rem(world.handles.len()) else {
        return (Rule::ChangesNothing, Ok(()));
    };
    let LiveAllocation { handle, size, stream } = world.handles.swap_remove(index);
    let addr = handle.addr();
    let outcome = world.shared.with(|allocator| allocator.free(handle));
    if outcome.is_ok() {
        world.note_gone(addr);
    } else {
        world.lost.push((addr, size, stream));
    }
    (Rule::WorksOrNothing, outcome)
}

fn record_stream(world: &mut World, input: &mut Input<'_>) -> (Rule, Outcome) {
    let stream = input.stream();
    if input.flag() {
        let addr = pick_addr(world, input).unwrap_or_default();
        return (Rule::Works, world.shared.record_stream(addr, stream));
    }
    let index = usize::from(input.byte()).checked_rem(world.handles.len());
    let Some(held) = index.and_then(|index| world.handles.get(index)) else {
        return (Rule::ChangesNothing, Ok(()));
    };
    (Rule::Works, world.shared.with(|allocator| allocator.record_stream(&held.handle, stream)))
}

fn advance(world: &mut World, input: &mut Input<'_>) -> (Rule, Outcome) {
    let stream = input.flag().then(|| input.stream());
    world.shared.with(|allocator| match stream {
        Some(stream) => allocator.device_mut().inner.advance(stream),
        None => allocator.device_mut().inner.advance_all(),
    });
    (Rule::ChangesNothing, Ok(()))
}

fn set_fraction(world: &mut World, input: &mut Input<'_>) -> (Rule, Outcome) {
    let fraction = input.of(&[1.0, 0.5, 0.3, 0.75, 0.0, 1e-300, -0.1, 1.5, f64::NAN, f64::INFINITY]);
    let rule = if (0.0..=1.0).contains(&fraction) { Rule::Works } else { Rule::Refused };
    (rule, world.shared.with(|allocator| allocator.set_memory_fraction(fraction)))
}

fn apply_settings(world: &mut World, input: &mut Input<'_>) -> (Rule, Outcome) {
    let text = input.settings();
    // Settings before a bad setting stay applied; neither is a request.
    let _ = world.shared.with(|allocator| allocator.apply_settings(&text));
    (Rule::ChangesNothing, Ok(()))
}

fn pools(world: &mut World, input: &mut Input<'_>) -> (Rule, Outcome) {
    let (kind, pool) = (input.byte() % 8, input.pool());
    let stream = input.flag().then(|| input.stream());
    let uses = world.uses.get(&pool).copied().unwrap_or(0);
    let is_open = world.scopes.contains(&pool);
    let rule = |is_fine: bool| if is_fine { Rule::Works } else { Rule::Refused };
    match kind {
        0..=2 => {
            let outcome = world.shared.with(|allocator| allocator.begin_allocate_to_pool(pool, stream));
            if outcome.is_ok() {
                world.scopes.push(pool);
                *world.uses.entry(pool).or_default() += 1;
            }
            (rule(!is_open && pool != blockyard_record::PoolId::DEFAULT), outcome)
        }
        3..=4 => {
            let outcome = world.shared.with(|allocator| allocator.end_allocate_to_pool(pool));
            world.scopes.retain(|open| *open != pool);
            (rule(is_open), outcome)
        }
        5 => {
            let outcome = world.shared.with(|allocator| allocator.release_pool(pool));
            world.uses.insert(pool, uses.saturating_sub(1));
            (rule(uses > 0), outcome)
        }
        6 => {
            let outcome = world.shared.with(|allocator| allocator.destroy_pool(pool));
            world.uses.insert(pool, uses.saturating_sub(1));
            (rule(uses > 0), outcome)
        }
        _ => {
            let options = PoolOptions { never_splits: input.flag(), serves_on_oom: input.flag() };
            let id = world.shared.with(|allocator| allocator.create_pool(options));
            let before = world.uses.insert(id, 1);
            assert!(matches!(before, None | Some(0)), "pool {id} was in use");
            (Rule::ChangesNothing, Ok(()))
        }
    }
}

fn statistics(world: &mut World, input: &mut Input<'_>) -> (Rule, Outcome) {
    let kind = input.byte() % 3;
    world.shared.with(|allocator| match kind {
        0 => allocator.reset_peak_stats(),
        1 => allocator.reset_accumulated_stats(),
        _ => allocator.record_snapshot(),
    });
    (Rule::Works, Ok(()))
}

fn arm(world: &mut World, input: &mut Input<'_>) -> (Rule, Outcome) {
    world.shared.with(|allocator| allocator.device().failures.arm_by(input));
    (Rule::ChangesNothing, Ok(()))
}

/// Frees an address that no caller of the shared handle holds, or records a stream for it.
fn unknown_addr(world: &mut World, input: &mut Input<'_>) -> (Rule, Outcome) {
    let kind = input.byte() % 6;
    let live = pick_addr(world, input).unwrap_or_default();
    let index = usize::from(input.byte());
    let addr = match kind {
        // The address was freed before, or belongs to another allocation by now.
        0 | 1 => index.checked_rem(world.gone.len()).map_or(live, |index| world.gone[index]),
        2 => live.offset(Bytes::new(512 * (index as u64 + 1))),
        // The table of live addresses distinguishes such addresses only by asking the block.
        3 => DeviceAddr::new(live.get() ^ (1 << 41)),
        4 => {
            let held = index.checked_rem(world.handles.len()).map(|index| &world.handles[index]);
            held.map_or(live, |held| held.handle.addr())
        }
        _ => DeviceAddr::new(u64::MAX - index as u64),
    };
    if world.addresses.contains_key(&addr) || addr == DeviceAddr::default() {
        return (Rule::ChangesNothing, Ok(()));
    }
    let outcome =
        if input.flag() { world.shared.record_stream(addr, input.stream()) } else { world.shared.free(addr) };
    (Rule::Refused, outcome)
}

/// Mixes up two allocators whose devices give the same addresses.
fn other_allocator(world: &mut World, input: &mut Input<'_>) -> (Rule, Outcome) {
    let kind = input.byte() % 5;
    if kind == 0 {
        let (size, stream) = (input.size().max(Bytes::new(1)), input.stream());
        if let Ok(handle) = world.other.allocate(size, stream) {
            world.foreign.push(handle);
        }
        return (Rule::ChangesNothing, Ok(()));
    }
    if kind == 4 {
        mix_up_other(world, input);
        return (Rule::ChangesNothing, Ok(()));
    }
    let Some(index) = usize::from(input.byte()).checked_rem(world.foreign.len()) else {
        return (Rule::ChangesNothing, Ok(()));
    };
    let addr = world.foreign[index].addr();
    let outcome = match kind {
        1 => {
            let foreign = world.foreign.swap_remove(index);
            world.shared.with(|allocator| allocator.free(foreign))
        }
        2 => {
            let (foreign, stream) = (&world.foreign[index], input.stream());
            world.shared.with(|allocator| allocator.record_stream(foreign, stream))
        }
        _ if world.addresses.contains_key(&addr) => return (Rule::ChangesNothing, Ok(())),
        _ => world.shared.free(addr),
    };
    (Rule::Refused, outcome)
}

/// Shows an allocation of ours to the other allocator.
fn mix_up_other(world: &mut World, input: &mut Input<'_>) {
    let index = usize::from(input.byte()).checked_rem(world.handles.len());
    let Some(ours) = index.map(|index| &world.handles[index]).filter(|held| !held.size.is_zero()) else {
        return;
    };
    let before = (world.other.snapshot(), world.other.stats());
    let outcome = world.other.record_stream(&ours.handle, input.stream());
    assert!(matches!(outcome, Err(AllocError::InvalidPointer(_))), "{outcome:?}");
    assert_eq!((world.other.snapshot(), world.other.stats()), before);
}

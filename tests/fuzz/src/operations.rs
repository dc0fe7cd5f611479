//! Operations on an allocator, misuse and failures of its device among them.

mod act;
mod world;

use crate::input::Input;
use world::World;

/// The most operations of an input; more would only be slow, since a check of all blocks follows every
/// operation.
const MAX_OPERATIONS: usize = 400;

/// Reads settings and operations from the bytes and does them. After each operation the allocator is compared
/// with its events, its device and the allocations of callers; an operation that must change nothing is
/// checked for that.
pub fn operations(data: &[u8]) {
    let mut input = Input::new(data);
    let mut world = World::new(&mut input);
    let mut before = world.check();
    for _ in 0..MAX_OPERATIONS {
        if input.is_empty() {
            break;
        }
        let untouched_by = act::act(&mut world, &mut input);
        let after = world.check();
        if let Some(what) = untouched_by {
            assert_eq!(after, before, "{what}");
        }
        before = after;
    }
    let (snapshot, ..) = before;
    world.take_over(&snapshot);
    world.drain();
}

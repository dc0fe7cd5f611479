//! `_host`: whether the blocks of the program become more and more, and the live ones, for the search of
//! `lib/_growth.py`.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;

use blockyard_torch::autograd::SavedValue;
use blockyard_torch::memory::{LogEntry, Phase, SimulatedGpu};
use blockyard_torch::{Device, Tensor, session};
use pyo3::prelude::*;

use crate::run;
use crate::tensor::{PyNode, PyTensor};

/// The count of allocations at which growth is looked for first; then at each doubling.
const FIRST_LOOK: usize = 64;

thread_local! {
    static SEARCH: RefCell<Option<Py<PyAny>>> = const { RefCell::new(None) };
    /// The count of allocations and frees at which blocks are looked at next.
    static NEXT_LOOK: Cell<u64> = const { Cell::new(0) };
}

fn devices() -> impl Iterator<Item = Rc<SimulatedGpu>> {
    let session = session();
    (0..session.device_count()).filter_map(move |index| session.device(index).ok().cloned())
}

/// Whether at the last look there were more blocks at all times since the look before than at some time before
/// that.
fn is_more(log: &[LogEntry]) -> bool {
    let (mut made, mut live, mut next_look) = (0_usize, 0_usize, FIRST_LOOK);
    let (mut fewest, mut fewest_before) = (usize::MAX, usize::MAX);
    let mut is_more = false;
    for entry in log {
        match entry {
            LogEntry::Allocate(..) => {
                (made, live) = (made + 1, live + 1);
                if made == next_look {
                    is_more = fewest != usize::MAX && fewest > fewest_before;
                    (fewest_before, fewest, next_look) = (fewest, live, next_look.saturating_mul(2));
                }
            }
            LogEntry::Free(_) => {
                live = live.saturating_sub(1);
                fewest = fewest.min(live);
            }
            LogEntry::Unordered(_) => {}
        }
    }
    is_more
}

/// Whether the blocks of a device grew when they were looked at last.
#[pyfunction]
fn is_growing() -> bool {
    devices().any(|device| device.with_log(is_more))
}

/// Calls the function at each doubling of the count of requests at which blocks grow; nothing for `None`.
#[pyfunction]
#[pyo3(signature = (search))]
fn watch_growth(search: Option<Py<PyAny>>) {
    NEXT_LOOK.set(FIRST_LOOK as u64);
    drop(SEARCH.replace(search));
}

/// Calls the search if blocks are to be looked at and grow. Nothing of the run is borrowed.
pub(crate) fn look(python: Python<'_>, requests: u64) {
    if requests < NEXT_LOOK.get() {
        return;
    }
    NEXT_LOOK.set(requests.saturating_mul(2));
    let search = SEARCH.with_borrow(|search| search.as_ref().map(|search| search.clone_ref(python)));
    if let Some(search) = search.filter(|_| is_growing())
        && let Err(error) = search.call0(python)
    {
        error.write_unraisable(python, None);
    }
}

/// What tells a block from the blocks of all devices.
fn key(device: u8, number: u32) -> u64 {
    // 0 is the key of no block.
    u64::from(number) * 256 + u64::from(device) + 1
}

fn key_of(tensor: &Tensor) -> Option<u64> {
    let Device::Cuda(device) = tensor.device() else { return None };
    Some(key(device, tensor.storage().block_number()?))
}

/// The key of a tensor's block; `None` for a tensor without one.
#[pyfunction]
fn block_key(object: PyRef<'_, PyTensor>) -> Option<u64> {
    key_of(&object.held()?)
}

/// The blocks that a node of autograd saved, and the nodes that follow.
#[pyfunction]
fn kept_by_node(python: Python<'_>, node: PyRef<'_, PyNode>) -> (Vec<u64>, Vec<PyNode>) {
    let saved = node.0.saved_values().into_iter().filter_map(|(_, value)| match value {
        SavedValue::Tensor(tensor) => key_of(&tensor),
        SavedValue::Packed(packed) => {
            let packed = packed.downcast_ref::<Py<PyAny>>()?.bind(python).extract::<PyRef<'_, PyTensor>>();
            key_of(&packed.ok()?.held()?)
        }
    });
    (saved.collect(), node.0.edges().into_iter().flatten().map(|edge| PyNode(edge.node)).collect())
}

/// A line of the program.
#[derive(IntoPyObject)]
struct Line {
    file: String,
    line: u32,
}

/// The live blocks of all devices, as `blockyard_keepers` reads them.
#[derive(IntoPyObject)]
struct LiveBlocks {
    blocks: Vec<(u64, u64, u8, u32, usize)>,
    lines: Vec<Line>,
    made: Vec<(u8, usize)>,
}

#[pyfunction]
fn live_blocks() -> LiveBlocks {
    let file = run::file();
    let mut found = LiveBlocks { blocks: Vec::new(), lines: Vec::new(), made: Vec::new() };
    let mut places: HashMap<u32, usize> = HashMap::new();
    for device in devices() {
        let mut live = BTreeMap::new();
        device.with_log(|log| {
            for entry in log {
                match *entry {
                    LogEntry::Allocate(number, bytes) => drop(live.insert(number, bytes)),
                    LogEntry::Free(number) => drop(live.remove(&number)),
                    LogEntry::Unordered(_) => {}
                }
            }
        });
        let origins = device.origins();
        for (number, bytes) in live {
            let origin = usize::try_from(number).ok().and_then(|number| origins.get(number));
            let place = origin.map(|origin| origin.line).filter(|line| *line > 0).map_or(0, |line| {
                *places.entry(line).or_insert_with(|| {
                    found.lines.push(Line { file: file.clone(), line });
                    found.lines.len()
                })
            });
            // A block has whole units of 512 bytes.
            let bytes = bytes.next_multiple_of(512);
            found.blocks.push((key(device.index(), number), bytes, device.index(), number, place));
        }
        found.made.push((device.index(), origins.len()));
    }
    found
}

/// After how many allocations of each device its iterations ended: those where a forward pass follows a
/// backward pass or an optimizer's step, and the program's end.
#[pyfunction]
fn iteration_ends() -> Vec<Vec<usize>> {
    let ends = |device: Rc<SimulatedGpu>| {
        let phases: Vec<Phase> = device.origins().iter().map(|origin| origin.phase).collect();
        let pairs = (1..).zip(phases.windows(2));
        let ends =
            pairs.filter(|(_, pair)| matches!(pair, [Phase::Backward | Phase::Optimizer, Phase::Forward]));
        ends.map(|(end, _)| end).chain([phases.len()]).collect()
    };
    devices().map(ends).collect()
}

/// Adds the functions of this module to `_host`.
pub(crate) fn add_to(module: &Bound<'_, PyModule>) -> PyResult<()> {
    macro_rules! add {
        ($($function:ident)*) => { $(module.add_function(wrap_pyfunction!($function, module)?)?;)* }
    }
    add!(is_growing watch_growth block_key kept_by_node live_blocks iteration_ends);
    Ok(())
}

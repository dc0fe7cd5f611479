//! The backend interface: descriptors of operations, engines and plans.
#![expect(unsafe_code, reason = "functions are exported under cuDNN's names")]

use std::cell::Cell;
use std::collections::BTreeMap;
use std::ffi::c_int;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::abi::{In, Out};
use crate::cudnn::attributes::{DESCRIPTOR, FALLBACK, kind, name, size_of};
use crate::cudnn::{BAD_PARAM, NOT_SUPPORTED, SUCCESS, attention, workspaces};
use crate::handles::Handles;
use crate::report;
use crate::state::{current_device, state};
use crate::values::note_computation;

/// The engine that cuDNN recommends, whose workspace is recorded or estimated.
const FIRST_ENGINE: i64 = 0;

/// The engine of a convolution that PyTorch tries when the workspace of the first one does not fit. cuDNN has
/// many such engines; the last of them wants no workspace, which decides whether the convolution runs.
const SECOND_ENGINE: i64 = 1;
const SECOND_ENGINE_REMARK: &str = "where the workspace that cuDNN recommends for a convolution does not fit, a GPU takes a slower \
     algorithm with a smaller one; none is assumed";

/// The engine of a convolution with the largest workspace. It stands for the engines that PyTorch tries under
/// `torch.backends.cudnn.benchmark`, for which it asks both for the heuristics' engines and for those where
/// these fail. Which one wins is a matter of time; the engine that cuDNN recommends is assumed.
const LARGEST_ENGINE: i64 = 2;
const WINNER_REMARK: &str = "which algorithm torch.backends.cudnn.benchmark chooses for a convolution is a matter of time on a GPU; the \
     one that cuDNN recommends is assumed";

const LACKS_LARGEST: &str = "the largest workspace that torch.backends.cudnn.benchmark tries for a convolution may not fit; which \
     smaller one a GPU tries then is not recorded";

thread_local! {
    /// Whether PyTorch tries the engines of a convolution, and the engine that it ran last.
    static TRIED: Cell<(bool, i64)> = const { Cell::new((false, FIRST_ENGINE)) };
}

/// Whether PyTorch measures the time of engines to choose one.
pub(crate) fn is_trying_engines() -> bool {
    TRIED.get().0
}

/// A descriptor: its kind, and the bytes of each attribute that was set.
#[derive(Clone, Debug, Default)]
pub(super) struct Descriptor {
    pub(super) kind: c_int,
    attributes: BTreeMap<c_int, Vec<u8>>,
}

/// All descriptors, by handle.
pub(super) type Descriptors = Handles<Descriptor>;

static DESCRIPTORS: Mutex<Descriptors> = Mutex::new(Handles::above(0x5800_0000));

fn descriptors() -> MutexGuard<'static, Descriptors> {
    DESCRIPTORS.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Descriptor {
    fn numbers(&self, attribute: c_int) -> Vec<i64> {
        let bytes = self.attributes.get(&attribute).map_or(&[][..], Vec::as_slice);
        bytes.as_chunks().0.iter().map(|bytes| i64::from_le_bytes(*bytes)).collect()
    }

    fn small(&self, attribute: c_int) -> Option<c_int> {
        let bytes = self.attributes.get(&attribute)?;
        Some(c_int::from_le_bytes(*bytes.first_chunk()?))
    }

    /// The first descriptor that an attribute names.
    pub(super) fn named(&self, attribute: c_int) -> Option<usize> {
        self.numbers(attribute).first().and_then(|handle| usize::try_from(*handle).ok())
    }
}

/// A tensor of an operation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Tensor {
    /// The type of the elements, by cuDNN's number (`cudnnDataType_t`).
    pub(super) kind: c_int,
    pub(super) sizes: Vec<i64>,
    pub(super) strides: Vec<i64>,
}

/// A convolution as cuDNN is asked for it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Convolution {
    /// 0 for the forward pass, 1 for the gradient of the input, 2 for the gradient of the filter.
    pub(super) operation: usize,
    pub(super) input: Tensor,
    pub(super) filter: Tensor,
    pub(super) output: Tensor,
    pub(super) stride: Vec<i64>,
    pub(super) padding: Vec<i64>,
    pub(super) dilation: Vec<i64>,
}

/// The tensor of a descriptor; `None` where the handle is unknown or its type was not set.
pub(super) fn tensor(all: &Descriptors, handle: usize) -> Option<Tensor> {
    let found = all.get(handle)?;
    Some(Tensor {
        kind: found.small(name::TENSOR_TYPE)?,
        sizes: found.numbers(name::TENSOR_DIMENSIONS),
        strides: found.numbers(name::TENSOR_STRIDES),
    })
}

/// The engine of a plan or of an engine's configuration.
fn engine(all: &Descriptors, handle: usize) -> Option<&Descriptor> {
    let mut found = all.get(handle)?;
    if found.kind == kind::EXECUTION_PLAN {
        found = all.get(found.named(name::PLAN_CONFIG)?)?;
    }
    all.get(found.named(name::CONFIG_ENGINE)?)
}

/// The operations of the graph that a descriptor names by this attribute.
fn operations<'a>(all: &'a Descriptors, of: &Descriptor, graph: c_int) -> Option<Vec<&'a Descriptor>> {
    let graph = all.get(of.named(graph)?)?;
    let handles = graph.numbers(name::GRAPH_OPERATIONS);
    handles.into_iter().map(|handle| all.get(usize::try_from(handle).ok()?)).collect()
}

/// The convolution that the operations are; `None` unless they are exactly one convolution.
fn convolution(all: &Descriptors, operations: &[&Descriptor]) -> Option<Convolution> {
    let [operation] = operations[..] else { return None };
    let (direction, parts) = match operation.kind {
        kind::CONVOLUTION_FORWARD => (0, name::FORWARD),
        kind::CONVOLUTION_BACKWARD_DATA => (1, name::BACKWARD_DATA),
        kind::CONVOLUTION_BACKWARD_FILTER => (2, name::BACKWARD_FILTER),
        _ => return None,
    };
    let [settings, input, filter, output] = parts.map(|part| operation.named(part));
    let settings = all.get(settings?)?;
    Some(Convolution {
        operation: direction,
        input: tensor(all, input?)?,
        filter: tensor(all, filter?)?,
        output: tensor(all, output?)?,
        stride: settings.numbers(name::CONVOLUTION_STRIDES),
        padding: settings.numbers(name::CONVOLUTION_PRE_PADDINGS),
        dilation: settings.numbers(name::CONVOLUTION_DILATIONS),
    })
}

/// Whether PyTorch asked for all engines of the engine's graph.
fn is_tried(all: &Descriptors, engine: &Descriptor) -> bool {
    let graph = engine.named(name::ENGINE_GRAPH).and_then(|graph| all.get(graph));
    graph.is_some_and(|graph| graph.attributes.contains_key(&name::GRAPH_IS_TRIED))
}

/// Bytes of the workspace that the operations need, and why they are an estimate; `None` where they are
/// exact.
fn wanted(all: &Descriptors, handle: usize) -> (u64, Option<&'static str>) {
    let engine = engine(all, handle);
    let operations =
        engine.and_then(|engine| operations(all, engine, name::ENGINE_GRAPH)).unwrap_or_default();
    if let Some(convolution) = convolution(all, &operations) {
        return match engine.map(|engine| engine.numbers(name::ENGINE_INDEX)).as_deref() {
            Some([SECOND_ENGINE]) if engine.is_some_and(|engine| is_tried(all, engine)) => {
                (0, Some(WINNER_REMARK))
            }
            Some([SECOND_ENGINE]) => (0, Some(SECOND_ENGINE_REMARK)),
            Some([LARGEST_ENGINE]) => workspaces::largest_of_convolution(&convolution),
            _ => workspaces::of_convolution(&convolution),
        };
    }
    if let Some(bytes) = attention::workspace(all, &operations) {
        return (bytes, None);
    }
    (
        256,
        Some(
            "what cuDNN takes for an operation that is neither convolution nor attention is assumed to be 256 bytes",
        ),
    )
}

/// Bytes of the workspace that the operation's engine wants.
fn workspace(handle: usize) -> i64 {
    let (size, remark) = wanted(&descriptors(), handle);
    if let Some(remark) = remark {
        report::report_estimate(remark);
    }
    let has_room = || state().devices.get(current_device()).is_none_or(|device| size <= device.free_bytes());
    if is_trying_engines() && !has_room() {
        report::report_estimate(LACKS_LARGEST);
    }
    i64::try_from(size).unwrap_or(i64::MAX)
}

/// The value of an attribute that a caller asks for.
enum AttributeValue {
    Bytes(Vec<u8>),
    /// Copies of these descriptors' contents go into the descriptors that the caller made.
    Descriptors(Vec<usize>),
    None,
}

fn answer(handle: usize, attribute: c_int, value_kind: c_int) -> AttributeValue {
    match attribute {
        name::CONFIG_WORKSPACE | name::PLAN_WORKSPACE => {
            return AttributeValue::Bytes(workspace(handle).to_le_bytes().to_vec());
        }
        name::CONFIG_SHARED_MEMORY => return AttributeValue::Bytes(1024_i32.to_le_bytes().to_vec()),
        name::GRAPH_ENGINE_COUNT => return AttributeValue::Bytes(1_i64.to_le_bytes().to_vec()),
        name::PLAN_JSON => return AttributeValue::Bytes(b"{\"engine\":0}\0".to_vec()),
        name::CONFIG_KNOBS | name::CONFIG_INTERMEDIATES => return AttributeValue::None,
        _ => {}
    }
    let all = descriptors();
    let Some(found) = all.get(handle) else { return AttributeValue::None };
    match found.attributes.get(&attribute) {
        None => AttributeValue::None,
        Some(bytes) if value_kind != DESCRIPTOR => AttributeValue::Bytes(bytes.clone()),
        Some(_) => {
            let named = found.numbers(attribute);
            AttributeValue::Descriptors(
                named.into_iter().filter_map(|handle| usize::try_from(handle).ok()).collect(),
            )
        }
    }
}

/// Puts the configurations that the heuristics give into the caller's descriptors, at most `wanted`. `count`
/// is how many there are.
fn put_heuristics(handle: usize, wanted: i64, count: Out<i64>, to: Out<u64>) -> c_int {
    let mut all = descriptors();
    let Some(heuristics) = all.get(handle) else { return BAD_PARAM };
    let Some(graph) = heuristics.attributes.get(&name::HEURISTICS_GRAPH).cloned() else { return BAD_PARAM };
    let is_convolution = operations(&all, heuristics, name::HEURISTICS_GRAPH)
        .is_some_and(|operations| convolution(&all, &operations).is_some());
    let is_fallback = heuristics.small(name::HEURISTICS_MODE) == Some(FALLBACK);
    let engines: &[i64] = match (is_convolution, is_fallback) {
        (true, true) => &[LARGEST_ENGINE],
        (true, false) => &[FIRST_ENGINE, SECOND_ENGINE],
        (false, _) => &[FIRST_ENGINE],
    };
    let named = heuristics.named(name::HEURISTICS_GRAPH);
    if let Some(graph) = named.filter(|_| engines == [LARGEST_ENGINE]).and_then(|graph| all.get_mut(graph)) {
        graph.attributes.insert(name::GRAPH_IS_TRIED, Vec::new());
        TRIED.set((true, FIRST_ENGINE));
    }
    count.put(i64::try_from(engines.len()).unwrap_or(0));
    if to.is_null() {
        return SUCCESS;
    }
    for (place, index) in engines.iter().take(usize::try_from(wanted).unwrap_or(0)).enumerate() {
        let engine = all.add(Descriptor {
            kind: kind::ENGINE,
            attributes: BTreeMap::from([
                (name::ENGINE_GRAPH, graph.clone()),
                (name::ENGINE_INDEX, index.to_le_bytes().to_vec()),
            ]),
        });
        let config = to.get_at(place).and_then(|config| all.get_mut(usize::try_from(config).ok()?));
        let Some(config) = config else { return BAD_PARAM };
        config.attributes.insert(name::CONFIG_ENGINE, (engine as u64).to_le_bytes().to_vec());
    }
    SUCCESS
}

entries! {
    fn cudnnBackendCreateDescriptor(kind: c_int, to: Out<usize>) -> c_int {
        to.put(descriptors().add(Descriptor { kind, attributes: BTreeMap::new() }));
        SUCCESS
    }

    // Another descriptor may still name one that its owner gave back.
    fn cudnnBackendDestroyDescriptor(_descriptor: usize) -> c_int {
        SUCCESS
    }

    fn cudnnBackendFinalize(descriptor: usize) -> c_int {
        if descriptors().get(descriptor).is_some() { SUCCESS } else { BAD_PARAM }
    }

    fn cudnnBackendSetAttribute(descriptor: usize, attribute: c_int, kind: c_int, count: i64, values: In<u8>) -> c_int {
        let Some(length) = usize::try_from(count).ok().and_then(|count| count.checked_mul(size_of(kind))) else {
            return BAD_PARAM;
        };
        match descriptors().get_mut(descriptor) {
            Some(found) => {
                found.attributes.insert(attribute, values.list(length));
                SUCCESS
            }
            None => BAD_PARAM,
        }
    }

    fn cudnnBackendGetAttribute(
        descriptor: usize,
        attribute: c_int,
        kind: c_int,
        wanted: i64,
        count: Out<i64>,
        to: Out<u8>,
    ) -> c_int {
        let indices = Out::<u64>::from_bytes(to);
        if attribute == name::HEURISTICS_RESULTS {
            return put_heuristics(descriptor, wanted, count, indices);
        }
        if descriptors().get(descriptor).is_none() {
            return BAD_PARAM;
        }
        let room = usize::try_from(wanted).unwrap_or(0);
        match answer(descriptor, attribute, kind) {
            AttributeValue::None => _ = count.put(0),
            AttributeValue::Bytes(bytes) => {
                let size = size_of(kind);
                count.put(i64::try_from(bytes.len() / size).unwrap_or(0));
                for (index, byte) in bytes.iter().take(room.saturating_mul(size)).enumerate() {
                    to.put_at(index, *byte);
                }
            }
            AttributeValue::Descriptors(named) => {
                count.put(i64::try_from(named.len()).unwrap_or(0));
                let mut all = descriptors();
                for (index, source) in named.iter().take(room).enumerate() {
                    let target = indices.get_at(index).and_then(|handle| usize::try_from(handle).ok());
                    let (Some(target), Some(source)) = (target, all.get(*source).cloned()) else { return BAD_PARAM };
                    match all.get_mut(target) {
                        Some(target) => *target = source,
                        None => return BAD_PARAM,
                    }
                }
            }
        }
        SUCCESS
    }

    fn cudnnBackendExecute(_handle: usize, plan: usize, _pack: usize) -> c_int {
        let run = {
            let all = descriptors();
            let index = || engine(&all, plan)?.numbers(name::ENGINE_INDEX).first().copied();
            all.get(plan).map(|_| index().unwrap_or(FIRST_ENGINE))
        };
        note_computation();
        let Some(run) = run else { return NOT_SUPPORTED };
        let (is_trying, last) = TRIED.get();
        // After the last engine was tried, PyTorch runs the one that it chose.
        TRIED.set((is_trying && (run != FIRST_ENGINE || last == FIRST_ENGINE), run));
        SUCCESS
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::{
        Descriptor, Descriptors, SECOND_ENGINE_REMARK, WINNER_REMARK, descriptors, is_trying_engines,
        put_heuristics, wanted,
    };
    use crate::abi::Out;
    use crate::cudnn::SUCCESS;
    use crate::cudnn::attributes::{FALLBACK, kind, name};

    fn numbers(list: &[i64]) -> Vec<u8> {
        list.iter().flat_map(|number| number.to_le_bytes()).collect()
    }

    fn add<const N: usize>(all: &mut Descriptors, kind: i32, attributes: [(i32, Vec<u8>); N]) -> i64 {
        i64::try_from(all.add(Descriptor { kind, attributes: BTreeMap::from(attributes) })).unwrap_or(0)
    }

    /// A forward convolution of a layer of `GoogLeNet`, in the heuristics' descriptor.
    fn heuristics(all: &mut Descriptors) -> i64 {
        let mut tensor = |sizes: [i64; 4]| {
            let strides = [sizes[1] * sizes[2] * sizes[3], sizes[2] * sizes[3], sizes[3], 1];
            let attributes = [
                (name::TENSOR_TYPE, 0_i32.to_le_bytes().to_vec()),
                (name::TENSOR_DIMENSIONS, numbers(&sizes)),
                (name::TENSOR_STRIDES, numbers(&strides)),
            ];
            numbers(&[add(all, 0, attributes)])
        };
        let [input, filter, output] = [[128, 832, 7, 7], [256, 832, 1, 1], [128, 256, 7, 7]].map(&mut tensor);
        let settings = [
            (name::CONVOLUTION_STRIDES, numbers(&[1, 1])),
            (name::CONVOLUTION_PRE_PADDINGS, numbers(&[0, 0])),
            (name::CONVOLUTION_DILATIONS, numbers(&[1, 1])),
        ];
        let settings = numbers(&[add(all, 0, settings)]);
        let [of_settings, of_input, of_filter, of_output] = name::BACKWARD_FILTER;
        let parts = [(of_settings, settings), (of_input, input), (of_filter, filter), (of_output, output)];
        let operation = add(all, kind::CONVOLUTION_BACKWARD_FILTER, parts);
        let graph = add(all, 0, [(name::GRAPH_OPERATIONS, numbers(&[operation]))]);
        add(all, 0, [(name::HEURISTICS_GRAPH, numbers(&[graph]))])
    }

    #[test]
    fn where_the_first_workspace_does_not_fit_a_convolution_runs_without_one() {
        let (heuristics, mut configs) = {
            let mut all = descriptors();
            (heuristics(&mut all), [add(&mut all, 3, []), add(&mut all, 3, [])].map(i64::cast_unsigned))
        };
        let mut count = 0_i64;
        let found = put_heuristics(
            usize::try_from(heuristics).unwrap_or(0),
            2,
            Out::of(&mut count),
            Out::of_list(&mut configs),
        );
        assert_eq!((found, count), (SUCCESS, 2));
        let of = |config: u64| wanted(&descriptors(), usize::try_from(config).unwrap_or(0));
        assert_eq!(of(configs[0]), (30_704_831, None));
        assert_eq!(
            of(configs[1]),
            (0, Some(SECOND_ENGINE_REMARK)),
            "which algorithm a GPU takes then is not recorded"
        );
    }

    /// The bytes are cuDNN's answer on an H200.
    #[test]
    fn where_engines_are_tried_the_largest_workspace_is_among_them() {
        let fallback = {
            let mut all = descriptors();
            let handle = heuristics(&mut all);
            if let Some(found) = all.get_mut(usize::try_from(handle).unwrap_or(0)) {
                found.attributes.insert(name::HEURISTICS_MODE, FALLBACK.to_le_bytes().to_vec());
            }
            handle
        };
        let mut configs = [add(&mut descriptors(), 3, []).cast_unsigned(), 0];
        let mut count = 0_i64;
        let mut put = |handle: i64, to: &mut [u64]| {
            put_heuristics(
                usize::try_from(handle).unwrap_or(0),
                i64::try_from(to.len()).unwrap_or(0),
                Out::of(&mut count),
                Out::of_list(to),
            )
        };
        assert_eq!(put(fallback, &mut configs[..1]), SUCCESS);
        assert!(is_trying_engines());
        let of = |config: u64| wanted(&descriptors(), usize::try_from(config).unwrap_or(0));
        assert_eq!(of(configs[0]), (497_156_096, None));
        // The same graph, by the heuristics.
        if let Some(found) = descriptors().get_mut(usize::try_from(fallback).unwrap_or(0)) {
            found.attributes.remove(&name::HEURISTICS_MODE);
        }
        let mut others = {
            let mut all = descriptors();
            [add(&mut all, 3, []), add(&mut all, 3, [])].map(i64::cast_unsigned)
        };
        assert_eq!(put(fallback, &mut others), SUCCESS);
        assert_eq!(of(others[1]), (0, Some(WINNER_REMARK)));
    }
}

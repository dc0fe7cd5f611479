//! Why memory is alive: which names of the program lead to it, and which nodes of the backward graph saved
//! it.
//!
//! The search goes breadth first from the program's names and from those of the calls that run, so that the
//! shortest name of each tensor is found first. The search is made at one step, just before the next step
//! begins: by then, the objects that a line made have their names.

mod reason;

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::fmt;
use std::rc::Rc;

use blockyard_torch::autograd::{Node, SavedValue};
use blockyard_torch::{Device, Tensor, autocast, session};
use rustpython_vm::builtins::{
    PyBaseExceptionRef, PyCode, PyDict, PyDictRef, PyFunction, PyInt, PyList, PyModule, PyStr, PyTuple,
    PyType,
};
use rustpython_vm::frame::Frame;
use rustpython_vm::gc_state::gc_state;
use rustpython_vm::object::Traverse;
use rustpython_vm::{AsObject, PyObject, PyObjectRef, VirtualMachine};

use crate::modules::torch::{callback_of, tensor_of};
use crate::{collector, position};

pub use self::reason::Reason;

/// The most reasons that are kept for each block.
const MAX_REASONS: usize = 4;

/// Why the blocks of the first GPU are alive at one step.
#[derive(Clone, Debug, Default)]
pub struct Referrers {
    /// How many steps the recording had.
    pub step: usize,
    /// Reasons by the block's number, an index into [`crate::DeviceRun::origins`].
    pub reasons: BTreeMap<u32, Vec<Reason>>,
    /// The line that ran.
    pub line: u32,
    /// The operator or the node of autograd that ran, which holds the blocks without another reason.
    pub operator: &'static str,
}

/// A step, and the function that gets the referrers at that step.
pub(crate) type ReferrersRequest = (usize, Box<dyn FnOnce(Referrers)>);

thread_local! {
    static REQUEST: RefCell<Option<ReferrersRequest>> = const { RefCell::new(None) };
    static IS_LOOKING: Cell<bool> = const { Cell::new(false) };
}

/// Asks for the referrers at a step.
pub(crate) fn request_at_step((step, report): ReferrersRequest) {
    REQUEST.set(Some((step, report)));
    if let Ok(device) = session().device(0) {
        device.call_before_step(step, |is_free| {
            rustpython_vm::vm::thread::with_current_vm(|vm| report_now(vm, None, is_free));
        });
    }
}

/// Reports the referrers at the program's end, if the step that was asked for has not come before.
pub(crate) fn at_end(vm: &VirtualMachine, globals: Option<&PyDictRef>) {
    report_now(vm, globals, false);
}

/// Why memory of the first GPU is alive after an exception ended the program, by the block's number. The
/// calls have returned, and the exception still has their names.
pub(crate) fn at_exception(
    vm: &VirtualMachine,
    exception: &PyBaseExceptionRef,
    globals: Option<&PyDictRef>,
) -> BTreeMap<u32, Vec<Reason>> {
    let mut search = Search::default();
    if let Some(globals) = globals {
        search.add_globals(globals);
    }
    for entry in exception.__traceback__().iter().flat_map(rustpython_vm::PyRef::iter) {
        if position::is_own(entry.frame.code.source_path().as_str()) {
            search.add_frame(&entry.frame, true);
        }
    }
    search.search_all(vm);
    search.reasons
}

/// The shortest name that the program has at its end for each block of the first GPU, by the block's number.
/// A block that only a backward graph keeps has no name.
pub(crate) fn names_at_end(
    vm: &VirtualMachine,
    exception: Option<&PyBaseExceptionRef>,
    globals: Option<&PyDictRef>,
) -> BTreeMap<u32, String> {
    let reasons = if let Some(exception) = exception {
        at_exception(vm, exception, globals)
    } else {
        let mut search = Search::default();
        if let Some(globals) = globals {
            search.add_globals(globals);
        }
        search.search_all(vm);
        search.reasons
    };
    let name = |reasons: Vec<Reason>| {
        reasons.into_iter().find_map(|reason| match reason {
            Reason::Name(name) => Some(name),
            _ => None,
        })
    };
    reasons.into_iter().filter_map(|(number, reasons)| Some((number, name(reasons)?))).collect()
}

fn report_now(vm: &VirtualMachine, globals: Option<&PyDictRef>, is_free: bool) {
    let request = REQUEST.with(|request| request.try_borrow_mut().ok()?.take());
    if let Some((step, report)) = request
        && !IS_LOOKING.replace(true)
    {
        let referrers = look(vm, step, globals, is_free);
        report(referrers);
        IS_LOOKING.set(false);
    }
}

fn look(vm: &VirtualMachine, step: usize, globals: Option<&PyDictRef>, is_free: bool) -> Referrers {
    let mut search = Search::default();
    if let Some(globals) = globals {
        search.add_globals(globals);
    }
    search.add_calls(vm);
    search.search_all(vm);
    // A dying object is still in the collector's list.
    if !is_free {
        search.add_cycles(vm);
    }
    search.add_autocast_cache();
    let mut reasons = search.reasons;
    for (number, library) in session().library_blocks(0) {
        reasons.entry(number).or_default().push(Reason::Library(library));
    }
    Referrers { step, reasons, line: position::current_line(vm), operator: session().operator() }
}

/// An expression that leads to an object, and the function in which the expression is valid.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Name {
    text: Rc<str>,
    place: Rc<str>,
}

impl Name {
    fn new(text: impl Into<Rc<str>>, place: &Rc<str>) -> Self {
        Self { text: text.into(), place: Rc::clone(place) }
    }

    fn then(&self, more: &str) -> Self {
        Self::new(format!("{}{more}", self.text), &self.place)
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.text, self.place)
    }
}

/// An object that a name or another object leads to.
enum Referent {
    Object(PyObjectRef),
    Tensor(Tensor),
    Node(Rc<Node>),
}

/// A search in progress.
#[derive(Default)]
struct Search {
    /// The queue: objects that were found and not looked through yet, each with its shortest name.
    queue: VecDeque<(Referent, Name)>,
    /// The objects that were found.
    objects: HashSet<*const PyObject>,
    /// The nodes of backward graphs that were found.
    nodes: HashSet<*const Node>,
    /// The shortest name of each tensor that was found, by the tensor's identity.
    tensors: HashMap<usize, Name>,
    /// The reasons so far, by the block's number.
    reasons: BTreeMap<u32, Vec<Reason>>,
    /// The reason of all tensors that are found from now on, in place of a name.
    nameless: Option<Reason>,
}

impl Search {
    fn add_globals(&mut self, globals: &PyDictRef) {
        if !self.objects.insert(globals.as_object().as_raw()) {
            return;
        }
        let place: Rc<str> = Rc::from("");
        for (key, value) in pairs(globals) {
            if let Some(key) = text(&key).filter(|key| !key.starts_with("__")) {
                self.arrive(value, Name::new(key, &place));
            }
        }
    }

    /// The names of the calls that run, the program's own first.
    fn add_calls(&mut self, vm: &VirtualMachine) {
        let Ok(frames) = vm.frames.try_borrow() else { return };
        for is_own in [true, false] {
            for frame in frames.iter().rev() {
                #[expect(unsafe_code, reason = "the interpreter hands out its stack of frames as pointers")]
                // SAFETY: a frame stays alive while it is on the interpreter's stack, which is borrowed here.
                let frame = unsafe { frame.as_ref() };
                if position::is_own(frame.code.source_path().as_str()) != is_own {
                    continue;
                }
                if is_own {
                    self.add_globals(&frame.globals);
                }
                self.add_frame(frame, is_own);
            }
        }
    }

    fn add_frame(&mut self, frame: &Frame, is_own: bool) {
        let code = &frame.code;
        let owner = if is_own { "" } else { "PyTorch's " };
        let place: Rc<str> = Rc::from(format!(" in {owner}{}", code.qualname.as_str()));
        let is_argument = |name: &&str| code.varnames.iter().any(|other| other.as_str() == *name);
        let cells = code.cellvars.iter().map(|name| name.as_str()).filter(|name| !is_argument(name));
        let names = code.varnames.iter().map(|name| name.as_str()).chain(cells);
        let names = names.chain(code.freevars.iter().map(|name| name.as_str()));
        #[expect(
            unsafe_code,
            reason = "the interpreter has no other way to a call's names that makes no new references"
        )]
        // SAFETY: this thread is the only one that runs frames, and it runs none while it is here.
        let values = unsafe { frame.fastlocals() };
        for (name, value) in names.zip(values) {
            // A value that is being replaced is dying, and must not be taken up again.
            if let Some(value) = value.as_ref().filter(|value| value.strong_count() > 0) {
                self.arrive(value.clone(), Name::new(name, &place));
            }
        }
    }

    fn search_all(&mut self, vm: &VirtualMachine) {
        while let Some((referent, name)) = self.queue.pop_front() {
            match referent {
                Referent::Object(object) => self.visit_object(&object, &name, vm),
                Referent::Tensor(tensor) => self.tensor(&tensor, &name),
                Referent::Node(node) => self.node(&node, &name),
            }
        }
    }

    fn reason(&mut self, tensor: &Tensor, reason: Reason) {
        if tensor.device() != Device::Cuda(0) {
            return;
        }
        let Some(number) = tensor.storage().block_number() else { return };
        let reasons = self.reasons.entry(number).or_default();
        if reasons.len() < MAX_REASONS && !reasons.contains(&reason) {
            reasons.push(reason);
        }
    }

    fn arrive(&mut self, object: PyObjectRef, name: Name) {
        if let Some(tensor) = tensor_of(&object) {
            self.arrive_tensor(tensor, name.clone());
        }
        if is_container(&object) && self.objects.insert(object.as_raw()) {
            self.queue.push_back((Referent::Object(object), name));
        }
    }

    fn arrive_tensor(&mut self, tensor: Tensor, name: Name) {
        let reason = self.nameless.clone().unwrap_or_else(|| Reason::Name(name.to_string()));
        self.reason(&tensor, reason);
        if let std::collections::hash_map::Entry::Vacant(entry) = self.tensors.entry(tensor.identity()) {
            entry.insert(name.clone());
            self.queue.push_back((Referent::Tensor(tensor), name));
        }
    }

    fn tensor(&mut self, tensor: &Tensor, name: &Name) {
        if let Some(grad) = tensor.grad() {
            self.arrive_tensor(grad, name.then(".grad"));
        }
        if let Some(node) = tensor.grad_fn_as_it_stands() {
            self.arrive_node(node, name);
        }
    }

    fn arrive_node(&mut self, node: Rc<Node>, graph_of: &Name) {
        if self.nodes.insert(Rc::as_ptr(&node)) {
            self.queue.push_back((Referent::Node(node), graph_of.clone()));
        }
    }

    fn node(&mut self, node: &Rc<Node>, graph_of: &Name) {
        for (member, kept) in node.saved_values() {
            match kept {
                SavedValue::Tensor(tensor) => {
                    let graph_of = graph_of.to_string();
                    self.reason(&tensor, Reason::Saved { node: node.name(), member, graph_of });
                }
                SavedValue::Packed(packed) => {
                    if let Some(object) = packed.downcast_ref::<PyObjectRef>() {
                        let place: Rc<str> = Rc::from(format!(" of {graph_of}"));
                        let text =
                            format!("the value that a hook packed for {} in the backward graph", node.name());
                        self.arrive(object.clone(), Name::new(text, &place));
                    }
                }
            }
        }
        if let Some(leaf) = node.leaf() {
            self.reason(leaf, Reason::Leaf { graph_of: graph_of.to_string() });
        }
        if let Some(callback) = node.callback().and_then(|callback| callback_of(callback.as_ref())) {
            let place: Rc<str> =
                Rc::from(format!(" of {}, in the backward graph of {graph_of}", node.name()));
            // The function leads to the context of a `torch.autograd.Function`, whose attributes may be
            // tensors.
            self.queue.push_back((Referent::Object(callback), Name::new("", &place)));
        }
        for edge in node.edges().into_iter().flatten() {
            self.arrive_node(edge.node, graph_of);
        }
    }

    fn visit_object(&mut self, object: &PyObjectRef, name: &Name, vm: &VirtualMachine) {
        if object.downcast_ref::<PyFunction>().is_some() {
            let place: Rc<str> = Rc::from(format!(" in the closure of {name}"));
            return self.closure(object, &place, vm);
        }
        if let Some(frame) = object.downcast_ref::<Frame>() {
            return self.add_frame(frame, true);
        }
        if let Some(fields) = object.dict() {
            self.fields(&fields, name);
        }
        if let Some(dict) = object.downcast_ref::<PyDict>() {
            return self.entries(dict, name);
        }
        let is_sequence =
            object.downcast_ref::<PyList>().is_some() || object.downcast_ref::<PyTuple>().is_some();
        for (index, child) in payload(object).into_iter().enumerate() {
            let name = if is_sequence { name.then(&format!("[{index}]")) } else { name.clone() };
            self.arrive(child, name);
        }
    }

    /// The attributes of an instance; those of `nn.Module` in the way in which programs write them.
    fn fields(&mut self, fields: &PyDictRef, name: &Name) {
        for (key, value) in pairs(fields) {
            let Some(key) = text(&key) else { continue };
            if matches!(key.as_str(), "_parameters" | "_buffers" | "_modules")
                && let Some(members) = value.downcast_ref::<PyDict>()
            {
                for (key, value) in pairs(members) {
                    let Some(key) = text(&key) else { continue };
                    let is_index = key.bytes().all(|byte| byte.is_ascii_digit());
                    let more = if is_index { format!("[{key}]") } else { format!(".{key}") };
                    self.arrive(value, name.then(&more));
                }
                continue;
            }
            self.arrive(value, name.then(&format!(".{key}")));
        }
    }

    fn entries(&mut self, dict: &PyDict, name: &Name) {
        for (key, value) in pairs(dict) {
            let shown = if let Some(key) = text(&key) {
                format!("['{key}']")
            } else if let Some(number) = key.downcast_ref::<PyInt>() {
                format!("[{}]", number.as_bigint())
            } else {
                // A dictionary by tensors: an optimizer's state.
                let known = tensor_of(&key).and_then(|tensor| self.tensors.get(&tensor.identity()).cloned());
                format!("[{}]", known.map_or_else(|| "...".to_owned(), |name| name.text.to_string()))
            };
            self.arrive(value, name.then(&shown));
        }
    }

    fn closure(&mut self, function: &PyObjectRef, place: &Rc<str>, vm: &VirtualMachine) {
        let code = function.get_attr("__code__", vm).ok();
        let names: Vec<String> = code
            .as_ref()
            .and_then(|code| code.downcast_ref::<PyCode>())
            .map(|code| code.freevars.iter().map(|name| name.as_str().to_owned()).collect())
            .unwrap_or_default();
        for (index, cell) in cells(function, vm).into_iter().enumerate() {
            if let Some(value) = payload(&cell).into_iter().next() {
                let name = names.get(index).map_or("a name", String::as_str);
                self.arrive(value, Name::new(name, place));
            }
        }
    }

    /// Tensors that no name leads to: the interpreter works with them, or only a cycle of references holds
    /// them.
    fn add_cycles(&mut self, vm: &VirtualMachine) {
        let place: Rc<str> = Rc::from("");
        // The collector counts references, so nobody else may hold the list meanwhile.
        let dead = collector::unreachable(gc_state().get_objects(Some(0)), vm);
        let dead: HashSet<*const PyObject> = dead.iter().map(|object| object.as_raw()).collect();
        let tracked = gc_state().get_objects(Some(0));
        for (reason, text) in
            [(Reason::Value, "a value of the line that runs"), (Reason::Cycle, "a cycle of references")]
        {
            self.nameless = Some(reason.clone());
            for object in &tracked {
                let is_dead = dead.contains(&object.as_raw());
                let Some(tensor) = tensor_of(object).filter(|_| is_dead == (reason == Reason::Cycle)) else {
                    continue;
                };
                if !self.tensors.contains_key(&tensor.identity()) {
                    self.arrive(object.clone(), Name::new(text, &place));
                }
            }
            self.search_all(vm);
        }
        self.nameless = None;
    }

    /// Memory that the crate `torch` itself holds: the cache of autocast.
    fn add_autocast_cache(&mut self) {
        for (_, cast) in autocast::cached() {
            self.reason(&cast, Reason::AutocastCache);
        }
    }
}

/// Whether the object may lead to tensors of the program.
fn is_container(object: &PyObject) -> bool {
    let is_other = object.downcast_ref::<PyModule>().is_some()
        || object.downcast_ref::<PyType>().is_some()
        || object.downcast_ref::<PyCode>().is_some()
        || object.downcast_ref::<PyStr>().is_some()
        || object.downcast_ref::<PyInt>().is_some();
    !is_other
}

fn text(object: &PyObject) -> Option<String> {
    object.downcast_ref::<PyStr>().map(|text| text.to_string_lossy().into_owned())
}

/// The objects that an object refers to, without its class and its attributes.
fn payload(object: &PyObject) -> Vec<PyObjectRef> {
    let mut children = Vec::new();
    let mut add = |child: &PyObject| children.push(child.to_owned());
    if let Some(list) = object.downcast_ref::<PyList>() {
        list.traverse(&mut add);
    } else if let Some(tuple) = object.downcast_ref::<PyTuple>() {
        tuple.traverse(&mut add);
    } else {
        let fields = object.dict();
        let is_field = |child: &PyObjectRef| fields.as_ref().is_some_and(|fields| fields.is(child));
        children = object.gc_get_referents();
        children.retain(|child| !is_field(child));
    }
    children
}

/// Keys and values in order.
fn pairs(dict: &PyDict) -> Vec<(PyObjectRef, PyObjectRef)> {
    let mut all: Vec<PyObjectRef> = Vec::new();
    dict.traverse(&mut |child: &PyObject| all.push(child.to_owned()));
    let mut all = all.into_iter();
    std::iter::from_fn(|| Some((all.next()?, all.next()?))).collect()
}

fn cells(function: &PyObjectRef, vm: &VirtualMachine) -> Vec<PyObjectRef> {
    let closure = function.get_attr("__closure__", vm).ok();
    let cells = closure.as_ref().and_then(|closure| closure.downcast_ref::<PyTuple>());
    cells.map(|cells| cells.as_slice().to_vec()).unwrap_or_default()
}

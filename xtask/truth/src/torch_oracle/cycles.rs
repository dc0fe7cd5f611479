//! Random programs with cycles of references: closures, contexts, hooks, exceptions, generators, weak references.

use std::fmt::Write as _;

use super::calls::{CYCLES, Call};
use blockyard_device::Random;

/// The classes and functions that the programs use.
pub(crate) const PRELUDE: &str = include_str!("cycles.py");

/// How many of a hundred programs leave the moment of a collection to Python.
const AUTOMATIC_PERCENT: u64 = 15;

/// Elements of the tensors of a program.
const SIZES: [usize; 7] = [100, 1000, 3000, 70_000, 300_000, 1_500_000, 6_000_000];

/// Custom functions of [`PRELUDE`] that take a tensor and what the function holds, and give one tensor.
const FUNCTIONS: [&str; 9] = [
    "KeepInput",
    "KeepOutput",
    "SaveInput",
    "SaveOutput",
    "SaveMiddle",
    "LeakContext",
    "Same",
    "KeepGradient",
    "SetUp",
];

/// Operators on a tensor `x`.
const OPERATORS: [&str; 12] = [
    "{x} * 2",
    "{x}.exp()",
    "{x}.relu()",
    "{x}.view(-1)",
    "{x}[1:]",
    "{x} * {x}",
    "torch.cat([{x}, {x}])",
    "{x} * {other}.sum()",
    "{x}.sigmoid() + {other}.mean()",
    "({x} + 1).tanh() * {x}",
    "{x}.detach()",
    "{x}.clone()",
];

/// Random programs from a seed: each is the body of a function, as a call is.
#[derive(Debug)]
pub struct Cycles {
    random: Random,
    /// The number of the next program.
    number: usize,
}

impl Cycles {
    /// The programs of this seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self { random: Random::new(seed), number: 0 }
    }
}

impl Iterator for Cycles {
    type Item = Call;

    fn next(&mut self) -> Option<Call> {
        let is_automatic = self.random.percent(AUTOMATIC_PERCENT);
        let size = self.random.pick(&SIZES);
        let mut generator =
            CycleGenerator { random: &mut self.random, size, is_automatic, names: Vec::new(), number: 0 };
        let body = generator.body();
        let number = self.number;
        self.number += 1;
        let collections = if is_automatic { "automatic" } else { "forced" };
        Some(Call {
            family: format!("{CYCLES}, {collections} collections"),
            operator: format!("program {number}"),
            body,
        })
    }
}

/// The kind of a variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// A tensor that is a leaf and requires a gradient.
    Leaf,
    /// A tensor that an operator made of a tensor with a gradient.
    Derived,
    /// A tensor without a gradient.
    Plain,
    /// An object with attributes.
    Object,
    /// A dictionary or a list.
    Container,
    /// A module.
    Module,
    /// A handle of a hook.
    Handle,
    /// A generator.
    Generator,
    /// An exception, or `None`.
    Error,
    /// A weak reference.
    Reference,
    /// Something else that holds others: a function, a tuple, a class.
    Other,
}

use Kind::{Container, Derived, Error, Generator, Handle, Leaf, Module, Object, Other, Plain, Reference};

const TENSORS: &[Kind] = &[Leaf, Derived, Plain];
const HOLDERS: &[Kind] = &[Object, Container, Module];
const THINGS: &[Kind] =
    &[Leaf, Derived, Plain, Object, Container, Module, Generator, Error, Reference, Other];

/// The random choices for one program.
struct CycleGenerator<'a> {
    random: &'a mut Random,
    /// Elements of a tensor.
    size: usize,
    is_automatic: bool,
    /// The variables that are set.
    names: Vec<(Kind, String)>,
    /// The number of the last statement.
    number: usize,
}

impl CycleGenerator<'_> {
    fn body(&mut self) -> String {
        let mut text = format!("begin({})\ndef body():\n", if self.is_automatic { "True" } else { "False" });
        for _ in 0..2 {
            self.write(&mut text, |generator| Some(generator.new_tensor()));
            self.write(&mut text, |generator| Some(generator.new_holder()));
        }
        for _ in 0..6 + self.random.index(24) {
            self.write(&mut text, Self::statement);
        }
        text += "attempt('ended', body)\nshow('returned')\n";
        for _ in 0..=self.random.index(2) {
            text += "collect('collected')\n";
        }
        text
    }

    /// Adds a statement where one can be made now.
    fn write(&mut self, text: &mut String, make: impl FnOnce(&mut Self) -> Option<String>) {
        self.number += 1;
        for line in make(self).unwrap_or_default().lines() {
            let _ = writeln!(text, "    {line}");
        }
    }

    /// A new variable.
    fn define(&mut self, kind: Kind, letter: char) -> String {
        let name = format!("{letter}{}", self.number);
        self.names.push((kind, name.clone()));
        name
    }

    /// A variable of one of these kinds, more often a late one.
    fn find(&mut self, kinds: &[Kind]) -> Option<String> {
        let found: Vec<&String> =
            self.names.iter().filter(|(kind, _)| kinds.contains(kind)).map(|(_, name)| name).collect();
        let index = self.random.index(found.len()).max(self.random.index(found.len()));
        found.get(index).map(|name| (*name).clone())
    }

    fn kind_of(&self, name: &str) -> Kind {
        self.names.iter().find(|(_, other)| other == name).map_or(Other, |(kind, _)| *kind)
    }

    fn statement(&mut self) -> Option<String> {
        if self.is_automatic && self.random.percent(15) {
            return Some(self.many());
        }
        match self.random.index(100) {
            0..4 => Some(self.new_tensor()),
            4..9 => Some(self.new_holder()),
            9..18 => self.operator(),
            18..27 => self.custom_function(),
            27..36 => self.link(),
            36..43 => self.hook(),
            43..45 => self.remove_hook(),
            45..51 => self.module(),
            51..56 => self.reference(),
            56..63 => self.error(),
            63..70 => self.generator(),
            70..75 => self.checkpoint(),
            75..78 => self.saved_hooks(),
            78..85 => self.backward(),
            85..88 => self.function(),
            88..91 => self.change(),
            91..96 => self.delete(),
            96..98 => Some(format!("show('{}')", self.number)),
            _ => Some(format!("collect('{}')", self.number)),
        }
    }

    fn new_tensor(&mut self) -> String {
        let size = self.size;
        if self.random.percent(70) {
            let name = self.define(Leaf, 'p');
            return format!("{name} = torch.ones({size}, device='cuda', requires_grad=True)");
        }
        let name = self.define(Plain, 't');
        format!("{name} = torch.zeros({size}, device='cuda')")
    }

    fn new_holder(&mut self) -> String {
        let index = self.random.index(9);
        let kind = if index < 3 { Container } else { Object };
        let name = self.define(kind, 'b');
        let value = match index {
            0 | 1 => "{}".to_owned(),
            2 => "[]".to_owned(),
            3 | 4 => "Box()".to_owned(),
            5 => "Slotted()".to_owned(),
            6 => format!("Loud('{name}')"),
            7 => format!("Emptied('{name}')"),
            _ => format!("Returning('{name}')"),
        };
        format!("{name} = {value}")
    }

    fn operator(&mut self) -> Option<String> {
        let (x, other) = (self.find(TENSORS)?, self.find(TENSORS)?);
        let text = self.random.pick(&OPERATORS);
        let has_gradient = self.kind_of(&x) != Plain && !text.contains("detach");
        let y = self.define(if has_gradient { Derived } else { Plain }, 'y');
        let value = text.replace("{x}", &x).replace("{other}", &other);
        if self.random.percent(8) {
            return Some(format!("with torch.no_grad():\n    {y} = {value}"));
        }
        Some(format!("{y} = {value}"))
    }

    fn custom_function(&mut self) -> Option<String> {
        let (x, held) = (self.find(&[Leaf, Derived, Leaf, Derived, Plain])?, self.find(THINGS)?);
        let kind = if self.kind_of(&x) == Plain { Plain } else { Derived };
        let y = self.define(kind, 'y');
        Some(match self.random.index(12) {
            0 => {
                let z = self.define(Plain, 'z');
                format!("{y}, {z} = TwoOutputs.apply({x}, {held})")
            }
            1 => format!("{y} = InPlace.apply({x} * 1, {held})"),
            2 => format!("{y} = Failing.apply({x}, {held})"),
            _ => format!("{y} = {}.apply({x}, {held})", self.random.pick(&FUNCTIONS)),
        })
    }

    fn link(&mut self) -> Option<String> {
        let (holder, thing) = (self.find(HOLDERS)?, self.find(THINGS)?);
        let number = self.number;
        Some(match self.random.index(10) {
            0 => {
                let tensor = self.find(TENSORS)?;
                format!("{tensor}.mark{number} = {thing}")
            }
            1 => format!("put({holder}, 'own{number}', {holder})"),
            2 => {
                let other = self.find(HOLDERS)?;
                format!("put({holder}, 'one{number}', {other})\nput({other}, 'two{number}', {holder})")
            }
            3 => {
                let other = self.find(THINGS)?;
                format!("put({holder}, 'both{number}', ({thing}, {other}))")
            }
            4 => {
                let tensor = self.find(&[Derived])?;
                format!("put({holder}, 'node{number}', {tensor}.grad_fn)")
            }
            _ => format!("put({holder}, 'item{number}', {thing})"),
        })
    }

    /// An expression for a function of any arguments that holds something.
    fn holding(&mut self) -> Option<String> {
        let (thing, other) = (self.find(THINGS)?, self.find(THINGS)?);
        Some(match self.random.index(8) {
            0 => format!("lambda *arguments: ({thing}, None)[1]"),
            1 => format!("holding({thing}, {other})"),
            2 => format!("Method({thing}).hook"),
            3 => format!("Method({thing}).keep"),
            4 => format!("functools.partial(holding({other}), {thing})"),
            5 => format!("lambda *arguments: put({other}, 'seen', arguments)"),
            _ => format!("holding({thing})"),
        })
    }

    fn hook(&mut self) -> Option<String> {
        let tensor = self.find(&[Leaf, Derived, Derived])?;
        let function = match self.random.index(6) {
            0 => format!("changing({tensor})"),
            1 | 2 => format!("holding({tensor})"),
            _ => self.holding()?,
        };
        let call = match self.random.index(8) {
            0 if self.kind_of(&tensor) == Derived => return Some(format!("{tensor}.retain_grad()")),
            1 | 2 if self.kind_of(&tensor) == Leaf => {
                format!("{tensor}.register_post_accumulate_grad_hook({function})")
            }
            _ => format!("{tensor}.register_hook({function})"),
        };
        if self.random.percent(50) {
            return Some(call);
        }
        let handle = self.define(Handle, 'h');
        Some(format!("{handle} = {call}"))
    }

    fn remove_hook(&mut self) -> Option<String> {
        let handle = self.find(&[Handle])?;
        Some(format!("{handle}.remove()"))
    }

    fn module(&mut self) -> Option<String> {
        let Some(module) = self.find(&[Module]).filter(|_| self.random.percent(70)) else {
            let parent = self.find(&[Module]).unwrap_or_default();
            let class = self.random.pick(&["Layer", "Keeping", "Linked"]);
            let name = self.define(Module, 'm');
            return Some(format!("{name} = {class}({parent})"));
        };
        let number = self.number;
        Some(match self.random.index(9) {
            0..3 => {
                let x = self.find(TENSORS)?;
                let y = self.define(Derived, 'y');
                format!("{y} = {module}({x})")
            }
            3 => format!("{module}.register_forward_hook({})", self.holding()?),
            4 => format!("{module}.register_forward_pre_hook({})", self.holding()?),
            5 => format!(
                "{module}.register_forward_hook(lambda module, arguments, result: put({module}, 'result{number}', result.sum()))"
            ),
            6 => format!("{module}.note{number} = {}", self.find(THINGS)?),
            7 => format!("{module}.weight.register_hook({})", self.holding()?),
            _ => {
                let handle = self.define(Handle, 'h');
                format!("{handle} = {module}.register_forward_hook({})", self.holding()?)
            }
        })
    }

    fn reference(&mut self) -> Option<String> {
        let known = self.find(&[Reference]).filter(|_| self.random.percent(30));
        if let Some(reference) = known {
            return Some(format!("print('{}', {reference}() is None)", self.number));
        }
        let thing = self.find(&[Leaf, Derived, Plain, Object, Module])?;
        let (number, holder) = (self.number, self.find(HOLDERS)?);
        Some(match self.random.index(7) {
            0 => format!("weakref.finalize({thing}, print, 'final {number}')"),
            1 if self.kind_of(&thing) != Object => {
                let name = self.define(Other, 'k');
                format!("{name} = weakref.WeakKeyDictionary()\n{name}[{thing}] = {holder}")
            }
            2 => {
                let name = self.define(Other, 'k');
                format!("{name} = weakref.WeakValueDictionary()\n{name}[0] = {thing}")
            }
            3 if self.kind_of(&holder) == Container => {
                let name = self.define(Reference, 'w');
                format!("{name} = weakref.ref({thing}, noting('{number}', {holder}))")
            }
            4 | 5 => {
                let name = self.define(Reference, 'w');
                format!("{name} = weakref.ref({thing}, noting('{number}'))")
            }
            _ => {
                let name = self.define(Reference, 'w');
                format!("{name} = weakref.ref({thing})")
            }
        })
    }

    fn error(&mut self) -> Option<String> {
        let (x, held) = (self.find(TENSORS)?, self.find(HOLDERS)?);
        let function = self.random.pick(&["fail", "fail", "fail_from", "fail_in_context"]);
        let number = self.number;
        let known = self.find(&[Error]);
        Some(match (self.random.index(10), known) {
            (0, Some(error)) => format!("if {error} is not None: {error}.__traceback__ = None"),
            (1, Some(error)) => format!("if {error} is not None: {error}.held = {held}"),
            (2, Some(error)) => format!("put({held}, 'error{number}', {error})"),
            (3, _) => format!("keep_own({x}, {held})"),
            (4, _) => {
                let error = self.define(Error, 'e');
                format!(
                    "{error} = None\ntry:\n    {function}({x}, {held})\nexcept Exception as error:\n    {error} = error"
                )
            }
            (5, _) => format!(
                "try:\n    {function}({x}, {held})\nexcept Exception as error:\n    put({held}, 'error{number}', error)"
            ),
            _ => {
                let error = self.define(Error, 'e');
                format!("{error} = caught({function}, {x}, {held})")
            }
        })
    }

    fn generator(&mut self) -> Option<String> {
        let number = self.number;
        let known = self.find(&[Generator]).filter(|_| self.random.percent(65));
        let Some(generator) = known else {
            let (x, held) = (self.find(TENSORS)?, self.find(THINGS)?);
            let name = self.define(Generator, 'g');
            return Some(match self.random.index(6) {
                0 => format!("{name} = sending({x})\nnext({name})"),
                1 => format!("{name} = delegating({x}, {held})\nnext({name})"),
                2 => format!("{name} = plain_steps({x}, {held})\nnext({name})"),
                3 => format!("{name} = ({x} * i for i in range(3))"),
                _ => format!("{name} = steps({x}, {held})"),
            });
        };
        Some(match self.random.index(7) {
            0 => format!("{generator}.close()"),
            1 => format!("attempt('{number}', lambda: list({generator}))"),
            2 => {
                let held = self.find(HOLDERS)?;
                format!("put({held}, 'generator{number}', {generator})")
            }
            3 => {
                let error = self.define(Error, 'e');
                format!(
                    "{error} = caught(lambda x, held: {generator}.throw(ValueError('thrown')), None, None)"
                )
            }
            4 => {
                let x = self.find(TENSORS)?;
                format!("attempt('{number}', lambda: {generator}.send({x}))")
            }
            _ => {
                let name = self.define(Other, 'k');
                format!("{name} = next({generator}, None)")
            }
        })
    }

    fn checkpoint(&mut self) -> Option<String> {
        let (x, thing, holder) = (self.find(&[Leaf, Derived])?, self.find(THINGS)?, self.find(HOLDERS)?);
        let (number, mode) = (self.number, self.random.pick(&["True", "False"]));
        let y = self.define(Derived, 'y');
        let module = self.find(&[Module]).filter(|_| self.random.percent(25));
        if let Some(module) = module {
            return Some(format!("{y} = checkpoint({module}, {x}, use_reentrant={mode})"));
        }
        let value = self.random.pick(&["value", "value * 2", "value.exp() * value", "value.relu()"]);
        let mut text = format!("def run{number}(value):\n    {thing}\n    return {value}\n");
        let _ = write!(text, "{y} = checkpoint(run{number}, {x}, use_reentrant={mode})");
        if self.random.percent(50) {
            let _ = write!(text, "\nput({holder}, 'output{number}', {y})");
        }
        Some(text)
    }

    fn saved_hooks(&mut self) -> Option<String> {
        let (x, holder) = (self.find(&[Leaf, Derived])?, self.find(HOLDERS)?);
        let number = self.number;
        let value =
            self.random.pick(&["{x} * {x}", "{x}.exp()", "({x} * 2).relu() * {x}"]).replace("{x}", &x);
        let hooks = match self.random.index(5) {
            0 => format!("lambda t: (put({holder}, 'packed{number}', t), t)[1], lambda t: t"),
            1 => format!("lambda t: [t, {holder}], lambda packed: packed[0]"),
            2 => format!("lambda t: t.cpu(), lambda t: (put({holder}, 'unpacked{number}', t), t.cuda())[1]"),
            3 => "lambda t: t * 1, lambda t: t".to_owned(),
            _ => {
                let y = self.define(Derived, 'y');
                return Some(format!("with torch.autograd.graph.save_on_cpu():\n    {y} = {value}"));
            }
        };
        let y = self.define(Derived, 'y');
        Some(format!("with torch.autograd.graph.saved_tensors_hooks({hooks}):\n    {y} = {value}"))
    }

    fn backward(&mut self) -> Option<String> {
        let y = self.find(&[Derived])?;
        let how = self.random.pick(&["", "", "", ", retain_graph=True", ", create_graph=True"]);
        let number = self.number;
        Some(match self.random.index(6) {
            0 => {
                let x = self.find(&[Leaf, Derived])?;
                let name = self.define(Other, 'k');
                format!("{name} = gradient('{number}', {y}, {x}{how})")
            }
            1 => {
                let (leaf, holder) = (self.find(&[Leaf])?, self.find(HOLDERS)?);
                format!("backward('{number}', {y}{how})\nput({holder}, 'grad{number}', {leaf}.grad)")
            }
            _ => format!("backward('{number}', {y}{how})"),
        })
    }

    /// A function or a class that holds something.
    fn function(&mut self) -> Option<String> {
        let (thing, other) = (self.find(THINGS)?, self.find(THINGS)?);
        let name = self.define(Other, 'k');
        Some(match self.random.index(6) {
            0 => format!("def {name}(argument={thing}):\n    return {name}, {other}"),
            1 => format!("class {name}:\n    item = {thing}\n    def own(self): return {name}, {other}"),
            2 => format!("{name} = Method({thing}, {other}).keep"),
            3 => format!("{name} = ({thing}, {other})"),
            4 => format!("{name} = [lambda: {name}, {thing}]"),
            _ => format!("{name} = holding({thing}, {other})"),
        })
    }

    /// A change of a tensor or a container.
    fn change(&mut self) -> Option<String> {
        let number = self.number;
        Some(match self.random.index(7) {
            0 | 1 => format!("{}.grad = None", self.find(&[Leaf])?),
            2 => format!("{}.clear()", self.find(&[Container])?),
            3 => format!("attempt('{number}', lambda: {}.mul_(2))", self.find(&[Derived, Plain])?),
            4 => format!("attempt('{number}', lambda: {}.detach_())", self.find(&[Derived])?),
            5 => {
                let leaf = self.find(&[Leaf])?;
                format!("{leaf}.data = torch.ones({}, device='cuda')", self.size)
            }
            _ => {
                let (box_, cached) = (self.find(&[Object])?, self.define(Plain, 't'));
                format!("{cached} = cached({box_})")
            }
        })
    }

    fn delete(&mut self) -> Option<String> {
        let index = self.random.index(self.names.len());
        if self.names.len() < 3 {
            return None;
        }
        let (_, name) = self.names.remove(index);
        if self.random.percent(60) { Some(format!("del {name}")) } else { Some(format!("{name} = None")) }
    }

    /// Many small cycles, until Python collects them.
    fn many(&mut self) -> String {
        let (count, size) =
            (self.random.pick(&[50, 200, 400, 1000]), self.random.pick(&[500, 10_000, 1_000_000]));
        let each = match self.random.index(6) {
            0 => "c = {}; c['own'] = c; c['item'] = torch.empty(SIZE, device='cuda')".to_owned(),
            1 => "c = Box(); c.own = c; c.item = torch.empty(SIZE, device='cuda')".to_owned(),
            2 => "c = [torch.empty(SIZE, device='cuda')]; c.append(lambda: c)".to_owned(),
            3 => "c = {}; c['y'] = SaveInput.apply(torch.ones(SIZE, device='cuda', requires_grad=True), c)"
                .to_owned(),
            4 => "c = torch.ones(SIZE, device='cuda', requires_grad=True); c.register_hook(holding(c))"
                .to_owned(),
            _ => "c = caught(keep_own, torch.ones(SIZE, device='cuda'), None)".to_owned(),
        };
        let each = each.replace("SIZE", &size.to_string());
        format!("for i in range({count}):\n    {each}\nshow('{}')", self.number)
    }
}

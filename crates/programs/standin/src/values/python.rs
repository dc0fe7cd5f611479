//! The helper in Python: which operators it computes, and the calls.
#![expect(unsafe_code, reason = "Python's C API is called")]

use std::cell::RefCell;
use std::collections::HashMap;
use std::ffi::{CStr, c_void};
use std::ptr::NonNull;
use std::sync::{OnceLock, PoisonError, RwLock};

use crate::memory::Certainty;
use crate::python::{Value, interpreter};
use crate::values::frames::unobserved;
use crate::values::layout::{IValue, ObjectLayout};
use crate::values::observers::{give_up, is_own_generator};
use crate::values::tensors::{MemoryKind, Storage, Tensor, items, text};

/// The type of an argument, by the operator's schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Tensor,
    Tensors,
    /// A number of any type, or a symbol that PyTorch numbers.
    Number,
    Numbers,
    Text,
    /// A device, which the helper does not need.
    Ignored,
    /// A generator of random numbers: the helper knows the device's own.
    Generator,
    Other,
}

impl Kind {
    fn of(letter: char) -> Self {
        match letter {
            'T' => Self::Tensor,
            'L' => Self::Tensors,
            'n' => Self::Number,
            'N' => Self::Numbers,
            'S' => Self::Text,
            'D' => Self::Ignored,
            'G' => Self::Generator,
            _ => Self::Other,
        }
    }
}

/// An operator, as the helper classified it.
#[derive(Debug)]
pub(super) struct Operator {
    /// The operator's number in the helper.
    pub(super) number: u64,
    /// The helper's facts about the operator.
    pub(super) traits: Traits,
    /// The share of the first argument's elements that the operator is assumed to find; 0 where the sizes of
    /// the results are known before the operator runs.
    pub(super) assumed_count: f64,
    pub(super) kinds: Vec<Kind>,
    /// The places of the arguments that the operator writes.
    pub(super) written: Vec<usize>,
    /// The places of the arguments that the operator writes and does not read.
    pub(super) only_written: Vec<usize>,
}

/// The helper's facts about an operator, a letter each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a letter of the helper's answer")]
pub(super) struct Traits {
    /// `k`: whether the operator runs kernels itself; others only call operators.
    pub(super) is_leaf: bool,
    /// `c`: whether the helper computes the operator where its arguments are known.
    pub(super) is_computed: bool,
    /// `v`: whether the operator gives the host the value of a tensor's only element.
    pub(super) reads_value: bool,
    /// `a`: whether the helper has an assumption where the operator's arguments are not known.
    pub(super) assumes: bool,
    /// `t`: whether the assumption is about truth values alone.
    pub(super) assumes_truths: bool,
    /// `n`: whether the results are integers, truth values or one of the numbers, which are exact.
    pub(super) finds: bool,
    /// `r`: whether the operator draws random numbers, which the helper knows.
    pub(super) is_random: bool,
    /// `l`: whether the operator gives tensors in a list.
    pub(super) gives_list: bool,
    /// `f`: whether the operator fills its first argument with a number, which is its second argument, or
    /// with zeros.
    pub(super) fills: bool,
    /// `s`: whether the operator sorts, searches or counts equal elements.
    pub(super) sorts: bool,
}

impl Traits {
    fn of(letters: &str) -> Self {
        let has = |letter: char| letters.contains(letter);
        Self {
            is_leaf: has('k'),
            is_computed: has('c'),
            reads_value: has('v'),
            assumes: has('a'),
            assumes_truths: has('t'),
            finds: has('n'),
            is_random: has('r'),
            gives_list: has('l'),
            fills: has('f'),
            sorts: has('s'),
        }
    }
}

/// A reference to an object of Python's, dropped with Python's lock.
#[derive(Debug)]
pub(super) struct Object(NonNull<c_void>);

// SAFETY: a reference is moved between threads; the object itself is touched only with Python's lock.
unsafe impl Send for Object {}
// SAFETY: as above.
unsafe impl Sync for Object {}

impl Object {
    /// The object of a reference that the caller hands over.
    pub(super) fn of(reference: NonNull<c_void>) -> Self {
        Self(reference)
    }

    /// The object, borrowed.
    pub(super) fn get(&self) -> NonNull<c_void> {
        self.0
    }
}

impl Drop for Object {
    fn drop(&mut self) {
        if let Some(python) = interpreter() {
            python.locked(|| python.drop(self.0));
        }
    }
}

/// An argument for the helper.
#[derive(Debug)]
pub(super) enum Argument {
    None,
    Tensor(Tensor, bool),
    Integer(i64),
    Number(f64),
    Boolean(bool),
    Text(String),
    List(Vec<Argument>),
}

impl Argument {
    /// The argument that PyTorch boxed.
    pub(super) fn of(
        boxed: &IValue,
        kind: Kind,
        layout: &ObjectLayout,
        may_be_empty: bool,
        tensor: &dyn Fn(&IValue) -> Option<Tensor>,
    ) -> Option<Self> {
        if boxed.tag == 0 || kind == Kind::Ignored {
            return Some(Self::None);
        }
        let number = |boxed: &IValue| {
            let tag = boxed.tag;
            if tag == layout.integer {
                Some(Self::Integer(boxed.payload.cast_signed()))
            } else if tag == layout.number {
                Some(Self::Number(f64::from_bits(boxed.payload)))
            } else {
                (tag == layout.boolean).then_some(Self::Boolean(boxed.payload & 1 == 1))
            }
        };
        let one = |boxed: &IValue| {
            if boxed.tag == 0 {
                return Some(Self::None);
            }
            if boxed.tag != layout.tensor {
                return None;
            }
            // A tensor without a storage is none, or one that was looked at before.
            let Some(home) = Storage::of(boxed, layout).map(|storage| storage.home()) else {
                return Some(Self::None);
            };
            // An empty place for a result is a place on the device: operators over the host's tensors alone
            // are not looked at.
            (home != MemoryKind::Nowhere || may_be_empty)
                .then(|| Some(Self::Tensor(tensor(boxed)?, home != MemoryKind::Host)))?
        };
        match kind {
            Kind::Tensor => one(boxed),
            Kind::Tensors => items(boxed, layout).iter().map(one).collect::<Option<Vec<_>>>().map(Self::List),
            Kind::Number => number(boxed),
            Kind::Numbers => {
                items(boxed, layout).iter().map(number).collect::<Option<Vec<_>>>().map(Self::List)
            }
            Kind::Text => text(boxed, layout).map(Self::Text),
            Kind::Generator => is_own_generator(boxed.payload).then_some(Self::None),
            Kind::Ignored | Kind::Other => None,
        }
    }

    fn value(&self) -> Value {
        match self {
            Self::None => Value::None,
            Self::Integer(value) => Value::Integer(*value),
            Self::Number(value) => Value::Number(*value),
            Self::Boolean(value) => Value::Boolean(*value),
            Self::Text(value) => Value::Text(value.clone()),
            Self::List(items) => Value::List(items.iter().map(Self::value).collect()),
            Self::Tensor(tensor, is_on_device) => described(tensor, *is_on_device),
        }
    }
}

/// A tensor as the helper takes it: `(address, type, sizes, strides, bytes, on the device)`.
fn described(tensor: &Tensor, is_on_device: bool) -> Value {
    let list = |values: &[i64]| Value::Tuple(values.iter().map(|value| Value::Integer(*value)).collect());
    let (start, end) = tensor.extent();
    Value::Tuple(vec![
        Value::Integer(tensor.data.cast_signed()),
        Value::Integer(tensor.dtype.into()),
        list(&tensor.sizes),
        list(&tensor.strides),
        Value::Integer(end.saturating_sub(start).cast_signed()),
        Value::Boolean(is_on_device),
    ])
}

/// The functions of the helper in Python.
#[derive(Debug)]
pub(super) struct Helper {
    classify: Object,
    begin: Object,
    end: Object,
    check: Object,
}

static HELPER: OnceLock<Helper> = OnceLock::new();
/// The name of an operator and the operator, `None` for a name that is not one. Each is kept: PyTorch has a
/// few thousand operators.
type NamedOperator = (&'static [u8], Option<&'static Operator>);
/// Operators by the addresses of their name and of their overload's name. The name itself is kept to be sure
/// that it still lies there.
static OPERATORS: RwLock<Option<HashMap<(u64, u64), NamedOperator>>> = RwLock::new(None);
/// An operator that a thread keeps: the addresses of its names, and what lay there.
type LastOperator = Option<((u64, u64), NamedOperator)>;
/// How many operators a thread remembers.
const KEPT: usize = 512;

thread_local! {
    /// The last operators of the thread, by a few bits of both addresses.
    static LAST: RefCell<Vec<LastOperator>> = RefCell::new(vec![None; KEPT]);
}

/// The place of an operator among those that a thread keeps.
fn kept_at(key: (u64, u64)) -> usize {
    let mixed = (key.0 ^ key.1.rotate_left(17)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    usize::try_from(mixed >> 32).unwrap_or(0) % KEPT
}

impl Helper {
    /// Keeps the helper's functions for the rest of the process; false where they cannot be kept, or others
    /// are kept already.
    pub(super) fn set(
        classify: *mut c_void,
        begin: *mut c_void,
        end: *mut c_void,
        check: *mut c_void,
    ) -> bool {
        let Some(python) = interpreter() else { return false };
        let keep = |object: *mut c_void| {
            let object = NonNull::new(object)?;
            python.locked(|| python.add(object));
            Some(Object(object))
        };
        let (Some(classify), Some(begin), Some(end), Some(check)) =
            (keep(classify), keep(begin), keep(end), keep(check))
        else {
            return false;
        };
        HELPER.set(Self { classify, begin, end, check }).is_ok()
    }

    /// The operator of this name; `None` for a name that is not an operator's.
    pub(super) fn operator(name: &CStr, overload: &CStr) -> Option<&'static Operator> {
        let key = (name.as_ptr() as u64, overload.as_ptr() as u64);
        let place = kept_at(key);
        let last = LAST.with_borrow(|last| last.get(place).copied().flatten());
        if let Some((known, (text, operator))) = last
            && known == key
            && text == name.to_bytes()
        {
            return operator;
        }
        let found = Self::find_operator(key, name, overload);
        LAST.with_borrow_mut(|last| {
            if let Some(slot) = last.get_mut(place) {
                *slot = Some((key, found));
            }
        });
        found.1
    }

    fn find_operator(key: (u64, u64), name: &CStr, overload: &CStr) -> NamedOperator {
        {
            let operators = OPERATORS.read().unwrap_or_else(PoisonError::into_inner);
            if let Some(found) = operators.as_ref().and_then(|operators| operators.get(&key))
                && found.0 == name.to_bytes()
            {
                return *found;
            }
        }
        let operator = unobserved(|| classified(name, overload));
        let operator = operator.map(|operator| &*Box::leak(Box::new(operator)));
        let found: NamedOperator = (name.to_bytes().to_vec().leak(), operator);
        let mut operators = OPERATORS.write().unwrap_or_else(PoisonError::into_inner);
        operators.get_or_insert_with(HashMap::new).insert(key, found);
        found
    }

    /// Has the helper compute an operator that starts: its results, and how many results it finds where the
    /// host asks for the number.
    pub(super) fn begin(
        operator: &Operator,
        arguments: &[Argument],
        certainty: Certainty,
    ) -> Option<(Object, Option<i64>)> {
        let (helper, python) = (HELPER.get()?, interpreter()?);
        let values = [
            Value::Integer(operator.number.cast_signed()),
            Value::Tuple(arguments.iter().map(Argument::value).collect()),
            Value::Integer(certainty.number()),
        ];
        let begun = python.locked(|| {
            let found = python.call(helper.begin.0, &values)?;
            let count = python.item_integer(found, 1);
            let token = python.item(found, 0);
            python.drop(found);
            Some((Object(token?), count))
        });
        begun.flatten()
    }

    /// Writes the computed results of an operator that ended; returns how sure the bytes of each tensor are.
    /// `None` where nothing was computed.
    pub(super) fn end(computed: &Object, results: &[Tensor], written: &[Tensor]) -> Option<Vec<Certainty>> {
        let (helper, python) = (HELPER.get()?, interpreter()?);
        let list =
            |tensors: &[Tensor]| Value::Tuple(tensors.iter().map(|tensor| described(tensor, true)).collect());
        let values = [Value::Object(computed.0), list(results), list(written)];
        let found = python.locked(|| {
            let found = python.call(helper.end.0, &values)?;
            let marks = (0..results.len() + written.len())
                .map(|place| python.item_integer(found, place).map_or(Certainty::Unknown, Certainty::of))
                .collect();
            python.drop(found);
            Some(marks)
        });
        found.flatten()
    }
}

/// The value with which the check around the calling thread's read passes; `None` where there is no check, or
/// where this value passes. `kind` is PyTorch's number of the type. No lock of the library may be held.
pub(super) fn passing(kind: i32, value: f64) -> Option<f64> {
    let (helper, python) = (HELPER.get()?, interpreter()?);
    let values = [Value::Integer(kind.into()), Value::Number(value)];
    let answer = python.locked(|| {
        let found = unobserved(|| python.call(helper.check.0, &values))?;
        let answer = python.text(found);
        python.drop(found);
        answer
    });
    answer.flatten()?.parse().ok()
}

/// Asks the helper, which answers with a text: letters of the arguments, then fields, parted by `|`.
fn classified(name: &CStr, overload: &CStr) -> Option<Operator> {
    let (helper, python) = (HELPER.get()?, interpreter()?);
    let text = |value: &CStr| Value::Text(value.to_string_lossy().into_owned());
    let answer = python.locked(|| {
        let found = python.call(helper.classify.0, &[text(name), text(overload)])?;
        let answer = python.text(found);
        python.drop(found);
        answer
    });
    let Some(answer) = answer.flatten() else {
        give_up("an operator could not be classified");
        return None;
    };
    parse(&answer)
}

fn parse(answer: &str) -> Option<Operator> {
    let mut fields = answer.split('|');
    let mut next = || fields.next().unwrap_or_default();
    let number = next().parse().ok()?;
    let kinds = next().chars().map(Kind::of).collect();
    let places = |text: &str| text.split(',').filter_map(|place| place.parse().ok()).collect::<Vec<usize>>();
    let (written, only_written, flags) = (places(next()), places(next()), next());
    let assumed_count = next().parse().unwrap_or(0.0);
    Some(Operator { number, kinds, written, only_written, assumed_count, traits: Traits::of(flags) })
}

impl Certainty {
    /// The helper's number for the sureness.
    pub(super) fn number(self) -> i64 {
        match self {
            Self::Exact => 0,
            Self::Rounded => 1,
            Self::Assumed => 2,
            Self::Unknown => 3,
        }
    }

    fn of(number: i64) -> Self {
        match number {
            0 => Self::Exact,
            1 => Self::Rounded,
            2 => Self::Assumed,
            _ => Self::Unknown,
        }
    }
}

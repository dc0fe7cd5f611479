//! All operators by name, and how to call one without knowing it at compile time.

use std::cell::OnceCell;
use std::rc::Rc;

use rustc_hash::FxHashMap;

use crate::arguments::{AcceptedParameters, Args, agrees};
use crate::limits::check_result;
use crate::schema::Schema;
use crate::session::ActiveCall;
use crate::{Result, TorchError, Value, ops, session};

/// How an operator takes its arguments.
pub(crate) type Call = fn(&Args) -> Result<Value>;

/// A line of a table of operators.
pub(crate) struct Entry {
    pub(crate) schema: &'static str,
    call: Call,
    /// See the method `copies_or_fills`.
    copies_or_fills: bool,
    composed: &'static [&'static str],
    takes_sparse: bool,
}

impl Entry {
    /// A row for a function that takes these parameters; does not compile if the schema has other parameters.
    pub(crate) const fn new(schema: &'static str, accepted: &[AcceptedParameters], call: Call) -> Self {
        assert!(agrees(schema, accepted), "the function's parameters are not those of the schema");
        Self { schema, call, copies_or_fills: false, composed: &[], takes_sparse: false }
    }

    /// The row of an operator that copies or fills: the driver needs no code for such kernels
    /// (`SimulatedGpu::note_kernels`).
    pub(crate) const fn copies_or_fills(self) -> Self {
        Self { copies_or_fills: true, ..self }
    }

    /// The row of an overload for sparse tensors: where an argument is sparse, such overloads are called and
    /// no others.
    pub(crate) const fn takes_sparse(self) -> Self {
        Self { takes_sparse: true, ..self }
    }

    /// The row of an operator whose backward functions `nodes` have the same statements in every variant.
    /// Each statement is an operator of the forward pass, or an elementwise kernel whose derivative is made
    /// of such operators (`ops::kernels`).
    pub(crate) const fn composed(self, nodes: &'static [&'static str]) -> Self {
        Self { composed: nodes, ..self }
    }
}

/// A line of a table of operators: `op!("schema", function)`. The function's parameters are those of the
/// schema, by type (see `arguments`).
macro_rules! op {
    ($schema:expr, $function:expr $(,)?) => {
        $crate::registry::Entry::new($schema, $crate::arguments::accepted(&$function), |args| {
            $crate::arguments::Function::call($function, args)
        })
    };
}

/// A line of a table of operators, like `op!`, for a function that changes its first argument: the operator
/// returns that argument.
macro_rules! in_place {
    ($schema:expr, $function:expr $(,)?) => {
        $crate::registry::Entry::new($schema, $crate::arguments::accepted(&$function), |args| {
            $crate::arguments::Function::call($function, args).and_then(|_none| args.first())
        })
    };
}

/// A table of operators that exist as a new tensor and in place (`name` and `name_`), from one row each: the
/// name, the schema's parameters, and a call of the function whose last argument says that it is in place.
macro_rules! pairs {
    ($( $name:literal $schema:literal |$($parameter:ident: $kind:ty),*| $function:ident($($argument:expr),*); )*) => {
        &[$(
            $crate::registry::op!(concat!($name, "(", $schema, ")"), |$($parameter: $kind),*| {
                $function($($argument,)* false)
            }),
            $crate::registry::op!(concat!($name, "_(", $schema, ")"), |$($parameter: $kind),*| {
                $function($($argument,)* true)
            }),
        )*]
    };
}

pub(crate) use {in_place, op, pairs};

/// An operator with all its overloads.
pub struct Operator {
    name: &'static str,
    overloads: Vec<(Schema, &'static Entry)>,
}

impl std::fmt::Debug for Operator {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Operator").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Operator {
    /// Whether an overload has a parameter of this name.
    pub fn has_parameter(&self, name: &str) -> bool {
        self.overloads
            .iter()
            .any(|(schema, _)| schema.parameters.iter().any(|parameter| parameter.name == name))
    }
}

/// All backward functions that operators declare as composed.
pub(crate) fn composed() -> impl Iterator<Item = &'static str> {
    ops::TABLES.iter().flat_map(|table| table.iter()).flat_map(|entry| entry.composed).copied()
}

type Table = FxHashMap<&'static str, Rc<Operator>>;

thread_local! {
    static TABLE: OnceCell<Table> = const { OnceCell::new() };
}

fn build() -> Table {
    let mut table: FxHashMap<&'static str, Operator> = FxHashMap::default();
    for entry in ops::TABLES.iter().flat_map(|table| table.iter()) {
        let schema = Schema::parse(entry.schema);
        let name = schema.name;
        table
            .entry(name)
            .or_insert_with(|| Operator { name, overloads: Vec::new() })
            .overloads
            .push((schema, entry));
    }
    table.into_iter().map(|(name, operator)| (name, Rc::new(operator))).collect()
}

/// The operator of that name; `None` if this crate has none.
pub fn lookup(name: &str) -> Option<Rc<Operator>> {
    TABLE.with(|table| table.get_or_init(build).get(name).cloned())
}

/// The names of all operators, sorted.
pub fn names() -> Vec<&'static str> {
    TABLE.with(|table| {
        let mut names: Vec<_> = table.get_or_init(build).keys().copied().collect();
        names.sort_unstable();
        names
    })
}

/// Calls an operator by its name.
///
/// # Errors
///
/// [`TorchError::NotImplemented`] when no operator has that name, [`TorchError::Type`] when the arguments fit
/// no overload, and the errors of the operator itself.
pub fn call(name: &str, args: &[Value], keywords: &[(&str, Value)]) -> Result<Value> {
    let Some(operator) = lookup(name) else {
        return Err(TorchError::NotImplemented(format!("the operator {name} is not modeled")));
    };
    operator.call(args, keywords)
}

impl Operator {
    /// The operator's name: `add`, `add_`, `_foreach_add_`.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Whether the operator is a method of tensors too.
    pub fn is_method(&self) -> bool {
        self.overloads.iter().any(|(schema, _)| schema.is_method())
    }

    /// The names of the first overload's parameters, in their order.
    pub fn parameters(&self) -> Vec<&'static str> {
        let first = self.overloads.first();
        first
            .map(|(schema, _)| schema.parameters.iter().map(|parameter| parameter.name).collect())
            .unwrap_or_default()
    }

    /// Calls an operator whose one kernel writes into a tensor of the caller's (`out=`).
    ///
    /// # Errors
    ///
    /// The errors of [`call`], and [`TorchError::NotImplemented`] when the operator has no such kernel.
    pub fn call_into(&self, args: &[Value], keywords: &[(&str, Value)], out: &crate::Tensor) -> Result<()> {
        let values = args.iter().chain(keywords.iter().map(|(_, value)| value));
        let result = ops::out::with(out, values, || self.call(args, keywords))?;
        match result {
            Value::Tensor(tensor) if tensor.is_same(out) => Ok(()),
            _ => Err(TorchError::NotImplemented(format!(
                "out= of torch.{} is modeled for tensors of the host only: assign the result",
                self.name
            ))),
        }
    }

    /// Calls the operator: the first overload that takes the arguments.
    ///
    /// # Errors
    ///
    /// The errors of [`call`], of which that for an unknown name cannot occur.
    pub fn call(&self, args: &[Value], keywords: &[(&str, Value)]) -> Result<Value> {
        let is_sparse = ops::sparse::is_among(args, keywords);
        if is_sparse && let Some(list) = self.name.strip_prefix("_foreach_") {
            return ops::sparse::one_by_one(list, args, keywords);
        }
        if is_sparse && !self.overloads.iter().any(|(_, entry)| entry.takes_sparse) {
            return ops::sparse::refuse(self.name);
        }
        let is_alone = !is_sparse && self.overloads.iter().all(|(_, entry)| entry.takes_sparse);
        let mut failure = None;
        for (schema, entry) in
            self.overloads.iter().filter(|(_, entry)| is_alone || entry.takes_sparse == is_sparse)
        {
            match schema.bind(args, keywords) {
                Ok(bound) => {
                    let session = session();
                    let running = ActiveCall { name: self.name, copies_or_fills: entry.copies_or_fills };
                    let before = session.current_origin.running.replace(running);
                    let result = (entry.call)(&bound);
                    drop(bound);
                    session.current_origin.running.set(before);
                    return result.and_then(|value| check_result(&value).map(|()| value));
                }
                Err(error) => {
                    failure.get_or_insert(error);
                }
            }
        }
        Err(failure.unwrap_or_else(|| TorchError::Type(format!("{} cannot be called", self.name))))
    }
}

/// The kinds of each overload's parameters, in their order.
#[cfg(test)]
pub(crate) fn argument_kinds(operator: &Operator) -> Vec<Vec<crate::schema::ArgumentKind>> {
    let kinds = |schema: &Schema| schema.parameters.iter().map(|parameter| parameter.kind).collect();
    operator.overloads.iter().map(|(schema, _)| kinds(schema)).collect()
}

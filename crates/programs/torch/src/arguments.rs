//! Arguments of operators by type: a function's parameters say what the parameters of its schema have to be.
//!
//! A row of a family's table is `op!("schema", function)`. The function takes its arguments as types that are
//! [`FromArgument`], and the compiler compares these types with the text of the schema: a row whose function
//! takes an `i64` where the schema says `Tensor`, or no [`Option`] where the schema says `?`, does not
//! compile.

use std::cell::OnceCell;

use crate::ops::creation::wrapped;
use crate::schema::{ArgumentKind, next_parameter};
use crate::{Device, Dtype, MemoryFormat, Result, Scalar, Tensor, TorchError, Value};

/// Arguments of a call, in the order of the schema.
#[derive(Debug)]
pub(crate) struct Args(Vec<Argument>);

/// One argument, and the converted value that a function borrows where the argument has another form: a
/// number for a tensor.
#[derive(Debug)]
pub(crate) struct Argument {
    value: Value,
    borrowed: OnceCell<ConvertedValue>,
}

/// A value in the form that a function borrows.
#[derive(Debug)]
enum ConvertedValue {
    /// The tensor of a number.
    Tensor(Tensor),
    Tensors(Vec<Tensor>),
    Ints(Vec<i64>),
}

/// What parameters of a schema a type of Rust can be.
#[derive(Clone, Copy, Debug)]
pub(crate) enum AcceptedParameters {
    /// One parameter of any of these kinds.
    One { kinds: &'static [ArgumentKind], is_optional: bool },
    /// Several parameters, one after another.
    Several(&'static [AcceptedParameters]),
    /// One parameter of any kind.
    Unread,
}

/// A Rust type that stands for one parameter of a schema.
pub(crate) trait FromArgument<'a>: Sized {
    /// The kinds of parameters that can be of this type.
    const KINDS: &'static [ArgumentKind];
    /// Whether the parameter can be left out: the schema says `?`.
    const IS_OPTIONAL: bool = false;

    /// The argument as this type.
    fn from_argument(argument: &'a Argument) -> Result<Self>;
}

/// A Rust type that stands for one or more parameters of a schema, one after another.
pub(crate) trait FromArguments<'a>: Sized {
    /// The parameters that can be of this type.
    const ACCEPTS: AcceptedParameters;
    /// How many parameters of the schema the type stands for.
    const COUNT: usize;

    /// The arguments that begin at `index` as this type.
    fn from_arguments(args: &'a Args, index: usize) -> Result<Self>;
}

impl<'a, T: FromArgument<'a>> FromArguments<'a> for T {
    const ACCEPTS: AcceptedParameters =
        AcceptedParameters::One { kinds: T::KINDS, is_optional: T::IS_OPTIONAL };
    const COUNT: usize = 1;

    fn from_arguments(args: &'a Args, index: usize) -> Result<Self> {
        T::from_argument(args.argument(index)?)
    }
}

/// An argument that no statement reads, since memory does not depend on the argument's value.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Unread;

impl FromArguments<'_> for Unread {
    const ACCEPTS: AcceptedParameters = AcceptedParameters::Unread;
    const COUNT: usize = 1;

    fn from_arguments(_args: &Args, _index: usize) -> Result<Self> {
        Ok(Self)
    }
}

/// This many arguments, none of which a statement reads.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rest<const N: usize>;

impl<const N: usize> FromArguments<'_> for Rest<N> {
    const ACCEPTS: AcceptedParameters = AcceptedParameters::Several(&[AcceptedParameters::Unread; N]);
    const COUNT: usize = N;

    fn from_arguments(_args: &Args, _index: usize) -> Result<Self> {
        Ok(Self)
    }
}

/// A tensor or a number, for an operator that does not treat both alike. Other operators take a `&Tensor` for
/// both.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Operand<'a> {
    Tensor(&'a Tensor),
    Number(Scalar),
}

/// A struct of arguments that several operators take one after another.
macro_rules! arguments {
    ($(#[$doc:meta])* $visible:vis struct $name:ident$(<$life:lifetime>)? { $($field_visible:vis $field:ident: $type:ty,)* }) => {
        $(#[$doc])*
        $visible struct $name$(<$life>)? { $($field_visible $field: $type,)* }

        $crate::arguments::arguments!(@implement ($name$(<$life>)?) ($($life)? 'args) $($field: $type,)*);
    };
    // The first lifetime: the struct's own, or one for a struct that borrows nothing.
    (@implement ($name:ty) ($life:lifetime $($other:lifetime)?) $($field:ident: $type:ty,)*) => {
        impl<$life> $crate::arguments::FromArguments<$life> for $name {
            const ACCEPTS: $crate::arguments::AcceptedParameters = $crate::arguments::AcceptedParameters::Several(
                &[$(<$type as $crate::arguments::FromArguments<$life>>::ACCEPTS,)*],
            );
            const COUNT: usize = 0 $(+ <$type as $crate::arguments::FromArguments<$life>>::COUNT)*;

            fn from_arguments(args: &$life $crate::arguments::Args, index: usize) -> $crate::Result<Self> {
                let next = index;
                $(
                    let $field = <$type as $crate::arguments::FromArguments<$life>>::from_arguments(args, next)?;
                    let next = next + <$type as $crate::arguments::FromArguments<$life>>::COUNT;
                )*
                let _end = next;
                Ok(Self { $($field,)* })
            }
        }
    };
}

pub(crate) use arguments;

impl Args {
    /// No arguments yet, with room for `count`.
    pub(crate) fn with_capacity(count: usize) -> Self {
        Self(Vec::with_capacity(count))
    }

    /// Adds the next argument, by the schema's order.
    pub(crate) fn push(&mut self, value: Value) {
        self.0.push(Argument { value, borrowed: OnceCell::new() });
    }

    /// The first argument, which an operator in place returns.
    pub(crate) fn first(&self) -> Result<Value> {
        Ok(self.argument(0)?.value.clone())
    }

    fn argument(&self, index: usize) -> Result<&Argument> {
        self.0.get(index).ok_or_else(|| TorchError::Type(format!("argument {} is missing", index + 1)))
    }
}

impl Argument {
    /// The argument as the caller gave it.
    pub(crate) fn value(&self) -> &Value {
        &self.value
    }

    fn wrong<T>(&self) -> Result<T> {
        Err(TorchError::Type(format!("an argument cannot be {}", self.value.type_name())))
    }

    fn borrow(&self, make: impl FnOnce() -> Result<ConvertedValue>) -> Result<&ConvertedValue> {
        if let Some(borrowed) = self.borrowed.get() {
            return Ok(borrowed);
        }
        let made = make()?;
        Ok(self.borrowed.get_or_init(|| made))
    }
}

/// Types that are read from a value: the kinds, then the patterns.
macro_rules! from_argument {
    ($($type:ty [$($kind:ident)*] { $($pattern:pat => $value:expr,)* })*) => {$(
        impl<'a> FromArgument<'a> for $type {
            const KINDS: &'static [ArgumentKind] = &[$(ArgumentKind::$kind),*];

            fn from_argument(argument: &'a Argument) -> Result<Self> {
                match &argument.value {
                    $($pattern => $value,)*
                    _ => argument.wrong(),
                }
            }
        }
    )*};
}

from_argument! {
    Scalar [Scalar Float] { Value::Scalar(scalar) => Ok(*scalar), }
    // A number that is on the GPU is not known: `nan` stands for it.
    f64 [Float Scalar] { Value::Scalar(scalar) => Ok(scalar.to_f64().unwrap_or(f64::NAN)), }
    bool [Bool] { Value::Scalar(Scalar::Bool(value)) => Ok(*value), }
    Dtype [Dtype] { Value::Dtype(dtype) => Ok(*dtype), }
    Device [Device] { Value::Device(device) => Ok(*device), }
    MemoryFormat [Format] { Value::MemoryFormat(format) => Ok(*format), }
    &'a str [Text] { Value::Str(text) => Ok(text), }
    Vec<Option<Tensor>> [OptionalTensors] { Value::List(items) => Ok(items.iter().map(tensor_of).collect()), }
    // A number becomes a tensor of the host without dimensions, as PyTorch wraps it.
    Tensor [Tensor Operand] {
        Value::Tensor(tensor) => Ok(tensor.clone()),
        Value::Scalar(scalar) => Ok(wrapped(*scalar)),
    }
    Vec<Tensor> [Tensors] { Value::List(items) => items.iter().map(|item| item.clone().tensor()).collect(), }
}

/// Types that are read from any value by a function.
macro_rules! from_any_value {
    ($($type:ty [$kind:ident] $function:expr;)*) => {$(
        impl<'a> FromArgument<'a> for $type {
            const KINDS: &'static [ArgumentKind] = &[ArgumentKind::$kind];

            fn from_argument(argument: &'a Argument) -> Result<Self> {
                $function(&argument.value)
            }
        }
    )*};
}

from_any_value! {
    i64 [Int] integer;
    Vec<i64> [Ints] integers;
    &'a Value [Any] Ok;
}

fn tensor_of(value: &Value) -> Option<Tensor> {
    match value {
        Value::Tensor(tensor) => Some(tensor.clone()),
        _ => None,
    }
}

impl<'a> FromArgument<'a> for &'a Tensor {
    const KINDS: &'static [ArgumentKind] = Tensor::KINDS;

    fn from_argument(argument: &'a Argument) -> Result<Self> {
        if let Value::Tensor(tensor) = &argument.value {
            return Ok(tensor);
        }
        match argument.borrow(|| Tensor::from_argument(argument).map(ConvertedValue::Tensor))? {
            ConvertedValue::Tensor(tensor) => Ok(tensor),
            _ => argument.wrong(),
        }
    }
}

impl<'a> FromArgument<'a> for Operand<'a> {
    const KINDS: &'static [ArgumentKind] = &[ArgumentKind::Operand];

    fn from_argument(argument: &'a Argument) -> Result<Self> {
        match &argument.value {
            Value::Tensor(tensor) => Ok(Self::Tensor(tensor)),
            Value::Scalar(number) => Ok(Self::Number(*number)),
            _ => argument.wrong(),
        }
    }
}

impl<'a> FromArgument<'a> for &'a [Tensor] {
    const KINDS: &'static [ArgumentKind] = <Vec<Tensor> as FromArgument>::KINDS;

    fn from_argument(argument: &'a Argument) -> Result<Self> {
        match argument.borrow(|| Vec::from_argument(argument).map(ConvertedValue::Tensors))? {
            ConvertedValue::Tensors(tensors) => Ok(tensors),
            _ => argument.wrong(),
        }
    }
}

impl<'a> FromArgument<'a> for &'a [i64] {
    const KINDS: &'static [ArgumentKind] = <Vec<i64> as FromArgument>::KINDS;

    fn from_argument(argument: &'a Argument) -> Result<Self> {
        match argument.borrow(|| integers(&argument.value).map(ConvertedValue::Ints))? {
            ConvertedValue::Ints(ints) => Ok(ints),
            _ => argument.wrong(),
        }
    }
}

impl<'a, T: FromArgument<'a>> FromArgument<'a> for Option<T> {
    const KINDS: &'static [ArgumentKind] = T::KINDS;
    const IS_OPTIONAL: bool = true;

    fn from_argument(argument: &'a Argument) -> Result<Self> {
        match argument.value {
            Value::None => Ok(None),
            _ => T::from_argument(argument).map(Some),
        }
    }
}

/// An integer: a size, an index or a dimension.
pub(crate) fn integer(value: &Value) -> Result<i64> {
    match value {
        Value::Scalar(scalar) => scalar.to_i64().ok_or_else(|| {
            TorchError::Runtime(
                "the size depends on a value that lies on the GPU and is not known here; use a number in its place".to_owned(),
            )
        }),
        other => Err(TorchError::Type(format!("expected an int, not {}", other.type_name()))),
    }
}

/// The integers of a list; a single integer is a list of one.
pub(crate) fn integers(value: &Value) -> Result<Vec<i64>> {
    match value {
        Value::List(items) => items.iter().map(integer).collect(),
        value => Ok(vec![integer(value)?]),
    }
}

/// What a function of an operator returns.
pub(crate) trait IntoResult {
    /// The operator's result.
    fn into_result(self) -> Result<Value>;
}

impl IntoResult for () {
    fn into_result(self) -> Result<Value> {
        Ok(Value::None)
    }
}

impl<T: Into<Value>> IntoResult for Result<T> {
    fn into_result(self) -> Result<Value> {
        self.map(Into::into)
    }
}

/// A function that can be an operator: its parameters are [`FromArguments`].
///
/// `P` is the tuple of the parameters' types, so that the compiler tells functions of different numbers of
/// parameters apart.
pub(crate) trait Function<'a, P> {
    /// The parameters that the operator's schema has to have.
    const ACCEPTS: &'static [AcceptedParameters];

    /// Calls the function with the arguments of a call of the operator.
    fn call(self, args: &'a Args) -> Result<Value>;
}

macro_rules! functions {
    ($($($type:ident)*;)*) => {$(
        impl<'a, F, R, $($type),*> Function<'a, ($($type,)*)> for F
        where
            F: Fn($($type),*) -> R,
            R: IntoResult,
            $($type: FromArguments<'a>,)*
        {
            const ACCEPTS: &'static [AcceptedParameters] = &[$($type::ACCEPTS),*];

            #[allow(non_snake_case, reason = "one name for a type and its value")]
            fn call(self, args: &'a Args) -> Result<Value> {
                let (_args, next) = (args, 0);
                $(
                    let $type = $type::from_arguments(args, next)?;
                    let next = next + $type::COUNT;
                )*
                let _end = next;
                self($($type),*).into_result()
            }
        }
    )*};
}

functions! {
    ;
    A;
    A B;
    A B C;
    A B C D;
    A B C D E;
    A B C D E G;
    A B C D E G H;
    A B C D E G H I;
    A B C D E G H I J;
}

/// What parameters the schema of a function has to have.
pub(crate) const fn accepted<'a, P, F: Function<'a, P>>(_function: &F) -> &'static [AcceptedParameters] {
    F::ACCEPTS
}

/// Whether a schema's parameters are those that a function takes: as many, of these kinds, optional where the
/// function can do without.
pub(crate) const fn agrees(schema: &str, accepted: &[AcceptedParameters]) -> bool {
    match without(schema.as_bytes(), accepted) {
        Some(text) => next_parameter(text).is_none(),
        None => false,
    }
}

/// The text of a schema after the accepted parameters; `None` if the text begins with other parameters.
const fn without<'t>(mut text: &'t [u8], mut accepted: &[AcceptedParameters]) -> Option<&'t [u8]> {
    while let [first, others @ ..] = accepted {
        text = match first {
            AcceptedParameters::Several(parameters) => match without(text, parameters) {
                Some(text) => text,
                None => return None,
            },
            AcceptedParameters::One { kinds, is_optional } => match next_parameter(text) {
                Some((parameter, text))
                    if parameter.is_any_of(kinds) && parameter.is_optional == *is_optional =>
                {
                    text
                }
                _ => return None,
            },
            AcceptedParameters::Unread => match next_parameter(text) {
                Some((_, text)) => text,
                None => return None,
            },
        };
        accepted = others;
    }
    Some(text)
}

//! Operators' schemas: PyTorch's own texts, and how arguments are bound to them.

use std::fmt;

use crate::arguments::Args;
use crate::{Device, MemoryFormat, Result, Scalar, Tensor, TorchError, Value};

/// The kind of value that an argument has to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ArgumentKind {
    Tensor,
    /// A tensor or a number.
    Operand,
    Scalar,
    Int,
    Float,
    Bool,
    Ints,
    Floats,
    Tensors,
    OptionalTensors,
    Dtype,
    Device,
    Text,
    Format,
    Any,
}

/// The type that an argument should have had, as PyTorch's errors name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ExpectedType {
    Tensor,
    Number,
    Int,
    Float,
    Bool,
    Ints,
    Floats,
    Tensors,
    Dtype,
    Device,
    Text,
    MemoryFormat,
    Any,
}

impl fmt::Display for ExpectedType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Tensor => "Tensor",
            Self::Number => "Number",
            Self::Int => "int",
            Self::Float => "float",
            Self::Bool => "bool",
            Self::Ints => "tuple of ints",
            Self::Floats => "tuple of floats",
            Self::Tensors => "tuple of Tensors",
            Self::Dtype => "torch.dtype",
            Self::Device => "torch.device",
            Self::Text => "str",
            Self::MemoryFormat => "torch.memory_format",
            Self::Any => "an object",
        })
    }
}

/// One parameter of a schema.
#[derive(Clone, Debug)]
pub(crate) struct Parameter {
    pub(crate) name: &'static str,
    pub(crate) kind: ArgumentKind,
    is_optional: bool,
    default: Option<Value>,
    is_keyword_only: bool,
}

/// A parsed schema text: `add(Tensor self, Operand other, *, Scalar alpha=1)`.
#[derive(Clone, Debug)]
pub(crate) struct Schema {
    pub(crate) name: &'static str,
    pub(crate) parameters: Vec<Parameter>,
}

const fn kind(text: &[u8]) -> ArgumentKind {
    match text {
        b"Tensor" => ArgumentKind::Tensor,
        b"Operand" => ArgumentKind::Operand,
        b"Scalar" => ArgumentKind::Scalar,
        b"int" => ArgumentKind::Int,
        b"float" => ArgumentKind::Float,
        b"bool" => ArgumentKind::Bool,
        b"int[]" => ArgumentKind::Ints,
        b"float[]" => ArgumentKind::Floats,
        b"Tensor[]" => ArgumentKind::Tensors,
        b"Tensor?[]" => ArgumentKind::OptionalTensors,
        b"ScalarType" => ArgumentKind::Dtype,
        b"Device" => ArgumentKind::Device,
        b"str" => ArgumentKind::Text,
        b"MemoryFormat" => ArgumentKind::Format,
        _ => ArgumentKind::Any,
    }
}

/// The type of a parameter as a schema's text declares it.
pub(crate) struct DeclaredType {
    pub(crate) kind: ArgumentKind,
    pub(crate) is_optional: bool,
}

impl DeclaredType {
    /// The type that a text such as `Tensor?` declares.
    const fn parse(text: &[u8]) -> Self {
        match text {
            [text @ .., b'?'] => Self { kind: kind(text), is_optional: true },
            text => Self { kind: kind(text), is_optional: false },
        }
    }

    /// Whether the kind is one of these.
    pub(crate) const fn is_any_of(&self, mut kinds: &[ArgumentKind]) -> bool {
        while let [kind, others @ ..] = kinds {
            if self.kind as u8 == *kind as u8 {
                return true;
            }
            kinds = others;
        }
        false
    }
}

/// The next parameter of a schema's text and the text after the parameter's type. The text is a schema, or
/// the text that an earlier call returned. `None` where no parameter is left.
pub(crate) const fn next_parameter(text: &[u8]) -> Option<(DeclaredType, &[u8])> {
    let mut rest = text;
    // A parameter begins after the parenthesis or after a comma.
    while let [before, after @ ..] = rest {
        rest = after;
        if !matches!(before, b'(' | b',') {
            continue;
        }
        if let [b' ', after @ ..] = rest {
            rest = after;
        }
        let mut length = 0;
        let mut left = rest;
        while let [byte, after @ ..] = left {
            if matches!(byte, b' ' | b',' | b')') {
                break;
            }
            length += 1;
            left = after;
        }
        let (declared, after) = rest.split_at(length);
        if !matches!(declared, b"" | b"*") {
            return Some((DeclaredType::parse(declared), after));
        }
        rest = after;
    }
    None
}

fn default(text: &'static str) -> Value {
    match text {
        "None" => Value::None,
        "True" => true.into(),
        "False" => false.into(),
        "[]" => Value::List(Vec::new()),
        "contiguous" => Value::MemoryFormat(MemoryFormat::Contiguous),
        "preserve" => Value::MemoryFormat(MemoryFormat::Preserve),
        text => match (text.parse::<i64>(), text.parse::<f64>()) {
            (Ok(value), _) => value.into(),
            (_, Ok(value)) => value.into(),
            _ => text.into(),
        },
    }
}

impl Schema {
    /// The schema of a text. Only texts of this crate are parsed, so none of them is wrong.
    pub(crate) fn parse(text: &'static str) -> Self {
        let (name, rest) = text.split_once('(').unwrap_or((text, ")"));
        let list = rest.strip_suffix(')').unwrap_or(rest);
        let mut parameters = Vec::new();
        let mut is_keyword_only = false;
        for part in list.split(", ").filter(|part| !part.is_empty()) {
            if part == "*" {
                is_keyword_only = true;
                continue;
            }
            let (kind_text, declared) = part.split_once(' ').unwrap_or(("Any", part));
            let (name, default_text) = match declared.split_once('=') {
                Some((name, default)) => (name, Some(default)),
                None => (declared, None),
            };
            let DeclaredType { kind, is_optional } = DeclaredType::parse(kind_text.as_bytes());
            parameters.push(Parameter {
                name,
                kind,
                is_optional,
                default: default_text.map(default),
                is_keyword_only,
            });
        }
        Self { name, parameters }
    }

    /// Whether the operator can be called on its first argument: `Tensor.add`.
    pub(crate) fn is_method(&self) -> bool {
        self.parameters.first().is_some_and(|parameter| parameter.name == "self")
    }

    /// Arguments in the order of the parameters.
    pub(crate) fn bind(&self, args: &[Value], keywords: &[(&str, Value)]) -> Result<Args> {
        let mut values: Vec<Option<Value>> = vec![None; self.parameters.len()];
        let mut next = 0;
        for (index, parameter) in self.parameters.iter().enumerate() {
            if parameter.is_keyword_only || next >= args.len() {
                break;
            }
            let left = args.get(next..).unwrap_or_default();
            let is_last = self.parameters.get(index + 1).is_none_or(|parameter| parameter.is_keyword_only);
            let is_spread = parameter.kind == ArgumentKind::Ints
                && is_last
                && left.iter().all(|value| matches!(value, Value::Scalar(Scalar::Int(_) | Scalar::Bool(_))));
            let value = if is_spread {
                next = args.len();
                Value::List(left.to_vec())
            } else {
                next += 1;
                left.first().cloned().unwrap_or(Value::None)
            };
            let value = parameter.convert(&value).map_err(|expected| {
                TorchError::Type(format!(
                    "{}(): argument '{}' (position {}) must be {expected}, not {}",
                    self.name,
                    parameter.name,
                    index + 1,
                    value.type_name()
                ))
            })?;
            if let Some(slot) = values.get_mut(index) {
                *slot = Some(value);
            }
        }
        if next < args.len() {
            let most = self.parameters.iter().filter(|parameter| !parameter.is_keyword_only).count();
            return Err(TorchError::Type(format!(
                "{}() takes {most} positional arguments but {} were given",
                self.name,
                args.len()
            )));
        }
        for (name, value) in keywords {
            let position = self.parameters.iter().position(|parameter| parameter.name == *name);
            let found = position.and_then(|index| self.parameters.get(index).zip(values.get_mut(index)));
            let Some((parameter, slot)) = found else {
                return Err(TorchError::Type(format!(
                    "{}() got an unexpected keyword argument '{name}'",
                    self.name
                )));
            };
            if slot.is_some() {
                return Err(TorchError::Type(format!(
                    "{}() got multiple values for argument '{name}'",
                    self.name
                )));
            }
            parameter.check_device(value)?;
            let value = parameter.convert(value).map_err(|expected| {
                TorchError::Type(format!(
                    "{}(): argument '{name}' must be {expected}, not {}",
                    self.name,
                    value.type_name()
                ))
            })?;
            *slot = Some(value);
        }
        let mut bound = Args::with_capacity(values.len());
        for (value, parameter) in values.into_iter().zip(&self.parameters) {
            match (value, &parameter.default) {
                (Some(value), _) => bound.push(value),
                (None, Some(default)) => bound.push(default.clone()),
                (None, None) if parameter.is_optional => bound.push(Value::None),
                (None, None) => {
                    return Err(TorchError::Type(format!(
                        "{}() missing 1 required positional arguments: \"{}\"",
                        self.name, parameter.name
                    )));
                }
            }
        }
        Ok(bound)
    }
}

impl Parameter {
    /// A text that names no device is refused in the words of `torch.device`.
    fn check_device(&self, value: &Value) -> Result<()> {
        match (self.kind, value) {
            (ArgumentKind::Device, Value::Str(text)) => Device::parse(text).map(|_| ()),
            _ => Ok(()),
        }
    }

    /// The value as this parameter takes it, or the type that the value should have had.
    fn convert(&self, value: &Value) -> std::result::Result<Value, ExpectedType> {
        if self.is_optional && matches!(value, Value::None) {
            return Ok(Value::None);
        }
        let is_int = |value: &Value| match value {
            Value::Scalar(Scalar::Int(_) | Scalar::Bool(_)) => true,
            Value::Scalar(Scalar::Unknown(dtype)) => dtype.is_integral(),
            _ => false,
        };
        let number_of = |value: &Value| match value {
            Value::Tensor(tensor) if tensor.numel() == 1 && !tensor.requires_grad() => {
                Some(Value::Scalar(known_or_unknown(tensor)))
            }
            Value::Scalar(_) => Some(value.clone()),
            _ => None,
        };
        match (self.kind, value) {
            (ArgumentKind::Any, _)
            | (ArgumentKind::Tensor, Value::Tensor(_))
            | (ArgumentKind::Operand, Value::Tensor(_) | Value::Scalar(_))
            | (ArgumentKind::Scalar | ArgumentKind::Float, Value::Scalar(_))
            | (ArgumentKind::Bool, Value::Scalar(Scalar::Bool(_)))
            | (ArgumentKind::Dtype, Value::Dtype(_))
            | (ArgumentKind::Device, Value::Device(_))
            | (ArgumentKind::Text, Value::Str(_))
            | (ArgumentKind::Format, Value::MemoryFormat(_))
            | (ArgumentKind::OptionalTensors, Value::List(_)) => Ok(value.clone()),
            (ArgumentKind::Int, value) if is_int(value) => Ok(value.clone()),
            (ArgumentKind::Scalar | ArgumentKind::Float, Value::Tensor(_)) => {
                number_of(value).ok_or(ExpectedType::Number)
            }
            (ArgumentKind::Int, Value::Tensor(tensor)) if tensor.dtype().is_integral() => {
                number_of(value).ok_or(ExpectedType::Int)
            }
            (ArgumentKind::Device, Value::Str(text)) => {
                Device::parse(text).map(Value::Device).map_err(|_| ExpectedType::Device)
            }
            (ArgumentKind::Device, Value::Scalar(Scalar::Int(index))) => u8::try_from(*index)
                .map(|index| Value::Device(Device::Cuda(index)))
                .map_err(|_| ExpectedType::Device),
            (ArgumentKind::Ints, value) if is_int(value) => Ok(Value::List(vec![value.clone()])),
            (ArgumentKind::Floats, Value::Scalar(_)) => Ok(Value::List(vec![value.clone()])),
            (ArgumentKind::Ints, Value::List(items)) => {
                let numbers: Option<Vec<Value>> = items.iter().map(number_of).collect();
                numbers.filter(|items| items.iter().all(is_int)).map(Value::List).ok_or(ExpectedType::Ints)
            }
            (ArgumentKind::Floats, Value::List(items))
                if items.iter().all(|item| matches!(item, Value::Scalar(_))) =>
            {
                Ok(value.clone())
            }
            (ArgumentKind::Tensors, Value::List(items))
                if items.iter().all(|item| matches!(item, Value::Tensor(_))) =>
            {
                Ok(value.clone())
            }
            (kind, _) => Err(match kind {
                ArgumentKind::Tensor | ArgumentKind::Operand => ExpectedType::Tensor,
                ArgumentKind::Scalar => ExpectedType::Number,
                ArgumentKind::Int => ExpectedType::Int,
                ArgumentKind::Float => ExpectedType::Float,
                ArgumentKind::Bool => ExpectedType::Bool,
                ArgumentKind::Ints => ExpectedType::Ints,
                ArgumentKind::Floats => ExpectedType::Floats,
                ArgumentKind::Tensors | ArgumentKind::OptionalTensors => ExpectedType::Tensors,
                ArgumentKind::Dtype => ExpectedType::Dtype,
                ArgumentKind::Device => ExpectedType::Device,
                ArgumentKind::Text => ExpectedType::Text,
                ArgumentKind::Format => ExpectedType::MemoryFormat,
                ArgumentKind::Any => ExpectedType::Any,
            }),
        }
    }
}

/// The tensor's single value; [`Scalar::Unknown`] if the value is not known.
pub(crate) fn known_or_unknown(tensor: &Tensor) -> Scalar {
    tensor.values().and_then(|values| values.first().copied()).unwrap_or(Scalar::Unknown(tensor.dtype()))
}

//! Arguments and results of operators that are called by name.

use std::rc::Rc;

use crate::{Device, Dtype, Result, Tensor, TorchError};

/// A Python number, or a number that is not known since it is on a GPU.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Scalar {
    /// `True` or `False`.
    Bool(bool),
    /// An integer.
    Int(i64),
    /// A floating-point number.
    Float(f64),
    /// A number of this type whose value is not known; prints as `?`.
    Unknown(Dtype),
}

impl Scalar {
    /// The value as a floating-point number; `None` where the value is not known.
    #[expect(clippy::cast_precision_loss, reason = "as Python's float()")]
    pub fn to_f64(self) -> Option<f64> {
        match self {
            Self::Bool(value) => Some(f64::from(u8::from(value))),
            Self::Int(value) => Some(value as f64),
            Self::Float(value) => Some(value),
            Self::Unknown(_) => None,
        }
    }

    /// The value as an integer, without its fraction; `None` where the value is not known.
    #[expect(clippy::cast_possible_truncation, reason = "as Python's int()")]
    pub fn to_i64(self) -> Option<i64> {
        match self {
            Self::Bool(value) => Some(i64::from(value)),
            Self::Int(value) => Some(value),
            Self::Float(value) => Some(value as i64),
            Self::Unknown(_) => None,
        }
    }

    /// The type that a tensor made of this number alone has.
    pub fn dtype(self) -> Dtype {
        match self {
            Self::Bool(_) => Dtype::Bool,
            Self::Int(_) => Dtype::I64,
            Self::Float(_) => Dtype::F64,
            Self::Unknown(dtype) => dtype,
        }
    }
}

/// The order of a tensor's elements in memory (`torch.memory_format`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "PyTorch's names")]
pub enum MemoryFormat {
    Contiguous,
    ChannelsLast,
    ChannelsLast3d,
    Preserve,
}

/// An argument or a result of an operator that is called by name.
#[derive(Clone, Debug)]
pub enum Value {
    /// `None`, or an optional argument that was left out.
    None,
    /// A Python number.
    Scalar(Scalar),
    /// A text.
    Str(Rc<str>),
    /// A tensor.
    Tensor(Tensor),
    /// A list or a tuple.
    List(Vec<Value>),
    /// `torch.float32`.
    Dtype(Dtype),
    /// `torch.device("cuda:0")`.
    Device(Device),
    /// `torch.channels_last`.
    MemoryFormat(MemoryFormat),
    /// A slice, as an index: start, stop, step.
    Slice(Option<i64>, Option<i64>, i64),
    /// `...`, as a part of an index.
    Ellipsis,
}

impl Value {
    /// What Python calls the type, for error texts.
    pub fn type_name(&self) -> &'static str {
        match self {
            Self::None => "NoneType",
            Self::Scalar(Scalar::Bool(_)) => "bool",
            Self::Scalar(Scalar::Int(_)) => "int",
            Self::Scalar(_) => "float",
            Self::Str(_) => "str",
            Self::Tensor(_) => "Tensor",
            Self::List(_) => "list",
            Self::Dtype(_) => "torch.dtype",
            Self::Device(_) => "torch.device",
            Self::MemoryFormat(_) => "torch.memory_format",
            Self::Slice(..) => "slice",
            Self::Ellipsis => "ellipsis",
        }
    }

    /// The tensor.
    ///
    /// # Errors
    ///
    /// [`TorchError::Type`] when it is something else.
    pub fn tensor(self) -> Result<Tensor> {
        match self {
            Self::Tensor(tensor) => Ok(tensor),
            other => Err(TorchError::Type(format!("expected a Tensor, not {}", other.type_name()))),
        }
    }

    /// The list's items; a tensor alone is a list of one.
    ///
    /// # Errors
    ///
    /// [`TorchError::Type`] when it is something else.
    pub fn list(self) -> Result<Vec<Value>> {
        match self {
            Self::List(items) => Ok(items),
            Self::Tensor(_) => Ok(vec![self]),
            other => Err(TorchError::Type(format!("expected a list, not {}", other.type_name()))),
        }
    }
}

macro_rules! into_value {
    ($($from:ty, $name:ident => $value:expr;)*) => {$(
        impl From<$from> for Value {
            fn from($name: $from) -> Self {
                $value
            }
        }
    )*};
}

into_value! {
    i32, value => Value::Scalar(Scalar::Int(i64::from(value)));
    Tensor, tensor => Value::Tensor(tensor);
    &Tensor, tensor => Value::Tensor(tensor.clone());
    bool, value => Value::Scalar(Scalar::Bool(value));
    i64, value => Value::Scalar(Scalar::Int(value));
    f64, value => Value::Scalar(Scalar::Float(value));
    Scalar, value => Value::Scalar(value);
    &str, text => Value::Str(text.into());
    Dtype, dtype => Value::Dtype(dtype);
    Device, device => Value::Device(device);
    Vec<Tensor>, tensors => Value::List(tensors.into_iter().map(Value::Tensor).collect());
    Vec<i64>, items => Value::List(items.into_iter().map(Value::from).collect());
    &[i64], items => Value::List(items.iter().copied().map(Value::from).collect());
    (Tensor, Tensor), pair => Value::List(vec![pair.0.into(), pair.1.into()]);
    (Tensor, Tensor, Tensor), three => Value::List(vec![three.0.into(), three.1.into(), three.2.into()]);
    Option<Tensor>, tensor => tensor.map_or(Value::None, Value::Tensor);
    (), _unit => Value::None;
}

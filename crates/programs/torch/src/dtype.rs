//! Types of elements, and the type of a result.

use std::fmt;

/// The type of a tensor's elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[expect(missing_docs, reason = "PyTorch's names")]
pub enum Dtype {
    Bool,
    U8,
    I8,
    I16,
    I32,
    I64,
    F16,
    BF16,
    F32,
    F64,
    C64,
    C128,
    F8E4M3,
    F8E5M2,
}

impl Dtype {
    /// All types, in the order of their numbers.
    pub const ALL: [Self; 14] = [
        Self::Bool,
        Self::U8,
        Self::I8,
        Self::I16,
        Self::I32,
        Self::I64,
        Self::F16,
        Self::BF16,
        Self::F32,
        Self::F64,
        Self::C64,
        Self::C128,
        Self::F8E4M3,
        Self::F8E5M2,
    ];

    /// Bytes of one element.
    pub const fn size(self) -> u64 {
        match self {
            Self::Bool | Self::U8 | Self::I8 | Self::F8E4M3 | Self::F8E5M2 => 1,
            Self::I16 | Self::F16 | Self::BF16 => 2,
            Self::I32 | Self::F32 => 4,
            Self::I64 | Self::F64 | Self::C64 => 8,
            Self::C128 => 16,
        }
    }

    /// Whether elements are floating-point numbers (complex ones are not).
    pub const fn is_floating(self) -> bool {
        matches!(self, Self::F16 | Self::BF16 | Self::F32 | Self::F64 | Self::F8E4M3 | Self::F8E5M2)
    }

    /// Whether elements are complex.
    pub const fn is_complex(self) -> bool {
        matches!(self, Self::C64 | Self::C128)
    }

    /// Whether elements are integers; booleans count.
    pub const fn is_integral(self) -> bool {
        !self.is_floating() && !self.is_complex()
    }

    /// Whether a tensor of this type can require a gradient.
    pub const fn is_differentiable(self) -> bool {
        self.is_floating() || self.is_complex()
    }

    /// `float16` and `bfloat16`.
    pub const fn is_reduced_float(self) -> bool {
        matches!(self, Self::F16 | Self::BF16)
    }

    /// The type in which a GPU keeps sums of elements of this type.
    #[must_use]
    pub const fn accumulate(self) -> Self {
        match self {
            Self::F16 | Self::BF16 | Self::F8E4M3 | Self::F8E5M2 => Self::F32,
            Self::Bool | Self::U8 | Self::I8 | Self::I16 | Self::I32 => Self::I64,
            other => other,
        }
    }

    /// The name without `torch.`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Bool => "bool",
            Self::U8 => "uint8",
            Self::I8 => "int8",
            Self::I16 => "int16",
            Self::I32 => "int32",
            Self::I64 => "int64",
            Self::F16 => "float16",
            Self::BF16 => "bfloat16",
            Self::F32 => "float32",
            Self::F64 => "float64",
            Self::C64 => "complex64",
            Self::C128 => "complex128",
            Self::F8E4M3 => "float8_e4m3fn",
            Self::F8E5M2 => "float8_e5m2",
        }
    }

    /// The type of that name, PyTorch's other names (`float`, `half`, `long`) included; `None` for a name
    /// that no type has.
    pub fn from_name(name: &str) -> Option<Self> {
        Some(match name {
            "float" => Self::F32,
            "double" => Self::F64,
            "half" => Self::F16,
            "long" => Self::I64,
            "int" => Self::I32,
            "short" => Self::I16,
            "cfloat" => Self::C64,
            "cdouble" => Self::C128,
            _ => return Self::ALL.into_iter().find(|dtype| dtype.name() == name),
        })
    }

    /// PyTorch's name in C++ error texts: `Float`, `Long`.
    pub const fn scalar_name(self) -> &'static str {
        match self {
            Self::Bool => "Bool",
            Self::U8 => "Byte",
            Self::I8 => "Char",
            Self::I16 => "Short",
            Self::I32 => "Int",
            Self::I64 => "Long",
            Self::F16 => "Half",
            Self::BF16 => "BFloat16",
            Self::F32 => "Float",
            Self::F64 => "Double",
            Self::C64 => "ComplexFloat",
            Self::C128 => "ComplexDouble",
            Self::F8E4M3 => "Float8_e4m3fn",
            Self::F8E5M2 => "Float8_e5m2",
        }
    }

    const fn category(self) -> u8 {
        match self {
            Self::Bool => 0,
            Self::U8 | Self::I8 | Self::I16 | Self::I32 | Self::I64 => 1,
            Self::F16 | Self::BF16 | Self::F32 | Self::F64 | Self::F8E4M3 | Self::F8E5M2 => 2,
            Self::C64 | Self::C128 => 3,
        }
    }
}

/// `torch.float32`.
impl fmt::Display for Dtype {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "torch.{}", self.name())
    }
}

/// The type that holds the values of both types (`torch.promote_types`).
pub fn promote(a: Dtype, b: Dtype) -> Dtype {
    if a == b {
        return a;
    }
    let (low, high) = if (a.category(), a) <= (b.category(), b) { (a, b) } else { (b, a) };
    if low.category() < high.category() {
        return match (low, high) {
            (Dtype::F64, Dtype::C64) => Dtype::C128,
            _ => high,
        };
    }
    match (low, high) {
        (Dtype::U8, Dtype::I8) => Dtype::I16,
        (Dtype::F16, Dtype::BF16) => Dtype::F32,
        (_, Dtype::F8E4M3 | Dtype::F8E5M2)
            if matches!(low, Dtype::F16 | Dtype::BF16 | Dtype::F32 | Dtype::F64) =>
        {
            low
        }
        _ => high,
    }
}

/// Promotion where dimensions and Python numbers count: the three groups of `TensorIterator::compute_types`.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ResultType {
    dimensional: Option<Dtype>,
    zero_dimensional: Option<Dtype>,
    wrapped: Option<Dtype>,
}

impl ResultType {
    /// Adds an operand: its type, and the group of operands that it belongs to.
    pub(crate) fn add(mut self, dtype: Dtype, is_zero_dimensional: bool, is_wrapped: bool) -> Self {
        let slot = if is_wrapped {
            &mut self.wrapped
        } else if is_zero_dimensional {
            &mut self.zero_dimensional
        } else {
            &mut self.dimensional
        };
        let dtype = match dtype {
            Dtype::F64 if is_wrapped => Dtype::F32,
            other => other,
        };
        *slot = Some(slot.map_or(dtype, |before| promote(before, dtype)));
        self
    }

    /// The type that all operands so far promote to.
    pub(crate) fn get(self) -> Dtype {
        let combine = |higher: Option<Dtype>, lower: Option<Dtype>| match (higher, lower) {
            (Some(higher), Some(lower)) if lower.category() > higher.category() => {
                Some(promote(higher, lower))
            }
            (Some(higher), _) => Some(higher),
            (None, lower) => lower,
        };
        combine(self.dimensional, combine(self.zero_dimensional, self.wrapped)).unwrap_or(Dtype::F32)
    }
}

//! Every operator with arguments that no sensible program gives: an error or a result, and never a panic.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;

use crate::schema::ArgumentKind;
use crate::{Device, Dtype, MemoryFormat, Scalar, Session, SessionSettings, Value, call, registry};

/// How often each overload is called.
const CALLS: u32 = 200;

/// Small numbers are the likeliest, since most others end in the first check.
const INTEGERS: [i64; 16] =
    [0, 1, 2, 3, -1, 0, 1, 2, 4, -2, 1 << 31, 1 << 47, 1 << 62, i64::MAX, i64::MIN, i64::MIN + 1];

/// Numbers that look random and are the same in every run (xorshift).
struct Draws(u64);

impl Draws {
    fn below(&mut self, count: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % count as u64) as usize
    }

    fn integer(&mut self) -> Value {
        Value::Scalar(Scalar::Int(INTEGERS[self.below(INTEGERS.len())]))
    }

    fn scalar(&mut self) -> Value {
        match self.below(8) {
            0 => Value::Scalar(Scalar::Float([0.5, -1.0, 1e300, f64::NAN, f64::INFINITY][self.below(5)])),
            1 => Value::Scalar(Scalar::Bool(true)),
            2 => Value::Scalar(Scalar::Unknown(Dtype::F32)),
            _ => self.integer(),
        }
    }

    fn list(&mut self, mut item: impl FnMut(&mut Self) -> Value) -> Value {
        let length = self.below(5);
        Value::List((0..length).map(|_| item(self)).collect())
    }

    fn argument(&mut self, kind: ArgumentKind, tensors: &[Value]) -> Value {
        let tensor = |draws: &mut Self| tensors[draws.below(tensors.len())].clone();
        match kind {
            ArgumentKind::Tensor => tensor(self),
            ArgumentKind::Operand if self.below(2) == 0 => tensor(self),
            ArgumentKind::Operand | ArgumentKind::Scalar => self.scalar(),
            ArgumentKind::Int => self.integer(),
            ArgumentKind::Float => {
                Value::Scalar(Scalar::Float([0.0, 0.5, 1.0, -1.0, 1e300, f64::NAN][self.below(6)]))
            }
            ArgumentKind::Bool => Value::Scalar(Scalar::Bool(self.below(2) == 0)),
            ArgumentKind::Ints => self.list(Self::integer),
            ArgumentKind::Floats => self.list(Self::scalar),
            ArgumentKind::Tensors => self.list(tensor),
            ArgumentKind::OptionalTensors => {
                self.list(|draws| if draws.below(3) == 0 { Value::None } else { tensor(draws) })
            }
            ArgumentKind::Dtype => {
                let types = [Dtype::F32, Dtype::F16, Dtype::I64, Dtype::Bool, Dtype::U8, Dtype::C64];
                Value::Dtype(types[self.below(6)])
            }
            ArgumentKind::Device => {
                Value::Device([Device::Cpu, Device::Cuda(0), Device::Cuda(200)][self.below(3)])
            }
            ArgumentKind::Text => Value::Str(["mean", "sum", "none", "linear", ""][self.below(5)].into()),
            ArgumentKind::Format => {
                let formats = [MemoryFormat::Contiguous, MemoryFormat::ChannelsLast, MemoryFormat::Preserve];
                Value::MemoryFormat(formats[self.below(3)])
            }
            ArgumentKind::Any => match self.below(6) {
                0 => tensor(self),
                1 => self.scalar(),
                2 => self.list(Self::integer),
                3 => Value::Slice(None, Some(INTEGERS[self.below(16)]), INTEGERS[self.below(16)]),
                4 => self.list(tensor),
                _ => Value::None,
            },
        }
    }
}

/// Tensors of many shapes; the large ones have few elements in memory.
fn tensors() -> Vec<Value> {
    let int = |number| Value::Scalar(Scalar::Int(number));
    let shape = |sizes: &[i64]| Value::List(sizes.iter().copied().map(int).collect());
    let cuda = || ("device", Value::Device(Device::Cuda(0)));
    let mut tensors = Vec::new();
    for sizes in [&[][..], &[4], &[2, 3], &[3, 3], &[0, 3], &[1, 2, 3], &[2, 3, 4, 4], &[1, 1, 2, 2, 2]] {
        for (dtype, needs_grad) in [(Dtype::F32, false), (Dtype::F32, true), (Dtype::I64, false)] {
            let keywords = [
                cuda(),
                ("dtype", Value::Dtype(dtype)),
                ("requires_grad", Value::Scalar(Scalar::Bool(needs_grad))),
            ];
            tensors.extend(call("zeros", &[shape(sizes)], &keywords));
        }
        tensors.extend(call("zeros", &[shape(sizes)], &[("device", Value::Device(Device::Cpu))]));
    }
    let one = call("zeros", &[shape(&[1])], &[cuda()]).unwrap_or(Value::None);
    for sizes in [&[1 << 40][..], &[1 << 20, 1 << 20], &[1 << 62], &[1 << 31, 2, 1 << 10, 3]] {
        tensors.extend(call("expand", &[one.clone(), shape(sizes)], &[]));
    }
    tensors
}

#[test]
fn no_operator_panics() {
    let mut panics = Vec::new();
    let mut results = 0_u32;
    for name in crate::names() {
        let Some(operator) = crate::lookup(name) else { continue };
        crate::install(Rc::new(Session::new(SessionSettings::default())));
        let mut inputs = tensors();
        let mut draws = Draws(0x9E37_79B9_7F4A_7C15);
        for kinds in registry::argument_kinds(&operator) {
            for _ in 0..CALLS {
                let arguments: Vec<Value> = kinds.iter().map(|kind| draws.argument(*kind, &inputs)).collect();
                let called = catch_unwind(AssertUnwindSafe(|| operator.call(&arguments, &[])));
                if let Ok(result) = called {
                    results += u32::from(result.is_ok());
                } else {
                    panics.push(format!("{name}({arguments:?})"));
                    crate::install(Rc::new(Session::new(SessionSettings::default())));
                    inputs = tensors();
                }
            }
        }
    }
    assert!(results > 1000, "only {results} calls had a result");
    assert!(panics.is_empty(), "{} calls panicked:\n{}", panics.len(), panics.join("\n"));
}

/// The error of PyTorch 2.11 for sizes that overflow.
#[test]
fn sizes_that_overflow_are_errors_of_pytorch() {
    crate::install(Rc::new(Session::new(SessionSettings::default())));
    let int = |number: i64| Value::Scalar(Scalar::Int(number));
    let list = |sizes: &[i64]| Value::List(sizes.iter().copied().map(int).collect());
    let texts = |name: &str, arguments: &[Value]| {
        let on = |device| {
            let keywords = [("device", Value::Device(device))];
            let keywords = if name == "empty" { &keywords[..] } else { &[] };
            call(name, arguments, keywords).err().map(|error| error.to_string()).unwrap_or_default()
        };
        (on(Device::Cpu), on(Device::Cuda(0)))
    };
    let both = |name: &str, arguments: &[Value], text: &str| {
        let (cpu, cuda) = texts(name, arguments);
        assert!(cpu == text && cuda == text, "{name}: {cpu}, {cuda}");
    };
    let large = 10_i64.pow(10);
    let overflows = "Storage size calculation overflowed with sizes=";
    both("empty", &[list(&[large, large])], &format!("{overflows}[{large}, {large}]"));
    both("empty", &[list(&[1 << 61])], &format!("{overflows}[{}]", 1_i64 << 61));
    both("empty", &[list(&[0, large, large])], "Stride calculation overflowed");
    let (cpu, cuda) = texts("empty", &[list(&[1 << 50])]);
    assert!(cpu.contains("can't allocate memory: you tried to allocate 4503599627370496 bytes"), "{cpu}");
    assert!(cuda.starts_with("CUDA out of memory. Tried to allocate 4194304.00 GiB."), "{cuda}");
    let one = call("zeros", &[list(&[1])], &[]).unwrap_or(Value::None);
    both("expand", &[one.clone(), list(&[large, large])], "numel: integer multiplication overflow");
    both("chunk", &[one.clone(), int(0)], "chunk expects `chunks` to be greater than 0, got: 0");
    assert!(call("chunk", &[one, int(1 << 62)], &[]).is_ok());
}

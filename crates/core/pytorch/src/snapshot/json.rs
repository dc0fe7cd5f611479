//! A snapshot in JSON, as `torch.cuda._memory_viz` and others write it.

use std::fmt;
use std::io::Read;
use std::ops::ControlFlow;

use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};

use super::heap::{Heap, Misfit, Value};
use super::{Excess, FieldError, SnapshotError};
use blockyard_record::OnDone;

/// Items between two checks of memory and of cancelling.
const BETWEEN_CHECKS: usize = 4096;

pub(super) fn read(
    reader: impl Read,
    heap: &mut Heap,
    most_memory: usize,
    on_done: OnDone<'_, u64>,
) -> Result<Value, SnapshotError> {
    let mut builder = Builder { heap, path: Vec::new(), failure: None, most_memory, on_done, items: 0 };
    let reader = std::io::BufReader::with_capacity(1 << 16, reader);
    let mut deserializer = serde_json::Deserializer::from_reader(reader);
    let result = Seed(&mut builder).deserialize(&mut deserializer);
    let result = result.and_then(|value| deserializer.end().map(|()| value));
    result.map_err(|error| match builder.failure.take() {
        Some(failure) => failure,
        None => SnapshotError::Field {
            byte: None,
            path: builder.path(),
            error: if error.is_eof() {
                FieldError::JsonCutShort { reason: error.to_string() }
            } else {
                FieldError::Json { reason: error.to_string() }
            },
        },
    })
}

enum Part {
    Key(String),
    Index(usize),
}

struct Builder<'a> {
    heap: &'a mut Heap,
    path: Vec<Part>,
    failure: Option<SnapshotError>,
    most_memory: usize,
    on_done: OnDone<'a, u64>,
    items: usize,
}

impl Builder<'_> {
    fn path(&self) -> String {
        let mut path = String::new();
        for part in &self.path {
            match part {
                Part::Key(key) if path.is_empty() => path.push_str(key),
                Part::Key(key) => {
                    path.push('.');
                    path.push_str(key);
                }
                Part::Index(index) => path.extend(["[", &index.to_string(), "]"]),
            }
        }
        path
    }

    fn fail<E: serde::de::Error>(&mut self, failure: SnapshotError) -> E {
        let error = E::custom(&failure);
        self.failure.get_or_insert(failure);
        error
    }

    fn misfit<E: serde::de::Error>(&mut self, misfit: Misfit) -> E {
        // The path of the item is known to the heap too.
        self.path.pop();
        let path = self.path() + &misfit.path;
        self.fail(SnapshotError::Field { byte: None, path, error: misfit.error })
    }

    fn too_much<E: serde::de::Error>(&mut self) -> E {
        self.fail(SnapshotError::TooLarge(Excess::Memory))
    }

    fn count<E: serde::de::Error>(&mut self) -> Result<(), E> {
        self.items += 1;
        if !self.items.is_multiple_of(BETWEEN_CHECKS) {
            return Ok(());
        }
        if self.heap.size() > self.most_memory {
            return Err(self.too_much());
        }
        match (self.on_done)(0) {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(()) => Err(self.fail(SnapshotError::Cancelled)),
        }
    }
}

struct Seed<'a, 'b>(&'a mut Builder<'b>);

impl<'de> DeserializeSeed<'de> for Seed<'_, '_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Seed<'_, '_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value of JSON")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::None)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Int(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(i64::try_from(value).map_or(Value::Large(value), Value::Int))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Value::Float(value))
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Value, E> {
        self.0.heap.text(text).ok_or_else(|| self.0.too_much())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let builder = self.0;
        let list = builder.heap.new_list().ok_or_else(|| builder.too_much::<A::Error>())?;
        let Value::Object(object) = list else { return Err(A::Error::custom("no list")) };
        let mut index = 0;
        loop {
            builder.path.push(Part::Index(index));
            let Some(item) = items.next_element_seed(Seed(builder))? else { break };
            builder.count()?;
            if let Err(misfit) = builder.heap.append(object, &[item]) {
                return Err(builder.misfit(misfit));
            }
            builder.path.pop();
            index += 1;
        }
        builder.path.pop();
        Ok(list)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let builder = self.0;
        let dict = builder.heap.new_dict().ok_or_else(|| builder.too_much::<A::Error>())?;
        let Value::Object(object) = dict else { return Err(A::Error::custom("no dictionary")) };
        while let Some(key) = items.next_key::<String>()? {
            let name = builder.heap.text(&key).ok_or_else(|| builder.too_much::<A::Error>())?;
            builder.path.push(Part::Key(key));
            let value = items.next_value_seed(Seed(builder))?;
            builder.count()?;
            if let Err(misfit) = builder.heap.set_items(object, &[name, value]) {
                return Err(builder.misfit(misfit));
            }
            builder.path.pop();
        }
        Ok(dict)
    }
}

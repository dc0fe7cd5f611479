//! The words of a program, or of PyTorch itself, about an allocation: a text, or values that become JSON.

use blockyard_record::TextId;
use serde_json::{Map, Value as Json};

use super::{Heap, Misfit, Object, Value};
use crate::snapshot::keys as key;

/// Values of one description; a pickle may name the same list in itself any number of times.
const MAX_VALUES: usize = 1000;

impl Heap {
    /// The text. PyTorch 2.15 writes dictionaries as JSON; a dictionary that was not written becomes JSON
    /// here.
    pub(super) fn metadata(&mut self, value: Value) -> Result<TextId, Misfit> {
        match value {
            Value::Text(text) => Ok(TextId::new(text)),
            Value::None => Ok(key::EMPTY),
            other => {
                let json = self.json(other, &mut { MAX_VALUES });
                let text = json.and_then(|json| self.stacks.intern_text(&json.to_string()));
                text.ok_or_else(|| self.wrong(other, "", "a text or values of JSON"))
            }
        }
    }

    /// The value as JSON; `None` where JSON has no such value, or too many are in it.
    fn json(&self, value: Value, left: &mut usize) -> Option<Json> {
        *left = left.checked_sub(1)?;
        Some(match value {
            Value::None => Json::Null,
            Value::Bool(is) => is.into(),
            Value::Int(number) => number.into(),
            Value::Large(number) => number.into(),
            Value::Float(number) => number.into(),
            Value::Text(_) => self.text_of(value)?.into(),
            Value::Object(object) => match self.object(object) {
                Object::List(slot) | Object::Tuple(slot) => {
                    let items = self.values(slot).iter().map(|item| self.json(*item, left));
                    Json::Array(items.collect::<Option<_>>()?)
                }
                Object::Dict(slot) => {
                    let pairs = self.values(slot).chunks_exact(2).map(|pair| match *pair {
                        [name, value] => Some((self.text_of(name)?.to_owned(), self.json(value, left)?)),
                        _ => None,
                    });
                    Json::Object(pairs.collect::<Option<Map<_, _>>>()?)
                }
                _ => return None,
            },
            Value::Other => return None,
        })
    }
}

//! Pickles of any value, as Python writes them.

use serde_json::Value;

/// The opcodes for a value, without the opcode that ends a pickle.
pub(crate) fn opcodes(value: &Value, bytes: &mut Vec<u8>) {
    match value {
        Value::Null => bytes.push(b'N'),
        Value::Bool(is) => bytes.push(if *is { 0x88 } else { 0x89 }),
        Value::Number(number) => {
            if let Some(number) = number.as_i64() {
                bytes.extend([0x8a, 8]);
                bytes.extend(number.to_le_bytes());
            } else {
                bytes.push(b'G');
                bytes.extend(number.as_f64().unwrap().to_be_bytes());
            }
        }
        Value::String(text) => {
            bytes.push(b'X');
            bytes.extend(u32::try_from(text.len()).unwrap().to_le_bytes());
            bytes.extend(text.as_bytes());
            bytes.push(0x94);
        }
        Value::Array(items) => {
            bytes.extend([b']', 0x94]);
            match items.as_slice() {
                [] => {}
                [item] => {
                    opcodes(item, bytes);
                    bytes.push(b'a');
                }
                items => {
                    bytes.push(b'(');
                    for item in items {
                        opcodes(item, bytes);
                    }
                    bytes.push(b'e');
                }
            }
        }
        Value::Object(items) => {
            bytes.extend([b'}', 0x94, b'(']);
            for (key, value) in items {
                opcodes(&Value::String(key.clone()), bytes);
                opcodes(value, bytes);
            }
            bytes.push(b'u');
        }
    }
}

pub(crate) fn pickle(value: &Value) -> Vec<u8> {
    let mut bytes = vec![0x80, 4];
    opcodes(value, &mut bytes);
    bytes.push(b'.');
    bytes
}

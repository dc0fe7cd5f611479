//! The tokens of a settings text.

use super::ConfigError;

/// The tokens of a settings text. `,` `:` `[` `]` are tokens of one character, everything between them is one
/// token, and white space is removed.
pub(super) struct Tokens(Vec<String>);

impl Tokens {
    pub(super) fn new(text: &str) -> Self {
        let mut tokens = Vec::new();
        let mut run = String::new();
        for character in text.chars() {
            if matches!(character, ',' | ':' | '[' | ']') {
                if !run.is_empty() {
                    tokens.push(std::mem::take(&mut run));
                }
                tokens.push(character.to_string());
            } else if !matches!(character, ' ' | '\t' | '\n' | '\u{b}' | '\u{c}' | '\r') {
                run.push(character);
            }
        }
        if !run.is_empty() {
            tokens.push(run);
        }
        Self(tokens)
    }

    pub(super) fn has_token(&self, index: usize) -> bool {
        index < self.0.len()
    }

    /// The index of the last token of a key's value, which is one token or a list (`skipKey`).
    pub(super) fn skip_value(&self, key: usize) -> Result<usize, ConfigError> {
        let value = key + 2;
        if self.get(value)? != "[" {
            return Ok(value);
        }
        let end = self.0.iter().skip(value).position(|token| token == "]");
        end.map(|length| value + length).ok_or(ConfigError::UnclosedList)
    }

    /// The value of a key as a whole number.
    pub(super) fn value(&self, key: usize) -> Result<u64, ConfigError> {
        self.integer(key + 2)
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn get(&self, index: usize) -> Result<&str, ConfigError> {
        self.0.get(index).map(String::as_str).ok_or_else(|| {
            let named = self.0.iter().rfind(|token| !matches!(token.as_str(), "," | ":" | "[" | "]"));
            ConfigError::Missing(named.cloned().unwrap_or_default())
        })
    }

    pub(super) fn boolean(&self, index: usize) -> Result<bool, ConfigError> {
        match self.get(index)? {
            "True" => Ok(true),
            "False" => Ok(false),
            found => Err(ConfigError::Boolean { index, found: found.to_owned() }),
        }
    }

    // Only the leading digits are read, and a minus sign wraps around, as in C++.
    pub(super) fn integer(&self, index: usize) -> Result<u64, ConfigError> {
        let token = self.get(index)?;
        let (is_negative, digits) = match token.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, token.strip_prefix('+').unwrap_or(token)),
        };
        let end = digits.find(|character: char| !character.is_ascii_digit()).unwrap_or(digits.len());
        if end == 0 {
            return Err(ConfigError::NotAnInteger(token.to_owned()));
        }
        let value: u64 = digits[..end].parse().map_err(|_| ConfigError::IntegerRange(token.to_owned()))?;
        Ok(if is_negative { value.wrapping_neg() } else { value })
    }

    /// A whole number of 32 bits (`stoi`).
    pub(super) fn small_integer(&self, index: usize) -> Result<u64, ConfigError> {
        let value = self.integer(index)?;
        if i32::try_from(value.cast_signed()).is_ok() {
            Ok(value)
        } else {
            Err(ConfigError::IntegerRange(self.get(index)?.to_owned()))
        }
    }

    // The longest leading part that is a number is read.
    pub(super) fn real(&self, index: usize) -> Result<f64, ConfigError> {
        let token = self.get(index)?;
        let ends = (1..=token.len()).rev().filter(|end| token.is_char_boundary(*end));
        let value = ends.map(|end| &token[..end]).find_map(|part| Some((part, part.parse::<f64>().ok()?)));
        let (part, value) = value.ok_or_else(|| ConfigError::NotAReal(token.to_owned()))?;
        // A number that overflows is an error; the word for infinity is not.
        if value.is_infinite() && part.contains(|character: char| character.is_ascii_digit()) {
            return Err(ConfigError::RealRange(token.to_owned()));
        }
        Ok(value)
    }
}

use crate::ConfigError;

/// The tokens of a settings text: `,` `:` `[` `]` stand alone, every other run is one token, white space is no part of any.
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
            } else if !character.is_whitespace() {
                run.push(character);
            }
        }
        if !run.is_empty() {
            tokens.push(run);
        }
        Self(tokens)
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

    /// The index behind the value of the key at `at`, which may be a list.
    pub(super) fn skip(&self, at: usize) -> Result<usize, ConfigError> {
        let value = at + 2;
        if self.get(value)? != "[" {
            return Ok(value + 1);
        }
        let is_end = |index: &usize| self.0[*index] == "]";
        let end = (value + 1..self.len()).find(is_end);
        end.map(|end| end + 1).ok_or_else(|| ConfigError::Missing(self.0[at].clone()))
    }

    pub(super) fn boolean(&self, index: usize) -> Result<bool, ConfigError> {
        match self.get(index)? {
            "True" => Ok(true),
            "False" => Ok(false),
            found => Err(ConfigError::Boolean { index, found: found.to_owned() }),
        }
    }

    // The leading digits count and the rest is passed over; a minus sign wraps around, as C++ does it.
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

    // The longest leading part that is a number counts.
    pub(super) fn real(&self, index: usize) -> Result<f64, ConfigError> {
        let token = self.get(index)?;
        let ends = (1..=token.len()).rev().filter(|end| token.is_char_boundary(*end));
        let value = ends.map(|end| &token[..end]).find_map(|part| part.parse().ok());
        value.ok_or_else(|| ConfigError::NotAReal(token.to_owned()))
    }
}

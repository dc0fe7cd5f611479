//! The fields of a type, as its JSON Schema has them, in the order of the source; flattened fields are among
//! them.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use blockyard_answers::{
    DryRunAnswer, FitCall, FitConditions, FitLargestAnswer, FitLayoutsAnswer, FitMapAnswer, FitPeaks,
    FitSettingsAnswer, GuardAnswer, ProgramAnswer, QuestionLine, SnapshotLine, VerifyLine,
};
use schemars::SchemaGenerator;
use serde_json::{Map, Value};

/// The types of all documents, by name.
pub(crate) struct Types {
    definitions: Map<String, Value>,
    /// The fields of each type, each with its type, in the order of the source.
    order: Order,
}

type Order = BTreeMap<String, Vec<(String, String)>>;

/// A field of a type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Field {
    pub(crate) name: String,
    /// The meaning of the field, in a sentence.
    pub(crate) text: String,
    pub(crate) kind: Kind,
    /// Whether the field may be null or absent.
    pub(crate) is_optional: bool,
    /// The name of the field's type, if that type has fields; for a list, the name of the type of the items.
    pub(crate) of: Option<String>,
}

/// The kind of JSON value of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Integer,
    Number,
    Text,
    Bool,
    Object,
    /// Integers by name.
    Sizes,
    Texts,
    Integers,
    Objects,
    /// Lists of lists.
    Rows,
    Any,
}

impl Types {
    pub(crate) fn read() -> Result<Self> {
        let mut generator = SchemaGenerator::default();
        generator.subschema_for::<QuestionLine>();
        generator.subschema_for::<SnapshotLine>();
        generator.subschema_for::<VerifyLine>();
        generator.subschema_for::<GuardAnswer>();
        generator.subschema_for::<DryRunAnswer>();
        generator.subschema_for::<ProgramAnswer>();
        // The report of a fit is one flat object with the fields of these types.
        generator.subschema_for::<FitCall>();
        generator.subschema_for::<FitConditions>();
        generator.subschema_for::<FitPeaks>();
        generator.subschema_for::<FitLargestAnswer>();
        generator.subschema_for::<FitMapAnswer>();
        generator.subschema_for::<FitSettingsAnswer>();
        generator.subschema_for::<FitLayoutsAnswer>();
        let definitions = generator.take_definitions(true);
        let mut order = BTreeMap::new();
        let base = crate::root().join("crates/base");
        for file in std::fs::read_dir(base.join("answers/src"))? {
            read_order(&std::fs::read_to_string(file?.path())?, &mut order);
        }
        read_order(&std::fs::read_to_string(base.join("record/src/oom.rs"))?, &mut order);
        Ok(Self { definitions, order })
    }

    /// The meaning of the type, in one or more sentences.
    pub(crate) fn text(&self, name: &str) -> Result<String> {
        let definition = self.definitions.get(name).with_context(|| format!("no type {name}"))?;
        Ok(text_of(definition))
    }

    /// The words of an enumeration, each with its meaning; empty if the type, or one of its variants, has fields.
    pub(crate) fn words(&self, name: &str) -> Vec<(String, String)> {
        let choices = self.definitions.get(name).and_then(|of| of.get("oneOf")).and_then(Value::as_array);
        let words = choices.into_iter().flatten();
        let words = words.map(|word| Some((word.get("const")?.as_str()?.to_owned(), text_of(word))));
        words.collect::<Option<_>>().unwrap_or_default()
    }

    /// The fields of the type.
    pub(crate) fn fields(&self, name: &str) -> Result<Vec<Field>> {
        let definition = self.definitions.get(name).with_context(|| format!("no type {name}"))?;
        let mut found = Vec::new();
        self.collect(definition, true, &mut found);
        let mut order = Vec::new();
        self.write_order(name, &found, &mut order);
        found.sort_by_key(|field| order.iter().position(|known| *known == field.name));
        Ok(found)
    }

    /// Appends the names of the fields in their order; the fields of a flattened field take its place.
    fn write_order(&self, name: &str, found: &[Field], order: &mut Vec<String>) {
        for (field, of) in self.order.get(name).into_iter().flatten() {
            if found.iter().any(|known| known.name == *field) {
                order.push(field.clone());
            } else {
                let plain = of.trim_start_matches("Option<").trim_start_matches("Box<").trim_end_matches('>');
                self.write_order(plain, found, order);
            }
        }
    }

    fn collect(&self, schema: &Value, is_required: bool, found: &mut Vec<Field>) {
        let required: Vec<&str> =
            list(schema, "required").filter_map(Value::as_str).filter(|_| is_required).collect();
        for (name, value) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
            if found.iter().any(|field| field.name == *name) {
                continue;
            }
            found.push(self.field(name, value, required.contains(&name.as_str())));
        }
        if let Some(other) = self.referred(schema).and_then(|name| self.definitions.get(name)) {
            self.collect(other, is_required, found);
        }
        for part in list(schema, "allOf") {
            self.collect(part, is_required, found);
        }
        for part in list(schema, "anyOf").chain(list(schema, "oneOf")) {
            self.collect(part, false, found);
        }
    }

    fn referred<'a>(&self, schema: &'a Value) -> Option<&'a str> {
        let name = schema.get("$ref")?.as_str()?.rsplit('/').next()?;
        self.definitions.contains_key(name).then_some(name)
    }

    fn field(&self, name: &str, schema: &Value, is_required: bool) -> Field {
        let can_be_null = list(schema, "type").any(|kind| kind == "null")
            || list(schema, "anyOf").any(|part| part.get("type").is_some_and(|kind| kind == "null"));
        let (kind, of) = self.kind(schema);
        let is_list = matches!(kind, Kind::Texts | Kind::Integers | Kind::Objects | Kind::Rows);
        Field {
            name: name.to_owned(),
            text: text_of(schema),
            kind,
            is_optional: can_be_null || (!is_required && !is_list),
            of,
        }
    }

    fn kind(&self, schema: &Value) -> (Kind, Option<String>) {
        if let Some(name) = self.referred(schema) {
            let is_words = !self.words(name).is_empty();
            let has_fields = self.definitions.get(name).is_some_and(|of| of.get("properties").is_some());
            return match (is_words, has_fields) {
                (true, _) => (Kind::Text, Some(name.to_owned())),
                (false, true) => (Kind::Object, Some(name.to_owned())),
                (false, false) => (Kind::Any, None),
            };
        }
        let parts = list(schema, "anyOf").filter(|part| part.get("type").is_none_or(|kind| kind != "null"));
        if let [part] = parts.collect::<Vec<_>>()[..] {
            return self.kind(part);
        }
        let types: Vec<&str> = match schema.get("type") {
            Some(Value::String(one)) => vec![one],
            _ => list(schema, "type").filter_map(Value::as_str).collect(),
        };
        match types.into_iter().find(|kind| *kind != "null") {
            Some("integer") => (Kind::Integer, None),
            Some("number") => (Kind::Number, None),
            Some("string") => (Kind::Text, None),
            Some("boolean") => (Kind::Bool, None),
            Some("object") => match schema.get("additionalProperties").and_then(|of| of.get("type")) {
                Some(of) if of == "integer" => (Kind::Sizes, None),
                _ => (Kind::Object, None),
            },
            Some("array") => self.items(schema),
            _ => (Kind::Any, None),
        }
    }

    fn items(&self, schema: &Value) -> (Kind, Option<String>) {
        let item = list(schema, "prefixItems").next().or_else(|| schema.get("items"));
        match item.map(|item| self.kind(item)) {
            Some((Kind::Integer, _)) => (Kind::Integers, None),
            Some((Kind::Text, _)) => (Kind::Texts, None),
            Some((Kind::Object, of)) => (Kind::Objects, of),
            _ => (Kind::Rows, None),
        }
    }
}

/// The items of the array with this name; empty if the schema does not have it.
fn list<'a>(schema: &'a Value, name: &str) -> impl Iterator<Item = &'a Value> {
    schema.get(name).and_then(Value::as_array).into_iter().flatten()
}

fn text_of(schema: &Value) -> String {
    let text = schema.get("description").and_then(Value::as_str).unwrap_or_default();
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Reads which fields the types of a source file have, in their order.
fn read_order(source: &str, order: &mut Order) {
    let mut inside: Option<&mut Vec<(String, String)>> = None;
    let mut renamed = None;
    for line in source.lines() {
        let begins = ["pub struct ", "pub enum "].iter().find_map(|word| line.strip_prefix(word));
        if let Some((_, name)) = line.split_once("schemars(rename = \"") {
            renamed = name.split('"').next();
        } else if let Some(name) = begins.and_then(|rest| rest.split([' ', '{']).next()) {
            // The schema has a type under the name that was published first.
            inside = Some(order.entry(renamed.take().unwrap_or(name).to_owned()).or_default());
        } else if line == "}" {
            inside = None;
        }
        let Some(fields) = &mut inside else { continue };
        let field = line.trim_start().trim_end_matches(',');
        let field = field.strip_prefix("pub ").unwrap_or(field);
        if let Some((name, of)) = field.split_once(": ").filter(|_| !field.starts_with("//")) {
            fields.push((name.to_owned(), of.to_owned()));
        } else if let Some((variant, of)) = field.trim_end_matches(')').split_once('(')
            && !field.starts_with(['/', '#'])
        {
            fields.push((variant.to_owned(), of.to_owned()));
        }
    }
}

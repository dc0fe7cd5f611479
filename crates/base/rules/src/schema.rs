//! JSON Schemas of types that are a plain number or text in JSON.

/// Gives a type the JSON Schema of a plain type, with the feature `schema`: `schema_as!(Bytes, u64)`.
#[macro_export]
macro_rules! schema_as {
    ($name:ident, $plain:ty) => {
        #[cfg(feature = "schema")]
        impl schemars::JsonSchema for $name {
            fn inline_schema() -> bool {
                true
            }

            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
                <$plain>::json_schema(generator)
            }
        }
    };
}

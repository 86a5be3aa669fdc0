//! JSON Schemas of what is written as text: for the tests, which keep `schemas/`.

use std::borrow::Cow;

use schemars::{json_schema, JsonSchema, Schema, SchemaGenerator};

use crate::{IndexFn, PageSize};

/// Of a byte count with its unit (`units::bytes`).
pub(crate) fn bytes(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "description": "Bytes, with a binary unit.", "pattern": "^[0-9]+[KMG]?$" })
}

impl JsonSchema for IndexFn {
    fn schema_name() -> Cow<'static, str> {
        "IndexFn".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let mask = json_schema!({ "type": "string", "pattern": "^0x[0-9a-f]+$" });
        json_schema!({ "anyOf": [{ "const": "linear" }, { "type": "array", "items": mask }] })
    }
}

impl JsonSchema for PageSize {
    fn schema_name() -> Cow<'static, str> {
        "PageSize".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        bytes(generator)
    }
}

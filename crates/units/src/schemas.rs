//! JSON schemas of the quantities, as plain numbers and texts.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

use crate::{ByteCount, Count, CpuId, CpuList, Nanos, Share, TickRate, Ticks};

macro_rules! quantities {
    ($($type:ident: $schema:tt;)+) => {
        $(impl JsonSchema for $type {
            fn inline_schema() -> bool {
                true
            }

            fn schema_name() -> Cow<'static, str> {
                stringify!($type).into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!($schema)
            }
        })+
    };
}

quantities! {
    Nanos: { "type": "integer" };
    Ticks: { "type": "integer", "minimum": 0 };
    TickRate: { "type": "number", "format": "double" };
    CpuId: { "type": "integer", "minimum": 0 };
    Count: { "type": "integer", "minimum": 0 };
    ByteCount: { "type": "integer", "minimum": 0 };
    Share: { "type": "number", "format": "double" };
    CpuList: {
        "type": "string",
        "pattern": "^([0-9]+(-[0-9]+)?(,[0-9]+(-[0-9]+)?)*)?$",
        "description": "CPUs as the kernel lists them: 0-2,5",
    };
}

//! Fields: they define the name, the title and the getter of each figure in one place.

use std::marker::PhantomData;

use serde::Serializer;
use serde::ser::Serialize;

use crate::Value;
use crate::form::figure::{Figure, JsonType};

/// A figure of a row of type `R`.
pub struct Field<R: ?Sized> {
    /// Its name in JSON, with the unit as suffix: `max_ns`. Scripts rely on it.
    pub name: &'static str,
    /// Its column title.
    pub title: &'static str,
    /// Its type in JSON.
    pub json: JsonType,
    /// Gets it from a row.
    pub get: fn(&R) -> Value,
}

impl<R: ?Sized> Field<R> {
    /// The figure that `get` returns; `value` returns it as a value. [`field!`] makes one from the other.
    pub const fn new<F: Figure>(title: Title, _get: fn(&R) -> F, value: fn(&R) -> Value) -> Self {
        Self { name: title.name, title: title.title, json: F::JSON, get: value }
    }

    /// The table cell of a row's figure.
    pub fn cell(&self, row: &R) -> String {
        (self.get)(row).cell()
    }
}

/// The value of the figure that `get` returns.
pub fn value<R: ?Sized, F: Figure>(row: &R, get: fn(&R) -> F) -> Value {
    get(row).value()
}

/// The name and the title of a figure that several types of rows have.
#[derive(Clone, Copy)]
pub struct Title {
    name: &'static str,
    title: &'static str,
}

impl Title {
    /// A name in JSON and a column title.
    pub const fn new(name: &'static str, title: &'static str) -> Self {
        Self { name, title }
    }
}

/// A row whose fields are all in documents.
pub trait Row: Sized + 'static {
    /// Its fields, in their order.
    const FIELDS: &'static [Field<Self>];
}

/// A row as a JSON object with all its fields, in order.
pub struct Object<R> {
    values: Vec<Value>,
    row: PhantomData<R>,
}

impl<R: Row> Object<R> {
    /// The figures of a row.
    pub fn new(row: &R) -> Self {
        Self { values: R::FIELDS.iter().map(|field| (field.get)(row)).collect(), row: PhantomData }
    }
}

impl<R: Row> Serialize for Object<R> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(R::FIELDS.iter().map(|field| field.name).zip(&self.values))
    }
}

#[cfg(feature = "schemas")]
impl<R: Row> schemars::JsonSchema for Object<R> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        std::any::type_name::<R>().into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        object(R::FIELDS.iter().map(|field| (field.name, field.json)))
    }
}

/// The schema of an object with all of these figures.
#[cfg(feature = "schemas")]
pub fn object(figures: impl Iterator<Item = (&'static str, JsonType)>) -> schemars::Schema {
    let (names, types): (Vec<&str>, Vec<JsonType>) = figures.unzip();
    let properties: serde_json::Map<_, _> =
        names.iter().zip(types).map(|(name, json)| ((*name).to_owned(), json.schema().into())).collect();
    schemars::json_schema!({ "type": "object", "properties": properties, "required": names })
}

/// The fields with these names, in this order, for a table. Panics if a name is unknown, which is a bug.
pub fn columns<'a, R>(fields: &'a [Field<R>], names: &[&str]) -> Vec<&'a Field<R>> {
    let find = |name: &&str| fields.iter().find(|field| field.name == *name).expect("the field is defined");
    names.iter().map(find).collect()
}

/// A field: `field!("name", "title", |row| ...)`, or `field!(TITLE, |row| ...)` with name and title from elsewhere.
#[macro_export]
macro_rules! field {
    ($name:expr, $title:expr, $get:expr) => {
        $crate::field!($crate::form::field::Title::new($name, $title), $get)
    };
    ($title:expr, $get:expr) => {
        $crate::form::field::Field::new($title, $get, |row| $crate::form::field::value(row, $get))
    };
}

/// Fields of one row type, each a constant in a module. If a list is named before the module, it has all of them in order, and so has the row's
/// [`Row::FIELDS`].
///
/// A field has a name, a title and a getter: `NAME = "name", "title", |row| ...;`. Fields of the catalogue take name and title from there:
/// `NODE = catalogue::NODE, |row| ...;`. An existing field is reused by `A = row::A;`, and one of a part of the row by
/// `COUNT = part::COUNT => |row| &row.part;`.
#[macro_export]
macro_rules! fields {
    ($(#[$doc:meta])* $vis:vis $list:ident, $module:ident: $row:ty { $($fields:tt)+ }) => {
        $crate::fields! { $vis $module: $row { $($fields)+ } }
        $crate::fields! { @list $(#[$doc])* $vis $list, $module: $row { $($fields)+ } }
    };
    (@list $(#[$doc:meta])* $vis:vis $list:ident, $module:ident: $row:ty {
        $($constant:ident = $first:expr $(, $next:expr)* $(=> $part:expr)?;)+
    }) => {
        $(#[$doc])*
        $vis const $list: &[$crate::form::field::Field<$row>] = &[$($module::$constant),+];

        impl $crate::form::field::Row for $row {
            const FIELDS: &'static [$crate::form::field::Field<Self>] = $list;
        }
    };
    (@field $row:ty; $field:expr) => {
        $field
    };
    (@field $row:ty; $field:expr => $part:expr) => {
        $crate::form::field::Field {
            name: $field.name,
            title: $field.title,
            json: $field.json,
            get: |row: &$row| {
                let part: fn(&$row) -> &_ = $part;
                ($field.get)(part(row))
            },
        }
    };
    (@field $row:ty; $($field:expr),+) => {
        $crate::field!($($field),+)
    };
    ($(#[$doc:meta])* $vis:vis $module:ident: $row:ty {
        $($constant:ident = $first:expr $(, $next:expr)* $(=> $part:expr)?;)+
    }) => {
        $(#[$doc])*
        #[allow(missing_docs, reason = "a field has its name and title")]
        $vis mod $module {
            use super::*;

            $(pub const $constant: $crate::form::field::Field<$row> =
                $crate::fields!(@field $row; $first $(, $next)* $(=> $part)?);)+
        }
    };
}

pub use crate::{field, fields};

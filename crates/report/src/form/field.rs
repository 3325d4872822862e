//! Fields: the one place where a figure gets its name, its title, and its way out of a row.

use serde::Serializer;
use serde::ser::Serialize;

use crate::Value;

/// A figure of a row of type `R`.
pub struct Field<R: ?Sized> {
    /// Its name in JSON, with the unit as its ending: `max_ns`. Scripts rely on it.
    pub name: &'static str,
    /// Its title over a column.
    pub title: &'static str,
    /// Takes it out of a row.
    pub get: fn(&R) -> Value,
}

impl<R: ?Sized> Field<R> {
    /// The figure of a row as a table writes it.
    pub(crate) fn cell(&self, row: &R) -> String {
        (self.get)(row).cell()
    }
}

/// The name and the title of a figure that rows of several types have.
#[derive(Clone, Copy)]
pub(crate) struct Title {
    name: &'static str,
    title: &'static str,
}

impl Title {
    pub(crate) const fn new(name: &'static str, title: &'static str) -> Self {
        Self { name, title }
    }

    /// The figure in rows of one type.
    pub(crate) const fn field<R>(self, get: fn(&R) -> Value) -> Field<R> {
        Field { name: self.name, title: self.title, get }
    }
}

/// A row as a JSON object of all its fields, in their order.
pub(crate) struct Object(Vec<(&'static str, Value)>);

impl Object {
    pub(crate) fn new<R>(fields: &[Field<R>], row: &R) -> Self {
        Self(fields.iter().map(|field| (field.name, (field.get)(row))).collect())
    }
}

impl Serialize for Object {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, value)| (name, value)))
    }
}

/// The fields with these names, in this order, for a table.
///
/// # Panics
/// If there is no field of that name, which only a bug can cause.
pub(crate) fn columns<'a, R>(fields: &'a [Field<R>], names: &[&str]) -> Vec<&'a Field<R>> {
    let find = |name: &&str| fields.iter().find(|field| field.name == *name).expect("the field is defined");
    names.iter().map(find).collect()
}

/// Fields of rows of one type: each a constant in a module, and, where a list is named before the module, all of them in
/// their order as that list.
///
/// A field has a name, a title, and its way out of a row: `NAME = "name", "title", |row| ...;`. What is in the catalogue
/// has both from there: `NODE = catalogue::NODE, |row| ...;`. A field that is known already stands alone: `A = row::A;`,
/// and that of a part of the row has the way to the part: `COUNT = part::COUNT => |row| &row.part;`.
macro_rules! fields {
    ($(#[$doc:meta])* $vis:vis $list:ident, $module:ident: $row:ty { $($fields:tt)+ }) => {
        $crate::form::field::fields! { $vis $module: $row { $($fields)+ } }
        $crate::form::field::fields! { @list $(#[$doc])* $vis $list, $module: $row { $($fields)+ } }
    };
    (@list $(#[$doc:meta])* $vis:vis $list:ident, $module:ident: $row:ty {
        $($constant:ident = $first:expr $(, $next:expr)* $(=> $part:expr)?;)+
    }) => {
        $(#[$doc])*
        $vis const $list: &[$crate::form::field::Field<$row>] = &[$($module::$constant),+];
    };
    (@field $row:ty; $name:expr, $title:expr, $get:expr) => {
        $crate::form::field::Field { name: $name, title: $title, get: $get }
    };
    (@field $row:ty; $field:expr) => {
        $field
    };
    (@field $row:ty; $title:expr, $get:expr) => {
        $title.field::<$row>($get)
    };
    (@field $row:ty; $field:expr => $part:expr) => {
        $crate::form::field::Field {
            name: $field.name,
            title: $field.title,
            get: |row: &$row| {
                let part: fn(&$row) -> &_ = $part;
                ($field.get)(part(row))
            },
        }
    };
    ($(#[$doc:meta])* $vis:vis $module:ident: $row:ty {
        $($constant:ident = $first:expr $(, $next:expr)* $(=> $part:expr)?;)+
    }) => {
        $(#[$doc])*
        $vis mod $module {
            use super::*;

            $(pub(crate) const $constant: $crate::form::field::Field<$row> =
                $crate::form::field::fields!(@field $row; $first $(, $next)* $(=> $part)?);)+
        }
    };
}

pub(crate) use fields;

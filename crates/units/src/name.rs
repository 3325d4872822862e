//! Names of enum variants: how every enum of becalm that stands in a document, a table or an argument is written.
//!
//! The names are derived by strum, beside serde's where the enum is part of a document, with the same case for both:
//!
//! ```
//! use becalm_units::{Named, UnknownName};
//!
//! /// What the CPUs are wanted for.
//! #[derive(Clone, Copy, PartialEq, Eq, Debug)]
//! #[derive(strum::Display, strum::EnumString, strum::IntoStaticStr, strum::VariantArray)]
//! #[strum(serialize_all = "kebab-case", parse_err_ty = UnknownName, parse_err_fn = unknown)]
//! enum Profile {
//!     /// Everything that can be moved away is.
//!     Hpc,
//!     /// What a guest has no say in is left alone.
//!     CloudGuest,
//!     /// A name that the case does not give is written out.
//!     #[strum(serialize = "rt")]
//!     Realtime,
//! }
//!
//! fn unknown(text: &str) -> UnknownName {
//!     UnknownName::new::<Profile>("profile", text)
//! }
//!
//! assert_eq!((Profile::CloudGuest.name(), Profile::ALL.len()), ("cloud-guest", 3));
//! assert_eq!((Profile::Hpc.to_string(), "rt".parse()), ("hpc".to_owned(), Ok(Profile::Realtime)));
//! let error = "fast".parse::<Profile>().unwrap_err();
//! assert_eq!(error.to_string(), "'fast' is no profile; choose one of hpc, cloud-guest, rt");
//! ```
//!
//! Only what is needed is derived: `IntoStaticStr` and `VariantArray` give [`Named`], `Display` prints the name with the
//! formatter's width, and `EnumString` reads it.

use strum::VariantArray;

/// An enum whose variants have names. Whatever derives `strum::IntoStaticStr` and `strum::VariantArray` is one.
pub trait Named: Copy + Into<&'static str> + VariantArray {
    /// Every variant, in the order in which they are declared.
    const ALL: &'static [Self] = Self::VARIANTS;

    /// The variant's name in documents, tables and arguments.
    fn name(self) -> &'static str {
        self.into()
    }
}

impl<T: Copy + Into<&'static str> + VariantArray> Named for T {}

/// A text that is the name of none of an enum's variants. The message lists those that there are.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{text}' is no {what}; choose one of {}", known.join(", "))]
pub struct UnknownName {
    text: String,
    what: &'static str,
    known: Vec<&'static str>,
}

impl UnknownName {
    /// For a text that was to name a variant of `T`; `what` says in words what the variants are, like `profile`.
    pub fn new<T: Named>(what: &'static str, text: &str) -> Self {
        Self { text: text.to_owned(), what, known: T::ALL.iter().map(|variant| variant.name()).collect() }
    }
}

//! Names of enum variants in documents, tables and arguments, for every enum of becalm.
//!
//! strum derives the names, next to serde for enums in documents, both with the same case:
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
//! Derive only what is needed: `IntoStaticStr` and `VariantArray` give [`Named`], `Display` prints the name with the formatter's width, and
//! `EnumString` parses it.

use strum::VariantArray;

/// An enum with names for its variants. Every type that derives `strum::IntoStaticStr` and `strum::VariantArray` is one.
pub trait Named: Copy + Into<&'static str> + VariantArray {
    /// Every variant, in the order of declaration.
    const ALL: &'static [Self] = Self::VARIANTS;

    /// The variant's name in documents, tables and arguments.
    fn name(self) -> &'static str {
        self.into()
    }
}

impl<T: Copy + Into<&'static str> + VariantArray> Named for T {}

/// A text that is not the name of a variant. The message lists the valid names.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{text}' is no {what}; choose one of {}", known.join(", "))]
pub struct UnknownName {
    text: String,
    what: &'static str,
    known: Vec<&'static str>,
}

impl UnknownName {
    /// For a text that should name a variant of `T`; `what` describes the variants, e.g. `profile`.
    pub fn new<T: Named>(what: &'static str, text: &str) -> Self {
        Self { text: text.to_owned(), what, known: T::ALL.iter().map(|variant| variant.name()).collect() }
    }
}

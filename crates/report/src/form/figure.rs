//! Figures: the types of fields. Each knows its JSON type without a row.

use becalm_units::{CpuId, Nanos};

use crate::Value;

/// A figure of a row.
pub trait Figure {
    /// Its type in JSON.
    const JSON: JsonType;

    /// The figure as a value.
    fn value(self) -> Value;
}

/// The type of a figure in JSON.
#[derive(Clone, Copy)]
pub struct JsonType {
    /// Its names in JSON schemas; several if the row decides.
    pub names: &'static [&'static str],
    /// Whether the figure may be `null`.
    pub or_null: bool,
}

#[cfg(feature = "schemas")]
impl JsonType {
    /// The schema of a figure of this type.
    pub fn schema(self) -> schemars::Schema {
        let names: Vec<&str> = self.names.iter().copied().chain(self.or_null.then_some("null")).collect();
        match names[..] {
            [name] => schemars::json_schema!({ "type": name }),
            _ => schemars::json_schema!({ "type": names }),
        }
    }
}

#[cfg(feature = "schemas")]
impl schemars::JsonSchema for Value {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Value".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        <Self as Figure>::JSON.schema()
    }
}

/// An optional figure.
impl<F: Figure> Figure for Option<F> {
    const JSON: JsonType = JsonType { or_null: true, ..F::JSON };

    fn value(self) -> Value {
        self.map_or(Value::Missing, Figure::value)
    }
}

/// A figure of any kind.
impl Figure for Value {
    const JSON: JsonType = JsonType { names: &["number", "string", "boolean"], or_null: true };

    fn value(self) -> Value {
        self
    }
}

/// Implements [`Figure`] for types: the type in JSON, and the value.
macro_rules! figures {
    ($($type:ty: $json:literal, $or_null:literal, $value:expr;)+) => {
        $(impl Figure for $type {
            const JSON: JsonType = JsonType { names: &[$json], or_null: $or_null };

            fn value(self) -> Value {
                let value: fn(Self) -> Value = $value;
                value(self)
            }
        })+
    };
}

figures! {
    String: "string", false, Value::Text;
    &'static str: "string", false, |text| Value::Text(text.to_owned());
    bool: "boolean", false, Value::Flag;
    u8: "integer", false, |count| Value::Count(count.into());
    u32: "integer", false, |count| Value::Count(count.into());
    u64: "integer", false, Value::Count;
    usize: "integer", false, |count| Value::Count(count as u64);
    CpuId: "integer", false, |cpu| Value::Number(cpu.get().into());
    Nanos: "integer", false, |time| Value::Time(time.get());
}

/// Defines figures that are plain numbers with a meaning; each becomes the [`Value`] of its name.
macro_rules! kinds {
    ($($(#[$doc:meta])+ $name:ident($inner:ty): $json:literal, $or_null:literal;)+) => {
        $($(#[$doc])+
        pub struct $name(pub $inner);

        figures! { $name: $json, $or_null, |figure| Value::$name(figure.0); })+
    };
}

kinds! {
    /// A number that identifies something.
    Number(u64): "integer", false;
    /// A duration in nanoseconds.
    Time(i64): "integer", false;
    /// A duration in nanoseconds, compared with others that are nearly equal.
    Fine(i64): "integer", false;
    /// A duration in picoseconds.
    Picos(i64): "integer", false;
    /// A frequency in 1/s.
    Rate(f64): "number", true;
    /// A share.
    Ratio(f64): "number", true;
    /// A share, shown together with the others of the same whole.
    Share(f64): "number", true;
    /// Percentage points.
    Points(f64): "number", true;
    /// A multiple of another figure.
    Factor(f64): "number", true;
    /// The relative change of a figure.
    Change(f64): "number", true;
    /// A plain number.
    Real(f64): "number", true;
    /// An average count.
    Often(f64): "number", true;
}

/// An interval by its ends: `3.4 to 22`, or `from 3.4` if it has no upper end.
pub fn interval<F: Figure>(low: Option<F>, high: Option<F>) -> Option<String> {
    match (low.map(|low| low.value().cell()), high.map(|high| high.value().cell())) {
        (Some(low), Some(high)) => Some(format!("{low} to {high}")),
        (Some(low), None) => Some(format!("from {low}")),
        (None, Some(high)) => Some(format!("up to {high}")),
        (None, None) => None,
    }
}

/// A number in a unit that the row decides.
pub struct Quantity(pub Value);

figures! { Quantity: "number", true, |quantity| quantity.0; }

impl Time {
    /// A duration in fractions of a nanosecond, rounded; `None` unless it is finite.
    pub fn rounded(ns: f64) -> Option<Self> {
        ns.is_finite().then(|| Self(ns.round() as i64))
    }
}

impl Fine {
    /// A duration in fractions of a nanosecond, rounded; `None` unless it is finite.
    pub fn rounded(ns: f64) -> Option<Self> {
        Time::rounded(ns).map(|time| Self(time.0))
    }
}

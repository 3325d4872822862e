//! The place of a figure in the document of a step.

use serde::Deserialize;
use serde_json::Value;

/// A figure computed from the documents of steps: `(of / by - less) * scale`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reading {
    /// The value.
    pub of: Term,
    /// The divisor.
    #[serde(default)]
    pub by: Option<Term>,
    /// The subtrahend: 1 if a factor is shown as its increase.
    #[serde(default)]
    pub less: f64,
    /// The multiplier that gives the figure's unit.
    #[serde(default = "one")]
    pub scale: f64,
}

/// A number of a document, or the difference of two.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Term {
    /// The step that wrote the document.
    pub step: String,
    /// The place in the document: names and numbers after slashes, like a JSON pointer, and `name=value` for the first element of a list
    /// whose field has that text or number; `name=one|another` for either, and `name=value&other=value` for several such fields.
    pub at: String,
    /// The place of a value to subtract, in the same document.
    #[serde(default)]
    pub minus: Option<String>,
}

const fn one() -> f64 {
    1.0
}

/// The value at a place of a document; see [`Term::at`].
pub fn at<'a>(document: &'a Value, path: &str) -> Option<&'a Value> {
    path.split('/').skip(1).try_fold(document, follow)
}

/// The number at a place of a document.
pub fn number_at(document: &Value, path: &str) -> Option<f64> {
    at(document, path)?.as_f64()
}

fn follow<'a>(value: &'a Value, part: &str) -> Option<&'a Value> {
    let has = |field: &Value, wanted: &str| match field {
        Value::Number(number) => wanted.parse::<f64>().is_ok_and(|wanted| number.as_f64() == Some(wanted)),
        _ => *field == wanted,
    };
    let is_so = |element: &&Value| {
        part.split('&').all(|wanted| {
            wanted.split_once('=').is_some_and(|(name, any)| any.split('|').any(|one| has(&element[name], one)))
        })
    };
    match (value, part.split_once('=')) {
        (Value::Array(list), Some(_)) => list.iter().find(is_so),
        (Value::Array(list), None) => list.get(part.parse::<usize>().ok()?),
        (value, _) => value.get(part),
    }
}

impl Term {
    fn number(&self, document: &Value) -> Option<f64> {
        let less = self.minus.as_deref().map_or(Some(0.0), |path| number_at(document, path))?;
        Some(number_at(document, &self.at)? - less)
    }
}

impl Reading {
    /// Its terms.
    pub fn terms(&self) -> impl Iterator<Item = &Term> {
        std::iter::once(&self.of).chain(&self.by)
    }

    /// The figure, if its documents have it; `documents` returns that of a step.
    pub fn value<'a>(&self, documents: impl Fn(&str) -> Option<&'a Value>) -> Option<f64> {
        let number = |term: &Term| term.number(documents(&term.step)?);
        let by = self.by.as_ref().map_or(Some(1.0), number)?;
        Some((number(&self.of)? / by - self.less) * self.scale).filter(|value| value.is_finite())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn figures_are_read_by_place_name_and_difference() {
        let rows = json!([{ "name": "a", "of": "x", "ns": 10 }, { "name": "b", "of": "x", "ns": 4 }]);
        let document = json!({ "rows": rows, "zero": 0 });
        let term = |at: &str, minus: Option<&str>| Term {
            step: "s".to_owned(),
            at: at.to_owned(),
            minus: minus.map(ToOwned::to_owned),
        };
        let read =
            |of, by| Reading { of, by, less: 0.0, scale: 100.0 }.value(|step| (step == "s").then_some(&document));
        assert_eq!(read(term("/rows/name=b/ns", None), None), Some(400.0));
        assert_eq!(read(term("/rows/0/ns", Some("/rows/1/ns")), Some(term("/rows/1/ns", None))), Some(150.0));
        let added =
            Reading { of: term("/rows/0/ns", None), by: Some(term("/rows/1/ns", None)), less: 1.0, scale: 100.0 };
        assert_eq!(added.value(|_| Some(&document)), Some(150.0));
        assert_eq!(read(term("/rows/0/ns", None), Some(term("/zero", None))), None);
        assert_eq!(read(term("/rows/of=x&name=b/ns", None), None), Some(400.0));
        assert_eq!(read(term("/rows/name=c|b/ns", None), None), Some(400.0));
        assert_eq!(read(term("/rows/ns=4&of=x/ns", None), None), Some(400.0));
        for nowhere in
            ["/rows/of=y&name=b/ns", "/rows/of=x&name/ns", "/rows/2/ns", "/rows/name=c/ns", "/rows/0/name", "/row", ""]
        {
            assert_eq!(read(term(nowhere, None), None), None, "{nowhere}");
        }
    }
}

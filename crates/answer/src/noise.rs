//! The noise of a prediction: a formula, the path of a run, or both.

use std::path::{Path, PathBuf};
use std::str::FromStr;

use becalm_linux::file::read_regular_text;
use becalm_scale::ScaleError;
use becalm_scale::spec::NoiseSpec;

/// The maximum size of a file of lengths or of sources.
const FILE_LIMIT: u64 = 64 << 20;

/// The argument: a formula or the path of a run, or a run and a formula joined by `+`.
#[derive(Clone, PartialEq, Debug)]
pub enum NoiseArg {
    /// A formula, such as `periodic:` or `poisson:`.
    Spec(NoiseSpec),
    /// The path of a bundle.
    Run(PathBuf),
    /// The path of a bundle, and a formula to add to its noise.
    RunWith(PathBuf, NoiseSpec),
}

impl FromStr for NoiseArg {
    type Err = ScaleError;

    fn from_str(text: &str) -> Result<Self, ScaleError> {
        // A misspelled formula gets the error of formulas rather than that of a missing file.
        if NoiseSpec::is_meant(text) || (text.contains(',') && text.contains("detour=") && !text.contains('+')) {
            return text.parse().map(Self::Spec);
        }
        match NoiseSpec::further_causes(text).first() {
            Some(at) => Ok(Self::RunWith(PathBuf::from(&text[..at - 1]), text[*at..].parse()?)),
            None => Ok(Self::Run(PathBuf::from(text))),
        }
    }
}

/// One or several noises: a comma-separated list in braces expands to one noise per element, as in a shell. The first list varies slowest.
#[derive(Clone, PartialEq, Debug)]
pub struct NoiseList(pub Vec<(String, NoiseArg)>);

/// The maximum number of noises; more are probably a mistake.
const NOISES_LIMIT: usize = 1_024;

impl FromStr for NoiseList {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let made = |text: String| match text.parse() {
            Ok(noise) => Ok((text, noise)),
            Err(error) => Err(ScaleError::to_string(&error)),
        };
        expanded(text)?.into_iter().map(made).collect::<Result<_, _>>().map(Self)
    }
}

/// One text for each combination of elements of the lists in braces. Braces without a comma are literal.
fn expanded(text: &str) -> Result<Vec<String>, String> {
    let mut texts = vec![String::new()];
    let mut rest = text;
    while let Some(begin) = rest.find('{') {
        let end = rest[begin..].find('}').map(|end| begin + end);
        let Some(end) = end else { break };
        let (before, inside) = (&rest[..begin], &rest[begin + 1..end]);
        if inside.contains('{') {
            return Err(format!("'{text}' has a list within a list: write several noises behind each other instead"));
        }
        let parts: Vec<String> = match inside.contains(',') {
            true => inside.split(',').map(|part| format!("{before}{part}")).collect(),
            false => vec![rest[..=end].to_owned()],
        };
        if texts.len() * parts.len() > NOISES_LIMIT {
            return Err(format!("'{text}' stands for more than {NOISES_LIMIT} noises"));
        }
        texts = texts.iter().flat_map(|text| parts.iter().map(move |part| format!("{text}{part}"))).collect();
        rest = &rest[end + 1..];
    }
    texts.iter_mut().for_each(|text| text.push_str(rest));
    Ok(texts)
}

/// Reads a file named in a formula.
pub fn read_named(path: &Path) -> Result<String, String> {
    read_regular_text(path, FILE_LIMIT).map_err(|error| format!("cannot read {}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_in_braces_are_written_out() {
        let list = |text: &str| expanded(text).unwrap();
        assert_eq!(
            list("p:i={1ms,10ms},d={5us,6us}"),
            ["p:i=1ms,d=5us", "p:i=1ms,d=6us", "p:i=10ms,d=5us", "p:i=10ms,d=6us"]
        );
        assert_eq!(list("{a,b,}.becalm"), ["a.becalm", "b.becalm", ".becalm"]);
        for alone in ["a{b}c", "a{b", "a}b", "", "a,b"] {
            assert_eq!(list(alone), [alone]);
        }
        assert!(expanded("{a,{b,c}}").unwrap_err().contains("list within a list"));
        assert!(expanded(&"{1,2}".repeat(11)).unwrap_err().contains("more than 1024"));
        let list: NoiseList = "periodic:interval={1ms,10ms},detour=5us".parse().unwrap();
        assert!(list.0.iter().all(|(_, noise)| matches!(noise, NoiseArg::Spec(_))) && list.0.len() == 2);
        assert!("periodic:interval={1ms,x},detour=5us".parse::<NoiseList>().unwrap_err().contains("interval=x"));
    }

    #[test]
    fn formulas_are_told_from_paths() {
        let spec: NoiseArg = "periodic:interval=1ms,detour=50us".parse().unwrap();
        assert!(matches!(spec, NoiseArg::Spec(NoiseSpec::Periodic { .. })));
        for path in ["quiet", "a/b:c.becalm", "periodic"] {
            assert_eq!(path.parse(), Ok(NoiseArg::Run(PathBuf::from(path))));
        }
        let with: NoiseArg = "a+b.becalm+poisson:rate=1Hz,detour=1ms+periodic:interval=1s,detour=1ms".parse().unwrap();
        assert!(matches!(with, NoiseArg::RunWith(path, NoiseSpec::Sum(_)) if path == Path::new("a+b.becalm")));
        for wrong in ["periodc:interval=1ms,detour=5us", "poisson:", "poisson:rate=1,detour=5us"] {
            assert!(wrong.parse::<NoiseArg>().is_err(), "{wrong}");
        }
    }
}

//! The samples of real programs, complete, damaged, and with other line ends.

mod buckets;
mod damage;
mod figures;
mod guesses;
mod perfetto;
mod reports;

use std::fs;
use std::path::{Path, PathBuf};

use crate::distribution::{DistributionDoc, Quantity, Series};
use becalm_model::Document;
use becalm_model::node::{Fixed, Warning};
use becalm_units::{CpuId, Named, Nanos};

use super::ftq_ticks::Part;
use super::*;
use crate::write::loggopsim::NoiseFile;

/// The result for any file.
#[derive(PartialEq, Debug)]
enum Anything {
    Detours(DetourList),
    Samples(Vec<SampleList>),
    Distribution(DistributionDoc),
}

fn read(format: Format, name: &str, bytes: &[u8]) -> Result<Anything, ReadError> {
    let (source, told) = (Source { name, bytes }, &mut |_| {});
    let known = FileFacts { unit: None, rate_hz: Some(2.596e9) };
    match format.form() {
        Form::Detours => detours(format, source, known, told).map(Anything::Detours),
        // One of two files, with another one that fits.
        Form::Samples if format == Format::FtqTicks && ftq_ticks::part(name) != Part::Both => {
            let ftq_ticks::SampleColumn { numbers: column, warnings } = ftq_ticks::column(source, told)?;
            let (ones, numbers) = (vec![1; column.len()], (0..column.len() as i64).collect());
            let (prefix, times, counts) = match ftq_ticks::part(name) {
                Part::Counts(prefix) => (prefix, numbers, column),
                Part::Times(prefix) => (prefix, column, ones),
                Part::Both => unreachable!(),
            };
            let mut lists = ftq_ticks::joined(prefix, &times, &counts, known.rate_hz)?;
            lists.iter_mut().for_each(|list| list.warnings.clone_from(&warnings));
            Ok(Anything::Samples(lists))
        }
        Form::Samples => samples(format, source, known, told).map(Anything::Samples),
        Form::Distribution => distribution(format, source, known, told).map(Anything::Distribution),
        // Attribution finds the contents of a trace.
        Form::Trace => unreachable!("{format} is a trace"),
    }
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("samples")
}

/// Each file of the real programs, with its format and its name.
fn all_samples() -> Vec<(Format, String, Vec<u8>)> {
    let mut found = Vec::new();
    for format in Format::ALL.iter().copied().filter(|format| format.form() != Form::Trace) {
        for entry in fs::read_dir(folder().join(format.name())).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            found.push((format, name, fs::read(&path).unwrap()));
        }
    }
    found
}

fn sample(format: Format, name: &str) -> Anything {
    let bytes = fs::read(folder().join(format.name()).join(name)).unwrap();
    read(format, name, &bytes).unwrap_or_else(|error| panic!("{name}: {error}"))
}

fn series(format: Format, name: &str) -> Vec<Series> {
    let Anything::Distribution(found) = sample(format, name) else { panic!("{name} is a distribution") };
    found.series
}

/// No result contradicts the promises of its form.
fn check(found: &Anything, name: &str) {
    match found {
        Anything::Detours(list) => {
            assert!(list.detours.windows(2).all(|pair| pair[0].0 + pair[0].1 <= pair[1].0), "{name}");
        }
        Anything::Samples(lists) => {
            for list in lists {
                assert!(
                    list.samples.windows(2).all(|pair| pair[0].start + pair[0].duration <= pair[1].start),
                    "{name}"
                );
            }
        }
        Anything::Distribution(found) => assert_eq!(found.check(), Ok(()), "{name}"),
    }
}

#[test]
fn samples_are_recognized_and_read_with_either_line_end() {
    let samples = all_samples();
    assert!(samples.len() >= 20, "{} samples", samples.len());
    for (format, name, bytes) in samples {
        let source = Source { name: &name, bytes: &bytes };
        assert_eq!(recognize(source), Some(format), "{name}");
        let found = read(format, &name, &bytes).unwrap_or_else(|error| panic!("{name}: {error}"));
        check(&found, &name);
        let text = String::from_utf8(bytes).unwrap().replace('\n', "\r\n");
        // LogGOPSim takes a line end at the end for one more event, so its files have none.
        assert_eq!(read(format, &name, text.as_bytes()), Ok(found), "{name}");
    }
}

/// If a file is cut off or a byte of it changed, it is refused, or the result is still sound.
#[test]
fn damaged_samples_are_refused_or_sound() {
    let (mut refused, mut taken) = (0, 0);
    for (format, name, bytes) in all_samples() {
        let step = (bytes.len() / 150).max(1);
        for at in (0..bytes.len()).step_by(step) {
            let mut changed = bytes.clone();
            changed[at] = [b'9', b'-', b'\n', b' ', b'#', 0xff][at / step % 6];
            for damaged in [&bytes[..at], &changed] {
                let _ = recognize(Source { name: &name, bytes: damaged });
                match read(format, &name, damaged) {
                    Ok(found) => {
                        taken += 1;
                        check(&found, &name);
                    }
                    Err(_) => refused += 1,
                }
            }
        }
        let empty = read(format, &name, b"");
        assert!(empty.is_err() || format.form() != Form::Distribution, "{name}");
    }
    assert!(refused > 500 && taken > 500, "{refused} refused, {taken} taken");
}

fn warnings(found: &Anything) -> &[Warning] {
    match found {
        Anything::Detours(list) => &list.warnings,
        Anything::Samples(lists) => lists.first().map_or(&[], |list| &list.warnings),
        Anything::Distribution(found) => &found.warnings,
    }
}

//! A sweep gives in each cell what its own command gives.

use becalm_testing::program::becalm;
use serde_json::{Map, Value};

/// The document that a command prints.
fn document(arguments: &[&str]) -> Value {
    let output = becalm(arguments).arg("--json").output().unwrap();
    let messages = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {messages}");
    serde_json::from_slice(&output.stdout).unwrap()
}

fn rows<'a>(document: &'a Value, name: &str) -> Vec<&'a Map<String, Value>> {
    document[name].as_array().unwrap().iter().map(|row| row.as_object().unwrap()).collect()
}

/// Every figure of the row stands in the cell.
fn holds(cell: &Map<String, Value>, row: &Map<String, Value>, of: &str) {
    for (name, value) in row {
        assert_eq!(&cell[name], value, "{name} of {of}");
    }
}

#[test]
fn a_cell_of_a_prediction_is_what_its_own_command_gives() {
    let noises = [
        "periodic:interval=1ms,detour=16us",
        "poisson:ratio=1%,detour=100us",
        "poisson:rate=3Hz,detour=exponential:1ms",
    ];
    let common = ["--ranks", "16,100", "--grain", "0.5ms,1ms", "--phases", "60", "--replicas", "2", "--network", "bgl"];
    let collectives = ["ideal", "barrier:hardware", "allreduce"];
    let swept = document(
        &[
            &["predict"][..],
            &noises,
            &common,
            &[
                "--collective",
                "ideal,barrier:hardware,allreduce",
                "--bytes",
                "8,4Ki",
                "--sync=both",
                "--coalesce",
                "0,5ms",
            ],
        ]
        .concat(),
    );
    let cells = rows(&swept, "cells");
    assert_eq!((swept["schema"].as_str(), cells.len()), (Some("becalm.predict-sweep/1"), 3 * 3 * 2 * 2 * 2 * 2 * 2));
    let mut cells = cells.into_iter();
    for collective in collectives {
        for (bytes, bytes_of) in [("8", 8), ("4Ki", 4_096)] {
            for sync in [None, Some("--sync")] {
                for (window, window_ns) in [("0", 0), ("5ms", 5_000_000)] {
                    for noise in noises {
                        let own = ["--collective", collective, "--bytes", bytes, "--coalesce", window];
                        let arguments = [&["predict", noise][..], &common, &own, sync.as_slice()].concat();
                        let alone = document(&arguments);
                        assert_eq!(alone["schema"], "becalm.predict/1");
                        for row in rows(&alone, "rows") {
                            let cell = cells.next().unwrap();
                            let of = format!("{arguments:?}");
                            holds(cell, row, &of);
                            assert_eq!(
                                (cell["noise"].as_str(), &cell["coalesced_ns"]),
                                (Some(noise), &window_ns.into())
                            );
                            assert_eq!(cell["synchronized"], alone["synchronized"], "{of}");
                            let bytes = if collective == "ideal" { Value::Null } else { bytes_of.into() };
                            assert_eq!(cell["bytes"], bytes, "{of}");
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn a_cell_of_the_law_is_what_its_own_command_gives() {
    let (grains, delays, rates) = (["1ms", "100us"], ["50us", "1ms"], ["1Hz", "0.1Hz"]);
    let list = |values: [&str; 2]| values.join(",");
    let all = ["predict", "--law", "--ranks", "64,100000", "--tolerate", "1%", "--grain"];
    let swept = document(&[&all[..], &[&list(grains), "--delay", &list(delays), "--rate", &list(rates)]].concat());
    let mut cells = rows(&swept, "cells").into_iter();
    for delay in delays {
        for rate in rates {
            for grain in grains {
                let alone = document(&[&all[..], &[grain, "--delay", delay, "--rate", rate]].concat());
                for row in rows(&alone, "rows") {
                    let cell = cells.next().unwrap();
                    holds(cell, row, &format!("{grain} {delay} {rate}"));
                    for name in ["grain_ns", "delay_ns", "rank_delay_probability", "limit_ratio", "tolerable_ranks"] {
                        assert_eq!(cell[name], alone[name], "{name}");
                    }
                }
            }
        }
    }
    assert!(cells.next().is_none());
}

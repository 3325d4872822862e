//! Several noises of `becalm inject`, one after the other.

use becalm_testing::program::becalm;
use serde_json::Value;

#[test]
fn each_noise_is_made_by_itself_in_its_order() {
    // By signals, which needs no rights.
    let line = "inject --signal --interval 5ms,20ms --detour 500us,1ms --jitter 1ms --seed 7 --json -- sleep 0.05";
    let output = becalm(&line.split(' ').collect::<Vec<_>>()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(document["schema"], "becalm.inject-sweep/1");
    let cells = document["cells"].as_array().unwrap();
    let noises: Vec<&str> = cells.iter().map(|cell| cell["injected"]["noise"].as_str().unwrap()).collect();
    let expected = [("5ms", "500us"), ("5ms", "1ms"), ("20ms", "500us"), ("20ms", "1ms")];
    assert_eq!(
        noises,
        expected.map(|(interval, detour)| format!("periodic:interval={interval},detour={detour},jitter=1ms"))
    );
    assert!(cells.iter().all(|cell| cell["injected"]["seed"] == 7 && cell["injected"]["way"] == "signal"));
    assert_eq!((&cells[1]["interval"], &cells[1]["detour_ns"]), (&"5ms".into(), &1_000_000.into()));
}

#[test]
fn a_command_that_fails_under_a_noise_is_no_success() {
    let line = "inject --signal --interval 5ms --detour 500us,1ms -- false";
    let output = becalm(&line.split(' ').collect::<Vec<_>>()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("2 of 2 noises failed"), "{said}");
}

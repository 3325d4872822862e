//! The loops of instructions are what they claim: counted in this program's own machine code, as `objdump` shows it.

#![cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
// The test says what it has counted.
#![allow(clippy::print_stderr)]

use std::process::Command;

use becalm_linux::instructions::{A_PASS, Instructions};
use becalm_testing::{Need, machine_has};

/// The instructions of a function of the module, by their mnemonics.
fn mnemonics(disassembly: &str, function: &str) -> Vec<String> {
    let module = if cfg!(target_arch = "x86_64") { "x86_64" } else { "aarch64" };
    let name = format!("becalm_linux::instructions::{module}::{function}");
    let inside = |line: &&str| !line.trim().is_empty();
    let mut lines = disassembly.lines().skip_while(|line| !(line.ends_with(">:") && line.contains(&name)));
    assert!(lines.next().is_some(), "the program has no function {name}");
    // `  401136:\tadd    %rax,%rbx`
    let instructions = lines.take_while(inside).filter_map(|line| line.split('\t').nth(1));
    instructions.filter_map(|text| text.split_whitespace().next()).map(str::to_owned).collect()
}

#[test]
fn a_pass_has_512_instructions_of_its_kind() {
    // Used, so that the linker keeps them.
    for kind in [Instructions::Add, Instructions::Multiply, Instructions::Divide] {
        assert!(kind.run(std::hint::black_box(1), 7).is_some());
    }
    if !machine_has(&[Need::Program("objdump")]) {
        return;
    }
    let program = std::env::current_exe().expect("the test knows its own file");
    let run =
        Command::new("objdump").args(["--disassemble", "--demangle", "--no-show-raw-insn"]).arg(&program).output();
    let output = run.expect("objdump runs");
    assert!(output.status.success(), "{output:?}");
    let disassembly = String::from_utf8_lossy(&output.stdout);
    // On AArch64 the loop's counter goes down with `subs`, on x86-64 with `dec`, so neither counts as an addition.
    let kinds = if cfg!(target_arch = "x86_64") {
        [("add", "add"), ("multiply", "imul"), ("divide", "div")]
    } else {
        [("add", "add"), ("multiply", "mul"), ("divide", "udiv")]
    };
    for (function, mnemonic) in kinds {
        let found = mnemonics(&disassembly, function);
        // AT&T syntax marks some with the size of their operands: `divl`.
        let of_kind = |text: &&String| text.strip_prefix(mnemonic).is_some_and(|rest| matches!(rest, "" | "l" | "q"));
        let first = found.iter().position(|text| of_kind(&text)).expect("there is one at all");
        let run = found[first..].iter().take_while(of_kind).count();
        eprintln!("{function}: {run} x {mnemonic} without a gap, {} instructions in all", found.len());
        assert_eq!(run, A_PASS as usize, "{function}");
        // The loop around them is a counter and a branch: below 1 % of it.
        let around = &found[first + run..];
        let branch = around.iter().position(|text| matches!(text.as_str(), "jne" | "jnz" | "b.ne"));
        assert!(branch.is_some_and(|at| at <= 2), "{function}: {around:?}");
    }
}

//! The loops of instructions are what they claim: counted in this program's own machine code, as `objdump` shows it.

#![cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
// The test says what it has counted.
#![allow(clippy::print_stderr)]

use std::process::Command;

use becalm_linux::instructions::{A_PASS, Instructions, PointerChain, RandomBranches};
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

/// The functions of the instruction kinds with the instruction that each repeats without a gap.
///
/// On AArch64 a loop's counter goes down with `subs`, on x86-64 with `dec`, so neither counts as an addition.
const CHAINS: [(&str, &str); 8] = if cfg!(target_arch = "x86_64") {
    [
        ("add", "add"),
        ("multiply", "imul"),
        ("divide", "div"),
        ("float_add", "addsd"),
        ("float_multiply", "mulsd"),
        ("float_divide", "divsd"),
        ("packed_multiply", "mulpd"),
        ("load", "mov"),
    ]
} else {
    [
        ("add", "add"),
        ("multiply", "mul"),
        ("divide", "udiv"),
        ("float_add", "fadd"),
        ("float_multiply", "fmul"),
        ("float_divide", "fdiv"),
        ("packed_multiply", "fmul"),
        ("load", "ldr"),
    ]
};

/// Runs every kind once, which makes the linker keep them.
fn use_all() {
    use Instructions::{Add, Divide, FloatAdd, FloatDivide, FloatMultiply, Multiply, VectorMultiply};
    for kind in [Add, Multiply, Divide, FloatAdd, FloatMultiply, FloatDivide, VectorMultiply] {
        assert!(kind.run(std::hint::black_box(1), 7).is_some());
    }
    assert!(PointerChain::new(4096).run(std::hint::black_box(1)).is_some());
    assert!(RandomBranches::new().run(std::hint::black_box(1)).is_some());
}

fn disassembly() -> String {
    let program = std::env::current_exe().expect("the test knows its own file");
    let run =
        Command::new("objdump").args(["--disassemble", "--demangle", "--no-show-raw-insn"]).arg(&program).output();
    let output = run.expect("objdump runs");
    assert!(output.status.success(), "{output:?}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn a_pass_has_512_instructions_of_its_kind() {
    use_all();
    if !machine_has(&[Need::Program("objdump")]) {
        return;
    }
    let disassembly = disassembly();
    for (function, mnemonic) in CHAINS {
        let found = mnemonics(&disassembly, function);
        // AT&T syntax marks some with the size of their operands: `divl`.
        let is_of_kind =
            |text: &&String| text.strip_prefix(mnemonic).is_some_and(|rest| matches!(rest, "" | "l" | "q"));
        // Instructions that bring the operands into their registers may be of the same kind, and come just before.
        let longest = found.split(|text| !is_of_kind(&text)).map(<[String]>::len).max().unwrap_or(0);
        eprintln!("{function}: {longest} x {mnemonic} without a gap, {} instructions in all", found.len());
        assert!((A_PASS as usize..A_PASS as usize + 5).contains(&longest), "{function}: {longest}");
        if function != "load" {
            assert_eq!(longest, A_PASS as usize, "{function}");
        }
        // The loop around them is a counter and a branch: below 1 % of it.
        let first =
            found.windows(longest).position(|run| run.iter().all(|text| is_of_kind(&text))).expect("it is there");
        let around = &found[first + longest..];
        assert!(
            around.iter().position(|text| is_loop_branch(text)).is_some_and(|at| at <= 2),
            "{function}: {around:?}"
        );
    }
}

#[test]
fn a_pass_has_512_random_branches() {
    use_all();
    if !machine_has(&[Need::Program("objdump")]) {
        return;
    }
    let found = mnemonics(&disassembly(), "branch");
    let random = |text: &String| matches!(text.as_str(), "jb" | "jc" | "jnae" | "b.cs" | "b.hs");
    let branches = found.iter().filter(|text| random(text)).count();
    eprintln!("branch: {branches} random branches of {} instructions in all", found.len());
    assert_eq!(branches, A_PASS as usize);
    let last = found.iter().rposition(random).expect("there are some");
    // After the last one: what it may jump over, the counter, the branch of the loop.
    let around = &found[last + 1..];
    assert!(around.iter().position(|text| is_loop_branch(text)).is_some_and(|at| at <= 3), "{around:?}");
}

fn is_loop_branch(text: &str) -> bool {
    matches!(text, "jne" | "jnz" | "b.ne")
}

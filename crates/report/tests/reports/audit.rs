use becalm_model::audit::{Ability, Answer, Audit, FirstStep};
use becalm_units::CpuList;

use crate::{check, check_forms, check_markdown, check_page};

fn audit() -> Audit {
    let first_step = |command: &str, why: &str| FirstStep { command: command.to_owned(), why: why.to_owned() };
    Audit {
        node: "node1".to_owned(),
        kernel: "6.12.9".to_owned(),
        processor: "Example CPU at 2.6 GHz".to_owned(),
        answers: vec![
            Answer::available(Ability::Counter, "the processor's own counter, at a constant rate"),
            Answer::limited(
                Ability::Cpus,
                "CPU 0-1, none of them isolated from the scheduler",
                "other threads run on every CPU that is measured",
                "isolcpus=1 on the kernel's command line, or becalm tune run --cpus 1 for the time of a recording",
            ),
            Answer::missing(
                Ability::TraceClock,
                "/sys/kernel/tracing/trace_clock cannot be written",
                "",
                "run as root",
            ),
            Answer::limited(Ability::Hypervisor, "a virtual machine", "what lies below is seen as time stolen", ""),
        ],
        measurable: "0-1".parse().unwrap(),
        isolated: CpuList::default(),
        first_steps: vec![
            first_step("becalm record --duration 10s", "what interrupts the CPUs, and how often"),
            first_step("becalm tune audit", "what keeps the CPUs from being quiet"),
        ],
    }
}

#[test]
fn what_can_be_seen_on_a_machine() {
    check("audit", &audit());
    check_forms("audit", &audit());
    check_page("audit", &audit());
    check_markdown("audit", &audit());
}

#[test]
fn a_machine_that_tells_nothing() {
    let nothing = Audit { answers: Vec::new(), first_steps: Vec::new(), ..audit() };
    check("audit_nothing", &nothing);
}

#[test]
fn the_document_names_itself_among_its_keys() {
    let json = becalm_report::json(&audit());
    let keys: Vec<&str> = json.lines().filter(|line| line.starts_with("  \"")).map(|line| &line[3..]).collect();
    assert!(keys.is_sorted() && keys.iter().any(|key| key.starts_with("schema\": \"becalm.audit/1\"")), "{json}");
}

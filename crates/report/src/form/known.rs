//! Facts about a machine that may be unknown.

use becalm_model::node::MachineDoc;

/// A kernel and a processor in one phrase; either may be empty and is then left out.
pub fn system(kernel: &str, processor: &str) -> String {
    let kernel = if kernel.is_empty() { String::new() } else { format!(" {kernel}") };
    let processor = if processor.is_empty() { String::new() } else { format!(", {processor}") };
    format!("Linux{kernel}{processor}")
}

/// A machine in one phrase: kernel, processor and hypervisor.
pub fn machine(machine: &MachineDoc) -> String {
    let host = machine.hypervisor.as_ref().map_or_else(String::new, |name| format!(", a virtual machine of {name}"));
    system(&machine.kernel, &machine.processor) + &host
}

/// The text, or "unknown" if it is empty.
pub const fn known(text: &str) -> &str {
    if text.is_empty() { "not known" } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_known_leaves_no_blank() {
        assert_eq!(system("6.12.9", "AMD EPYC"), "Linux 6.12.9, AMD EPYC");
        assert_eq!(system("6.12.9", ""), "Linux 6.12.9");
        assert_eq!(system("", "AMD EPYC"), "Linux, AMD EPYC");
        assert_eq!((system("", "").as_str(), known("")), ("Linux", "not known"));
    }
}

//! What the book shows of commands that change the machine, measure it as it is, or want an optimized build. The others are
//! tested in `golden`.

use becalm_testing::book::{book, holds_exactly, holds_structure};
use becalm_testing::program::run_becalm;
use becalm_testing::{Need, machine_has};

/// By how a command begins: what is run instead, and whether the book must have it word for word.
const COMMANDS: [(&str, &str, bool); 3] = [
    (
        "becalm predict periodic",
        "predict periodic:interval=1ms,detour=200us --ranks 1k,4k,16k,32k --ranks-per-node 2 --grain 0s \
         --collective barrier:hardware --network bgl --phases 2000 --replicas 3",
        true,
    ),
    ("becalm inject --cpus 1 --interval 10ms", "inject --cpus 1 --interval 10ms --detour 1ms --duration 1s", false),
    ("becalm tune run", "tune run --cpus 1 --verify --verify-duration 1s", false),
];

#[test]
fn what_the_book_shows_is_what_is_printed() {
    if !machine_has(&[Need::Root, Need::TwoCpus]) {
        return;
    }
    let mut held = 0;
    for shown in book() {
        let Some((_, command, exactly)) = COMMANDS.iter().find(|(begin, ..)| shown.command.starts_with(begin)) else {
            continue;
        };
        let arguments: Vec<&str> = command.split_whitespace().collect();
        let ended = run_becalm(&arguments);
        ended.expect(0, &[]);
        if *exactly {
            assert_eq!(shown.command, format!("becalm {}", arguments.join(" ")), "{}", shown.page);
            holds_exactly(&shown, &ended.stdout);
        } else {
            holds_structure(&shown, command, &ended.stdout);
        }
        held += 1;
    }
    assert!(held >= COMMANDS.len(), "only {held} outputs were found in the book");
}

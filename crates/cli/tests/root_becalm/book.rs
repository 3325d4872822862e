//! What the book shows of commands that change the machine, measure it as it is, or want an optimized build. The others are
//! tested in `golden`.

use becalm_testing::book::{Holder, book, holds_exactly, holds_structure};
use becalm_testing::program::run_becalm;
use becalm_testing::{Need, machine_has};

/// How what is printed is held against the book.
#[derive(Clone, Copy)]
enum Held {
    /// Word for word.
    Exactly,
    /// Its tables and titles.
    Structure,
    /// The message, up to its first figure, and exit code 2.
    Refusal,
}

/// By how a command begins: what is run instead, and how that is held. In this order the book has `apply` before `restore`.
const COMMANDS: [(&str, &str, Held); 7] = [
    (
        "becalm predict periodic",
        "predict periodic:interval=1ms,detour=200us --ranks 1k,4k,16k,32k --ranks-per-node 2 --grain 0s \
         --collective barrier:hardware --network bgl --phases 2000 --replicas 3",
        Held::Exactly,
    ),
    (
        "becalm inject --cpus 1 --interval 10ms",
        "inject --cpus 1 --interval 10ms --detour 1ms --duration 1s",
        Held::Structure,
    ),
    ("becalm inject --cpus 1 --interval 1ms", "inject --cpus 1 --interval 1ms --detour 1us", Held::Refusal),
    ("becalm run-quiet", "run-quiet --cpus 1 --runs 2 --warmup 0 -- true", Held::Structure),
    ("becalm tune apply", "tune apply --cpus 1", Held::Structure),
    ("becalm tune restore", "tune restore", Held::Structure),
    ("becalm tune run", "tune run --cpus 1 --verify --verify-duration 1s", Held::Structure),
];

/// Brings back what `tune apply` changed, should a check between that and `tune restore` fail.
struct Restored;

impl Drop for Restored {
    fn drop(&mut self) {
        let _ = run_becalm(&["tune", "restore", "--force"]);
    }
}

#[test]
fn what_the_book_shows_is_what_is_printed() {
    if !machine_has(&[Need::Root, Need::TwoCpus]) {
        return;
    }
    let _restored = Restored;
    let mut held = 0;
    for shown in book().into_iter().filter(|shown| shown.holder() == Holder::Root) {
        let (command, how) = match COMMANDS.iter().find(|(begin, ..)| shown.command.starts_with(begin)) {
            Some((_, command, how)) => (*command, *how),
            None if shown.command == "becalm" => ("", Held::Structure),
            None => panic!("{}: nothing holds '{}'", shown.page, shown.command),
        };
        let arguments: Vec<&str> = command.split_whitespace().collect();
        let ended = run_becalm(&arguments);
        match how {
            Held::Exactly => {
                ended.expect(0, &[]);
                assert_eq!(shown.command, format!("becalm {}", arguments.join(" ")), "{}", shown.page);
                holds_exactly(&shown, &ended.stdout);
            }
            Held::Structure => {
                ended.expect(0, &[]);
                holds_structure(&shown, command, &ended.stdout);
            }
            Held::Refusal => {
                let words = shown.output.split("takes").next().unwrap_or_default();
                ended.expect(2, &[words.trim()]);
            }
        }
        held += 1;
    }
    assert!(held > COMMANDS.len(), "only {held} outputs were found in the book");
}

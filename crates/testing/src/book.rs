//! The book's commands with the outputs it shows, and comparison with actual output.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

/// The test that covers a command of the book.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Holder {
    /// Golden tests: the output starts with exactly this.
    Exactly,
    /// Golden tests: this command of `becalm`, on generated inputs, prints the same structure and succeeds.
    As(&'static str),
    /// `root_becalm`: the command changes or measures the machine, or needs an optimized build.
    Root,
    /// The tests of `report`, for documents that only an MPI job creates.
    Report,
    /// It shows no output and measures the reader's machine for as long as the reader likes. The tests of the command line itself cover
    /// that it is valid.
    Reader,
}

/// How commands of the book are tested, by prefix; the first match wins.
const HOLDERS: &[(&str, Holder)] = &[
    (
        "becalm predict --law --grain 1ms,3ms,10ms,30ms,100ms --delay 1ms --rate 0.1Hz --ranks 1,10,100,1000,10000,100000 --html",
        Holder::As("predict --law --grain 1ms,10ms --delay 1ms --rate 0.1Hz --html law.html"),
    ),
    (
        "becalm predict poisson:rate=10Hz,detour=1ms --ranks 64,1Ki,16Ki --grain 1ms,10ms --phases 500 --replicas 2 --html",
        Holder::As("predict poisson:rate=10Hz,detour=1ms --ranks 64,1Ki --phases 100 --html job.html"),
    ),
    ("becalm predict --law ", Holder::Exactly),
    ("becalm predict poisson", Holder::Exactly),
    ("becalm paper radojkovic2008 --list", Holder::As("paper radojkovic2008 --list")),
    ("becalm paper tsafrir2007 --figure 9", Holder::As("paper tsafrir2007 --figure 9 --quick -o again")),
    ("becalm paper", Holder::Reader),
    ("becalm cost tick --from ", Holder::Exactly),
    (
        "becalm predict periodic:ratio=",
        Holder::As(
            "predict periodic:ratio={0.08%,1%},detour={16us,200us} --ranks 64,128 --grain 0 --collective allreduce:hardware --network bgl --phases 200 --replicas 1",
        ),
    ),
    ("becalm predict periodic:interval=10ms,detour=26.4us", Holder::Exactly),
    (
        "becalm predict periodic:interval={",
        Holder::As(
            "predict periodic:interval={1ms,10ms},detour={16us,200us} --sync=both --ranks 64,128 --grain 0 --collective barrier:hardware,alltoall --network bgl --phases 10 --replicas 1",
        ),
    ),
    (
        "becalm predict periodic:interval=1ms,detour={",
        Holder::As(
            "predict periodic:interval=1ms,detour={0us,16us} --sync=both --ranks 64,128 --grain 0 --collective allreduce --network bgl --phases 20 --replicas 1",
        ),
    ),
    ("becalm predict periodic:interval=1ms,detour=200us", Holder::Root),
    (
        "becalm predict node.becalm --ranks 64,1Ki,16Ki",
        Holder::As("predict busy --ranks 64,1Ki --grain 1ms,10ms --phases 200"),
    ),
    ("becalm predict node.becalm --blame", Holder::As("predict busy --ranks 64 --phases 200 --blame")),
    (
        "becalm predict node.becalm --without timer --without sshd",
        Holder::As("predict busy --ranks 64 --phases 200 --without tick"),
    ),
    (
        "becalm predict node.becalm --cpus 2-7 --ranks-per-node 6",
        Holder::As("predict busy --cpus 0-1 --ranks-per-node 2 --ranks 64 --phases 200"),
    ),
    (
        "becalm predict periodic:interval=1ms,detour=50us,jitter=10us --sync",
        Holder::As("predict periodic:interval=1ms,detour=50us,jitter=10us --sync --ranks 64 --phases 200"),
    ),
    (
        "becalm predict node.becalm --collective allreduce:ring",
        Holder::As("predict busy --collective allreduce:ring --network slingshot --bytes 1Mi --phases 20 --ranks 64"),
    ),
    (
        "becalm predict node.becalm --ranks 64,256,1Ki",
        Holder::As("predict busy --ranks 64,256 --grain 1ms --phases 300"),
    ),
    ("becalm report --platforms", Holder::As("report --platforms busy quieter")),
    ("becalm report placement.becalm", Holder::As("report placement")),
    ("becalm report hour.becalm", Holder::As("report tick")),
    ("becalm report trap.becalm --json", Holder::As("report trap --json")),
    ("becalm report trap.becalm --html", Holder::As("report trap --html trap.html")),
    ("becalm report trap.becalm", Holder::As("report trap")),
    ("becalm report crowded.becalm", Holder::As("report busy")),
    ("becalm report isolated.becalm --sources", Holder::As("report busy --sources --per-cpu")),
    ("becalm report solver.becalm --sources", Holder::As("report busy --sources")),
    ("becalm report noise.becalm --sources", Holder::As("report busy --sources")),
    ("becalm report before.becalm", Holder::As("report busy")),
    ("becalm report quiet.becalm --html", Holder::As("report busy --html quiet.html")),
    ("becalm report quiet.becalm", Holder::As("report busy")),
    ("becalm report busy.becalm --ranks", Holder::As("report busy --ranks 1Ki")),
    ("becalm report busy.becalm", Holder::As("report busy")),
    ("becalm explain", Holder::As("explain observed --spans steps.csv --by name")),
    ("becalm detours machine.becalm --together", Holder::As("detours twins --together")),
    ("becalm detours solver.becalm --longest 1", Holder::As("detours observed --longest 1")),
    ("becalm detours", Holder::As("detours busy --longest 2")),
    ("becalm check busy.becalm", Holder::Exactly),
    ("becalm compare before.becalm after.becalm --html", Holder::As("compare busy quieter --html change.html")),
    ("becalm compare baseline.becalm priority.becalm", Holder::As("compare job rr80")),
    ("becalm compare site.becalm fixed.becalm", Holder::Exactly),
    ("becalm compare", Holder::As("compare busy again")),
    ("becalm fleet cluster.becalm", Holder::Exactly),
    ("becalm fleet predict", Holder::Exactly),
    ("becalm condense", Holder::Reader),
    ("becalm cost tick --quick", Holder::As("report tick")),
    ("becalm cost tick", Holder::Reader),
    ("becalm cost scheduler", Holder::As("report scheduler")),
    ("becalm cost placement", Holder::As("report placement")),
    ("becalm cost clock", Holder::As("report clock")),
    ("becalm cost trap", Holder::As("report trap")),
    ("becalm cost detours", Holder::As("report catalogue")),
    ("becalm work --body empty --samples", Holder::As("report work")),
    ("becalm work", Holder::Reader),
    ("becalm record", Holder::Reader),
    ("becalm observe", Holder::Reader),
    ("becalm why node.becalm flush_tlb_func", Holder::As("why causes flush_tlb_func")),
    ("becalm why node.becalm 'ipi:*' --senders", Holder::As("why causes ipi:* --senders")),
    ("becalm why node.becalm", Holder::As("why causes")),
    ("becalm why job.becalm --cpu 1", Holder::As("why causes --cpu 1")),
    ("becalm top", Holder::Reader),
    ("becalm watch", Holder::Reader),
    ("becalm import trace", Holder::Reader),
    ("becalm import perf.data", Holder::Reader),
    ("becalm import --from selfish detours", Holder::As("import --from selfish detours.txt -o theirs.becalm")),
    (
        "becalm import --from selfish --unit us",
        Holder::As("import --from selfish --unit us --length 10s detours.txt -o others.becalm"),
    ),
    ("becalm export --to csv", Holder::As("export --to csv busy -o detours.csv")),
    (
        "becalm export --to perfetto job.becalm",
        Holder::As("export --to perfetto observed --spans steps.csv -o job.perfetto-trace"),
    ),
    ("becalm export --to perfetto", Holder::As("export --to perfetto busy -o node.perfetto-trace")),
    ("becalm export --to chrome", Holder::As("export --to chrome busy --cpus 1 -o node.json")),
    ("becalm export --to hdrhistogram", Holder::As("export --to hdrhistogram busy -o node.hlog")),
    ("becalm export --to folded", Holder::As("export --to folded busy -o node.folded")),
    ("becalm export --to pprof", Holder::As("export --to pprof busy -o node.pb.gz")),
    ("becalm export --to simgrid", Holder::As("export --to simgrid busy -o profiles/")),
    ("becalm export --to loggopsim node.becalm -o", Holder::As("export --to loggopsim busy -o noise/")),
    ("becalm export --to loggopsim", Holder::As("export --to loggopsim busy --cpus 0 -o noise.txt")),
    ("becalm config example", Holder::Exactly),
    ("becalm config", Holder::Reader),
    ("becalm doctor", Holder::Reader),
    ("becalm completions bash", Holder::As("completions bash")),
    ("becalm man man1", Holder::As("man man1")),
    ("becalm man --page record", Holder::As("man --page record")),
    ("mpirun -n 2 becalm-mpi --phases", Holder::As("report job")),
    ("mpirun -n 2 becalm-mpi validate", Holder::Report),
    // For developers of becalm.
    ("make ", Holder::Reader),
    (".ci/", Holder::Reader),
    ("becalm inject --signal", Holder::Reader),
    ("becalm inject", Holder::Root),
    ("becalm study --duration 60s", Holder::Reader),
    ("becalm study", Holder::As("study --from node1.study --phases 1k")),
    ("becalm tune audit", Holder::As("tune audit --root untuned --cpus 1 --run busy")),
    ("becalm tune plan --cpus 1 --format tuned", Holder::As("tune plan --root untuned --cpus 1 --format tuned")),
    (
        "becalm tune plan --cpus 1 --format systemd",
        Holder::As("tune plan --root untuned --cpus 1 --format systemd -o units"),
    ),
    ("becalm tune plan --cpus 1 --format slurm", Holder::As("tune plan --root untuned --cpus 1 --format slurm")),
    ("becalm tune plan", Holder::As("tune plan --root untuned --cpus 1")),
    ("becalm tune ", Holder::Root),
    ("becalm bench", Holder::Root),
];

/// A command in the book, with its output.
#[derive(Debug)]
pub struct BookCommand {
    /// The page with the command.
    pub page: String,
    /// The command, without the prompt and a trailing comment.
    pub command: String,
    /// The output on the page, possibly empty.
    pub output: String,
}

impl BookCommand {
    /// The test that covers it.
    ///
    /// # Panics
    /// If there is none, or if an output has none.
    pub fn holder(&self) -> Holder {
        let Self { page, command, output } = self;
        if command == "becalm" {
            return Holder::Root;
        }
        let known = HOLDERS.iter().find(|(begin, _)| command.starts_with(begin));
        let (_, holder) = known.unwrap_or_else(|| panic!("{page}: nothing holds '{command}'"));
        assert!(
            *holder != Holder::Reader || output.trim().is_empty(),
            "{page}: nothing holds the output of '{command}'"
        );
        *holder
    }
}

/// All commands in the book.
///
/// # Panics
/// If the book cannot be read.
pub fn book() -> Vec<BookCommand> {
    let mut folders: Vec<PathBuf> = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/src")];
    let mut shown = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("the book is there") {
            let path = entry.expect("the book is there").path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            // Skip images and schemas.
            if path.extension().is_none_or(|extension| extension != "md") {
                continue;
            }
            let page = fs::read_to_string(&path).expect("a page is text");
            shown.extend(commands(&path.display().to_string(), &page));
        }
    }
    shown
}

/// The commands of a page, with their outputs.
fn commands(name: &str, page: &str) -> Vec<BookCommand> {
    let mut shown: Vec<BookCommand> = Vec::new();
    let mut inside = false;
    for line in page.lines() {
        if line.starts_with("```") {
            inside = line == "```console";
        } else if let Some(command) = line.strip_prefix("$ ").filter(|_| inside) {
            // The text after a # is a comment.
            let command = command.split(" #").next().unwrap_or_default().trim().to_owned();
            shown.push(BookCommand { page: name.to_owned(), command, output: String::new() });
        } else if let Some(shown) = shown.last_mut().filter(|_| inside) {
            shown.output.push_str(line);
            shown.output.push('\n');
        }
    }
    shown
}

/// Checks that the printed output starts with exactly the output in the book. With `TRYCMD=overwrite`, updates the page instead, with the
/// same number of lines.
///
/// # Panics
/// If the texts differ.
#[track_caller]
pub fn holds_exactly(shown: &BookCommand, printed: &str) {
    let BookCommand { page, command, output } = shown;
    if env::var_os("TRYCMD").is_some_and(|mode| mode == "overwrite") && !output.is_empty() {
        let lines = printed.lines().take(output.lines().count());
        let beginning: String = lines.map(|line| format!("{}\n", line.trim_end())).collect();
        let text = fs::read_to_string(page).expect("a page is text");
        fs::write(page, text.replace(output, &beginning)).expect("a page can be written");
        return;
    }
    assert!(text(printed).starts_with(&text(output)), "{page}: '{command}' prints\n{printed}\nand not\n{output}");
}

/// Strips spaces at the ends of lines and of the text.
fn text(output: &str) -> String {
    output.trim_end().lines().map(|line| line.trim_end().to_owned() + "\n").collect()
}

/// Compares the structure of the book's output with that of a command: tables with their columns, and titles.
///
/// # Panics
/// If the book shows a table or a title that the command did not print.
#[track_caller]
pub fn holds_structure(shown: &BookCommand, command: &str, printed: &str) {
    let faults = faults(shown, command, printed);
    assert!(faults.is_empty(), "{}\n{printed}", faults.join("\n"));
}

/// The tables and titles of the book's output that a command did not print.
pub fn faults(shown: &BookCommand, command: &str, printed: &str) -> Vec<String> {
    let page = shown.page.rsplit("docs/src/").next().unwrap_or_default();
    let lack = |what: String| format!("{page}: '{}' shows {what}, which '{command}' does not print", shown.command);
    let tables = tables_shown(printed);
    // Either side may omit empty columns.
    let is_same = |columns: &[&str], other: &[&str]| {
        other[0] == columns[0] && (is_part(columns, other) || is_part(other, columns))
    };
    let is_printed = |columns: &Vec<&str>| tables.iter().any(|other| is_same(columns, other));
    let missing = tables_shown(&shown.output).into_iter().filter(|columns| !is_printed(columns));
    let titles = titles_shown(printed);
    let untitled = titles_shown(&shown.output).into_iter().filter(|title| !titles.contains(title));
    let missing = missing.map(|columns| lack(format!("a table of {columns:?}")));
    missing.chain(untitled.map(|title| lack(format!("a title '{title}'")))).collect()
}

/// Whether `whole` contains all of `part`, in this order.
fn is_part(part: &[&str], whole: &[&str]) -> bool {
    let mut rest = whole.iter();
    part.iter().all(|column| rest.any(|other| other == column))
}

/// The first columns of tables in a short report, which have no line below their titles.
const PLAIN_TABLES: [&str; 3] = ["What took the time  ", "CPU  ", "Kernel counters that grew most  "];

/// The columns of the tables: the text above a line.
fn tables_shown(text: &str) -> Vec<Vec<&str>> {
    let lines: Vec<&str> = text.lines().collect();
    let is_line = |line: &str| !line.trim().is_empty() && line.trim().chars().all(|sign| sign == '\u{2500}');
    let heads = lines.windows(2).filter(|pair| is_line(pair[1])).map(|pair| pair[0]);
    let is_plain = |line: &&&str| PLAIN_TABLES.iter().any(|first| line.trim_start().starts_with(first));
    let plain: Vec<Vec<&str>> = lines
        .iter()
        .filter(is_plain)
        .map(|head| head.split("  ").map(str::trim).filter(|title| !title.is_empty()).collect())
        .collect();
    let columns = heads.map(|head| head.split("  ").map(str::trim).filter(|title| !title.is_empty()).collect());
    // A line may also separate rows of a table: the row above it contains figures.
    columns
        .filter(|titles: &Vec<&str>| !titles.is_empty() && !titles.iter().any(|title| is_figure(title)))
        .chain(plain)
        .collect()
}

/// Whether it starts with a number, like `39ns`.
fn is_figure(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_digit())
}

/// The titles: the first two words of unindented lines that start with a capital, without numbers and without a name before a colon.
fn titles_shown(text: &str) -> Vec<String> {
    let lines = text.lines().filter(|line| line.starts_with(|first: char| first.is_ascii_uppercase()));
    lines
        .map(|line| {
            let title = line.split_once(": ").map_or(line, |(_, title)| title);
            let words = title.split_whitespace().take_while(|word| !word.contains(|sign: char| sign.is_ascii_digit()));
            words.take(2).collect::<Vec<_>>().join(" ")
        })
        .collect()
}

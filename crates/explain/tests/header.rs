//! The header for programs in C and C++: compiled, run, and its file read.

use std::path::Path;
use std::process::Command;

use becalm_explain::clocks::SpanClock;
use becalm_explain::spans::{self, SpanRequest};

/// Threads that take spans, one within another, and a child process.
const PROGRAM: &str = r#"
#include "becalm_spans.h"
#include <sys/wait.h>

static void *work(void *number) {
    for (int i = 0; i < 5000; i++) {
        uint64_t outer = becalm_span_begin();
        uint64_t inner = becalm_span_begin();
        becalm_span_end("inner", inner);
        becalm_span_end("outer", outer);
    }
    return number;
}

int main(void) {
    pthread_t threads[3];
    uint64_t start = becalm_span_begin();
    for (int i = 0; i < 3; i++) pthread_create(&threads[i], NULL, work, NULL);
    for (int i = 0; i < 3; i++) pthread_join(threads[i], NULL);
    becalm_span_end("all", start);
    pid_t child = fork();
    if (child == 0) {
        becalm_span_end("child", becalm_span_begin());
        return 0;
    }
    waitpid(child, NULL, 0);
    for (int i = 0; i < 1000000; i++) becalm_span_end("cost", becalm_span_begin());
    return 0;
}
"#;

fn compiled(folder: &Path, compiler: &str, source: &str) -> Option<std::path::PathBuf> {
    let (file, program) = (folder.join(source), folder.join(format!("{source}.out")));
    std::fs::write(&file, PROGRAM).unwrap();
    let mut command = Command::new(compiler);
    command.args(["-O2", "-Wall", "-Wextra", "-Werror", "-pthread", "-I"]);
    command.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("include")).arg("-o").arg(&program).arg(&file);
    let done = command.status().ok()?;
    assert!(done.success(), "{compiler} cannot compile the header");
    Some(program)
}

#[test]
fn spans_of_all_threads_and_processes_are_in_the_file() {
    let folder = tempfile::tempdir().unwrap();
    for (compiler, source) in [("cc", "spans.c"), ("c++", "spans.cc")] {
        let Some(program) = compiled(folder.path(), compiler, source) else {
            // The C compiler is there, since Rust links with it.
            assert_ne!(compiler, "cc");
            continue;
        };
        let file = folder.path().join(format!("{source}.csv"));
        let run = || Command::new(&program).env("BECALM_SPANS", &file).output().unwrap();
        let ended = run();
        assert!(ended.status.success(), "{ended:?}");
        let found = spans::read(&file, &SpanRequest::default()).unwrap();
        assert_eq!(found.clock, Some(SpanClock::Monotonic));
        let named = |name: &str| found.all.iter().filter(|span| found.labels.text(span.name) == name).count();
        let counts = ["inner", "outer", "all", "child", "cost"].map(named);
        assert_eq!(counts, [15_000, 15_000, 1, 1, 1_000_000]);
        let mut threads: Vec<i32> = found.all.iter().filter_map(|span| span.tid).collect();
        threads.sort_unstable();
        threads.dedup();
        assert_eq!(threads.len(), 5);
        // The file of another process is not touched.
        let length = std::fs::metadata(&file).unwrap().len();
        let again = run();
        assert!(String::from_utf8_lossy(&again.stderr).contains("cannot create"), "{again:?}");
        assert_eq!(std::fs::metadata(&file).unwrap().len(), length);
    }
}

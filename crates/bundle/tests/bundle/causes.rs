//! The table of causes.

use becalm_bundle::{BundleWriter, CauseTable};
use becalm_model::cause::{Cause, Requester};
use becalm_model::node::{CausesDoc, TracingDoc};
use becalm_model::{Kind, Label, Labels, NodeDoc, Pid};
use becalm_units::{CpuId, Nanos};

use crate::recording::doc;

#[test]
fn causes_are_read_as_they_were_written() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.becalm");
    let mut labels = Labels::new();
    let [source, by, context] = ["ipi:flush_tlb_func", "postgres", "softirq block"].map(|text| labels.intern(text));
    let tracing = TracingDoc { causes: Some(CausesDoc::default()), ..TracingDoc::default() };
    let mut writer = BundleWriter::create(&path, &NodeDoc { tracing: Some(tracing), ..doc("n") }).unwrap();
    let cause = |start: i64, requester, delay| Cause {
        cpu: CpuId::new(1),
        start: Nanos::new(start),
        duration: Nanos::new(7),
        kind: Kind::Irq,
        source,
        task: if start == 1 { Pid(7) } else { Pid::IDLE },
        requester,
        by,
        thread: if requester == Requester::Program { Pid(42) } else { Pid::IDLE },
        context: if start == 5 { context } else { Label::EMPTY },
        site: Label::EMPTY,
        delay,
    };
    let rows = [
        cause(-5, Requester::Unknown, None),
        cause(5, Requester::Program, Some(Nanos::ZERO)),
        cause(1, Requester::Device, Some(Nanos::new(26_000))),
    ];
    for _ in 0..2 {
        writer.write_causes(&rows, &labels).unwrap();
    }
    let read = |count| {
        let (mut read, mut labels) = (Vec::new(), labels.clone());
        CauseTable::new(&path, "n", count).read(&mut labels, &mut |cause| read.push(cause)).map(|()| read)
    };
    assert_eq!(read(6).unwrap(), [rows, rows].concat());
    // A copy that lacks rows does not pass for one of fewer causes.
    for count in [5, 7] {
        let error = read(count).unwrap_err().to_string();
        assert!(error.contains("it has 6 rows"), "{error}");
    }
}

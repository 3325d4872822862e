use std::fs;
use std::sync::Arc;

use parquet::data_type::Int64Type;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;

use super::*;
use crate::perfetto::clocks::TraceClocks;
use crate::perfetto::messages::{Clock, ClockSnapshot, Ftrace, FtraceEvent, FtraceEventBundle, Print, TracePacket};

/// Reads spans from a text.
fn spans_of(text: &str, request: &SpanRequest) -> fault::Result<Spans> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("spans");
    fs::write(&path, text).unwrap();
    read(&path, request)
}

fn error_of(text: &str) -> String {
    spans_of(text, &SpanRequest::default()).unwrap_err().to_string()
}

/// Number of the thread, start, end, name and group.
fn rows(spans: &Spans) -> Vec<(i32, i64, i64, &str, &str)> {
    let row = |span: &ReadSpan| {
        (span.tid.unwrap_or(0), span.start, span.end, spans.labels.text(span.name), spans.labels.text(span.group))
    };
    spans.all.iter().map(row).collect()
}

/// The same two spans in each format.
const CSV: &str = "tid,start,end,name,rank\n7,1796043453123456789,1796043453123556790,step#1,0\n8,1796043453123456790,1796043453123456790,load,1\n";
const CHROME: &str = r#"{"baseTimeNanoseconds": 1796043453000000000, "traceEvents": [
 {"ph":"M","pid":1,"tid":7,"name":"thread_name","args":{"name":"main"}},
 {"ph":"X","pid":1,"tid":7,"ts":123456.789,"dur":100.001,"name":"step#1","args":{"rank":0}},
 {"ph":"X","cat":"kernel","pid":0,"tid":7,"ts":1,"dur":5,"name":"gemm"},
 {"ph":"B","pid":1,"tid":"8","ts":"123456.790","name":"load","args":{"rank":"1"}},
 {"ph":"i","pid":1,"tid":7,"ts":123456.789,"name":"mark"},
 {"ph":"E","pid":1,"tid":8,"ts":123456.79}]}"#;
const OTLP: &str = r#"{"resourceSpans":[{"resource":{"attributes":[{"key":"process.pid","value":{"intValue":"8"}}]},"scopeSpans":[{"spans":[
 {"traceId":"a","name":"step#1","startTimeUnixNano":"1796043453123456789","endTimeUnixNano":"1796043453123556790",
  "attributes":[{"key":"thread.id","value":{"intValue":"7"}},{"key":"rank","value":{"intValue":0}}]}]}]}]}
{"resourceSpans":[{"scopeSpans":[{"spans":[
 {"name":"load","startTimeUnixNano":1796043453123456790,"endTimeUnixNano":"1796043453123456790",
  "attributes":[{"key":"rank","value":{"stringValue":"1"}},{"key":"thread.id","value":{"intValue":8}}]}]}]}]}"#;

/// The same, written by Perfetto's own library: `.ci/perfetto_samples`.
const PERFETTO: &[u8] = include_bytes!("../../samples/spans.pftrace");

#[test]
fn all_formats_give_the_same_spans() {
    let by_rank = SpanRequest { by: Some("rank".to_owned()), ..SpanRequest::default() };
    let expected = [
        (7, 1_796_043_453_123_456_789, 1_796_043_453_123_556_790, "step", "0"),
        (8, 1_796_043_453_123_456_790, 1_796_043_453_123_456_790, "load", "1"),
    ];
    for text in [CSV.as_bytes(), CHROME.as_bytes(), OTLP.as_bytes(), PERFETTO] {
        let found = parse(text.to_vec(), &by_rank).unwrap();
        assert_eq!(rows(&found), expected, "{}", String::from_utf8_lossy(text));
        let by_name = parse(text.to_vec(), &SpanRequest::default()).unwrap();
        assert_eq!(rows(&by_name)[0].4, "step");
    }
    let perfetto = parse(PERFETTO.to_vec(), &by_rank).unwrap();
    // An instant, and a slice of a process.
    assert_eq!((perfetto.clock, perfetto.others), (Some(SpanClock::Realtime), 2));
    assert_eq!(spans_of(CSV, &by_rank).unwrap().clock, None);
    assert_eq!(spans_of(CHROME, &by_rank).unwrap().clock, Some(SpanClock::Realtime));
    assert_eq!(spans_of(CHROME, &by_rank).unwrap().others, 2);
    assert_eq!(spans_of(OTLP, &by_rank).unwrap().clock, Some(SpanClock::Realtime));
}

#[test]
fn tables_have_units_comments_and_durations() {
    let text = "# becalm spans\n# clock: boottime\nName, TID ,ts_us,dur_ms\na b,5,1.5,2\n\"c,d\",6,2,0.25\n";
    let found = spans_of(text, &SpanRequest::default()).unwrap();
    assert_eq!(rows(&found), [(5, 1_500, 2_001_500, "a b", "a b"), (6, 2_000, 252_000, "c,d", "c,d")]);
    assert_eq!(found.clock, Some(SpanClock::Boottime));
    let without_thread = "start,end\n1,2\n";
    let request = SpanRequest { tid: Some(9), ..SpanRequest::default() };
    assert_eq!(rows(&spans_of(without_thread, &request).unwrap()), [(9, 1, 2, "span", "span")]);
    let of_process = spans_of("pid,start,end\n4,1,2\n", &SpanRequest::default()).unwrap();
    assert!(of_process.of_main_threads && of_process.all[0].tid == Some(4));
}

#[test]
fn only_the_wanted_names_are_taken() {
    let request = |name: &str| SpanRequest { name: Some(name.to_owned()), ..SpanRequest::default() };
    assert_eq!(spans_of(CSV, &request("step*")).unwrap().all.len(), 1);
    assert_eq!(spans_of(CHROME, &request("*a*")).unwrap().all.len(), 1);
    assert!(spans_of(OTLP, &request("step")).unwrap_err().to_string().contains("no spans of threads named 'step'"));
    for (name, pattern, is) in [
        ("abc", "abc", true),
        ("abc", "a*c", true),
        ("ac", "a*c", true),
        ("abc", "*b*", true),
        ("a", "a*a", false),
        ("ab", "a", false),
    ] {
        assert_eq!(is_like(name, pattern), is, "{name} {pattern}");
    }
}

#[test]
fn a_trace_in_the_making_is_read_up_to_its_end() {
    let text = r#"[{"ph":"X","pid":1,"tid":1,"ts":1,"dur":2,"name":"a"},{"ph":"X","pid":1,"tid":1,"ts":5,"dur":2,"name":"a"},"#;
    let found = spans_of(text, &SpanRequest::default()).unwrap();
    assert!(found.all.len() == 2 && found.is_cut);
}

#[test]
fn collectives_last_until_their_last_kernel() {
    let text = r#"{"header":{"rank":4},"metadata":{"pid":438776,"hostname":"h"},"coll_perf":{"coll":"ReduceScatter","coll_msg_size_bytes":2147483648,
        "event_trace_ts":{"coll_start_ts":1752867229235059,"coll_stop_ts":1752867229235064,
        "kernel_events":[{"channel_id":0,"kernel_start_ts":1752867229235181,"kernel_stop_ts":1752867229275811}]}}}"#;
    let by = SpanRequest { by: Some("coll_msg_size_bytes".to_owned()), ..SpanRequest::default() };
    let found = spans_of(text, &by).unwrap();
    let expected = (438_776, 1_752_867_229_235_059_000, 1_752_867_229_275_811_000, "ReduceScatter", "2147483648");
    assert_eq!(rows(&found), [expected]);
    let brief = r#"{"metadata":{"pid":1},"coll_perf":{"coll":"AllReduce","coll_exec_time_us":5}}"#;
    assert!(error_of(brief).contains("NCCL_INSPECTOR_DUMP_VERBOSE=1"));
}

#[test]
fn faulty_files_are_refused_with_the_place() {
    for (text, why) in [
        ("tid,start,end\n1,5,4\n", "line 2: the span ends at 4, before its start at 5"),
        ("tid,start,end\n1,x,4\n", "line 2: 'x' is no start time"),
        ("tid,start,end\n1,2,3\n\nq,2,3\n", "line 4: 'q' is no number"),
        ("tid,start,end\r\n1,2,3\r\nq,2,3\r\n", "line 3: 'q' is no number"),
        ("\n\n\ntid,start,end\n1,2,3\n# a\nq,2,3", "line 7: 'q' is no number"),
        ("tid,start,end\n1,ée-1,3\n", "line 2: 'ée-1' is no start time"),
        ("tid,start,end\n99999999999,2,3\n", "line 2: 99999999999 is no number of a thread"),
        ("start,end\n1,2\n", "the span names no thread; give it with `tid`"),
        ("tid,start\n1,2\n", "there is no column end or duration; the first line names tid, start"),
        ("a,b\n1,2\n", "there is no column start; the first line names a, b"),
        ("tid,start,end\n1,2\n", "line 2: it has 2 fields, and the line of column names 3"),
        ("# clock: sundial\ntid,start,end\n1,2,3\n", "'sundial' is no clock"),
        ("", "the file is empty"),
        ("{\"a\":1}", "traceEvents, resourceSpans or coll_perf"),
        ("[{\"ph\":\"X\",\"pid\":1,\"tid\":1,\"ts\":1,\"name\":\"a\"}]", "the event 'a' has no duration dur"),
        ("[{\"ph\":\"X\",\"pid\":1,\"tid\":1,\"ts\":1e300,\"dur\":1,\"name\":\"a\"}]", "the event 'a' has no time ts"),
        ("{\"traceEvents\":[{]}", "line 1 column"),
        ("{\"traceEvents\":[]}", "has no spans of threads"),
        ("{\"traceEvents\":[]} x", "trailing characters"),
        (
            "\n{\"resourceSpans\":[]}\n\n{\"resourceSpans\":[{\"scopeSpans\":[{\"spans\":[{\"name\":\"a\",\"startTimeUnixNano\":\"1\",\"endTimeUnixNano\":\"2\"}]}]}]}",
            "line 4: the span 'a': the span names no thread",
        ),
        (
            "\n{\"metadata\":{\"pid\":1},\"coll_perf\":{\"coll\":\"a\"}}",
            "line 2: the operations have no times of events",
        ),
        ("{\"results\":[{\"command\":\"a\",\"times\":[1.0]}]}", "of its runs with `lives`"),
        ("PAR1xxxx", "the Parquet file is damaged"),
    ] {
        let error = error_of(text);
        assert!(error.contains(why), "{text}: {error}");
    }
    let request = SpanRequest { by: Some("rank".to_owned()), ..SpanRequest::default() };
    let error = spans_of("tid,start,end\n1,2,3\n", &request).unwrap_err().to_string();
    assert!(error.contains("no column rank"), "{error}");
}

/// A trace of these packets.
fn perfetto(packets: &[TracePacket]) -> Vec<u8> {
    let mut bytes = Vec::new();
    packets.iter().for_each(|packet| prost::encoding::message::encode(1, packet, &mut bytes));
    bytes
}

fn snapshot() -> TracePacket {
    let clock = |clock_id, timestamp| Clock { clock_id, timestamp, ..Clock::default() };
    let clocks = vec![clock(6, 5_000), clock(3, 4_000), clock(1, 90_000)];
    TracePacket { clock_snapshot: Some(ClockSnapshot { clocks, ..Default::default() }), ..Default::default() }
}

fn printed(ftrace_clock: u32, lines: &[(u64, u32, &str)]) -> TracePacket {
    let event = |(timestamp, pid, text): &(u64, u32, &str)| FtraceEvent {
        timestamp: *timestamp,
        pid: *pid,
        event: Some(Ftrace::Print(Print { buf: text.as_bytes().to_vec() })),
    };
    let event = lines.iter().map(event).collect();
    let bundle = FtraceEventBundle { cpu: Some(0), event, ftrace_clock, ..Default::default() };
    TracePacket { ftrace_events: Some(bundle), ..Default::default() }
}

#[test]
fn sections_that_programs_print_are_spans_of_the_printing_thread() {
    let lines = [
        (5_100, 12, "B|10|outer\n"),
        (5_110, 13, "B|10|other"),
        (5_120, 12, "B|10|inner|x\n"),
        (5_130, 12, "E|10\n"),
        (5_140, 13, "E"),
        (5_150, 12, "C|10|count|5\n"),
        (5_160, 12, "E\n"),
        (5_170, 12, "E\n"),
    ];
    let found = parse(perfetto(&[snapshot(), printed(0, &lines)]), &SpanRequest::default()).unwrap();
    let expected = [(12, 5_120, 5_130, "inner|x"), (13, 5_110, 5_140, "other"), (12, 5_100, 5_160, "outer")];
    let rows: Vec<_> = rows(&found).into_iter().map(|(tid, start, end, name, _)| (tid, start, end, name)).collect();
    assert_eq!(rows, expected);
    assert_eq!((found.clock, found.others), (Some(SpanClock::Boottime), 1));
    // On a clock of the kernel's trace alone, which is the counter of a recording made from this trace.
    let found = parse(perfetto(&[snapshot(), printed(3, &lines)]), &SpanRequest::default()).unwrap();
    assert_eq!((found.clock, found.all.len()), (Some(SpanClock::Counter), 3));
}

/// A Parquet file of these many equal rows, which takes hardly more bytes for more of them.
fn equal_rows(count: usize) -> Vec<u8> {
    let schema = "message spans { required int64 tid; required int64 start; required int64 end; }";
    let schema = Arc::new(parse_message_type(schema).unwrap());
    let mut bytes = Vec::new();
    let mut writer = SerializedFileWriter::new(&mut bytes, schema, Arc::default()).unwrap();
    let mut group = writer.next_row_group().unwrap();
    for value in [7, 100, 200] {
        let mut column = group.next_column().unwrap().unwrap();
        column.typed::<Int64Type>().write_batch(&vec![value; count], None, None).unwrap();
        column.close().unwrap();
    }
    group.close().unwrap();
    writer.close().unwrap();
    bytes
}

#[test]
fn a_small_parquet_file_does_not_become_spans_without_end() {
    assert_eq!(parse(equal_rows(1_000), &SpanRequest::default()).unwrap().all.len(), 1_000);
    let flood = equal_rows(1 << 20);
    let most = 64 * flood.len();
    let error = parse(flood, &SpanRequest::default()).unwrap_err().to_string();
    assert_eq!(error, format!("row {most}: a file of this size cannot have that many spans"));
}

/// Clocks 64 to 127 belong to the sequence of packets that defines them: two writers use the same number for different clocks.
#[test]
fn each_sequence_of_packets_has_clocks_of_its_own() {
    let mut clocks = TraceClocks::default();
    let defined = |sequence, boottime| {
        let clock = |clock_id, timestamp| Clock { clock_id, timestamp, ..Clock::default() };
        let snapshot = ClockSnapshot { clocks: vec![clock(6, boottime), clock(64, 0)], primary_trace_clock: 6 };
        TracePacket { clock_snapshot: Some(snapshot), trusted_packet_sequence_id: sequence, ..Default::default() }
    };
    for packet in [defined(1, 5_000), defined(2, 9_000)] {
        assert_eq!(clocks.time(&packet), Ok(None));
    }
    let at = |sequence| TracePacket {
        timestamp: Some(7),
        timestamp_clock_id: Some(64),
        trusted_packet_sequence_id: sequence,
        ..Default::default()
    };
    assert_eq!((clocks.time(&at(1)), clocks.time(&at(2))), (Ok(Some(5_007)), Ok(Some(9_007))));
    assert!(clocks.time(&at(3)).is_err());
}

/// The second text is a whole message of the right length, with one field that no packet has.
#[test]
fn texts_that_start_as_a_trace_does_are_none() {
    for text in ["\ntid,start,end\n", "\n\tquietness\n", "\n", ""] {
        assert!(!crate::perfetto::looks_so(text.as_bytes()), "{text:?}");
    }
    assert!(crate::perfetto::looks_so(&perfetto(&[snapshot()])));
}

#[test]
fn traces_of_perfetto_are_read_up_to_a_cut_and_refused_where_they_are_damaged() {
    let lines = [(5_100, 12, "B|10|step\n"), (5_200, 12, "E|10\n")];
    let whole = perfetto(&[snapshot(), printed(0, &lines), printed(0, &lines)]);
    let found = parse(whole[..whole.len() - 3].to_vec(), &SpanRequest::default()).unwrap();
    assert!(found.is_cut && found.all.len() == 1);
    let error_of = |packets: &[TracePacket]| parse(perfetto(packets), &SpanRequest::default()).unwrap_err().to_string();
    let first = perfetto(&[snapshot()]).len();
    let at = |timestamp_clock_id| TracePacket {
        timestamp: Some(7),
        timestamp_clock_id: Some(timestamp_clock_id),
        ..Default::default()
    };
    assert_eq!(error_of(&[snapshot(), at(65)]), format!("byte {first}: no snapshot has the clock 65"));
    let late = TracePacket { timestamp: Some(u64::MAX), ..Default::default() };
    assert_eq!(error_of(&[snapshot(), late]), format!("byte {first}: the time 18446744073709551615 is too late"));
    let mut tsc = snapshot();
    tsc.clock_snapshot.as_mut().unwrap().primary_trace_clock = 9;
    assert_eq!(error_of(&[tsc]), "its times are on Perfetto's clock 9, which no recording has");
    let backwards = [(5_200, 12, "B|10|step\n"), (5_100, 12, "E|10\n")];
    let error = error_of(&[snapshot(), printed(0, &backwards)]);
    assert_eq!(error, format!("byte {first}: the span ends at 5100, before its start at 5200"));
    // A packet that unpacks to no packets.
    let packed = TracePacket { compressed_packets: vec![1, 2, 3], ..Default::default() };
    let error = error_of(&[snapshot(), packed]);
    assert!(error.starts_with(&format!("byte {first}: the packed packets are damaged: ")), "{error}");
}

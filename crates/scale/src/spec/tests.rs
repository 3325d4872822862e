use super::*;
use proptest::prelude::*;

fn spec(text: &str) -> NoiseSpec {
    text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
}

#[test]
fn reads_the_forms_of_the_manual() {
    let trace = spec("periodic:interval=1ms,detour=50us").trace(1).unwrap();
    assert_eq!((trace.length(), trace.noise(), trace.len()), (Nanos::from_millis(1), Nanos::from_micros(50), 1));
    let jittered = spec("periodic:interval=1ms,detour=50us,jitter=10us").trace(1).unwrap();
    assert_eq!(jittered.len() as u64, DRAWN);
    assert!((jittered.noise_ratio() - 0.05).abs() < 1e-12);
    let poisson = spec("poisson:rate=10Hz,detour=50us");
    let trace = poisson.trace(1).unwrap();
    assert!((trace.noise_ratio() - 10.0 * 50e-6).abs() < 1e-12);
    assert_eq!(trace, poisson.trace(1).unwrap());
    assert_ne!(trace, poisson.trace(2).unwrap());
    // Busy: the detours queue up, none is lost, and some extend over the end.
    let busy = spec("poisson:rate=18kHz,detour=50us");
    assert!((busy.trace(1).unwrap().noise_ratio() - 0.9).abs() < 1e-4);
}

/// The lengths and shares of Beckman et al. 2007, Figure 8: the share is the requested one at any length.
#[test]
fn a_ratio_says_how_often_detours_come() {
    for (share, ratio) in [("0.015%", 0.00015), ("0.08%", 0.0008), ("0.15%", 0.0015), ("1%", 0.01)] {
        for detour in ["16us", "50us", "100us", "200us"] {
            for cause in ["periodic", "poisson"] {
                let trace = spec(&format!("{cause}:ratio={share},detour={detour}")).trace(1).unwrap();
                assert!((trace.noise_ratio() / ratio - 1.0).abs() < 1e-6, "{cause} {share} {detour}");
            }
        }
    }
    assert_eq!(spec("periodic:ratio=1%,detour=16us").to_string(), "periodic:interval=1.6ms,detour=16us");
    assert_eq!(
        spec("periodic:detour=16us,jitter=1us,ratio=1%"),
        spec("periodic:interval=1600us,detour=16us,jitter=1us")
    );
}

#[test]
fn refuses_the_rest_and_says_why() {
    for (text, why) in [
        ("periodic", "no ':'"),
        ("steady:interval=1ms", "unknown"),
        ("periodic:interval=1ms", "detour is missing"),
        ("periodic:interval=1ms,detour=5", "no unit"),
        ("periodic:interval=1ms,detour=5us,detour=6us", "twice"),
        ("periodic:interval=1ms,delay=5us", "not one of"),
        ("poisson:rate=10,detour=5us", "no unit Hz"),
        ("poisson:rate=0Hz,detour=5us", "not between"),
        ("poisson:rate=-1Hz,detour=5us", "not between"),
        ("poisson:rate=1Hz,detour=gamma:5us", "no law"),
        ("renewal:gap=1ms", "detour is missing"),
        ("sources:table.csv", "length is missing"),
        ("sources:,length=1s", "names no file"),
        ("poisson:rate=1Hz,detour=5us+periodic:interval=1ms", "detour is missing"),
        ("periodic:detour=5us", "interval is missing"),
        ("periodic:interval=1ms,ratio=1%,detour=5us", "both say how often"),
        ("poisson:ratio=1%", "detour is missing"),
        ("poisson:ratio=1%,detour=exponential:5us", "law of lengths"),
        ("periodic:ratio=0%,detour=5us", "cannot take the share 0%"),
        ("periodic:ratio=100%,detour=5us", "cannot take the share 100%"),
        ("periodic:ratio=1%,detour=0us", "cannot take the share"),
        ("periodic:ratio=2,detour=5us", "has no unit"),
        ("renewal:ratio=1%,detour=5us", "not one of"),
    ] {
        let error = text.parse::<NoiseSpec>().unwrap_err().to_string();
        assert!(error.contains(why) && error.contains("write periodic:"), "{text}: {error}");
    }
    for text in [
        "periodic:interval=0s,detour=0s",
        "periodic:interval=1ms,detour=1ms",
        "periodic:interval=1ms,detour=500us,jitter=900us",
        "poisson:rate=1kHz,detour=1ms",
        "poisson:rate=1kHz,detour=exponential:2ms",
        "periodic:interval=100000h,detour=1us,jitter=1us",
        "periodic:interval=1h,detour=1us,jitter=2562047h",
        "periodic:interval=0s,detour=0s+poisson:rate=1Hz,detour=1us",
        "periodic:interval=1us,detour=100ns+periodic:interval=1000h,detour=1us,jitter=1us",
        "sources:nowhere.csv,length=1s",
        "poisson:rate=1Hz,detour=empirical:nowhere",
    ] {
        let error = spec(text).trace(1).unwrap_err().to_string();
        assert!(error.starts_with(&spec(text).to_string()), "{text}: {error}");
    }
}

#[test]
fn specifications_are_written_as_they_are_read() {
    for text in [
        "periodic:interval=1ms,detour=50us",
        "periodic:interval=1ms,detour=lognormal:50us:0.8,jitter=10us",
        "poisson:rate=10Hz,detour=pareto:50us:1.5:10ms",
        "renewal:gap=exponential:100ms,detour=uniform:10us:90us",
        "sources:a+b/c.csv,length=1372s,configuration=isolated",
        "periodic:interval=4ms,detour=10us+poisson:rate=0.1Hz,detour=empirical:daemon.txt+renewal:gap=1s,detour=1ms",
    ] {
        let read = spec(text);
        assert_eq!(spec(&read.to_string()), read, "{text}");
    }
}

/// Both causes are included: the noise of a sum is the sum of the noises, up to random differences; and periodic ones make an exact circle.
#[test]
fn sums_have_the_noise_of_all_their_causes() {
    let exact = spec("periodic:interval=4ms,detour=10us+periodic:interval=6ms,detour=20us").trace(1).unwrap();
    assert_eq!((exact.length(), exact.noise()), (Nanos::from_millis(12), Nanos::from_micros(70)));
    let mixed = spec("periodic:interval=4ms,detour=10us+poisson:rate=10Hz,detour=1ms").trace(1).unwrap();
    let ratio = 10.0 / 4_000.0 + 10.0 * 1e-3;
    assert!((mixed.noise_ratio() / ratio - 1.0).abs() < 1e-3, "{}", mixed.noise_ratio());
    assert_eq!(mixed.length().get() % 4_000_000, 0);
    // A frequent cause with a rare one: as many as fit.
    let rare = spec("poisson:rate=1kHz,detour=10us+poisson:rate=0.01Hz,detour=10ms").trace(1).unwrap();
    assert!(rare.noise_ratio() > 0.0099 && (rare.len() as u64) < DRAWN_LIMIT + 100, "{}", rare.len());
}

#[test]
fn laws_give_their_means_and_more_is_drawn_where_more_is_asked_for() {
    let read = |_: &Path| Ok("source,count,mean_us\ntick,250,10\ndaemon,1,2000\n".to_owned());
    for (text, ratio) in [
        ("poisson:rate=10Hz,detour=exponential:500us", 0.005),
        ("renewal:gap=exponential:10ms,detour=uniform:0us:200us", 0.0001 / 0.0101),
        ("periodic:interval=10ms,detour=lognormal:100us:0.5", 0.01 * (0.125_f64).exp()),
        ("sources:table.csv,length=1s", 0.0045),
        ("sources:table.csv,length=1s+poisson:rate=10Hz,detour=1ms", 0.0145),
    ] {
        let spec = spec(text);
        let drawn = |time| spec.drawn(Drawing { seed: 3, number: 0, time, read: &read }).unwrap();
        let trace = drawn(Nanos::ZERO);
        assert!((trace.noise_ratio() / ratio - 1.0).abs() < 0.03, "{text}: {} for {ratio}", trace.noise_ratio());
        // A sum may have its maximum length from the start.
        if spec.varies() && (trace.len() as u64) < DRAWN_LIMIT / 4 {
            let more = drawn(Nanos::new(4 * trace.length().get()));
            assert!(more.length().get() > 3 * trace.length().get(), "{text}");
        }
    }
}

/// The cost of a cause on a recorded CPU: the recorded noise plus its own, on a circle as long as the recording.
#[test]
fn causes_are_added_to_what_was_recorded() {
    let recorded = NoiseTrace::new(
        Nanos::from_secs(10),
        (0..2_500).map(|tick| (Nanos::from_millis(4 * tick), Nanos::from_micros(20))),
    );
    let recorded = recorded.unwrap();
    let read = |_: &Path| Err("no file".to_owned());
    let drawing = Drawing { seed: 1, number: 0, time: Nanos::ZERO, read: &read };
    let daemon = spec("periodic:interval=100ms,detour=2ms");
    let both = daemon.added_to(&recorded, 0, drawing).unwrap();
    assert_eq!(both.length(), recorded.length());
    assert_eq!(both.noise(), recorded.noise() + Nanos::from_millis(200));
    assert_ne!(both, daemon.added_to(&recorded, 1, drawing).unwrap(), "each CPU has detours of its own");
}

proptest! {
    #[test]
    fn parsing_never_panics(text in "(periodic|poisson|renewal|sources):[a-z0-9=,.:+]*") {
        if let Ok(spec) = text.parse::<NoiseSpec>() {
            let _ = spec.trace(1);
        }
    }
}

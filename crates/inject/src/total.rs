//! Totals of noise injected in several places.

use becalm_units::Nanos;

use crate::document::{Injected, InjectedPlace, Shortfall};

/// All places together: counts added, means over all detours, and the shares of time averaged over the places.
pub fn together<'a>(places: impl IntoIterator<Item = &'a Injected>) -> Injected {
    let places: Vec<&Injected> = places.into_iter().collect();
    let count: u64 = places.iter().map(|place| place.count).sum();
    let mean = |value: fn(&Injected) -> Option<f64>| {
        let sum: f64 = places.iter().filter_map(|place| Some(value(place)? * place.count as f64)).sum();
        let weight: u64 = places.iter().filter(|place| value(place).is_some()).map(|place| place.count).sum();
        (weight > 0).then(|| sum / weight as f64)
    };
    let ends = places.iter().filter_map(|place| place.ends).reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)));
    let ratios: Vec<f64> = places.iter().filter_map(|place| place.ratio).collect();
    let ratio = (!ratios.is_empty()).then(|| ratios.iter().sum::<f64>() / ratios.len() as f64);
    Injected {
        count,
        interval_ns: mean(|place| place.interval_ns),
        length_ns: mean(|place| place.length_ns),
        // There is no common spread of different places.
        interval_stddev_ns: if let [place] = places[..] { place.interval_stddev_ns } else { None },
        length_stddev_ns: if let [place] = places[..] { place.length_stddev_ns } else { None },
        ends,
        ratio,
    }
}

/// Noise that was not delivered as requested, over all places: numbers and times added, under the place whose shortest possible detour is longest;
/// `None` without places.
pub fn exceptions(places: &[InjectedPlace]) -> Option<InjectedPlace> {
    let slowest = places.iter().max_by_key(|place| place.shortest)?;
    let sum = |number: fn(&InjectedPlace) -> u64| places.iter().map(number).sum();
    let time = places.iter().fold(Nanos::ZERO, |sum, place| sum + place.left_out.time);
    Some(InjectedPlace {
        missed: sum(|place| place.missed),
        joined: sum(|place| place.joined),
        overtaken: sum(|place| place.overtaken),
        left_out: Shortfall { count: sum(|place| place.left_out.count), time },
        ..slowest.clone()
    })
}

#[cfg(test)]
mod tests {
    use crate::document::NoisePlace;

    use super::*;

    #[test]
    fn means_are_over_all_detours_and_shares_over_places() {
        let few = Injected {
            count: 1,
            interval_ns: None,
            interval_stddev_ns: None,
            length_ns: Some(10.0),
            length_stddev_ns: None,
            ends: Some((Nanos::new(10), Nanos::new(10))),
            ratio: Some(0.1),
        };
        let many = Injected {
            count: 3,
            interval_ns: Some(100.0),
            interval_stddev_ns: Some(1.0),
            length_ns: Some(30.0),
            length_stddev_ns: Some(2.0),
            ends: Some((Nanos::new(5), Nanos::new(60))),
            ratio: Some(0.3),
        };
        let both = together([&few, &many]);
        assert_eq!((both.count, both.interval_ns, both.length_ns), (4, Some(100.0), Some(25.0)));
        assert_eq!((both.interval_stddev_ns, both.length_stddev_ns), (None, None));
        assert_eq!((both.ends, both.ratio), (Some((Nanos::new(5), Nanos::new(60))), Some(0.2)));
        assert_eq!(together([&many]), many);
        assert_eq!(together([]), Injected::default());
    }

    #[test]
    fn exceptions_are_added_up() {
        let place = |tid, shortest| InjectedPlace {
            place: NoisePlace::Thread { pid: 7, tid },
            observed: Nanos::from_secs(1),
            requested: Injected::default(),
            delivered: Injected::default(),
            missed: 2,
            joined: 1,
            overtaken: 4,
            late: None,
            shortest: Nanos::new(shortest),
            left_out: Shortfall { count: 3, time: Nanos::new(30) },
            merged: 0,
        };
        let all = exceptions(&[place(1, 500), place(2, 900), place(3, 600)]).unwrap();
        assert_eq!(
            (all.missed, all.joined, all.overtaken, all.left_out),
            (6, 3, 12, Shortfall { count: 9, time: Nanos::new(90) })
        );
        assert_eq!((all.place, all.shortest), (NoisePlace::Thread { pid: 7, tid: 2 }, Nanos::new(900)));
        assert_eq!(exceptions(&[]), None);
    }
}

use super::*;
use proptest::prelude::*;

fn walked(order: &[usize], steps: usize) -> usize {
    (0..steps).fold(0, |at, _| order[at])
}

proptest! {
    #[test]
    fn loads_go_once_around_all_lines(count in 2_usize..600) {
        let order = circle(count);
        let back = (1..).find(|steps| walked(&order, *steps) == 0);
        prop_assert_eq!(back, Some(count));
    }

    #[test]
    fn loads_lead_where_the_order_leads(count in 2_u64..600, calls in proptest::collection::vec(0_u64..4, 1..4)) {
        let mut chain = PointerChain::new(count * LINE_BYTES as u64);
        prop_assert_eq!(chain.bytes(), count * 64);
        let order = circle(count as usize);
        let mut steps = 0;
        for passes in calls {
            steps += passes as usize * 512;
            prop_assert_eq!(chain.run(passes), Some(walked(&order, steps) as u64));
        }
    }
}

#[test]
fn neighbors_in_the_order_are_rarely_neighbors_in_memory() {
    let order = circle(1024);
    let near = order.iter().enumerate().filter(|(at, next)| at.abs_diff(**next) <= 2).count();
    assert!(near < 20, "{near} of 1,024");
    assert_eq!(PointerChain::new(0).bytes(), 128);
}

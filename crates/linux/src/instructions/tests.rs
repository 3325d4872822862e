use super::*;

#[test]
fn chains_of_additions_and_multiplications_are_what_they_claim() {
    for passes in [0, 1, 7] {
        let steps = passes * u64::from(A_PASS);
        let sum = 5_u64.wrapping_add(ADDEND.wrapping_mul(steps));
        assert_eq!(Instructions::Add.run(passes, 5), Some(sum));
        let product = (0..steps).fold(5_u64, |value, _| value.wrapping_mul(FACTOR));
        assert_eq!(Instructions::Multiply.run(passes, 5), Some(product));
    }
}

#[test]
fn chains_of_divisions_are_what_they_claim() {
    for (passes, start) in [(0, 7), (1, 12_345), (9, 1), (9, 0xffff_ffff_ffff)] {
        assert_eq!(Instructions::Divide.run(passes, start), Some(native::divided(passes, start)));
    }
}

#[test]
fn chains_of_floating_point_numbers_are_what_they_claim() {
    let folded_chain = |passes: u64, start: u64, step: fn(f64) -> f64| {
        (0..passes * u64::from(A_PASS)).fold(first_float(start), |value, _| step(value))
    };
    for (passes, start) in [(1, 5), (3, 0x0123_4567_89ab_cdef), (200, u64::MAX)] {
        let chain = |step| folded_chain(passes, start, step).to_bits();
        assert_eq!(Instructions::FloatAdd.run(passes, start), Some(chain(|value| value + FLOAT_ADDEND)));
        assert_eq!(Instructions::FloatMultiply.run(passes, start), Some(chain(|value| value * FLOAT_FACTOR)));
        assert_eq!(Instructions::FloatDivide.run(passes, start), Some(chain(|value| value / FLOAT_FACTOR)));
        let lanes = [start, !start].map(|start| folded_chain(passes, start, |value| value * FLOAT_FACTOR));
        assert_eq!(Instructions::VectorMultiply.run(passes, start), Some(folded(lanes)));
    }
}

#[test]
fn floating_point_chains_stay_normal_for_as_long_as_anyone_measures() {
    // Each call starts over: 10^14 in one call take a day at one multiplication per nanosecond.
    let power = 1e14 * FLOAT_FACTOR.ln();
    assert!(power.exp().is_normal() && (-power).exp().is_normal(), "{power}");
}

#[test]
fn the_volatile_loop_counts() {
    assert_eq!((volatile_count(0), volatile_count(1), volatile_count(70_000)), (0, 1, 70_000));
}

//! Compositions compared with closed forms: shared goldens, exact sums, and invariants over random parameters.

use crate::error::Error;
use crate::pair::batch::Sampler;
use crate::pair::check::Checked;
use crate::pair::discrete::DiscretePair;
use crate::pair::mixture::MixturePair;
use crate::pair::substitution::{displaced, Change};
use crate::pair::Profile;
use crate::pld::{answer, Answer, Query, Round};
use crate::run::Run;
use crate::special::real;
use proptest::prelude::*;

fn ask(profile: impl Profile + 'static, count: u64, query: Query, tolerance: f64) -> Answer {
    let rounds = [Round { profile: Checked::of(profile).unwrap(), count }];
    answer(&rounds, query, tolerance, &Run::default()).expect("a valid question")
}

#[test]
fn gaussian_goldens() {
    let text = include_str!("../../../../tests/golden/gaussian.json");
    let golden: serde_json::Value = serde_json::from_str(text).expect("the golden file is JSON");
    let cases = golden["cases"].as_array().expect("a list of cases");
    assert!(cases.len() >= 20);
    for case in cases {
        let number = |key: &str| case[key].as_f64().expect("a number");
        let (mu, delta, epsilon) = (number("mu"), number("delta"), number("epsilon"));
        for count in [1_u64, 4, 10_000] {
            // μ/√n is taken for counts with an exact root, so that the composition has exactly this μ up to rounding.
            let sigma = real(count).sqrt() / mu;
            let profile = MixturePair::gaussian(1.0, sigma).expect("valid");
            let found = ask(profile, count, Query::Epsilon(delta), 1e-3);
            // σ is rounded, so ε moves by at most a few units in the last place of 1/σ times |dε/dμ|.
            let slack = 1e-13 * (1.0 + epsilon);
            assert!(found.lower <= epsilon + slack, "{mu} {delta} {count}: {found:?} {epsilon}");
            assert!(epsilon <= found.upper + slack, "{mu} {delta} {count}: {found:?} {epsilon}");
            assert!(found.within_tolerance, "{mu} {delta} {count}: {found:?}");
        }
    }
}

#[test]
fn randomised_response_matches_its_binomial_sum() {
    let p = 0.75_f64;
    let (count, epsilon) = (20_u32, 2.0_f64);
    let mut exact = 0.0;
    let mut ways = 1.0_f64;
    for j in 0..=count {
        let (j_signed, rest) = (j.cast_signed(), (count - j).cast_signed());
        let above = p.powi(j_signed) * (1.0 - p).powi(rest);
        let below = (1.0 - p).powi(j_signed) * p.powi(rest);
        exact += (ways * (above - epsilon.exp() * below)).max(0.0);
        ways *= f64::from(count - j) / f64::from(j + 1);
    }
    let pair = DiscretePair::new(vec![(p, 1.0 - p), (1.0 - p, p)]).expect("valid");
    let found = ask(pair, u64::from(count), Query::Delta(epsilon), 1e-4);
    assert!(found.lower <= exact * (1.0 + 1e-12) && exact <= found.upper * (1.0 + 1e-12), "{found:?} {exact}");
    assert!(found.within_tolerance);
}

#[test]
fn a_cancelled_run_and_a_passed_deadline_give_no_answer() {
    let profile = Checked::of(MixturePair::poisson(1, 0.01, 1.0, false).expect("valid")).expect("a profile");
    let rounds = [Round { profile, count: 1000 }];
    let run = Run::default();
    run.cancel();
    assert_eq!(answer(&rounds, Query::Epsilon(1e-6), 1e-3, &run), Err(Error::Cancelled));
    let late = Run::with_deadline(Some(std::time::Instant::now()));
    assert_eq!(answer(&rounds, Query::Epsilon(1e-6), 1e-3, &late), Err(Error::TimeLimit));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, rng_seed: proptest::test_runner::RngSeed::Fixed(20_261_121), ..ProptestConfig::default() })]

    /// Checks that every profile is decreasing and convex in α within its errors, between max(0, 1 − e^ε) and 1.
    #[test]
    fn profiles_are_profiles(group in 1_u32..12, p in 1e-5_f64..0.999, sigma in 0.2_f64..20.0, two_sided: bool, reverse: bool) {
        let pair = MixturePair::poisson(group, p, sigma, two_sided).expect("valid");
        let pair = if reverse { pair.reversed() } else { pair };
        check_profile(&pair, 0.0)?;
    }

    /// Checks that answers at different tolerances, which are proven independently, overlap and are ordered within
    /// themselves.
    #[test]
    fn intervals_overlap(group in 1_u32..4, p in 1e-4_f64..0.9, sigma in 0.4_f64..8.0, count in 2_u64..3000, digits in 1.0_f64..18.0, reverse: bool) {
        let make = || {
            let pair = MixturePair::poisson(group, p, sigma, false).expect("valid");
            if reverse { pair.reversed() } else { pair }
        };
        let delta = 10.0_f64.powf(-digits);
        let (coarse, fine) = (
            ask(make(), count, Query::Epsilon(delta), 0.2),
            ask(make(), count, Query::Epsilon(delta), 2e-3),
        );
        prop_assert!(coarse.lower <= coarse.upper && fine.lower <= fine.upper);
        prop_assert!(coarse.lower <= fine.upper && fine.lower <= coarse.upper, "{coarse:?} {fine:?}");
        if fine.upper.is_finite() {
            let back = ask(make(), count, Query::Delta(fine.upper), 0.05);
            prop_assert!(back.lower <= delta, "{fine:?} {back:?}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 8, rng_seed: proptest::test_runner::RngSeed::Fixed(20_261_121), ..ProptestConfig::default() })]

    /// Checks that the bounds for batches of a fixed size are profiles too; the end points of their hulls' chords are
    /// sampled.
    #[test]
    fn bounds_are_profiles(group in 1_u32..12, sigma in 0.2_f64..20.0) {
        let records = 50 + u64::from(group);
        for sampler in [Sampler::FixedSize, Sampler::WithReplacement] {
            for change in [Change::Replaced, Change::Zeroed] {
                let (remove, add) = displaced(change, sampler, group, records, 7, sigma, &Run::default()).expect("valid");
                // The end points of a hull's chords are sampled.
                check_profile(remove.as_ref(), 1e-8)?;
                check_profile(add.as_ref(), 1e-8)?;
            }
        }
    }
}

fn check_profile(profile: &dyn Profile, slack: f64) -> Result<(), TestCaseError> {
    let points: Vec<(f64, _)> = (-40..=60)
        .map(|i| {
            let epsilon = 0.1 * f64::from(i);
            (epsilon, profile.at(epsilon))
        })
        .collect();
    for (epsilon, point) in &points {
        prop_assert!(point.delta_error >= 0.0 && point.delta_error < 1e-9);
        prop_assert!(point.delta <= 1.0 + point.delta_error);
        prop_assert!(point.delta + point.delta_error >= -epsilon.exp_m1() - 1e-15);
    }
    for pair in points.windows(2) {
        let ((_, left), (_, right)) = (pair[0], pair[1]);
        prop_assert!(left.delta + left.delta_error + right.delta_error >= right.delta);
        // The slopes of chords in α at the shared scale of the left point lie between the two tangents.
        let drop = left.delta - right.delta;
        let errors = left.delta_error + right.delta_error + 1e-15 + slack;
        let width = pair[1].0 - pair[0].0;
        prop_assert!(drop <= (left.slope + left.slope_error) * width.exp_m1() + errors);
        prop_assert!(drop + errors >= (right.slope - right.slope_error) * -(-width).exp_m1());
    }
    Ok(())
}

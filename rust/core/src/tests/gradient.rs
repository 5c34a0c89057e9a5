//! Derivatives of the estimate of δ, compared with central differences of the same samples, on any number of threads.

use crate::error::Error;
use crate::montecarlo::gradients::estimates::{GradientEstimate, GradientJob};
use crate::montecarlo::gradients::gradient::simulate_gradient;
use crate::montecarlo::kernels::bins::BinsKernel;
use crate::montecarlo::kernels::renewal::RenewalKernel;
use crate::montecarlo::mechanism::Mechanism;
use crate::montecarlo::proposals::components::Component;
use crate::montecarlo::stream::StreamKey;
use crate::montecarlo::weight_bounds::Direction;
use crate::run::{pool, Run};

/// Makes a test's mechanism, with its own n, b and law, from coefficients.
type Make = fn(Vec<f64>) -> Mechanism;

fn makes() -> Vec<(Make, Vec<f64>)> {
    let short = vec![0.9, 0.5, 0.2];
    let long: Vec<f64> = (0..70).map(|j| 0.5 / (1.0 + f64::from(j)).sqrt()).collect();
    vec![
        (|c| RenewalKernel::new(c, 30, 4, 0.2, true).unwrap().into(), short.clone()),
        (|c| RenewalKernel::new(c, 30, 4, 0.2, false).unwrap().into(), short.clone()),
        (|c| RenewalKernel::of_users(c, 30, 4, 0.1, 3, true).unwrap().into(), short.clone()),
        (|c| RenewalKernel::with_phases(c, 30, 4, 0.3).unwrap().into(), short),
        (|c| RenewalKernel::new(c, 3, 4, 0.2, true).unwrap().into(), vec![0.9, 0.5, 0.2]),
        (|c| RenewalKernel::new(c, 400, 70, 0.05, true).unwrap().into(), long),
    ]
}

fn components(add: bool) -> Vec<(Component, u32)> {
    let scaled = if add { (0.25, -0.5) } else { (0.25, 1.5) };
    vec![
        (Component::Tilted(0.0), 48),
        (Component::Tilted(if add { -0.75 } else { 0.75 }), 48),
        (Component::Scaled(vec![scaled.0], scaled.1), 32),
    ]
}

fn job(mechanism: Mechanism, origin: Mechanism, direction: Direction, epsilon: f64) -> GradientJob {
    GradientJob {
        mechanism,
        origin,
        direction,
        components: components(direction == Direction::Add),
        epsilon,
        key: StreamKey { seed: 5, purpose: 1, candidate: 2, direction: 0 },
    }
}

fn on(threads: usize, job: &GradientJob, count: u64) -> GradientEstimate {
    pool(threads).unwrap().install(|| simulate_gradient(job, 0, count, &Run::default()).unwrap())
}

#[test]
fn derivatives_are_those_of_the_estimate_with_the_same_samples() {
    for (make, coefficients) in makes() {
        for (direction, epsilon) in [(Direction::Remove, 0.7), (Direction::Add, 0.3)] {
            for moved in [1.0, 1.05] {
                let at: Vec<f64> = coefficients.iter().map(|c| c * moved).collect();
                let estimate = |c: Vec<f64>| on(2, &job(make(c), make(coefficients.clone()), direction, epsilon), 2);
                let found = estimate(at.clone());
                assert!(found.delta.value > 1e-3, "the samples see something");
                let h = 1e-7; // so small that no sample crosses the boundary
                let difference = |direction: &dyn Fn(usize, f64) -> f64| {
                    let side =
                        |sign: f64| estimate((0..at.len()).map(|j| direction(j, sign * h)).collect()).delta.value;
                    (side(1.0) - side(-1.0)) / (2.0 * h)
                };
                let largest = found.derivatives.iter().map(|one| one.value.abs()).fold(0.0, f64::max);
                for j in (0..at.len()).step_by(1 + at.len() / 8) {
                    let expected = difference(&|k, h| if k == j { at[k] + h } else { at[k] });
                    let own = found.derivatives[j].value;
                    assert!((own - expected).abs() <= 1e-6 * largest, "{direction:?} {moved} {j}: {own} {expected}");
                }
                // If σ is larger by a factor 1 + h, ĉ is smaller by the same factor.
                let expected = difference(&|k, h| at[k] / (1.0 + h));
                let own = found.log_noise.value;
                assert!((own - expected).abs() <= 1e-6 * own.abs(), "{direction:?} {moved}: {own} {expected}");
            }
        }
    }
}

/// Returns the Gram matrix of five modes of seven entries, where `moved` says by how much each entry is moved.
fn gram(moved: &dyn Fn(usize, usize) -> f64) -> Vec<f64> {
    let mode = |t: usize| -> Vec<f64> {
        (0..7usize).map(|k| f64::from(u32::try_from((3 * t + 5 * k) % 7).unwrap()) * 0.15 + moved(t, k)).collect()
    };
    let modes: Vec<Vec<f64>> = (0..5).map(mode).collect();
    modes.iter().flat_map(|one| modes.iter().map(|two| one.iter().zip(two).map(|(a, b)| a * b).sum())).collect()
}

#[test]
fn derivatives_of_bins_are_those_of_the_estimate_with_the_same_samples() {
    let make = |gram: &[f64]| Mechanism::from(BinsKernel::new(gram, 7).unwrap());
    let start = gram(&|_, _| 0.0);
    for (direction, epsilon) in [(Direction::Remove, 0.7), (Direction::Add, 0.3)] {
        for moved in [0.0, 0.03] {
            let here = |t: usize, k: usize| moved * f64::from(u32::try_from(t + k).unwrap());
            let at = gram(&here);
            let estimate = |gram: &[f64]| on(2, &job(make(gram), make(&start), direction, epsilon), 2);
            let found = estimate(&at);
            assert!(found.delta.value > 1e-3, "the samples see something");
            let h = 1e-7; // so small that no sample crosses the boundary
            let along = |to: &[f64]| -> f64 {
                let each = found.derivatives.iter().zip(to).zip(&at);
                each.map(|((one, to), at)| one.value * (to - at)).sum()
            };
            for (t, k) in [(0, 1), (2, 4), (4, 6)] {
                let side = |sign: f64| {
                    let one = |s: usize, l: usize| if (s, l) == (t, k) { sign * h } else { 0.0 };
                    gram(&|s, l| here(s, l) + one(s, l))
                };
                let (up, down) = (side(1.0), side(-1.0));
                let expected = estimate(&up).delta.value - estimate(&down).delta.value;
                let own = along(&up) - along(&down);
                assert!((own - expected).abs() <= 1e-6 * own.abs(), "{direction:?} {moved} {t} {k}: {own} {expected}");
            }
            let scaled = |h: f64| -> Vec<f64> { at.iter().map(|g| g / ((1.0 + h) * (1.0 + h))).collect() };
            let expected = (estimate(&scaled(h)).delta.value - estimate(&scaled(-h)).delta.value) / (2.0 * h);
            let own = found.log_noise.value;
            assert!((own - expected).abs() <= 1e-6 * own.abs(), "{direction:?} {moved}: {own} {expected}");
            let summed: f64 = found.derivatives.iter().zip(&at).map(|(one, g)| -2.0 * one.value * g).sum();
            assert!((own - summed).abs() <= 1e-9 * own.abs(), "{own} {summed}");
            assert_eq!(found, on(1, &job(make(&at), make(&start), direction, epsilon), 2));
        }
    }
}

#[test]
fn samples_and_their_weights_do_not_depend_on_the_matrix_asked_for() {
    // Compares δ of one matrix from its own samples with δ from those of another matrix.
    let (make, coefficients) = makes().swap_remove(0);
    let near: Vec<f64> = coefficients.iter().map(|c| c * 1.1).collect();
    let own = on(2, &job(make(near.clone()), make(near.clone()), Direction::Remove, 0.7), 32);
    let other = on(2, &job(make(near), make(coefficients), Direction::Remove, 0.7), 32);
    let error = own.delta.standard_error.hypot(other.delta.standard_error);
    assert!((own.delta.value - other.delta.value).abs() < 4.0 * error);
    assert!(error < 0.02 * own.delta.value);
    assert!(own.log_noise.value < 0.0 && own.effective_samples > other.effective_samples);
}

#[test]
fn threads_change_nothing() {
    for direction in [Direction::Remove, Direction::Add] {
        let (make, coefficients) = makes().swap_remove(0);
        let moved: Vec<f64> = coefficients.iter().map(|c| c * 1.05).collect();
        let job = job(make(moved), make(coefficients), direction, 0.5);
        assert_eq!(on(1, &job, 5), on(2, &job, 5));
    }
}

#[test]
fn what_has_no_gradient_is_refused() {
    let make = |n| Mechanism::from(RenewalKernel::new(vec![0.5, 0.25], n, 3, 0.2, true).unwrap());
    let run = |job: &GradientJob, count| simulate_gradient(job, 0, count, &Run::default());
    let good = job(make(8), make(8), Direction::Remove, 1.0);
    assert!(run(&good, 1).is_ok());
    assert!(matches!(run(&good, 0), Err(Error::Domain { name: "shards", .. })));
    let other = job(make(8), make(9), Direction::Remove, 1.0);
    assert!(matches!(run(&other, 1), Err(Error::Domain { name: "rounds (bins) of the samples", .. })));
    assert!(matches!(run(&job(make(8), make(8), Direction::Replace, 1.0), 1), Err(Error::Numerics { .. })));
    let nowhere = job(make(8), make(8), Direction::Add, f64::INFINITY);
    assert!(matches!(run(&nowhere, 1), Err(Error::Domain { name: "epsilon", .. })));
    let bins = Mechanism::from(BinsKernel::new(&[1.0], 1).unwrap());
    let one = |mechanism: &Mechanism| RenewalKernel::new(vec![0.5], 1, 1, 0.2, true).map(|k| (k, mechanism.clone()));
    let (kernel, bins) = one(&bins).unwrap();
    assert!(matches!(run(&job(kernel.into(), bins, Direction::Remove, 1.0), 1), Err(Error::Numerics { .. })));
    let without = GradientJob { components: vec![(Component::Tilted(1.0), 128)], ..good };
    assert!(matches!(run(&without, 1), Err(Error::Domain { name: "shares", .. })));
    let cancelled = Run::default();
    cancelled.cancel();
    assert_eq!(
        simulate_gradient(&job(make(8), make(8), Direction::Remove, 1.0), 0, 1, &cancelled),
        Err(Error::Cancelled)
    );
}

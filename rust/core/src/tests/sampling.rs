//! The sampling room compared with an enumeration of all participation patterns.

use crate::error::Error;
use crate::montecarlo::claims::betting::BetTable;
use crate::montecarlo::claims::histogram::Edges;
use crate::montecarlo::kernels::bins::BinsKernel;
use crate::montecarlo::kernels::renewal::RenewalKernel;
use crate::montecarlo::mechanism::Mechanism;
use crate::montecarlo::proposals::drawn::{weight_bounds_of, Part};
use crate::montecarlo::simulate::{probe, simulate, Job};
use crate::montecarlo::stream::StreamKey;
use crate::montecarlo::weight_bounds::Direction;
use crate::run::{pool, Run};
use crate::vector::instruction_sets;

const N: usize = 7;
const B: usize = 3;
const P: f64 = 0.3;
const C: [f64; 3] = [0.8, 0.5, 0.2];

/// Returns all patterns of b-min-sep sampling with their probabilities, by going through the rounds.
fn patterns(warm: bool) -> Vec<(Vec<usize>, f64)> {
    let total = 1.0 + 2.0 * P;
    let starts = if warm { vec![1.0 / total, P / total, P / total] } else { vec![1.0] };
    let mut found = Vec::new();
    for (start, weight) in starts.into_iter().enumerate() {
        let mut open = vec![(Vec::new(), start, weight)];
        while let Some((taken, round, weight)) = open.pop() {
            if round >= N {
                found.push((taken, weight));
                continue;
            }
            let mut joined: Vec<usize> = taken.clone();
            joined.push(round);
            open.push((joined, round + B, weight * P));
            open.push((taken, round + 1, weight * (1.0 - P)));
        }
    }
    found
}

/// Returns ln Σ_x w_x dN(±Cx)/dN(0) at y.
fn enumerated(warm: bool, y: &[f64], sign: f64) -> f64 {
    let sum: f64 = patterns(warm)
        .into_iter()
        .map(|(taken, weight)| {
            let mut mean = [0.0; N];
            for round in taken {
                for (j, c) in C.iter().enumerate().filter(|(j, _)| round + j < N) {
                    mean[round + j] += sign * c;
                }
            }
            let product: f64 = mean.iter().zip(y).map(|(m, y)| m * y - 0.5 * m * m).sum();
            weight * product.exp()
        })
        .sum();
    sum.ln()
}

#[test]
fn log_densities_are_those_of_the_enumeration() {
    for warm in [false, true] {
        let mechanism = Mechanism::from(RenewalKernel::new(C.to_vec(), N, B, P, warm).unwrap());
        let outcomes: Vec<Vec<f64>> =
            (0..11u32).map(|k| (0..7u32).map(|i| f64::from((k * 7 + i) * 37 % 41) / 5.0 - 4.0).collect()).collect();
        for (outcome, (mixture, mirrored)) in
            outcomes.iter().zip(mechanism.log_densities(Direction::Replace, &outcomes, &[]))
        {
            assert!((mixture - enumerated(warm, outcome, 1.0)).abs() < 1e-12);
            assert!((mirrored - enumerated(warm, outcome, -1.0)).abs() < 1e-12);
        }
    }
}

fn job(direction: Direction, mean_scale: f64) -> Job {
    let mechanism = Mechanism::from(RenewalKernel::new(C.to_vec(), N, B, P, true).unwrap());
    let proposed = mechanism.proposed(mechanism.balanced_parameter(mean_scale), mean_scale).unwrap();
    let parts = vec![Part { proposed, runs: 1 }];
    let weight_bound = weight_bounds_of(&parts, direction, 0.5, None).value;
    let tables = vec![BetTable { epsilon: 0.5, weight_bound, bets: vec![(0.1, 0.5), (0.1, -0.5)] }];
    let key = StreamKey { seed: 9, purpose: 1, candidate: 2, direction: 0 };
    Job {
        parts,
        direction,
        curve: None,
        floor: None,
        tables,
        edges: Some(Edges { lowest: -16.0, width: 1.0 / 128.0 }),
        key,
    }
}

#[test]
fn threads_change_nothing() {
    for (direction, mean_scale) in [(Direction::Remove, 1.5), (Direction::Add, -0.7), (Direction::Replace, 1.0)] {
        let job = job(direction, mean_scale);
        let one = pool(1).unwrap().install(|| simulate(&job, 0, 6, &Run::default()).unwrap());
        let two = pool(2).unwrap().install(|| simulate(&job, 0, 6, &Run::default()).unwrap());
        assert_eq!(one, two);
        let later = pool(2).unwrap().install(|| simulate(&job, 4, 2, &Run::default()).unwrap());
        assert_eq!(one.shards[4..], later.shards[..]);
    }
}

#[test]
fn instruction_sets_agree_bit_for_bit() {
    for (direction, mean_scale) in [(Direction::Remove, 1.5), (Direction::Add, -0.7), (Direction::Replace, 1.0)] {
        let job = job(direction, mean_scale);
        let reference = probe(&job, 3, "portable").unwrap();
        for name in instruction_sets() {
            assert_eq!(probe(&job, 3, name).unwrap(), reference, "{name}");
        }
    }
    assert!(probe(&job(Direction::Add, 0.0), 0, "abacus").is_none());
}

#[test]
fn cancelled_runs_leave_nothing() {
    let run = Run::default();
    run.cancel();
    let job = job(Direction::Remove, 1.0);
    assert_eq!(pool(1).unwrap().install(|| simulate(&job, 0, 2, &run)), Err(Error::Cancelled));
}

#[test]
fn bets_that_could_lose_more_than_they_have_are_refused() {
    let mut job = job(Direction::Remove, 1.0);
    job.tables[0].bets = vec![(0.1, 1.0 / (job.tables[0].weight_bound - 0.1) * 1.001)];
    assert!(matches!(simulate(&job, 0, 1, &Run::default()), Err(Error::Domain { name: "betting fraction", .. })));
    job.tables[0].bets = vec![(0.1, -10.01)];
    assert!(matches!(simulate(&job, 0, 1, &Run::default()), Err(Error::Domain { name: "betting fraction", .. })));
}

#[test]
fn kernels_refuse_what_they_cannot_analyse() {
    for (coefficients, n, b, p) in [
        (vec![], 4, 2, 0.1),
        (vec![0.0, 1.0], 4, 2, 0.1),
        (vec![1.0, -0.1], 4, 2, 0.1),
        (vec![1.0, f64::NAN], 4, 2, 0.1),
        (vec![1.0; 3], 4, 2, 0.1),
        (vec![1.0; 3], 2, 3, 0.1),
        (vec![1.0], 4, 2, 0.0),
        (vec![1.0], 4, 2, 1.1),
        (vec![1.0], 4, 0, 0.1),
    ] {
        assert!(matches!(RenewalKernel::new(coefficients, n, b, p, true), Err(Error::Domain { .. })));
    }
    for gram in [vec![], vec![1.0, 2.0], vec![1.0, 2.0, 2.0, 1.0], vec![f64::NAN], vec![-1.0]] {
        assert!(matches!(BinsKernel::new(&gram, 4), Err(Error::Domain { .. })));
    }
}

//! Enumerates all patterns of b-min-sep sampling of one record, for tests of small cases.

use crate::special::real;

/// Returns every pattern of one record with its probability.
pub(crate) fn patterns(b: usize, p: f64, warm: bool, n: usize) -> Vec<(Vec<usize>, f64)> {
    let all = waits_and_patterns(b, p, warm, n);
    all.into_iter().map(|(_, taken, q)| (taken, q)).collect()
}

/// Returns the same with the number of rounds in which the record is unavailable at first, by drawing round after
/// round.
pub(crate) fn waits_and_patterns(b: usize, p: f64, warm: bool, n: usize) -> Vec<(usize, Vec<usize>, f64)> {
    let total = 1.0 + (real(b) - 1.0) * p;
    let starts: Vec<(usize, f64)> = if warm {
        std::iter::once((0, 1.0 / total)).chain((1..b).map(|wait| (wait, p / total))).collect()
    } else {
        vec![(0, 1.0)]
    };
    let mut patterns = Vec::new();
    let mut open: Vec<_> = starts.into_iter().map(|(wait, q)| (wait, wait, Vec::new(), q)).collect();
    while let Some((round, wait, taken, q)) = open.pop() {
        if round >= n {
            patterns.push((wait, taken, q));
            continue;
        }
        open.push((round + 1, wait, taken.clone(), q * (1.0 - p)));
        open.push((round + b, wait, [taken, vec![round]].concat(), q * p));
    }
    patterns
}

/// Returns Cx, for the columns that a pattern takes part in.
pub(crate) fn mean(coefficients: &[f64], pattern: &[usize], n: usize) -> Vec<f64> {
    let mut sum = vec![0.0; n];
    for &round in pattern {
        for (row, c) in sum[round..].iter_mut().zip(coefficients) {
            *row += c;
        }
    }
    sum
}

/// Returns numbers in (0, 1] on a grid of 2⁻⁵³ (SplitMix64).
pub(crate) fn uniforms(mut state: u64) -> impl FnMut() -> f64 {
    move || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        let high = real((z ^ (z >> 31)) >> 11);
        (high + 1.0) / 9_007_199_254_740_992.0
    }
}

/// Returns a mean of values with its standard error.
pub(crate) fn mean_with_error(values: &[f64]) -> (f64, f64) {
    let n = real(values.len());
    let mean = values.iter().sum::<f64>() / n;
    let square = values.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / (n - 1.0);
    (mean, (square / n).sqrt())
}

/// Returns the probability of each number of replicas that join each round, from all tuples of patterns with their
/// weight in f^m.
pub(crate) fn participations(
    coefficients: &[f64],
    (b, p, warm, n): (usize, f64, bool, usize),
    order: usize,
) -> Vec<Vec<f64>> {
    let patterns = patterns(b, p, warm, n);
    let mut tuples = vec![(vec![0.0; n], vec![0_usize; n], 1.0)];
    for _ in 0..order {
        tuples = tuples
            .iter()
            .flat_map(|(sum, joined, weight)| {
                patterns.iter().map(move |(taken, q)| {
                    let own = mean(coefficients, taken, n);
                    let inner: f64 = sum.iter().zip(&own).map(|(x, y)| x * y).sum();
                    let mut joined = joined.clone();
                    for &round in taken {
                        joined[round] += 1;
                    }
                    (sum.iter().zip(&own).map(|(x, y)| x + y).collect(), joined, weight * q * inner.exp())
                })
            })
            .collect();
    }
    let all: f64 = tuples.iter().map(|(_, _, weight)| weight).sum();
    let mut shares = vec![vec![0.0; order + 1]; n];
    for (_, joined, weight) in &tuples {
        joined.iter().enumerate().for_each(|(round, &j)| shares[round][j] += weight / all);
    }
    shares
}

/// How often a record takes part in each step, and the probability of that.
pub(crate) type Patterns = Vec<(Vec<usize>, f64)>;

/// Returns every pattern of cyclic Poisson sampling from a random part with its probability.
pub(crate) fn from_random_parts(period: usize, p: f64, n: usize) -> Patterns {
    let mut patterns = Patterns::new();
    for phase in 0..period {
        let chances: Vec<usize> = (phase..n).step_by(period).collect();
        for mask in 0..1_usize << chances.len() {
            let mut pattern = vec![0; n];
            let mut weight = 1.0 / real(period);
            for (k, &round) in chances.iter().enumerate() {
                pattern[round] = mask >> k & 1;
                weight *= if pattern[round] == 1 { p } else { 1.0 - p };
            }
            patterns.push((pattern, weight));
        }
    }
    patterns
}

/// Returns every pattern of one record under Poisson sampling with its probability.
pub(crate) fn independent(p: f64, n: usize) -> Patterns {
    let chance = |taken: usize| if taken == 1 { p } else { 1.0 - p };
    let pattern = |mask: usize| (0..n).map(|i| mask >> i & 1).collect::<Vec<_>>();
    let weighted = |pattern: Vec<usize>| {
        let weight = pattern.iter().map(|&taken| chance(taken)).product();
        (pattern, weight)
    };
    (0..1_usize << n).map(pattern).map(weighted).collect()
}

/// Returns every choice of k of n steps with its probability.
pub(crate) fn allocations(steps: usize, taken: usize) -> Patterns {
    let all: Vec<Vec<usize>> = (0..1_usize << steps)
        .map(|mask| (0..steps).map(|i| (mask >> i) & 1).collect::<Vec<_>>())
        .filter(|pattern| pattern.iter().sum::<usize>() == taken)
        .collect();
    let weight = 1.0 / real(all.len());
    all.into_iter().map(|pattern| (pattern, weight)).collect()
}

/// Returns the patterns of two independent runs, one after the other.
pub(crate) fn after_one_another(single: &Patterns) -> Patterns {
    let behind = |(one, weight): &(Vec<usize>, f64)| {
        let (one, weight) = (one.clone(), *weight);
        single
            .iter()
            .map(move |(other, more)| ([one.clone(), other.clone()].concat(), weight * more))
            .collect::<Vec<_>>()
    };
    single.iter().flat_map(behind).collect()
}

/// Returns every pattern of one record under b-min-sep sampling, as counts.
pub(crate) fn spaced(b: usize, p: f64, warm: bool, n: usize) -> Patterns {
    let counts = |taken: Vec<usize>| (0..n).map(|i| usize::from(taken.contains(&i))).collect::<Vec<_>>();
    together(patterns(b, p, warm, n).into_iter().map(|(taken, weight)| (counts(taken), weight)))
}

/// Returns the sums of the patterns of several independent records.
pub(crate) fn group(single: &Patterns, records: usize) -> Patterns {
    let mut all = single.clone();
    for _ in 1..records {
        all = together(all.iter().flat_map(|(one, weight)| {
            single.iter().map(move |(other, more)| {
                (one.iter().zip(other).map(|(x, y)| x + y).collect::<Vec<_>>(), weight * more)
            })
        }));
    }
    all
}

fn together(patterns: impl Iterator<Item = (Vec<usize>, f64)>) -> Patterns {
    let mut sums = std::collections::BTreeMap::new();
    for (pattern, weight) in patterns {
        *sums.entry(pattern).or_insert(0.0) += weight;
    }
    sums.into_iter().collect()
}

pub(crate) fn inner(one: &[usize], other: &[usize], coefficients: &[f64]) -> f64 {
    let mean = |pattern: &[usize]| {
        let mut sum = vec![0.0; pattern.len()];
        for (i, &count) in pattern.iter().enumerate() {
            for (row, c) in sum[i..].iter_mut().zip(coefficients) {
                *row += f64::from(u32::try_from(count).expect("small")) * c;
            }
        }
        sum
    };
    mean(one).iter().zip(mean(other)).map(|(x, y)| x * y).sum()
}

/// Returns ln Σ Π w e^{Σ ⟨Cx^r, Cx^s⟩} over all tuples, and the probability of each number of participations in each
/// step by these weights.
pub(crate) fn enumerated(
    patterns: &Patterns,
    inner: impl Fn(&[usize], &[usize]) -> f64,
    order: usize,
) -> (f64, Vec<Vec<f64>>) {
    let products: Vec<Vec<f64>> =
        patterns.iter().map(|(x, _)| patterns.iter().map(|(y, _)| inner(x, y)).collect()).collect();
    let steps = patterns[0].0.len();
    let most = patterns.iter().flat_map(|(pattern, _)| pattern).max().copied().unwrap_or(0);
    let (mut total, mut seen) = (0.0, vec![vec![0.0; most * order + 1]; steps]);
    let mut chosen = vec![0; order];
    'all: loop {
        let mut weight: f64 = chosen.iter().map(|&one| patterns[one].1).product();
        for (k, &one) in chosen.iter().enumerate() {
            weight *= chosen[..k].iter().map(|&other| products[one][other]).sum::<f64>().exp();
        }
        total += weight;
        for (step, counts) in seen.iter_mut().enumerate() {
            counts[chosen.iter().map(|&one| patterns[one].0[step]).sum::<usize>()] += weight;
        }
        for place in &mut chosen {
            *place += 1;
            if *place < patterns.len() {
                continue 'all;
            }
            *place = 0;
        }
        break;
    }
    seen.iter_mut().flatten().for_each(|weight| *weight /= total);
    (total.ln(), seen)
}

/// Checks that drawn tuples have the weights of all tuples; each is given as the number of participations in each step
/// and ln ρ (−∞ if it is given up).
pub(crate) fn agree(log_bound: f64, (log, expected): (f64, &[Vec<f64>]), mut one: impl FnMut() -> (Vec<usize>, f64)) {
    let (mut seen, mut logs) = (vec![vec![0.0; expected[0].len()]; expected.len()], Vec::new());
    for _ in 0..20_000 {
        let (joined, log) = one();
        assert!(log <= log_bound);
        logs.push(log);
        for (step, count) in joined.into_iter().enumerate() {
            seen[step][count] += log.exp();
        }
    }
    if log_bound > log + 3.0 {
        // Too few of them pass to compare means.
        return;
    }
    let (ratio, error) = mean_with_error(&logs.iter().map(|one| (one - log).exp()).collect::<Vec<_>>());
    assert!((ratio - 1.0).abs() <= 4.5 * error + 1e-9, "{ratio} {error}");
    let total: f64 = logs.iter().map(|log| log.exp()).sum();
    for (step, counts) in expected.iter().enumerate() {
        for (count, share) in counts.iter().enumerate() {
            let found = seen[step][count] / total;
            assert!((found - share).abs() < 0.02, "{step} {count}: {found} {share}");
        }
    }
}

//! The law of a sum over the participations of a pattern, in whole units.

use crate::participation::renewal::Renewal;
use crate::special::UNIT_ROUNDOFF;

/// Pr[S = s] for s = 0, 1, …, `size` − 1, S = Σ_i `units(i, x_i)` over the rounds i that are taken part in, x_i times each.
///
/// `reached` is the largest S of whoever is available in a round; no S may reach `size`.
///
/// * Time: n·`size` additions for each number of records that may take part at once.
/// * Precision: no term is negative, so each probability has the relative error of [`sum_error`], and what underflows, less than
///   10⁻³⁰⁰ in all.
#[must_use]
pub fn sums(
    law: &Renewal,
    size: usize,
    reached: impl Fn(usize) -> usize,
    units: impl Fn(usize, usize) -> usize,
) -> Vec<f64> {
    let (n, b) = (law.iterations(), law.min_separation);
    let (stay, join) = (1.0 - law.sampling_probability, law.sampling_probability);
    // open[i mod (b + 1)]: the record is available in round i, and has S so far.
    let mut open = vec![vec![0.0; size]; b + 1];
    let mut done = vec![0.0; size];
    for (start, log) in law.log_start().into_iter().enumerate() {
        let place = if start < n { &mut open[start % (b + 1)][0] } else { &mut done[0] };
        *place += log.exp();
    }
    for i in 0..n {
        let mut now = std::mem::take(&mut open[i % (b + 1)]);
        let reached = reached(i).min(size - 1);
        for (target, weight, shift) in std::iter::once((i + law.waiting(), stay, 0))
            .chain(law.counts.iter().enumerate().map(|(j, count)| (i + b, join * count, units(i, j + 1))))
        {
            // The ring's slot of this round is free for round i + b + 1 only; it is put back below.
            let into = if target < n { &mut open[target % (b + 1)] } else { &mut done };
            // Sums beyond the largest possible one have no probability.
            for (probability, sum) in now[..=reached].iter().zip(&mut into[shift..]) {
                *sum += probability * weight;
            }
        }
        now.fill(0.0);
        open[i % (b + 1)] = now;
    }
    done
}

/// The relative error of [`sums`], for a law whose probability to join is what it is.
///
/// A term is a product over n rounds at most: of 1 − p, rounded once, or of p and one of the counts, and of the start's
/// probability, the exponential of a logarithm between −700 and 0. Into a round lead k + 1 ways, and out of the run k for each of
/// the last b rounds and one for each start, so it is a part of no more than n(k + 1) + b(k + 1) sums.
#[must_use]
pub fn sum_error(law: &Renewal) -> f64 {
    #[allow(clippy::cast_precision_loss)] // far below 2^53
    let (n, b, k) = (law.iterations() as f64, law.min_separation as f64, law.counts.len() as f64);
    #[allow(clippy::cast_precision_loss)] // a count
    let draws = law.most_participations() as f64 * law.counts_error;
    UNIT_ROUNDOFF * ((k + 4.0) * (n + b) + 2048.0) * 1.01 + draws
}

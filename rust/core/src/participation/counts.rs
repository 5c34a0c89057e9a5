//! The law of a sum over the participations of a pattern, in whole units.

use std::collections::VecDeque;

use crate::participation::renewal::Renewal;
use crate::special::{real, UNIT_ROUNDOFF};

/// Returns Pr[S = s] for s = 0, 1, …, `size` − 1, S = Σ_i `units(i, x_i)` over the rounds i of a pattern, with x_i
/// participations in round i.
///
/// `reached` returns the largest S of a record that is available in a round; no S may reach `size`.
///
/// * Time: n·`size` additions for each number of records that may take part at once.
/// * Precision: no term is negative, so each probability has a relative error of about (k + 4)(n + b) units, plus
///   underflow of less than 10⁻³⁰⁰ in total.
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
            // The slot of this round in the ring is free only for round i + b + 1; the buffer is returned to it below.
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

/// Returns the law of the same sum where draws during a waiting time count too: in every round the record (some of a
/// user's records) is drawn with the law's probability, and takes part if it was not drawn in the b − 1 rounds before.
/// A warm start is preceded by b − 1 such rounds.
///
/// This is the law of a user alone under Algorithm 3 of Dong & Ganesh 2026 (arXiv:2602.09338), in which a draw during
/// the waiting time restarts it; under a renewal law draws begin again only when the user is available.
///
/// * Time: n·b·`size` additions.
/// * Precision: as [`sums`], with the relative error [`drawn_error`].
pub fn drawn_sums(
    law: &Renewal,
    size: usize,
    reached: impl Fn(usize) -> usize,
    units: impl Fn(usize, usize) -> usize,
) -> Vec<f64> {
    let (n, b) = (law.iterations(), law.min_separation);
    let (join, stay) = (law.sampling_probability, 1.0 - law.sampling_probability);
    let nothing = || vec![0.0; size];
    // ready: not drawn in the b − 1 rounds before. waiting[r]: last drawn r + 1 rounds ago.
    let mut ready = nothing();
    let mut waiting: VecDeque<Vec<f64>> = (1..b).map(|_| nothing()).collect();
    ready[0] = 1.0;
    if law.warm {
        for last in &mut waiting {
            last[0] = ready[0] * join;
            ready[0] *= stay;
        }
    }
    for i in 0..n {
        let most = reached(i).min(size - 1);
        let mut drawn = nothing();
        for last in &mut waiting {
            for (s, probability) in last[..=most].iter_mut().enumerate() {
                drawn[s] += *probability * join;
                *probability *= stay;
            }
        }
        for (j, count) in law.counts.iter().enumerate() {
            let shift = units(i, j + 1);
            // Sums beyond the largest possible one have no probability.
            for (probability, sum) in ready[..=most].iter().zip(&mut drawn[shift.min(size)..]) {
                *sum += probability * (join * count);
            }
        }
        for probability in &mut ready[..=most] {
            *probability *= stay;
        }
        waiting.push_front(drawn);
        // These were last drawn b − 1 rounds before this one; with b = 1, in this round.
        if let Some(last) = waiting.pop_back() {
            for (into, probability) in ready.iter_mut().zip(last) {
                *into += probability;
            }
        }
    }
    for last in waiting {
        for (into, probability) in ready.iter_mut().zip(last) {
            *into += probability;
        }
    }
    ready
}

/// Returns the relative error of [`drawn_sums`], where the law's probability q is known to 16 units.
///
/// A term is a product of no more than n + b factors q or 1 − q, the latter with an error of 16q/(1 − q) units and one
/// more, each rounded in its product, and of counts; it is a part of no more than (b + k + 2)(n + b) sums.
pub fn drawn_error(law: &Renewal) -> f64 {
    let (n, b, k) = (real(law.iterations()), real(law.min_separation), real(law.counts.len()));
    let join = law.sampling_probability;
    // With q = 1 the factor 1 − q is 0, exactly.
    let stays = if join < 1.0 { 16.0 * join / (1.0 - join) } else { 0.0 };
    let draws = real(law.most_participations()) * law.counts_error;
    UNIT_ROUNDOFF * ((b + k + 24.0 + stays) * (n + b) + 2048.0) * 1.01 + draws
}

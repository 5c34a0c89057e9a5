//! A run whose draws are known: a Gaussian mechanism with a random sensitivity.
//!
//! If everything but the contributions of the sensitive user is given, who was drawn and when included, the run is a Gaussian
//! mechanism whose sensitivity depends on the draws x. By joint convexity of the hockey stick, and with draws of the same law in both
//! data sets, `δ(ε) ≤ E_x G_{‖Cx‖}(e^ε)`. With columns that do not meet, ‖Cx‖² = Σ_i x_i²‖c_i‖² is at most `S·max ‖c_i‖²`,
//! S = Σ_i x_i², and G grows with its sensitivity: only the law of S matters.
//!
//! **Shared records.** A record whose other users are waiting cannot be drawn, so a user that is available joins with a probability of
//! at most p, whatever happened before, and given that it joins with a number of records that is stochastically at most that of
//! all k. Couple it with the renewal process of a user alone that is available at once (a cold start): by induction the m-th
//! participation of the latter comes no later, since its first chance comes no later and its hazard is no smaller, and takes no
//! fewer records. So S is stochastically at most the S of that process, from whatever state the shared one starts.

use crate::error::{Error, Result};
use crate::pair::{Profile, ProfilePoint};
use crate::participation::renewal::Renewal;
use crate::special::{scaled_upper_tail, upper_tail, Approximation, UNIT_ROUNDOFF};

/// The law of S is computed with at most so many additions: a second or so, which nothing interrupts.
pub const MOST_WORK: f64 = 5e8;
/// Probabilities that sum to less are moved to the largest S.
const NEGLIGIBLE: f64 = 1e-300;

/// `Σ_s Pr[S = s] G_{unit·√s}`: the profile of both directions.
///
/// * Guarantee: an upper bound on the hockey stick for every ε where the draws have this law or one that is stochastically
///   smaller; exact if the draws are released and all columns have the same norm.
/// * Precision: about (n + 20)·10⁻¹⁶ relative to Pr[L > ε].
#[derive(Debug, Clone, PartialEq)]
pub struct Revealed {
    /// Pr[S = s] and unit·√s, by increasing s.
    terms: Vec<(f64, f64)>,
    relative_error: f64,
}

impl Revealed {
    /// For a law of participations and a sensitivity of `unit` for S = 1, in units of σ.
    ///
    /// # Errors
    /// [`Error::Domain`] for a unit that is not positive and finite, and for laws with too many values of S to go through.
    pub fn new(law: &Renewal, unit: f64) -> Result<Self> {
        if !(unit > 0.0 && unit.is_finite()) {
            return Err(Error::Domain { name: "unit", value: unit, allowed: "a positive finite number" });
        }
        let weights = squares(law)?;
        let mut terms = Vec::with_capacity(weights.len());
        for (s, weight) in weights.iter().enumerate().filter(|(_, weight)| **weight > 0.0) {
            #[allow(clippy::cast_precision_loss)] // a count
            terms.push((*weight, unit * (s as f64).sqrt()));
        }
        #[allow(clippy::cast_precision_loss)] // counts
        let steps = law.iterations() as f64 + terms.len() as f64;
        Ok(Self { terms, relative_error: UNIT_ROUNDOFF * (8.0 * steps + 64.0) + 1e-13 })
    }
}

/// Pr[S = s] for s = 0, 1, …, going through the rounds.
fn squares(law: &Renewal) -> Result<Vec<f64>> {
    let (n, b, k) = (law.iterations(), law.min_separation, law.counts.len());
    let size = k * k * law.most_participations() + 1;
    #[allow(clippy::cast_precision_loss)] // compared only
    if n as f64 * size as f64 * k as f64 > MOST_WORK {
        let value = n as f64;
        return Err(Error::Domain {
            name: "iterations",
            value,
            allowed: "fewer, or records, for the law of the draws",
        });
    }
    let (stay, join) = (1.0 - law.sampling_probability, law.sampling_probability);
    // open[i mod (b + 1)]: the record is available in round i, and has S so far.
    let mut open = vec![vec![0.0; size]; b + 1];
    let mut done = vec![0.0; size];
    for (start, log) in law.log_start().into_iter().enumerate() {
        let place = if start < n { &mut open[start % (b + 1)][0] } else { &mut done[0] };
        *place += log.exp();
    }
    let mut reached = 0;
    for i in 0..n {
        let now = std::mem::replace(&mut open[i % (b + 1)], vec![0.0; 0]);
        for (target, weight, shift) in std::iter::once((i + law.waiting(), stay, 0))
            .chain(law.counts.iter().enumerate().map(|(j, count)| (i + b, join * count, (j + 1) * (j + 1))))
        {
            // The ring's slot of this round is free for round i + b + 1 only; it is put back below.
            let into = if target < n { &mut open[target % (b + 1)] } else { &mut done };
            for (s, probability) in now[..=reached].iter().enumerate() {
                into[s + shift] += probability * weight;
            }
        }
        reached = (reached + k * k).min(size - 1 - k * k);
        let mut cleared = now;
        cleared.fill(0.0);
        open[i % (b + 1)] = cleared;
    }
    let mut tail = 0.0;
    let mut last = done.len() - 1;
    while last > 0 && tail + done[last] <= NEGLIGIBLE {
        tail += done[last];
        last -= 1;
    }
    if last < done.len() - 1 {
        done[last + 1..].fill(0.0);
        let end = done.len() - 1;
        done[end] = NEGLIGIBLE;
    }
    Ok(done)
}

impl Profile for Revealed {
    fn at_within(&self, epsilon: f64, _bracket: (f64, f64)) -> ProfilePoint {
        let (mut above, mut below) = (Approximation::default(), Approximation::default());
        for &(weight, shift) in &self.terms {
            if shift > 0.0 {
                let center = epsilon / shift;
                let x_error = UNIT_ROUNDOFF * (3.0 * center.abs() + 2.0 * shift);
                above += upper_tail(center - 0.5 * shift, x_error).scaled(weight, self.relative_error);
                below += scaled_upper_tail(epsilon, center + 0.5 * shift, x_error).scaled(weight, self.relative_error);
            } else if epsilon < 0.0 {
                // Never drawn: no loss at all.
                above += Approximation { value: 1.0, error: 0.0 }.scaled(weight, self.relative_error);
                below +=
                    Approximation { value: epsilon.exp(), error: UNIT_ROUNDOFF }.scaled(weight, self.relative_error);
            }
        }
        let delta = above.value - below.value;
        ProfilePoint {
            delta: delta.max(0.0),
            delta_error: above.error + below.error + UNIT_ROUNDOFF * delta.abs(),
            slope: below.value,
            slope_error: below.error,
            threshold: f64::NAN,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every sequence of draws, one by one.
    fn enumerated(law: &Renewal, round: usize, s: usize, weight: f64, out: &mut Vec<f64>) {
        if round >= law.iterations() {
            out[s] += weight;
            return;
        }
        enumerated(law, round + law.waiting(), s, weight * (1.0 - law.sampling_probability), out);
        for (j, count) in law.counts.iter().enumerate() {
            let next = s + (j + 1) * (j + 1);
            enumerated(law, round + law.min_separation, next, weight * law.sampling_probability * count, out);
        }
    }

    #[test]
    fn the_law_is_that_of_the_enumeration() {
        for (n, b, p, k, warm) in [
            (7, 3, 0.3, 1, false),
            (7, 3, 0.3, 2, true),
            (5, 1, 0.6, 2, false),
            (9, 4, 1.0, 3, true),
            (3, 8, 0.2, 2, true),
        ] {
            let law = Renewal::of_users(b, p, k, warm, vec![1.0; n]).unwrap();
            let found = squares(&law).unwrap();
            let mut expected = vec![0.0; found.len()];
            for (start, log) in law.log_start().into_iter().enumerate() {
                enumerated(&law, start, 0, log.exp(), &mut expected);
            }
            for (f, e) in found.iter().zip(&expected) {
                assert!((f - e).abs() < 1e-14, "{found:?} {expected:?}");
            }
        }
    }
}

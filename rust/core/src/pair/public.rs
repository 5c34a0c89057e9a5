//! A run whose participations are public: a Gaussian mechanism with a random sensitivity.
//!
//! If everything but the contributions of the sensitive user is given, including which records were drawn and when, the
//! run is a Gaussian mechanism whose sensitivity depends on the draws x. By joint convexity of the hockey stick, and
//! with draws of the same law in both data sets, `δ(ε) ≤ E_x G_{‖Cx‖}(e^ε)`, and G grows with its sensitivity.
//!
//! **Norm bounds.** ‖Cx‖² = Σ_i x_i²‖c_i‖² + 2Σ_{i<j} x_i x_j ⟨c_i, c_j⟩ ≤ Σ_i x_i² q_i, q_i = ‖c_i‖² + Γ_i, Γ_i the
//! largest sum of inner products of column i with the other columns of a pattern ([`crate::participation::separated`]):
//! 2x_i x_j ≤ x_i² + x_j² counts each cross term with both of its members. Columns that do not overlap share nothing,
//! and then this is an equality.
//!
//! **Shared records.** A record whose other users are waiting cannot be drawn, so a user that is available joins with a
//! probability of at most p, whatever happened before, and given that it joins with a number of records that is
//! stochastically at most that of all k. Couple it with the renewal process of a user alone that is available at once
//! (a cold start): by induction the m-th participation of the latter comes no later, since its first chance comes no
//! later and its hazard is no smaller, and takes no fewer records. With q̄_i = max_{j ≥ i} q_j, which never rises, an
//! earlier participation counts for no less: Σ x_i² q_i is stochastically at most the S = Σ x_i² q̄_i of that process,
//! from whatever state the shared one starts. (For a Toeplitz matrix with columns that do not overlap q̄ = q: a later
//! column is a shorter part of the same one.)
//!
//! **Grid.** The law of S is computed on multiples of max q̄/G, each q̄_i rounded up; if all norm bounds are equal, G =
//! 1 is exact.

use crate::error::{domain, Result};
use crate::pair::{Profile, ProfilePoint, Reversal};
use crate::participation::counts::sums as law_of_sum;
use crate::participation::renewal::Renewal;
use crate::special::{real, scaled_upper_tail, upper_tail, Approximation, UNIT_ROUNDOFF};

/// The law of S is computed with at most this many additions: about a second, which cannot be interrupted.
pub const MOST_WORK: f64 = 5e8;
/// Probabilities that sum to less than this are moved to the largest S.
const NEGLIGIBLE: f64 = 1e-300;

/// The grid has at most this many points per norm bound, and S this many values, each of which is a Gaussian mechanism.
const FINEST: usize = 256;
const MOST_VALUES: usize = 4096;

/// `Σ_s Pr[S = s] G_{√s}`: the profile of both directions.
///
/// * Guarantee: an upper bound on the hockey stick for every ε if participations come no earlier, and no more often,
///   than in this law. Exact if the draws are released and the norm bounds are those of the mechanism itself and all
///   equal; if they differ, each is rounded up to the grid.
/// * Precision: about (n + 20)·10⁻¹⁶ relative to Pr[L > ε], and ⌈n/b⌉ times that of the law of the counts, 10⁻¹² for
///   hundreds of records.
#[derive(Debug, Clone, PartialEq)]
pub struct PublicParticipation {
    /// Pr[S = s] and √s, by increasing s.
    terms: Vec<(f64, f64)>,
    relative_error: f64,
}

impl PublicParticipation {
    /// Creates the profile for a law of participations whose `squares` are the norm bounds q_i, in units of σ².
    ///
    /// # Errors
    /// [`Error::Domain`] for norm bounds that are all 0, and for laws with too many values of S to go through.
    pub fn new(law: &Renewal) -> Result<Self> {
        let norm_bounds = envelope(&law.squares);
        let largest = norm_bounds[0];
        if largest <= 0.0 {
            return domain("squared column norm", largest, "positive for some round");
        }
        let points = grid(law, &norm_bounds);
        let spacing = largest / real(points) * (1.0 + 8.0 * UNIT_ROUNDOFF);
        let cells: Vec<usize> = norm_bounds.iter().map(|bound| cell(bound / largest, points)).collect();
        let weights = sums(law, &cells)?;
        let mut terms = Vec::new();
        for (s, weight) in weights.iter().enumerate().filter(|(_, weight)| **weight > 0.0) {
            terms.push((*weight, (spacing * real(s)).sqrt()));
        }
        let steps = real(law.iterations()) + real(terms.len());
        let draws = real(law.most_participations()) * law.counts_error;
        Ok(Self { terms, relative_error: UNIT_ROUNDOFF * (8.0 * steps + 64.0) + draws + 1e-13 })
    }
}

/// Returns q̄_i = max_{j ≥ i} q_j.
fn envelope(norm_bounds: &[f64]) -> Vec<f64> {
    let mut out = norm_bounds.to_vec();
    for i in (0..out.len().saturating_sub(1)).rev() {
        out[i] = out[i].max(out[i + 1]);
    }
    out
}

/// Returns G: 1 if all norm bounds are equal, otherwise as many points as the work and the number of values of S allow.
#[allow(clippy::float_cmp)] // bounds that are the same are so to the last bit
fn grid(law: &Renewal, norm_bounds: &[f64]) -> usize {
    if norm_bounds.iter().all(|bound| *bound == norm_bounds[0]) {
        return 1;
    }
    let mut points = FINEST;
    while points > 1 && (most(law, points) > MOST_VALUES || work(law, points) > MOST_WORK) {
        points /= 2;
    }
    points
}

/// Returns a fraction of the largest norm bound in whole points, rounded up.
fn cell(share: f64, points: usize) -> usize {
    let exact = share * real(points) * (1.0 + 8.0 * UNIT_ROUNDOFF);
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // between 0 and `points`
    (exact.ceil() as usize).min(points)
}

/// Returns the largest S on a grid with this many points per largest norm bound.
fn most(law: &Renewal, points: usize) -> usize {
    law.counts.len() * law.counts.len() * points * law.most_participations()
}

/// Returns the number of additions that the law of S takes.
fn work(law: &Renewal, points: usize) -> f64 {
    real(law.iterations()) * real(most(law, points) + 1) * real(law.counts.len())
}

/// Returns Pr[S = s] for s = 0, 1, …, S = Σ_i x_i² cells_i, by going through the rounds. No cell is larger than the
/// first.
fn sums(law: &Renewal, cells: &[usize]) -> Result<Vec<f64>> {
    let (n, b, k) = (law.iterations(), law.min_separation, law.counts.len());
    let size = most(law, cells[0]) + 1;
    if work(law, cells[0]) > MOST_WORK {
        let value = real(n);
        return domain("iterations", value, "fewer, or records, for the law of the draws");
    }
    // A record that is available in round i has taken part at most ⌈i/b⌉ times.
    let reached = |i: usize| k * k * cells[0] * i.div_ceil(b);
    let mut done = law_of_sum(law, size, reached, |i, j| j * j * cells[i]);
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

impl Profile for PublicParticipation {
    fn at_within(&self, epsilon: f64, _bracket: (f64, f64)) -> ProfilePoint {
        let (mut above, mut below) = (Approximation::default(), Approximation::default());
        for &(weight, shift) in &self.terms {
            if shift > 0.0 {
                let center = epsilon / shift;
                let x_error = UNIT_ROUNDOFF * (3.0 * center.abs() + 2.0 * shift);
                above += upper_tail(center - 0.5 * shift, x_error).scaled(weight, self.relative_error);
                below += scaled_upper_tail(epsilon, center + 0.5 * shift, x_error).scaled(weight, self.relative_error);
            } else if epsilon < 0.0 {
                // If the record is never drawn, there is no loss at all.
                above += Approximation { value: 1.0, error: 0.0 }.scaled(weight, self.relative_error);
                below +=
                    Approximation { value: epsilon.exp(), error: UNIT_ROUNDOFF }.scaled(weight, self.relative_error);
            }
        }
        ProfilePoint::of(above, below)
    }

    /// It is a mixture of Gaussian pairs, whose laws are mirror images.
    fn reversal(&self) -> Reversal {
        Reversal::Same
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Enumerates every sequence of draws.
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
            let found = sums(&law, &vec![1; n]).unwrap();
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

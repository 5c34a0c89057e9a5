//! Lower bounds for secret participations: what the sums of the first rounds' outputs reveal about them.
//!
//! Let one user take part in rounds x_1, x_2, … (x_i records at once), let all its records contribute the same unit
//! vector, and all other records nothing: two concrete data sets, P = Σ_x w_x N(Cx, σ²I) against Q = N(0, σ²I). The sum
//! of the first m outputs is a post-processing: divided by its standard deviation √m·σ it is
//! `P_m = Σ_x w_x N(S_m(x), 1)` against N(0, 1), S_m = Σ_{i ≤ m} x_i a_i, a_i = Σ_{l ≤ m} C_li/(√m·σ) ≥ 0. So
//! `H(P‖Q) ≥ max_m H(P_m‖N(0, 1))` and `H(Q‖P) ≥ max_m H(N(0, 1)‖P_m)` for every α: the data sets are the same for
//! every m, so a composition of (P, Q) with anything is no more private than one of the maximum.
//!
//! **Moving means towards 0.** `P_m/N(0, 1) = Σ w e^{Sy − S²/2}` rises in y where all S ≥ 0, so the best sets are
//! half-lines, y > τ for P_m and y < τ for N(0, 1). If S is replaced by something that is stochastically smaller and
//! still ≥ 0, P_m(y > τ) falls at every τ and N(0, 1) stays: both hockey sticks fall, for every α. Therefore each a_i
//! is rounded down to a grid, and lowered to the least of the rounds before it; and sums that are too unlikely to be
//! computed are replaced by 0. The probability to be drawn is not rounded in a safe direction, because a user that is
//! drawn more often may take part less: its error is part of the weights' error.

use std::sync::Arc;

use crate::error::{domain, Result};
use crate::laws::Weights;
use crate::pair::mixture::MixturePair;
use crate::pair::{larger, Profile, ProfilePoint, Reversal};
use crate::participation::counts::{drawn_error, drawn_sums};
use crate::participation::renewal::Renewal;
use crate::special::{real, UNIT_ROUNDOFF};

/// The grid has at most this many points per shift of the middle round, and S at most this many values if it has
/// several.
const FINEST: usize = 64;
const MOST_VALUES: usize = 512;
/// Sums with a smaller probability are replaced by 0.
const NEGLIGIBLE: f64 = 1e-290;

/// `max_m H_{e^ε}(P_m‖N(0, 1))`, or that of (N(0, 1), P_m): see the head of this file.
///
/// * Guarantee: at most the hockey stick of the run's two data sets for every ε, within the stated errors; convex in α.
/// * Precision: that of [`MixturePair`], and about (b + k + 24)(n + b)·10⁻¹⁶ of each probability.
#[derive(Debug, Clone, PartialEq)]
pub struct SummedOutputs {
    sums: Vec<MixturePair>,
}

impl SummedOutputs {
    /// Creates the profile; `shifts` holds for each m the a_i of the first m rounds, positive and rounded down. Each of
    /// the user's records is drawn in every round; they take part if none was drawn in the b − 1 rounds before, b the
    /// `min_separation` ([`drawn_sums`]).
    ///
    /// # Errors
    /// [`Error::Domain`] if there are no shifts, and the errors of the law.
    pub fn new(
        shifts: &[Vec<f64>],
        min_separation: usize,
        record_probability: f64,
        records: u32,
        warm: bool,
        reverse: bool,
    ) -> Result<Self> {
        let sum = |shifts: &Vec<f64>| {
            let law = Renewal::of_users(min_separation, record_probability, records, warm, vec![1.0; shifts.len()])?;
            let pair = of_sum(&law, shifts)?;
            Ok(if reverse { pair.reversed() } else { pair })
        };
        if shifts.is_empty() {
            return domain("shifts", 0.0, "at least one sum of rounds");
        }
        Ok(Self { sums: shifts.iter().map(sum).collect::<Result<_>>()? })
    }
}

/// Returns `Σ_s Pr[S = s] N(s, 1)` against N(0, 1).
fn of_sum(law: &Renewal, shifts: &[f64]) -> Result<MixturePair> {
    let mut least = f64::INFINITY;
    let falling: Vec<f64> = shifts
        .iter()
        .map(|shift| {
            least = least.min(*shift);
            least
        })
        .collect();
    let middle = falling[falling.len() / 2];
    let positive = middle > 0.0 && falling[0].is_finite();
    if !positive {
        return domain("shift", middle, "positive and finite");
    }
    let points = grid(law, &falling);
    let cells: Vec<usize> = falling.iter().map(|shift| cell(shift / middle, points)).collect();
    let k = law.counts.len();
    let most = |rounds: usize| k * cells[0] * rounds.div_ceil(law.min_separation);
    let mut probabilities = drawn_sums(law, most(law.iterations()) + 1, most, |i, j| j * cells[i]);
    let mut dropped = NEGLIGIBLE;
    for probability in probabilities[1..].iter_mut().filter(|probability| **probability < NEGLIGIBLE) {
        dropped += *probability;
        *probability = 0.0;
    }
    probabilities[0] += dropped;
    let likely = || (0_u32..).zip(&probabilities).filter(|(_, probability)| **probability > 0.0);
    let weights = Weights {
        count: likely().map(|(s, _)| s).collect(),
        log_probability: likely().map(|(_, probability)| probability.ln()).collect(),
        // The logarithm of a probability above 10⁻²⁹⁰ and its exponential have an error of 700u each.
        relative_error: drawn_error(law) + 2048.0 * UNIT_ROUNDOFF,
    };
    let unit = middle / real(points) * (1.0 - 8.0 * UNIT_ROUNDOFF);
    MixturePair::counted(&weights, unit, None, 1.0)
}

/// Returns the grid points per shift of the middle round: 1 if all shifts are equal, otherwise as many as the number of
/// values of S allows.
#[allow(clippy::float_cmp)] // shifts that are the same are so to the last bit
fn grid(law: &Renewal, falling: &[f64]) -> usize {
    if falling.iter().all(|shift| *shift == falling[0]) {
        return 1;
    }
    let mut points = FINEST;
    while points > 1 && 2 * law.counts.len() * points * law.most_participations() > MOST_VALUES {
        points /= 2;
    }
    points
}

/// Returns a shift relative to the middle one in whole points, rounded down; at most twice the middle one's.
fn cell(share: f64, points: usize) -> usize {
    let exact = (share.min(2.0) * real(points)).floor();
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // between 0 and 2·`points`
    let cell = exact as usize;
    cell
}

impl Profile for SummedOutputs {
    fn at_within(&self, epsilon: f64, _bracket: (f64, f64)) -> ProfilePoint {
        let everywhere = (f64::NEG_INFINITY, f64::INFINITY);
        // These are the bounds without any sum: the outcome set is empty, which gives exactly 0, or contains
        // everything.
        let all = (-epsilon.exp_m1()).max(0.0);
        let nothing = ProfilePoint {
            delta: all,
            delta_error: 4.0 * UNIT_ROUNDOFF * all,
            slope: if all > 0.0 { epsilon.exp() } else { 0.0 },
            slope_error: if all > 0.0 { 4.0 * UNIT_ROUNDOFF } else { 0.0 },
            threshold: f64::NAN,
        };
        let points = self.sums.iter().map(|sum| sum.at_within(epsilon, everywhere).or_trivial(epsilon));
        points.fold(nothing, larger)
    }

    fn reversal(&self) -> Reversal {
        Reversal::Other(Arc::new(Self { sums: self.sums.iter().map(MixturePair::reversed).collect() }))
    }
}

//! Bounds on the composition from the largest losses of the rounds, without composing anything.
//!
//! Let the loss of round i be at most M_i, S = Σ n_i M_i, and let each loss be M_i with probability at least a_i, A = Π
//! a_i^{n_i}. With x = S − ε ≥ 0, for every ε
//!
//! * δ(ε) = E[(1 − e^{ε − Σ L})_+] = 0 where x = 0, since no sum of losses exceeds S: so ε(δ) ≤ S at every δ, 0
//!   included;
//! * δ(ε) ≥ A(1 − e^{−x}), the part of that mean where every loss is the largest: so ε(δ) ≥ S + ln(1 − δ/A) for δ < A;
//! * δ(ε) ≤ (1 − e^{−x}) Π Pr[L_i > M_i − x]^{n_i}: where the losses' sum is above S − x, each of them is above M_i −
//!   x. With any supporting line of the round's profile at M_i − x, Pr[L_i > M_i − x] is at most its value plus its
//!   slope. That line must touch the profile, to the errors of its value and slope, as the line of the outcomes with
//!   L_i > M_i − x does. This holds for the pairs whose largest loss has a mass ([`LargestLoss::mass`]); a line of
//!   other outcomes, such as one from a threshold that was searched for, may pass just below the profile, and its slope
//!   may be too small by any amount where x is small. Without a mass this bound is 1.
//!
//! If one more round has other losses, with the profile δ₁, the sum of the rest is at most S, and is S with probability
//! at least A:
//!
//! * A·δ₁(ε − S) ≤ δ(ε) ≤ δ₁(ε − S), so S + ε₁(δ/A) ≤ ε(δ) ≤ S + ε₁(δ), the first where ε₁(δ/A) > 0.
//!
//! If M_i is known between two bounds, S and x are computed from the upper ones, and from the lower ones where δ is
//! bounded from below; a_i is the probability of a loss of at least the lower one. Where δ is far below A these bounds
//! are far narrower than those of a lattice: a lattice moves the atom at S, which makes up nearly all of such a δ.

use crate::error::Result;
#[cfg(doc)]
use crate::pair::LargestLoss;
use crate::pld::answer::{at_least, at_most, single, Answer, Query, Round};
use crate::special::{real, UNDERFLOW, UNIT_ROUNDOFF};

/// The number of halvings of the range in which ε lies.
const HALVINGS: usize = 64;

/// Returns a proven interval for the answer, however wide, from the largest losses of the rounds; `None` if these give
/// no bound.
///
/// # Errors
/// As [`single`].
pub(super) fn ends(rounds: &[Round], query: Query) -> Result<Option<Answer>> {
    if let Some(largest) = Largest::of(rounds) {
        return Ok(Some(largest.answer(query)));
    }
    let other = |round: &Round| round.profile.largest_loss().mass <= 0.0;
    let Some(place) = rounds.iter().position(other) else { return Ok(None) };
    let rest: Vec<Round> = rounds[..place].iter().chain(&rounds[place + 1..]).cloned().collect();
    match Largest::of(&rest) {
        Some(largest) if rounds[place].count == 1 && largest.log_mass.is_finite() => {
            largest.beside(&rounds[place], query).map(Some)
        }
        _ => Ok(None),
    }
}

/// The sum of all rounds' largest losses.
#[derive(Debug, Clone, Copy)]
pub(super) struct Largest<'a> {
    rounds: &'a [Round],
    at_least: f64,
    at_most: f64,
    /// A lower bound on ln A; −∞ if no bound on A is known.
    log_mass: f64,
    /// An upper bound on the relative rounding of a sum over all rounds.
    relative: f64,
}

impl<'a> Largest<'a> {
    /// Computes the sums for these rounds; `None` if a loss has no bound, or no sum of losses is above 0.
    pub(super) fn of(rounds: &'a [Round]) -> Option<Self> {
        // Each term goes through a conversion, a product and as many additions as there are groups.
        let relative = UNIT_ROUNDOFF * (8.0 + 2.0 * real(rounds.len()));
        let (mut at_least, mut at_most, mut log_mass, mut size) = (0.0, 0.0, 0.0, 0.0);
        for round in rounds {
            let (n, largest) = (count(round), round.profile.largest_loss());
            at_least += n * largest.at_least;
            at_most += n * largest.at_most;
            log_mass += n * largest.mass.ln();
            size += n * largest.at_least.abs().max(largest.at_most.abs());
        }
        at_most += relative * size;
        let sum = Self {
            rounds,
            at_least: at_least - relative * size,
            at_most,
            // The error of a logarithm is one unit in its last place.
            log_mass: log_mass * (1.0 + 4.0 * relative),
            relative,
        };
        (at_most.is_finite() && at_most > 0.0).then_some(sum)
    }

    /// Returns a proven interval for the answer, however wide.
    pub(super) fn answer(&self, query: Query) -> Answer {
        let (lower, upper) = match query {
            Query::Delta(epsilon) => self.delta(epsilon),
            Query::Epsilon(delta) => self.epsilon(delta),
        };
        Answer { lower, upper, ..Answer::default() }
    }

    /// Returns (lower, upper) bounds on δ at ε ≥ 0.
    pub(super) fn delta(&self, epsilon: f64) -> (f64, f64) {
        if epsilon >= self.at_most {
            return (0.0, 0.0);
        }
        let share = -(epsilon - self.at_least).min(0.0).exp_m1();
        let lower = self.log_mass.exp() * share * (1.0 - 1e-12);
        // Below this, a product of two exponentials may have lost more to underflow than the factor allows for.
        (if lower > UNDERFLOW { lower } else { 0.0 }, self.delta_at_most(epsilon))
    }

    /// Returns (lower, upper) bounds on ε ≥ 0 at δ.
    fn epsilon(&self, delta: f64) -> (f64, f64) {
        // This is δ/A, rounded up: both logarithms are below 1000 unless it is certainly above 1.
        let share = (delta.ln() - self.log_mass).exp() * (1.0 + 1e-12);
        if share.is_nan() || share >= 1.0 {
            return (0.0, self.at_most);
        }
        let below = (-share).ln_1p();
        let rounding = 4.0 * UNIT_ROUNDOFF * (self.at_least.abs() + below.abs());
        let lower = (self.at_least + below - rounding).max(0.0);
        // Any ε at which δ is at most the given one is an upper bound, so the choice of the ε that are tried is free.
        let (mut low, mut high) = (lower, self.at_most);
        for _ in 0..HALVINGS {
            let middle = 0.5 * (low + high);
            if middle <= low || middle >= high {
                break;
            }
            if self.delta_at_most(middle) <= delta {
                high = middle;
            } else {
                low = middle;
            }
        }
        (lower, high)
    }

    /// Returns a proven interval for the answer to one more round in addition to these.
    fn beside(&self, round: &Round, query: Query) -> Result<Answer> {
        let profile = round.profile.as_ref();
        let mass = self.log_mass.exp() * (1.0 - 1e-12);
        let (lower, upper) = match query {
            Query::Delta(epsilon) => {
                // The differences are rounded down where δ₁ is bounded from above.
                let rounding = 4.0 * UNIT_ROUNDOFF * (epsilon + self.at_most);
                let above = at_most(profile, epsilon - self.at_most - rounding);
                let below = mass * at_least(profile, epsilon - self.at_least + rounding) * (1.0 - 1e-12);
                (if below > UNDERFLOW { below } else { 0.0 }, above)
            }
            Query::Epsilon(delta) => {
                let above = single(profile, query)?.upper + self.at_most;
                let share = (delta.ln() - self.log_mass).exp() * (1.0 + 1e-12);
                let below = if share < 1.0 { single(profile, Query::Epsilon(share))?.lower } else { 0.0 };
                let below = if below > 0.0 { below + self.at_least } else { 0.0 };
                (below.max(0.0) * (1.0 - 4.0 * UNIT_ROUNDOFF), above * (1.0 + 4.0 * UNIT_ROUNDOFF))
            }
        };
        Ok(Answer { lower, upper, ..Answer::default() })
    }

    /// Returns (1 − e^{−x}) Π Pr[L_i > M_i − x]^{n_i}, rounded up; 1 if some largest loss is not an atom, since then
    /// nothing is known about the supporting lines that this is computed from.
    fn delta_at_most(&self, epsilon: f64) -> f64 {
        if self.log_mass == f64::NEG_INFINITY {
            return 1.0;
        }
        let x = (self.at_most - epsilon) * (1.0 + 4.0 * UNIT_ROUNDOFF);
        let mut log_mass = 0.0;
        for round in self.rounds {
            let largest = round.profile.largest_loss().at_least;
            let place = largest - x - 4.0 * UNIT_ROUNDOFF * (largest.abs() + x);
            let point = round.profile.at(place).or_trivial(place);
            let above = point.delta + point.delta_error + point.slope + point.slope_error;
            log_mass += count(round) * (above * (1.0 + 8.0 * UNIT_ROUNDOFF)).min(1.0).ln();
        }
        // The logarithms are at most 0.
        let mass = (log_mass * (1.0 - 4.0 * self.relative)).exp() * (1.0 + 1e-12);
        (mass * -(-x).exp_m1() * (1.0 + 1e-12) + UNDERFLOW).min(1.0)
    }
}

// counts are at most 1e18; relative error 2^-53, covered by `relative`
fn count(round: &Round) -> f64 {
    real(round.count)
}

#[cfg(test)]
mod tests {
    use crate::pair::check::Checked;

    use super::*;
    use crate::pair::discrete::DiscretePair;
    use crate::pair::laplace::Laplace;
    use crate::pair::mixture::MixturePair;
    use crate::pair::rare::RarePair;
    use crate::pair::Profile;

    /// Returns δ(ε) of n rounds of randomised response that tells the truth with probability p: a sum over binomial
    /// coefficients.
    fn randomised_response(p: f64, n: i32, epsilon: f64) -> f64 {
        let mut choose = 1.0;
        let mut sum = 0.0;
        for lies in 0..=n {
            let (above, below) = (p.powi(n - lies) * (1.0 - p).powi(lies), (1.0 - p).powi(n - lies) * p.powi(lies));
            sum += choose * (above - epsilon.exp() * below).max(0.0);
            choose *= f64::from(n - lies) / f64::from(lies + 1);
        }
        sum
    }

    #[test]
    fn randomised_response_lies_between_the_ends() {
        let (p, n) = (0.75, 12);
        let pair = DiscretePair::new(vec![(p, 1.0 - p), (1.0 - p, p)]).unwrap();
        let rounds = [Round { profile: Checked::of(pair).unwrap(), count: n }];
        let largest = Largest::of(&rounds).unwrap();
        #[allow(clippy::cast_possible_truncation)] // 12
        let exact = |epsilon: f64| randomised_response(p, n as i32, epsilon);
        let end = 12.0 * 3.0_f64.ln();
        assert!(largest.at_least < end && end < largest.at_most);
        for x in [1e-9, 1e-4, 0.1, 1.0, 2.0, 3.0, 12.0] {
            let (lower, upper) = largest.delta(end - x);
            let truth = exact(end - x);
            assert!(lower <= truth * (1.0 + 1e-9) && truth <= upper * (1.0 + 1e-9), "{x}: {lower} {truth} {upper}");
            let (below, above) = largest.epsilon(truth);
            assert!(below <= end - x + 1e-9 && end - x - 1e-9 <= above, "{x}: {below} {above}");
        }
        // Up to the second largest sum, ln 9 below, both bounds equal the value itself.
        let (lower, upper) = largest.delta(end - 1.0);
        assert!((upper - lower) / upper < 1e-10);
    }

    #[test]
    fn lines_near_a_largest_loss_with_a_mass_bound_the_mass_above() {
        // Pr[L > ε] of Lap(0, 1/θ) against Lap(θ, 1/θ): P(y < (θ − ε)/(2θ)) in units of the shift, ½e^{…} from the left
        // of it.
        let laplace = |theta: f64, epsilon: f64| 1.0 - 0.5 * (0.5 * (epsilon - theta)).exp();
        let outcomes = vec![(0.5, 0.1), (0.3, 0.3), (0.15, 0.2), (0.05, 0.4)];
        let discrete = DiscretePair::new(outcomes.clone()).unwrap();
        let above = |epsilon: f64| outcomes.iter().filter(|(p, q)| p / q > epsilon.exp()).map(|o| o.0).sum::<f64>();
        for x in [1e-300, 1e-17, 1e-16, 1e-15, 1e-13, 1e-9, 1e-3, 0.5, 1.5] {
            for theta in [1e-6, 0.3, 2.0, 40.0] {
                let epsilon = theta - x;
                if -theta < epsilon && epsilon < theta {
                    let point = Laplace::new(theta, 1.0).unwrap().at(epsilon);
                    let most = point.delta + point.delta_error + point.slope + point.slope_error;
                    assert!(laplace(theta, epsilon) <= most, "{theta} {x}: {point:?}");
                }
            }
            let largest = discrete.largest_loss().at_least;
            let point = discrete.at(largest - x);
            let most = point.delta + point.delta_error + point.slope + point.slope_error;
            assert!(above(largest - x) <= most * (1.0 + 1e-15), "{x}: {point:?}");
        }
    }

    #[test]
    fn a_largest_loss_without_a_mass_bounds_no_delta_below_it() {
        let rare = Round { profile: Checked::of(RarePair::new(1e-6, 1.0, true).unwrap()).unwrap(), count: 3 };
        let often = MixturePair::poisson(1, 0.3, 1.0, false).unwrap().reversed();
        let laplace = Round { profile: Checked::of(Laplace::new(1.0, 1.0).unwrap()).unwrap(), count: 1 };
        for rounds in
            [vec![rare.clone()], vec![Round { profile: Checked::of(often).unwrap(), count: 2 }], vec![laplace, rare]]
        {
            let largest = Largest::of(&rounds).unwrap();
            for share in [0.0, 0.5, 1.0 - 1e-9] {
                assert!(largest.delta(share * largest.at_most).1 >= 1.0);
            }
            assert!(largest.delta(largest.at_most).1 <= 0.0);
        }
    }

    #[test]
    fn one_more_round_is_moved_by_the_rest() {
        // N(2, 1) against N(0, 1) and four Laplace releases of scale 10: at ε = 10, δ₁(9.6) = Φ(−3.8) − e^{9.6}Φ(−5.8).
        let tail = |x: f64| 0.5 * libm::erfc(x / 2.0_f64.sqrt());
        let laplace = Round { profile: Checked::of(Laplace::new(1.0, 10.0).unwrap()).unwrap(), count: 4 };
        let gaussian = Round { profile: Checked::of(MixturePair::gaussian(2.0, 1.0).unwrap()).unwrap(), count: 1 };
        let rounds = [laplace.clone(), gaussian.clone()];
        let one = tail(3.8) - 9.6_f64.exp() * tail(5.8);
        let found = ends(&rounds, Query::Delta(10.0)).unwrap().unwrap();
        assert!((found.upper / one - 1.0).abs() < 1e-9 && (found.lower / one * 16.0 - 1.0).abs() < 1e-9);
        let from = ends(&rounds, Query::Epsilon(one)).unwrap().unwrap();
        assert!((from.upper - 10.0).abs() < 1e-9 && from.lower > 0.4 && from.lower < 10.0);
        let to = ends(&rounds, Query::Epsilon(one / 16.0)).unwrap().unwrap();
        assert!((to.lower - 10.0).abs() < 1e-9);
        assert!(ends(&[laplace, Round { count: 2, ..gaussian }], Query::Delta(1.0)).unwrap().is_none());
    }

    #[test]
    fn beyond_all_losses_nothing_is_left() {
        let laplace = Round { profile: Checked::of(Laplace::new(1.0, 10.0).unwrap()).unwrap(), count: 20 };
        let gaussian = Round { profile: Checked::of(MixturePair::gaussian(1.0, 1.0).unwrap()).unwrap(), count: 1 };
        assert!(Largest::of(&[laplace.clone(), gaussian]).is_none());
        let rounds = [laplace];
        let largest = Largest::of(&rounds).unwrap();
        let delta = |epsilon| largest.delta(epsilon).1;
        assert!(delta(2.0 + 1e-14) < 1e-300 && delta(2.0 - 1e-14) > 0.0);
        for delta in [1e-280, 1e-100, 1e-12, 1e-8, 9e-7] {
            let (lower, upper) = largest.epsilon(delta);
            assert!(2.0 + (-delta * 2.0_f64.powi(20)).ln_1p() - lower < 1e-12, "{delta} {lower}");
            assert!(lower <= upper && upper <= 2.0 + 1e-14, "{delta} {upper}");
        }
    }
}

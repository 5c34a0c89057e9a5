//! Bounds from each round separately, where nothing resolves the rounds together: basic composition.
//!
//! * ε(δ) ≤ Σ n_i ε_i(δ/N), N = Σ n_i: without an event of mass δ_i each round's P is at most e^{ε_i}Q, and so are the
//!   products; the events have at most Σ n_i δ_i together (Dwork, Kenthapadi, McSherry, Mironov & Naor 2006, Theorem
//!   1).
//! * So δ(ε) ≤ N·d for every d with Σ n_i ε_i(d) ≤ ε.
//! * Both are at least those of any single round, because the outcomes of the other rounds may be left out.

use crate::error::Result;
use crate::pld::answer::{at_least, single, total_variation, Answer, Query, Round, SMALLEST_DELTA};
use crate::special::{real, UNIT_ROUNDOFF};

/// The number of halvings of the range of ln d.
const HALVINGS: usize = 40;

/// Returns a proven interval for the answer, however wide.
///
/// # Errors
/// As [`single`].
pub(super) fn ends(rounds: &[Round], query: Query) -> Result<Answer> {
    let (lower, upper) = match query {
        Query::Epsilon(delta) => {
            let alone = |round: &Round| Ok(single(round.profile.as_ref(), query)?.lower);
            let lower = rounds.iter().map(alone).try_fold(0.0, |a: f64, e: Result<f64>| e.map(|e| a.max(e)))?;
            let none = total_variation(rounds) <= delta;
            (lower, if none { 0.0 } else { summed(rounds, delta / number(rounds))? })
        }
        Query::Delta(epsilon) => {
            let lower = rounds.iter().map(|round| at_least(round.profile.as_ref(), epsilon)).fold(0.0, f64::max);
            (lower, delta_at_most(rounds, epsilon)?.min(total_variation(rounds)))
        }
    };
    Ok(Answer { lower, upper, ..Answer::default() })
}

/// Returns N, rounded up.
fn number(rounds: &[Round]) -> f64 {
    // counts are at most 1e18; covered by the factor
    let sum: f64 = rounds.iter().map(|round| real(round.count)).sum();
    sum * slack(rounds)
}

/// Returns a factor above 1 that covers the rounding of a sum over the rounds' groups.
fn slack(rounds: &[Round]) -> f64 {
    1.0 + UNIT_ROUNDOFF * (8.0 + 2.0 * real(rounds.len()))
}

/// Returns Σ n_i ε_i(d), rounded up.
fn summed(rounds: &[Round], d: f64) -> Result<f64> {
    let mut sum = 0.0;
    for round in rounds {
        let count = real(round.count);
        sum += count * single(round.profile.as_ref(), Query::Epsilon(d))?.upper;
    }
    Ok(sum * slack(rounds))
}

/// Returns N·d for approximately the smallest d whose ε is low enough.
fn delta_at_most(rounds: &[Round], epsilon: f64) -> Result<f64> {
    let number = number(rounds);
    let (mut low, mut high) = (SMALLEST_DELTA.ln(), -number.ln());
    if summed(rounds, high.exp())? > epsilon {
        return Ok(1.0);
    }
    for _ in 0..HALVINGS {
        let middle = 0.5 * (low + high);
        if summed(rounds, middle.exp())? <= epsilon {
            high = middle;
        } else {
            low = middle;
        }
    }
    Ok(number * high.exp() * slack(rounds))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pair::check::Checked;
    use crate::pair::gaussian::GaussianPair;
    use crate::pair::laplace::Laplace;
    use crate::pld::{answer, curve};
    use crate::run::Run;

    fn gaussian(shift: f64, count: u64) -> Round {
        Round { profile: Checked::of(GaussianPair::new(shift, 1.0).unwrap()).unwrap(), count }
    }

    #[test]
    fn losses_beyond_all_lattices_have_bounds() {
        // Gaussian mechanisms compose to one whose squared shift is the sum: up to 10¹² nats here.
        for scale in [1.0, 20.0] {
            let (one, two) = (4e4 * scale, 5e4 * scale);
            let rounds = [gaussian(one, 2), gaussian(two, 1)];
            let all = GaussianPair::new((2.0 * one * one + two * two).sqrt(), 1.0).unwrap();
            for delta in [1e-12, 1e-5, 0.3, 0.9] {
                let query = Query::Epsilon(delta);
                let (exact, found) =
                    (single(&all, query).unwrap(), answer(&rounds, query, 1e-2, &Run::default()).unwrap());
                assert!(found.lower <= exact.lower && exact.upper <= found.upper, "{delta}: {found:?} {exact:?}");
                assert!(found.upper < 3.0 * exact.upper && found.lower > 0.3 * exact.lower && !found.within_tolerance);
                let query = Query::Delta(exact.upper);
                let found = answer(&rounds, query, 1e-2, &Run::default()).unwrap();
                assert!(found.lower <= delta && delta <= found.upper, "{delta}: {found:?}");
            }
            let far = 3.0 * single(&all, Query::Epsilon(1e-5)).unwrap().upper;
            let found = answer(&rounds, Query::Delta(far), 1e-2, &Run::default()).unwrap();
            assert!(found.upper < 1e-200, "{found:?}");
            let points = curve(&rounds, &[0.0, 1.0, far], 1e-2, 1e-12, &Run::default()).unwrap().points;
            assert!(points[0].0 > 0.99 && points[2].1 < 1e-200, "{points:?}");
        }
    }

    #[test]
    fn what_a_largest_loss_says_is_the_answer_where_the_rest_is_beyond_all_lattices() {
        let laplace = Round { profile: Checked::of(Laplace::new(1.0, 22.408).unwrap()).unwrap(), count: 1 };
        let rest = GaussianPair::new(1.0, 6.05e-6).unwrap();
        let delta = 0.999_999_97;
        let alone = single(&rest, Query::Epsilon(delta)).unwrap();
        let rounds = [laplace, Round { profile: Checked::of(rest).unwrap(), count: 1 }];
        let found = answer(&rounds, Query::Epsilon(delta), 1e-2, &Run::default()).unwrap();
        assert!(found.within_tolerance && found.lower <= found.upper, "{found:?}");
        assert!(found.lower >= alone.lower && found.upper <= alone.upper + 0.045, "{found:?} {alone:?}");
    }
}

//! Poisson sampling with truncated batches, where the number of other records in each round is released.
//!
//! A batch of more than B records keeps B of them at random. Rounds are independent, and so is the number r ~ Bin(N −
//! 1, p) of other records from the sensitive one, so a round that releases r and the noisy sum has the profile
//! `Σ_r Pr[r] H(P_r‖Q_r)`, and n of them compose as any rounds do. Where r < B the pair is (1 − p)N(0) + pN(1) against
//! N(0). Where r ≥ B the sensitive record survives with probability s = B/(r + 1), in place of another record: with q =
//! ps the sum moves by at most 2 under P = (1 − q)N(0) + qN(2), and by at most 1 the other way for its empty stand-in
//! under Q = (1 − q)N(0) + qN(−1) (zero-out; Ganesh 2025, arXiv:2508.15089; Dong & Ganesh 2026, Appendix D, with
//! b = 1).
//!
//! **Nodes.** Only some r ≥ B are kept, and the probability of an r between two of them goes to both, so that the mean
//! of s is kept. That is an upper bound: P and Q are linear in q, so by joint convexity H is convex in s. Replacing an
//! r by a smaller one is also an upper bound: for s′ < s the pair of s′ is the mixture of the pair of s and of (N(0),
//! N(0)) with weights s′/s and 1 − s′/s, so H(s′) ≤ (s′/s)H(s) + (1 − s′/s)(1 − α)₊, and (1 − α)₊ ≤ H(s) always.

use std::sync::Arc;

use crate::error::{domain, Result};
use crate::laws::binomial;
use crate::laws::exact::{probabilities, Odds};
use crate::pair::mixture::MixturePair;
use crate::pair::{Profile, ProfilePoint, Reversal};
use crate::special::{real, UNIT_ROUNDOFF};

/// Below this every r that counts is a node, and from there on nodes are r/32 apart.
const SMALL: u64 = 256;
const FINENESS: u64 = 32;
/// Below [`SMALL`] nodes may be further apart if the relative variance of s that they add is at most this on average
/// over all r ≥ B: the loss from convexity in s is about the same fraction of δ.
const SPREAD: f64 = 1e-10;
/// The least r that have less than this probability together are replaced by the least of them.
const NEGLIGIBLE: f64 = 1e-30;
/// The largest r that have less than this fraction of the probability together are replaced by the least of them: no
/// other is less likely to survive, so that δ grows by no more than this fraction of itself.
const NEGLIGIBLE_SHARE: f64 = 1e-12;
/// More than the rounding of a share between nodes; it is added to the lower node.
const ROUNDING: f64 = 1e-12;
/// An upper bound on what the probabilities leave out.
const LEFT_OUT: f64 = 1e-280;

/// One direction of a round: a mixture of profiles, one for each released value.
#[derive(Debug, Clone, PartialEq)]
pub struct TruncatedPoisson {
    terms: Vec<(f64, MixturePair)>,
    relative_error: f64,
}

impl TruncatedPoisson {
    /// Creates the profile of a round with batches truncated to `limit` of `dataset_size` records.
    ///
    /// # Errors
    /// [`Error::Domain`] for an empty data set, one of more than 2⁵² records, a limit of 0, a probability outside (0,
    /// 1], a noise multiplier that is not positive and finite, and batches whose size varies too much.
    pub fn new(dataset_size: u64, limit: u64, probability: f64, noise_multiplier: f64, reverse: bool) -> Result<Self> {
        if dataset_size == 0 || dataset_size > 1 << 52 || limit == 0 {
            let (name, value) = if limit == 0 { ("truncate_to", 0.0) } else { ("dataset_size", real(dataset_size)) };
            return domain(name, value, "at least 1, and a data set of at most 2^52 records");
        }
        let usual = MixturePair::poisson(1, probability, noise_multiplier, false)?;
        let other_records = dataset_size - 1;
        let (first, law) = if other_records == 0 || probability >= 1.0 {
            (other_records, vec![1.0])
        } else {
            probabilities(other_records, &Odds::of(probability))?
        };
        let mut terms = Vec::new();
        let untruncated: f64 = law.iter().zip(first..).filter(|(_, r)| *r < limit).map(|(w, _)| w).sum();
        if untruncated > 0.0 {
            terms.push((untruncated, usual));
        }
        for (least, weight) in nodes(&law, first, limit) {
            let share = real(limit) / real(least + 1);
            // The probability is rounded up: a likelier survivor is no more private.
            let survives = (probability * share * (1.0 + 4.0 * UNIT_ROUNDOFF)).min(1.0);
            let law = binomial(1, survives)?;
            terms.push((weight, MixturePair::counted(&law, 2.0, Some(1.0), noise_multiplier)?));
        }
        if reverse {
            for (_, pair) in &mut terms {
                *pair = pair.reversed();
            }
        }
        let relative_error = UNIT_ROUNDOFF * (real(law.len()) + 8.0);
        Ok(Self { terms, relative_error })
    }
}

/// Returns the r ≥ limit that are kept, each with its probability and its share of its neighbours' probabilities.
fn nodes(law: &[f64], first: u64, limit: u64) -> Vec<(u64, f64)> {
    let beyond = first + law.len() as u64;
    let least = first.max(limit);
    if least >= beyond {
        return vec![];
    }
    let weights = &law[usize::try_from(least - first).expect("inside the law")..];
    let negligible = |weights: &mut dyn Iterator<Item = &f64>, most: f64| {
        let mut sum = 0.0;
        let within = |w: &&f64| {
            sum += **w;
            sum < most
        };
        weights.take_while(within).count()
    };
    let total = weights.iter().sum::<f64>();
    let share = NEGLIGIBLE_SHARE * total;
    let from = negligible(&mut weights.iter(), NEGLIGIBLE).min(weights.len() - 1);
    let to = weights.len() - negligible(&mut weights.iter().rev(), share).min(weights.len() - 1 - from);
    let mut weighted = Vec::new();
    if from > 0 {
        weighted.push((least, weights[..from].iter().sum()));
    }
    let survives = |r: u64| 1.0 / real(r + 1);
    let end = least + to as u64 - 1;
    let mut node = least + from as u64;
    weighted.push((node, weights[from]));
    let weight_of = |r: u64| weights[usize::try_from(r - least).expect("inside")];
    while node < end {
        // (s − s₊)(s₋ − s)/s² is the variance of s between its nodes s₋ and s₊, relatively.
        let spread = |next: u64| -> f64 {
            let area = real(node + 1) * real(next + 1);
            (node + 1..next).map(|r| weight_of(r) * real(r - node) * real(next - r) / area).sum()
        };
        let mut next = node + if node < SMALL { 1 } else { node / FINENESS };
        while node < SMALL && next < end && spread(next + 1) <= SPREAD * total {
            next += 1;
        }
        let next = next.min(end);
        let (mut lower, mut upper) = (0.0, weight_of(next));
        for r in node + 1..next {
            let weight = weight_of(r);
            let share = (survives(r) - survives(next)) / (survives(node) - survives(next)) + ROUNDING;
            lower += weight * share;
            upper += weight * (1.0 - share).max(0.0);
        }
        weighted.last_mut().expect("the node before").1 += lower;
        weighted.push((next, upper));
        node = next;
    }
    weighted.last_mut().expect("a node").1 += weights[to..].iter().sum::<f64>();
    weighted
}

impl Profile for TruncatedPoisson {
    fn at_within(&self, epsilon: f64, _bracket: (f64, f64)) -> ProfilePoint {
        let mut sum =
            ProfilePoint { delta: 0.0, delta_error: LEFT_OUT, slope: 0.0, slope_error: LEFT_OUT, threshold: f64::NAN };
        for (weight, pair) in &self.terms {
            let point = pair.at(epsilon);
            let relative = self.relative_error;
            sum.delta += weight * point.delta;
            sum.delta_error += weight * (point.delta_error * (1.0 + 2.0 * relative) + 2.0 * relative * point.delta);
            sum.slope += weight * point.slope;
            sum.slope_error += weight * (point.slope_error * (1.0 + 2.0 * relative) + 2.0 * relative * point.slope);
        }
        let rounding = UNIT_ROUNDOFF * (real(self.terms.len()) + 4.0);
        sum.delta_error += rounding * sum.delta;
        sum.slope_error += rounding * sum.slope;
        sum
    }

    /// The count that is released first has the same law on both data sets.
    fn reversal(&self) -> Reversal {
        let terms = self.terms.iter().map(|(weight, pair)| (*weight, pair.reversed())).collect();
        Reversal::Other(Arc::new(Self { terms, ..*self }))
    }

    /// Returns the largest shift of all released counts.
    fn dominating_shift(&self) -> Option<f64> {
        self.terms.iter().filter_map(|(_, pair)| pair.dominating_shift()).reduce(f64::max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_share_out_all_of_the_probability() {
        let law = [1e-40, 1e-35, 0.25, 0.25, 0.25, 0.25, 1e-35, 1e-40];
        let kept = |first, limit| nodes(&law, first, limit).iter().map(|node| node.0).collect::<Vec<_>>();
        // One node has the negligible r below, and there is one for each r that counts; the last of these has the
        // negligible r above.
        assert_eq!(kept(10, 3), [10, 12, 13, 14, 15]);
        assert_eq!(kept(10, 14), [14, 15]);
        assert_eq!(kept(1000, 3), [1000, 1002, 1005]);
        assert!(kept(10, 18).is_empty());
        for (first, limit) in [(10, 3), (1000, 3), (10_000, 3)] {
            let found = nodes(&law, first, limit);
            assert!((found.iter().map(|node| node.1).sum::<f64>() - 1.0).abs() < 1e-15);
            // The mean of 1/(r + 1) is kept, or grows by what is negligible.
            let of = |pairs: &mut dyn Iterator<Item = (u64, f64)>| pairs.map(|(r, w)| w / real(r + 1)).sum::<f64>();
            let (kept, exact) = (of(&mut found.into_iter()), of(&mut (first..).zip(law)));
            assert!(kept >= exact * (1.0 - 1e-14) && kept <= exact * (1.0 + 1e-11));
        }
    }

    #[test]
    fn small_counts_that_hardly_count_share_nodes() {
        // Each r is less likely than the one before by the same factor, as beyond the usual size of a batch.
        let law: Vec<f64> = (0..120).map(|k| 0.3 * 0.7_f64.powi(k)).collect();
        let found = nodes(&law, 80, 80);
        assert!((0..20).all(|k| found[k].0 == 80 + k as u64) && found.len() < 60, "{}", found.len());
        let of = |pairs: &mut dyn Iterator<Item = (u64, f64)>, power: i32| {
            pairs.map(|(r, w)| w / real(r + 1).powi(power)).sum::<f64>()
        };
        for (power, most) in [(0, 1e-12), (1, 1e-11), (2, 1e-8)] {
            let kept = of(&mut found.iter().copied(), power);
            let exact = of(&mut (80..).zip(law.iter().copied()), power);
            // The mean of a convex function of s does not decrease.
            assert!(kept >= exact * (1.0 - 1e-14) && kept <= exact * (1.0 + most), "{power} {kept} {exact}");
        }
    }

    #[test]
    fn a_gaussian_pair_dominates_both_directions() {
        for reverse in [false, true] {
            let profile = TruncatedPoisson::new(50, 4, 0.1, 2.0, reverse).unwrap();
            let gaussian = MixturePair::gaussian(profile.dominating_shift().unwrap(), 1.0).unwrap();
            for epsilon in (0..80).map(|k| 0.05 * f64::from(k)) {
                assert!(profile.bounds(epsilon).0 <= gaussian.bounds(epsilon).1, "{reverse} {epsilon}");
            }
        }
    }
}

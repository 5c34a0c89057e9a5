//! Several mechanisms of bounded range in a row, each chosen after looking at what the earlier ones released.
//!
//! The losses of a mechanism of bounded range r lie in [t − r, t] for some 0 ≤ t ≤ r ([`super::exponential`]). Let h_k be
//! the supremum of the profiles of k such mechanisms, h_0(α) = (1 − α)₊. Then
//!
//! `h_k(α) = sup_t [p_t·h_{k−1}(αe^{−t}) + (1 − p_t)·h_{k−1}(αe^{r−t})]`, p_t = (e^r − e^t)/(e^r − 1), 0 ≤ t ≤ r.
//!
//! *Proof.* Let L be the loss of the first mechanism, drawn by P, and Z = e^{−L}. Given L, what remains is k − 1
//! mechanisms that are compared at αZ, so their share is at most h_{k−1}(αZ), and h_k(α) ≤ E h_{k−1}(αZ). The function
//! h_{k−1} is convex, E Z = 1, and Z lies in [e^{−t}, e^{r−t}]: on this interval the function is below its chord, so the
//! mean is at most that of the two ends with masses that have the mean 1, which are p_t and 1 − p_t. Two-point losses are
//! of bounded range, so the supremum is attained or approached: nothing smaller is true (Dong, Durfee & Rogers 2020,
//! arXiv:1909.13830, have the same recursion for adaptive choices).
//!
//! **Beside other rounds, in any order.** Let there be other rounds with dominating pairs, and several blocks of mechanisms,
//! each with a range and a number of runs of its own. All of them are run in some order, adaptively. Then the composition of
//! the other pairs and of one pair for each block, whose profile is h_k for its range and its k, bounds them. *Proof* by
//! induction over the number of rounds. The first round is followed by rounds for which the statement holds.
//! * If it has a pair of its own, it is dominated by it, and pairs compose.
//! * If it is one of the k runs of a block, let W be the loss of the composition of everything else. By induction and by the
//!   argument above, the profile is at most sup_t E_t E_W h_{k−1}(αe^{−W−L_t}), where L_t is the two-point loss. This is at
//!   most E_W sup_t E_t h_{k−1}(αe^{−W−L_t}) = E_W h_k(αe^{−W}), the profile of the composition with h_k.
//!
//! So runs of one range may be divided into blocks in any way.
//!
//! **Both directions.** The reversal of the two-point losses at t are those at r − t. So the pairs of k runs are closed
//! under reversal, and h_k(α) = 1 − α + α·h_k(1/α).
//!
//! # Computation
//! Let g be a function above h_{k−1} that is linear in α between the nodes e^{iη}, η = r/m. For α at a node and t = jη + s
//! with 0 ≤ s ≤ η both arguments stay between two nodes each. Let A and B be the values of g at αe^{−jη} and αe^{r−jη}, dA
//! and dB the increases of g from there to the nodes on the left, divided by 1 − e^{−η}; p and q = 1 − p the masses at jη,
//! and κ = e^{jη}/(e^r − 1). With y = e^s the bracket is
//!
//! `pA + qB + (y − 1)(b/y − a)`, a = κ(A − B) + κ(dA − dB), b = p·dA + q·dB + κ(dA − dB).
//!
//! If a, b ≥ 0 it is concave. If b ≤ a, its supremum over 1 ≤ y ≤ e^η is at y = 1; otherwise at y = √(b/a), where it is
//! (√b − √a)² above pA + qB, or at e^η if that is less. So the supremum over all t is exact for g. The values at nodes bound
//! h_k there; h_k is convex, so its chords between nodes bound it too. One step adds a variance of about η²/6 to the r²/4
//! of a run.
//!
//! **Rounding.** The error of a and b is a few units of rounding of the terms that they are made of: b is raised by it, to 0
//! at least, and a is lowered. For y ≥ 1 the bracket rises with b and falls with a, so this is an upper bound, also if g is
//! not quite convex. If a is negative then, which it is for no convex g, the bracket rises with y up to e^η. The square is computed as (b − a)²/(√a + √b)², without cancellation. Everything else is a sum of
//! products of positive numbers, which is raised by more than they can have lost.
//!
//! **Far losses.** Nodes end where the value is about 1e−90; right of them the last value holds, since profiles fall. This
//! adds less than the last value in every step. The result is improved by ρ-zCDP with ρ = kr²/8 and by the largest loss kr.

use rayon::prelude::*;

use crate::error::{domain, Result};
use crate::exact::{decimal, Enclosure, Rational};
use crate::pair::exponential;
use crate::pair::moments::RELATIVE;
use crate::pair::pure;
use crate::pair::renyi::zcdp_bound;
use crate::pair::tabulated::Tabulated;
use crate::pair::{LargestLoss, Profile, ProfilePoint, Reversal};
use crate::run::Run;
use crate::special::{real, UNDERFLOW, UNIT_ROUNDOFF};

/// The largest number of brackets that are evaluated.
const MOST_WORK: f64 = 1.6e8;
/// The largest block, and the bounds on the number of nodes on the range of one run.
const MOST_RUNS: u64 = 512;
const LEAST_NODES: f64 = 32.0;
const MOST_NODES: f64 = 160.0;
/// The least number of nodes on a loss of 1.
const NODES_PER_NAT: f64 = 16.0;
/// The standard deviations of the loss after which nodes end.
const DEVIATIONS: f64 = 20.0;
/// The smallest range: far below it, products of slopes leave the range of numbers.
const LEAST_RANGE: f64 = 1e-100;
/// Nodes that one task of a step computes.
const PER_TASK: usize = 64;
/// Points of the bound beyond the nodes on the range of one run.
const BEYOND: f64 = 8.0;

/// Several mechanisms of one bounded range: an upper bound on their profile, in both directions.
///
/// * Guarantee: that of [`runs`].
#[derive(Debug, Clone)]
pub struct ExponentialRuns {
    profile: Tabulated,
    range: f64,
    runs: u64,
}

impl ExponentialRuns {
    /// Returns the number of runs, as a rational number.
    fn count(&self) -> Rational {
        Rational::from_integer(self.runs.into())
    }
}

impl Profile for ExponentialRuns {
    fn at_within(&self, epsilon: f64, bracket: (f64, f64)) -> ProfilePoint {
        self.profile.at_within(epsilon, bracket)
    }

    fn delta_at_infinity(&self) -> f64 {
        self.profile.delta_at_infinity()
    }

    fn largest_loss(&self) -> LargestLoss {
        self.profile.largest_loss()
    }

    fn exact_largest_loss(&self) -> Option<Enclosure> {
        self.profile.exact_largest_loss()
    }

    fn reversal(&self) -> Reversal {
        self.profile.reversal()
    }

    /// Divergences of adaptively chosen runs add up, as in every composition, and so do the squares of μ.
    fn log_moment(&self, order: f64, _run: &Run) -> Result<Option<f64>> {
        let runs = real(self.runs);
        Ok(Some(runs * exponential::log_moment(self.range, order) * (1.0 + RELATIVE)))
    }

    fn concentration(&self) -> Option<Rational> {
        Some(self.count() * exponential::concentration(self.range))
    }

    fn gaussian_square(&self) -> Option<Rational> {
        pure::gaussian_square(self.range).map(|square| self.count() * square)
    }
}

/// Returns how many ranges the nodes cover: the mean, at most kr²/8, and some standard deviations, at most √k·r/2 each.
fn reach(range: f64, runs: f64) -> f64 {
    runs.min((runs * range / 8.0 + 0.5 * DEVIATIONS * runs.sqrt()).ceil())
}

/// Returns how many nodes the range of one run has if the work is limited.
fn nodes(range: f64, runs: f64) -> f64 {
    (MOST_WORK / (runs * reach(range, runs))).sqrt().min(MOST_NODES.max((NODES_PER_NAT * range).ceil())).floor()
}

/// Returns the largest number of runs of this range that [`runs`] takes; at least 1.
///
/// * Units: the range in nats, positive and finite.
pub fn most_runs(range: f64) -> u64 {
    if range < LEAST_RANGE {
        return 1;
    }
    let enough = |runs: u64| {
        let nodes = nodes(range, real(runs));
        nodes >= LEAST_NODES.max(NODES_PER_NAT * range)
    };
    let (mut low, mut high) = (1, MOST_RUNS + 1);
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if enough(middle) {
            low = middle;
        } else {
            high = middle;
        }
    }
    low
}

/// Returns an upper bound on the profile of `runs` mechanisms of this bounded range, in both directions.
///
/// * Formula: h_k of the head of this file, for k = `runs`.
/// * Units: the range in nats.
/// * Guarantee: at least the profile of every composition, with adaptive choices; as one round of a composition it bounds
///   the runs in any order with the other rounds. Never above ρ-zCDP with ρ = kr²/8 at the nodes.
/// * Precision: the variance of the losses is about 2/(3m²) of itself too large, with m nodes on the range.
/// * Source: the head of this file; Dong, Durfee & Rogers 2020, arXiv:1909.13830.
///
/// # Errors
/// [`Error::Domain`] unless the range is at least 1e-100 and finite, and the number of runs between 1 and [`most_runs`];
/// as [`Run::check`].
pub fn runs(range: f64, runs: u64, run: &Run) -> Result<ExponentialRuns> {
    if !(range >= LEAST_RANGE && range.is_finite()) {
        return domain("range", range, "at least 1e-100 and finite");
    }
    // at most 512, or refused
    let count = real(runs);
    if runs < 1 || runs > most_runs(range) {
        return domain("runs", count, "from 1 to the largest block of this range");
    }
    let wanted = nodes(range, count).max(LEAST_NODES);
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // small positive integers
    let mut steps = Steps::new(range, wanted as usize, reach(range, count) as usize);
    for done in 1..=runs {
        steps.advance(done, run)?;
    }
    // Rounded up.
    let up = 1.0 + 8.0 * UNIT_ROUNDOFF;
    let rho = count * range * range / 8.0 * up;
    let known = |epsilon: f64| zcdp_bound(rho, epsilon);
    let (step, top) = (range / wanted, count * range * up);
    let mut points = Vec::with_capacity(steps.last + 2);
    let mut at = 0.0_f64;
    for (i, value) in steps.values[steps.nodes..=steps.nodes + steps.last].iter().enumerate() {
        if i % 1024 == 0 {
            run.check()?;
        }
        let epsilon = real(i) * step * up;
        at = epsilon;
        points.push((epsilon, value.min(known(epsilon)).min(1.0)));
    }
    while at + range / BEYOND < top {
        at += range / BEYOND;
        points.push((at, known(at)));
    }
    points.retain(|point| point.0 < top);
    points.push((top, 0.0));
    let exact = decimal(range) * Rational::from_integer(runs.into());
    let profile = Tabulated::guarantees(&points)?.ending_at(exact);
    Ok(ExponentialRuns { profile, range, runs })
}

/// The values of an upper bound at the nodes, and what does not change from step to step.
struct Steps {
    /// The number of nodes m on the range of one run, and the index of the last node that is computed.
    nodes: usize,
    last: usize,
    /// The values at e^{(i − m)η}, up to m nodes beyond the last one.
    values: Vec<f64>,
    /// For the pieces of t in the order of the nodes on their left, from t = r to t = 0: p, q and κ.
    masses: Vec<Masses>,
    /// η, 1 − e^{−η}, e^η − 1, e^{−η} and e^{2η}.
    step: f64,
    width: f64,
    longer: f64,
    shrink: f64,
    square: f64,
    /// The relative error of a and b, and by how much values are raised.
    tolerance: f64,
}

#[derive(Clone, Copy)]
struct Masses {
    p: f64,
    q: f64,
    kappa: f64,
}

impl Steps {
    /// Starts with h_0. Values at α < 1 are those of the reflection.
    fn new(range: f64, nodes: usize, reach: usize) -> Self {
        let step = range / real(nodes);
        let span = -(-range).exp_m1();
        let masses = (0..nodes)
            .rev()
            .map(|j| {
                let (t, rest) = (real(j) * step, real(nodes - j) * step);
                Masses {
                    p: -(-rest).exp_m1() / span,
                    q: (-rest).exp() * -(-t).exp_m1() / span,
                    kappa: (-rest).exp() / span,
                }
            })
            .collect();
        let last = reach * nodes;
        let mut start = Self {
            nodes,
            last,
            values: vec![0.0; 2 * nodes + last + 1],
            masses,
            step,
            width: -(-step).exp_m1(),
            longer: step.exp_m1(),
            shrink: (-step).exp(),
            square: (2.0 * step).exp(),
            // Exponents are off by a few units of at most r.
            tolerance: 64.0 * UNIT_ROUNDOFF * (1.0 + range),
        };
        start.reflect();
        start
    }

    /// Sets the values at α < 1 to 1 − α + α·h(1/α), rounded up.
    fn reflect(&mut self) {
        for i in 1..=self.nodes {
            let log = -(real(i)) * self.step;
            let value = -log.exp_m1() + log.exp() * self.values[self.nodes + i];
            self.values[self.nodes - i] = value * (1.0 + self.tolerance);
        }
    }

    /// Replaces h_{k−1} by h_k, for k = `done`.
    fn advance(&mut self, done: u64, run: &Run) -> Result<()> {
        // The increase from each node to its neighbour on the left, over the width of the cell in units of the node.
        let rises: Vec<f64> = self.values.windows(2).map(|pair| (pair[0] - pair[1]).max(0.0) / self.width).collect();
        // Losses are at most kr: from that node on the value stays 0.
        #[allow(clippy::cast_possible_truncation)] // at most 512
        let active = (done as usize).saturating_mul(self.nodes).min(self.last + 1);
        let mut next = vec![0.0; active];
        next.par_chunks_mut(PER_TASK).enumerate().try_for_each(|(task, some)| {
            run.check()?;
            for (i, value) in some.iter_mut().enumerate() {
                *value = self.at(task * PER_TASK + i, &rises);
            }
            Ok(())
        })?;
        self.values[self.nodes..self.nodes + active].copy_from_slice(&next);
        let end = self.values[self.nodes + self.last];
        self.values[self.nodes + self.last..].fill(end);
        self.reflect();
        Ok(())
    }

    /// Returns the supremum over all t at the node of this index, rounded up.
    fn at(&self, node: usize, rises: &[f64]) -> f64 {
        let (count, values) = (self.nodes, &self.values);
        let (left, right) = (&values[node + 1..=node + count], &values[node + count + 1..=node + 2 * count]);
        let (left_rises, right_rises) = (&rises[node..node + count], &rises[node + count..node + 2 * count]);
        let mut best = 0.0_f64;
        for c in 0..count {
            let Masses { p, q, kappa } = self.masses[c];
            let (a_value, b_value, a_rise, b_rise) = (left[c], right[c], left_rises[c], right_rises[c]);
            let start = p * a_value + q * b_value;
            let (rise, fall) = (p * a_rise + q * b_rise, kappa * (a_value - b_value));
            let (shift, error) =
                (kappa * (a_rise - b_rise), self.tolerance * (rise + fall.abs() + kappa * (a_rise + b_rise)));
            let (a, b) = (fall + shift - error, (rise + shift + error).max(0.0));
            // The root of a product that has underflowed is too small, and the quotient too large.
            let inside = (b - a) * ((b - a) / (a + b + 2.0 * (a * b).sqrt()));
            let end = self.longer * (b * self.shrink - a);
            let gain = if a < 0.0 {
                end
            } else if b <= a {
                0.0
            } else if b <= a * self.square {
                inside
            } else {
                end
            };
            best = best.max(start + gain);
        }
        if values[node] > 0.0 {
            (best * (1.0 + self.tolerance) + UNDERFLOW).min(1.0)
        } else {
            0.0
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Error;
    use crate::pair::exponential::Exponential;
    use crate::pair::renyi::zcdp;

    fn profile(range: f64, count: u64) -> ExponentialRuns {
        runs(range, count, &Run::default()).unwrap()
    }

    /// Returns h_k by its definition, over a grid of t that has the best t of one run among its ends.
    fn brute(range: f64, k: u32, epsilon: f64, parts: u32) -> f64 {
        if k == 1 {
            let x = 0.5 * (range - epsilon);
            return match epsilon {
                e if e >= range => 0.0,
                e if e <= -range => -e.exp_m1(),
                _ => (-x).exp_m1().powi(2) / -(-range).exp_m1(),
            };
        }
        let two = |t: f64| {
            let p = (t - range).exp_m1() / (-range).exp_m1();
            let rest = |shift: f64| brute(range, k - 1, epsilon + shift, parts);
            p * rest(-t) + (1.0 - p) * rest(range - t)
        };
        (0..=parts).map(|j| two(range * f64::from(j) / f64::from(parts))).fold(0.0, f64::max)
    }

    #[test]
    fn one_run_is_the_closed_form_at_its_nodes() {
        for range in [1e-6, 0.2, 1.0, 9.0] {
            let (found, exact) = (profile(range, 1), Exponential::new(range).unwrap());
            for i in 0..160 {
                let epsilon = f64::from(i) / 160.0 * range;
                let (upper, least) = (found.bounds(epsilon).1, exact.at(epsilon).delta);
                assert!(least <= upper && upper <= least * (1.0 + 1e-9) + 1e-14, "{range} {i} {upper} {least}");
            }
        }
    }

    #[test]
    fn two_and_three_runs_are_the_best_choices() {
        for range in [1e-3, 0.2, 1.0, 4.0] {
            let (two, three) = (profile(range, 2), profile(range, 3));
            for share in [-1.7, -0.4, 0.0, 0.3, 0.9, 1.2, 1.9] {
                let (found, least) = (two.bounds(share * range).1, brute(range, 2, share * range, 20_000));
                assert!(
                    least * (1.0 - 1e-12) <= found && found <= least * (1.0 + 3e-3),
                    "{range} {share} {found} {least}"
                );
                let (found, least) = (three.bounds(share * range).1, brute(range, 3, share * range, 400));
                assert!(
                    least * (1.0 - 1e-12) <= found && found <= least * (1.0 + 3e-3),
                    "{range} {share} {found} {least}"
                );
            }
        }
    }

    #[test]
    fn fifty_runs_are_far_below_the_other_bounds() {
        let found = profile(0.2, 50).bounds(3.0).1;
        assert!((6.6e-6..6.9e-6).contains(&found), "{found}");
        assert!((zcdp(0.25).unwrap().bounds(3.0).1 / 3.1e-5 - 1.0).abs() < 0.02);
    }

    #[test]
    fn more_runs_reveal_more_and_never_more_than_zcdp() {
        for range in [0.01, 0.5, 3.0] {
            let mut before: Option<ExponentialRuns> = None;
            for count in [2, 3, 8, 40, 130] {
                let now = profile(range, count);
                let (k, known) = (real(count), zcdp(real(count) * range * range / 8.0).unwrap());
                for i in 0..200 {
                    let epsilon = f64::from(i) / 200.0 * range * k;
                    let upper = now.bounds(epsilon).1;
                    assert!(upper <= known.bounds(epsilon).1 * 1.02, "{range} {count} {epsilon}");
                    if let Some(before) = &before {
                        assert!(before.bounds(epsilon).0 <= upper + 1e-80, "{range} {count} {epsilon}");
                    }
                }
                assert!(now.bounds(k * range * (1.0 + 1e-12)).1 <= 0.0);
                before = Some(now);
            }
        }
    }

    #[test]
    fn arguments_are_refused_outside_of_their_domains() {
        for range in [0.0, -1.0, 1e-101, f64::NAN, f64::INFINITY] {
            assert!(runs(range, 1, &Run::default()).is_err() && runs(range, 2, &Run::default()).is_err());
        }
        assert!(profile(1e-100, 7).bounds(0.0).1 < 1e-98);
        for range in [1e-300, 1e-9, 0.1, 1.0, 30.0, 1e4, 1e300] {
            let most = most_runs(range);
            assert!((1..=MOST_RUNS).contains(&most));
            assert!(runs(range, most + 1, &Run::default()).is_err() && runs(range, 0, &Run::default()).is_err());
        }
        assert!(most_runs(0.2) == MOST_RUNS && most_runs(1e6) == 1);
        let cancelled = Run::default();
        cancelled.cancel();
        assert!(matches!(runs(0.1, 10, &cancelled), Err(Error::Cancelled)));
    }
}

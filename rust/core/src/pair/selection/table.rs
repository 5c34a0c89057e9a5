//! Upper bounds on the profiles of one run, as values at many ε with chords between them.

use crate::error::Result;
use crate::pair::Profile;
use crate::run::Run;
use crate::special::UNIT_ROUNDOFF;

/// Neighbouring values of one run differ by at most this much in their logarithm, where the number of nodes allows it.
const STEP: f64 = 0.03;
/// Values below this need no nodes of their own.
const NOTHING: f64 = 1e-90;
/// The first nodes: 0, and powers of 2 from this ε to that one.
const SMALLEST: f64 = 1e-3;
const LARGEST: f64 = 1e6;
/// Intervals are halved until there are so many nodes.
const MOST: usize = 5000;
/// Intervals are not narrower than this part of their ε, so that few nodes are spent on the end of bounded losses.
const NARROW: f64 = 1e-7;
/// Beyond this ε, reflecting a value of the other direction leaves none of its digits.
const REFLECTED: f64 = 30.0;

/// An upper bound on a profile: values at increasing ε, joined by chords in α = e^ε.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Table {
    pub nodes: Vec<(f64, f64)>,
}

impl Table {
    /// Returns the tables of both directions of one run, H(P‖Q) and H(Q‖P), from bounds on each.
    ///
    /// Each direction bounds the other: H_α(P‖Q) = 1 − α + α·H_{1/α}(Q‖P). The nodes of one are those of the other,
    /// mirrored.
    pub fn both(forward: &dyn Profile, backward: &dyn Profile, run: &Run) -> Result<(Self, Self)> {
        let positive = |profile: &dyn Profile| {
            let limit = profile.delta_at_infinity() * (1.0 + 1e-9) + NOTHING;
            let largest = profile.largest_loss().at_most;
            let end = if largest.is_finite() && largest > 0.0 { largest } else { LARGEST };
            nodes(|epsilon| if epsilon >= largest { 0.0 } else { upper(profile, epsilon) }, (end, limit, STEP), run)
        };
        let mut all: Vec<f64> = positive(forward)?.into_iter().map(|node| node.0).collect();
        all.extend(positive(backward)?.into_iter().map(|node| -node.0));
        all.sort_unstable_by(f64::total_cmp);
        all.dedup();
        let bounded = |profile: &dyn Profile, epsilon: f64| {
            if epsilon >= profile.largest_loss().at_most {
                0.0
            } else {
                upper(profile, epsilon)
            }
        };
        let (mut one, mut other) = (Vec::with_capacity(all.len()), Vec::with_capacity(all.len()));
        for (k, epsilon) in all.into_iter().enumerate() {
            if k.is_multiple_of(64) {
                run.check()?;
            }
            let (here, there) = (bounded(forward, epsilon), bounded(backward, -epsilon));
            one.push((epsilon, here.min(reflected(epsilon, there))));
            other.push((-epsilon, there.min(reflected(-epsilon, here))));
        }
        other.reverse();
        Ok((Self { nodes: one }, Self { nodes: other }))
    }

    /// Returns an upper bound on the profile at an ε that is known to an absolute error of `slack`.
    pub fn at(&self, epsilon: f64, slack: f64) -> f64 {
        let epsilon = epsilon - slack;
        let next = self.nodes.partition_point(|node| node.0 <= epsilon);
        if next == 0 {
            return 1.0;
        }
        let (left, before) = self.nodes[next - 1];
        let Some(&(right, after)) = self.nodes.get(next) else { return before };
        // The width to the right end is relative to α there, so that nothing overflows.
        let share = (epsilon - right).exp_m1() / (left - right).exp_m1();
        (after + (before - after).max(0.0) * share.min(1.0)) * (1.0 + 1e-14)
    }

    /// Returns the ε of the last node, right of which the bound is constant.
    pub fn end(&self) -> f64 {
        self.nodes[self.nodes.len() - 1].0
    }
}

/// Returns an upper bound on δ(ε).
fn upper(profile: &dyn Profile, epsilon: f64) -> f64 {
    let point = profile.at(epsilon).or_trivial(epsilon);
    ((point.delta + point.delta_error) * (1.0 + 2.0 * UNIT_ROUNDOFF)).clamp(0.0, 1.0)
}

/// Returns an upper bound on 1 − e^ε + e^ε·`other`, at most 1.
pub(super) fn reflected(epsilon: f64, other: f64) -> f64 {
    if epsilon > REFLECTED {
        return 1.0;
    }
    let alpha = epsilon.exp();
    let rounding = 8.0 * UNIT_ROUNDOFF * (1.0 + epsilon.abs()) * (alpha * other + epsilon.exp_m1().abs());
    (other * alpha - epsilon.exp_m1() + rounding).clamp(0.0, 1.0)
}

/// Returns nodes (ε, value) from 0 to `end` for a falling function, at most `step` apart in ln value where their number
/// allows it. They end where the value is at most `limit`.
pub(super) fn nodes(
    mut value: impl FnMut(f64) -> f64,
    (end, limit, step): (f64, f64, f64),
    run: &Run,
) -> Result<Vec<(f64, f64)>> {
    let mut done = vec![(0.0, value(0.0))];
    let mut next = SMALLEST;
    while next < end && done[done.len() - 1].1 > limit {
        done.push((next, value(next)));
        next *= 2.0;
    }
    if done[done.len() - 1].1 > limit {
        done.push((end, value(end)));
    }
    loop {
        run.check()?;
        let mut finer = Vec::with_capacity(2 * done.len());
        for pair in done.windows(2) {
            let ((left, above), (right, below)) = (pair[0], pair[1]);
            finer.push(pair[0]);
            let falls = above > below.max(limit) * step.exp();
            if falls && right - left > NARROW * right && above > limit {
                let middle = 0.5 * (left + right);
                finer.push((middle, value(middle)));
            }
        }
        finer.extend(done.last());
        let grown = finer.len() > done.len();
        done = finer;
        if !grown || done.len() > MOST {
            return Ok(done);
        }
    }
}

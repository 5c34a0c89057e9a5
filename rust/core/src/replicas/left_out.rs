//! An upper bound on the part that is left out where no more than K of the m replicas may be busy at once.
//!
//! **Few are busy.** A state of [`super::rounds`] is a multiset of m ages, most of them free. With at most K busy
//! replicas there are C(b + K − 1, K) states instead of C(b + m − 1, m), and a step is as before while j is at most K
//! minus the busy ones. Let T be the set of tuples (of starts and patterns) of which never more are busy: at most K
//! participations of all replicas together in any b rounds, those before a warm start included. Sums over T are what
//! the chain computes, and what [`super::tuples`] draws: they are exact, but Z_m also has the tuples outside T. So with
//!
//! `Z_T = Σ_{x ∈ T} Π_r w_{x^r} e^{Σ_{r<s} ⟨Cx^r, Cx^s⟩}`, `Z_m = Z_T + Z_⊥`, and for 0 ≤ g ≤ W_1 f^m
//!
//! * `E_R g ≤ W_1 (Z_T + Z_⊥)`: a moment's guarantee takes ln(Z_T + Z_⊥) for ln Z_m;
//! * tuples from T alone give `E ρ g/f^m = E_R g − bias`, 0 ≤ bias ≤ W_1 Z_⊥, as g/f^m ≤ W_1 bounds the contribution of
//!   the tuples outside T: E_R g is the sum of Π w e^{Σ⟨·,·⟩} E[g/f^m | Σ_r Cx^r + N(0, I)] over all tuples. With g =
//!   (f − e^ε)₊, W_1 is c_m e^{−(m−1)ε}.
//!
//! **Their weight.** Let a tuple leave T in round i: w replicas are busy, and more than K − w of the others join. From
//! there on all m go on independently of one another, from some ages, and the pairs that they form multiply by Π_{r<s}
//! F_{rs}, F_{rs} = e^{inner products of pairs of participations of which one is after round i}, a function of the two
//! replicas' further participations. Let 2 ≤ G ≤ m, and A_S ≥ 0 the product of F_{rs} over the pairs of a set S of G
//! replicas. Each pair is in C(m−2, G−2) of these sets, so the product is that of A_S^{1/C(m−2, G−2)} over all of them;
//! and each replica is in C(m−1, G−1). So by Finner's inequality (1992, Annals of Probability 20, for functions of
//! independent variables; here given the ages after round i), with 1/C(m−1, G−1) as the weight of each set,
//!
//! `E Π_{r<s} F_{rs} ≤ Π_S (E A_S^{(m−1)/(G−1)})^{1/C(m−1, G−1)} ≤ U_{i+1}^{m/G}`,
//!
//! U_{i+1} the largest value, over all ages, of the chain of G replicas from round i + 1 on with r replaced by r(m −
//! 1)/(G − 1). With o_i the mass of tuples that leave in round i and o_0 that of warm starts with more than K busy
//! ages, `Z_⊥ ≤ o_0 U_1^{m/G} + Σ_i o_i U_{i+1}^{m/G}`, which is the recursion
//!
//! `γ_i(s) = Σ_{j ≤ K − w} … γ_{i+1}(s′) + U_{i+1}^{m/G}·Σ_{j > K − w} C(m − w, j) p^j (1−p)^{m−w−j} e^{j(j−1)r_i(0)/2 + jh}`,
//! γ_{n+1} = 0.
//!
//! Of the last sum's factors e^{jh} only e^{(K−w+1)h} has the state's own field; the remaining factors have the largest
//! field that w busy ages can have.
//!
//! **Many rounds in one.** Let T and ω, that last sum, be the same in some rounds. Let v be positive, γ ≥ 0, Tv ≤ λ̄v,
//! and Tγ + uω ≤ κγ + μv for some u. If the value after such a round is at most aγ + bv and U^{m/G} there at most au,
//! then the value before it is at most κaγ + (λ̄b + μa)v. Begin with a = 1, b = 0 and the γ, u of a round, and raise a
//! where U^{m/G} grew by more. Any v, γ and κ are valid; here they are those of the chain once it has settled, with κ
//! at least the growth of U^{m/G}.
//!
//! **Hypotheses.** K ≥ 2. Those of [`super::rounds`]: no coefficient is negative, so that r ≥ 0, every F_{rs} is at
//! least 1, and the first and last rounds, whose columns have fewer rows, multiply by no more than others; and there
//! are at most b bands, so that the ages contain all relevant information about the past.
//!
//! **Rounding.** As in [`super::chain`]: everything is rounded up. μ is a difference, so the errors of its terms are
//! added.

use rayon::prelude::*;

use crate::error::Result;
use crate::participation::renewal::Renewal;
use crate::replicas::chain::{table, Beyond, Chain, Factors, Step, LOOK, MOST_CHANGE};
use crate::replicas::overlaps::Overlaps;
use crate::replicas::rounds;
use crate::replicas::steps::{Stationary, Steps};
use crate::run::Run;
use crate::special::{log_sum_exp, real, UNIT_ROUNDOFF};

/// How much of ln Z_⊥ may be given up by not computing every step.
const GAP: f64 = 0.05;
/// G, or K if that is less: chains of three replicas are smaller than any other, and those of four give little
/// improvement.
const GROUP: usize = 3;
/// The fraction of Z_m below which the value of Z_⊥ does not matter.
const NEGLIGIBLE: f64 = 1e-9;
/// No bound is returned if ln U^{m/G} exceeds this: then the replicas have too many pairs.
const MOST_LOG: f64 = 100.0;
/// Numbers above this power of two are divided by it.
const LARGE: i32 = 300;

/// Returns an upper bound on ln Z_⊥ of m = `order` replicas of which at most `most_busy` are busy at once; infinite if
/// there is none.
///
/// * Memory: 32 bytes for each state. Time: about twice that of [`super::aged::log_moment`].
/// * Guarantee: see the head of this file. The result does not depend on the number of threads.
///
/// # Errors
/// As [`super::aged::log_moment`].
pub(super) fn log_left_out(
    law: &Renewal,
    coefficients: &[f64],
    (order, most_busy): (usize, usize),
    run: &Run,
) -> Result<f64> {
    let (steps, overlaps) = rounds::steps(law, coefficients, order, Some(most_busy))?;
    of_steps(law, &steps, &overlaps, run)
}

/// Returns the same bound for steps with a limited number of busy replicas.
fn of_steps(law: &Renewal, steps: &Steps, overlaps: &Overlaps, run: &Run) -> Result<f64> {
    let (order, most_busy) = (steps.chain.order, steps.chain.most_busy);
    let further = Further::new(law, overlaps, (order, most_busy), run)?;
    // The computation stops here if a number is infinite.
    if further.log(1).is_nan() || further.log(1) >= MOST_LOG || steps.logarithms().is_infinite() {
        return Ok(f64::INFINITY);
    }
    let weights = weights(&steps.chain, &steps.inner);
    if weights.iter().any(|weight| !weight.is_finite()) {
        return Ok(f64::INFINITY);
    }
    let inside = Leaving { steps, further: &further, weights: &weights, run }.log()?;
    let start = match steps.start {
        Some(start) => log_crowded(start, law.min_separation, (order, most_busy)) + further.log(1),
        None => f64::NEG_INFINITY,
    };
    let sum = log_sum_exp([inside, start].into_iter());
    Ok(if sum.is_finite() { sum + 16.0 * UNIT_ROUNDOFF * (1.0 + sum.abs()) } else { sum })
}

/// Returns ω without the factor of the state's own field, by how many may not join.
fn weights(chain: &Chain, factors: &Factors) -> Vec<f64> {
    let (order, most_busy) = (chain.order, chain.most_busy);
    let largest = factors.by_kind.iter().copied().fold(1.0, f64::max);
    (0..=most_busy)
        .map(|waiting| {
            let row = &factors.joining[(order - waiting) * (order + 1)..][..=order - waiting];
            // There are at most `waiting` factors for each replica that joins beyond the first one that may not: some
            // m²/4 roundings.
            #[allow(clippy::cast_possible_truncation, clippy::cast_possible_wrap, clippy::cast_precision_loss)]
            let field = largest.powi(waiting as i32) * (1.0 + 4.0 * (real(waiting) + 4.0) * UNIT_ROUNDOFF);
            let (mut sum, mut power) = (0.0, 1.0);
            for &weight in &row[most_busy - waiting + 1..] {
                if weight > 0.0 {
                    sum += weight * power;
                }
                power *= field;
            }
            let slack = 1.0 + 8.0 * (real(order) + 4.0) * UNIT_ROUNDOFF;
            sum * slack
        })
        .collect()
}

/// Returns ln of the probability that more than K of m stationary ages are busy, rounded up.
fn log_crowded(start: Stationary, separation: usize, (order, most_busy): (usize, usize)) -> f64 {
    let busy = start.busy * (real(separation) - 1.0) * (1.0 + 2.0 * UNIT_ROUNDOFF);
    let (mut ways, mut logs) = (0.0_f64, Vec::new());
    for k in 0..=order {
        let (count, free) = (real(k), real(order - k));
        if k > most_busy && busy > 0.0 {
            logs.push(ways + count * libm::log(busy) + free * libm::log(start.free));
        }
        ways += libm::log(free / (count + 1.0));
    }
    // Each logarithm and each product is rounded by u of itself: none is larger than 64·(750 + ln 64), and there are
    // fewer than 200.
    log_sum_exp(logs.into_iter()) + 1e-10
}

/// ln U_i^{m/G} for i = 1, …, n + 1.
struct Further {
    /// The last values, from i = n + 1 back, and by how much those before grow with each round.
    logs: Vec<f64>,
    growth: f64,
    count: usize,
}

impl Further {
    fn new(law: &Renewal, overlaps: &Overlaps, (order, most_busy): (usize, usize), run: &Run) -> Result<Self> {
        let group = GROUP.min(most_busy);
        let (many, few) = (real(order), real(group));
        let scaled = overlaps.times((many - 1.0) / (few - 1.0) * (1.0 + 2.0 * UNIT_ROUNDOFF));
        let steps = rounds::of_overlaps(law, &scaled, group, group)?;
        let states = steps.chain.multisets.count();
        let (mut values, mut next) = (table(states)?, table(states)?);
        next.fill(1.0);
        let power = many / few;
        let (mut exponent, mut scale) = (0_i32, 1.0_f64);
        let mut further = Self { logs: vec![0.0], growth: 0.0, count: steps.count };
        for i in (1..=steps.count).rev() {
            let looked = steps.same(i) && further.logs.len().is_multiple_of(LOOK);
            let against = looked.then_some(&next[..]);
            let step = Step { next: &next, factors: steps.factors(i), scale, against, beyond: None };
            let extremes = steps.chain.step(&step, &mut values, run)?;
            let change = libm::ilogb(extremes.largest);
            if !extremes.largest.is_finite() || change.abs() > MOST_CHANGE {
                further.logs.push(f64::INFINITY);
                return Ok(further);
            }
            let log = f64::from(exponent) * std::f64::consts::LN_2 + libm::log(extremes.largest);
            further.logs.push(power * (log + 16.0 * UNIT_ROUNDOFF * (1.0 + log.abs())));
            exponent += change;
            scale = 2.0_f64.powi(-change);
            let left = real(i - 1);
            let growth = libm::log(extremes.most);
            // This is the loss over all rounds before: those with columns from before the run are like the others, or
            // have less.
            let near = power * left * (growth - libm::log(extremes.least)) <= GAP;
            if looked && (near || further.logs.len() > steps.most) {
                further.growth = power * (growth + 8.0 * UNIT_ROUNDOFF * (1.0 + growth.abs()));
                break;
            }
            std::mem::swap(&mut values, &mut next);
        }
        Ok(further)
    }

    /// Returns ln U_i^{m/G}, rounded up.
    fn log(&self, i: usize) -> f64 {
        let (known, back) = (self.logs.len() - 1, self.count + 1 - i);
        let further = real(back.saturating_sub(known)) * self.growth;
        let sum = self.logs[back.min(known)] + further;
        sum + 8.0 * UNIT_ROUNDOFF * (1.0 + sum.abs())
    }
}

/// The recursion for γ.
struct Leaving<'a> {
    steps: &'a Steps,
    further: &'a Further,
    weights: &'a [f64],
    run: &'a Run,
}

/// The scale of the steps, counted back from the last one: arrays represent themselves times 2^unit, and are scaled by
/// 2^−shift next.
#[derive(Clone, Copy)]
struct Units {
    unit: i32,
    shift: i32,
}

impl Leaving<'_> {
    /// Returns ln Σ_s start(s) γ_1(s).
    fn log(&self) -> Result<f64> {
        let (steps, run) = (self.steps, self.run);
        let count = steps.chain.multisets.count();
        let (mut next, mut values) = (table(count)?, table(count)?);
        let (mut gamma_next, mut gamma) = (table(count)?, table(count)?);
        next.fill(1.0);
        let (mut units, mut i, mut settled) = (Units { unit: 0, shift: 0 }, steps.count, false);
        while i >= 1 {
            let (factors, scale) = (steps.factors(i), 2.0_f64.powi(-units.shift));
            let looked = !settled && steps.same(i) && (steps.count - i) % LOOK == 0;
            let step = Step { next: &next, factors, scale, against: looked.then_some(&next[..]), beyond: None };
            // v is not needed once its growth is known.
            let own = if settled { None } else { Some(steps.chain.step(&step, &mut values, run)?) };
            let log = self.further.log(i + 1) - f64::from(units.unit) * std::f64::consts::LN_2;
            let value = libm::exp(log) * (1.0 + 64.0 * UNIT_ROUNDOFF * (1.0 + log.abs()));
            let beyond = Some(Beyond { weights: self.weights, value });
            let step = Step { next: &gamma_next, factors, scale, against: None, beyond };
            let leaving = steps.chain.step(&step, &mut gamma, run)?;
            if let Some(own) = own.filter(|own| looked && own.most.is_finite() && leaving.largest.is_finite()) {
                let near = real(i) * libm::log(own.most / own.least) <= GAP;
                let enough = steps.count - i >= steps.most;
                if near || enough {
                    let step = GammaStep { v: &next, before: &gamma_next, after: &gamma, unscaled: 1.0 / scale };
                    let many = self.many(i, own.most * (1.0 + 4.0 * UNIT_ROUNDOFF), &step);
                    if enough || many.little {
                        let Many { a, b, exponent, .. } = many;
                        let up = 1.0 + 8.0 * UNIT_ROUNDOFF;
                        gamma_next.par_iter_mut().zip(&next).for_each(|(gamma, v)| *gamma = (a * *gamma + b * v) * up);
                        units.unit += exponent;
                        units.shift = libm::ilogb(gamma_next.par_iter().copied().reduce(|| 0.0, f64::max));
                        (i, settled) = (steps.first.len(), true);
                        continue;
                    }
                }
            }
            std::mem::swap(&mut values, &mut next);
            std::mem::swap(&mut gamma, &mut gamma_next);
            let most = own.map_or(0.0, |own| own.largest).max(leaving.largest);
            let power = libm::ilogb(most);
            if !most.is_finite() || power.abs() > MOST_CHANGE {
                return Ok(f64::INFINITY);
            }
            units = Units { unit: units.unit + units.shift, shift: power };
            i -= 1;
        }
        let (total, _) = steps.started(&gamma_next, run)?;
        let logs = [f64::from(units.unit) * std::f64::consts::LN_2, libm::log(total)];
        Ok(logs.iter().sum::<f64>() + 16.0 * UNIT_ROUNDOFF * (1.0 + logs.iter().map(|log| log.abs()).sum::<f64>()))
    }

    /// Returns the numbers a and b of the head of this file before round i and all rounds like it.
    fn many(&self, i: usize, growth: f64, step: &GammaStep) -> Many {
        let (up, reference) = (1.0 + 8.0 * UNIT_ROUNDOFF, self.further.log(i + 1));
        // This is the growth of U^{m/G}, if it is more than that of v.
        let faster = growth.max(libm::exp(self.further.log(i) - reference) * (1.0 + 1e-11));
        let (least, most) = step.excess(faster);
        let (mut a, mut b, mut least_b, mut own, mut exponent) = (1.0_f64, 0.0_f64, 0.0_f64, 1.0_f64, 0);
        for k in (self.steps.first.len() + 1..=i).rev() {
            (b, least_b) = ((growth * b + most * a) * up, growth * least_b + least.max(0.0) * a);
            own *= growth;
            // Logarithms of finite numbers have an error of less than 1e-12.
            let log = self.further.log(k) - reference - f64::from(exponent) * std::f64::consts::LN_2;
            a = (faster * a * up).max(libm::exp(log) * (1.0 + 1e-11));
            if a.max(b).max(own) > 2.0_f64.powi(LARGE) {
                let down = 2.0_f64.powi(-LARGE);
                (a, b, least_b, own) = (a * down, b * down, least_b * down, own * down);
                exponent += LARGE;
            }
        }
        // This is the state where all are free, near which most tuples begin.
        let (free, gamma) = (step.v[step.v.len() - 1], step.before[step.before.len() - 1]);
        let lost = (b - least_b) * free / (a * gamma + least_b * free);
        let share = (a * gamma + b * free) / (own * free);
        Many { a, b, exponent, little: lost <= GAP || share <= NEGLIGIBLE }
    }
}

/// a and b in units of 2^exponent, and whether they lose little.
struct Many {
    a: f64,
    b: f64,
    exponent: i32,
    little: bool,
}

/// A step of γ, its input, and v.
struct GammaStep<'a> {
    v: &'a [f64],
    before: &'a [f64],
    after: &'a [f64],
    /// The factor that the step is to be multiplied by.
    unscaled: f64,
}

impl GammaStep<'_> {
    /// Returns the smallest and the largest (Tγ + uω − xγ)/v for this x, the latter rounded up and at least 0.
    fn excess(&self, x: f64) -> (f64, f64) {
        let each = |((v, after), before): ((&f64, &f64), &f64)| {
            let (step, grown) = (after * self.unscaled, x * before);
            let slack = 8.0 * UNIT_ROUNDOFF * (step + grown);
            ((step - grown) / v, (step - grown + slack) / v * (1.0 + 4.0 * UNIT_ROUNDOFF))
        };
        let both = |one: (f64, f64), other: (f64, f64)| (one.0.min(other.0), one.1.max(other.1));
        self.v.par_iter().zip(self.after).zip(self.before).map(each).reduce(|| (f64::INFINITY, 0.0), both)
    }
}

#[cfg(test)]
mod tests {
    use super::{log_left_out, of_steps};
    use crate::participation::renewal::Renewal;
    use crate::replicas::aged::log_moment;
    use crate::replicas::enumeration::{mean, waits_and_patterns};
    use crate::replicas::{rounds, Replicas};
    use crate::run::Run;

    const COLUMNS: [&[f64]; 4] = [&[0.7], &[0.5, 0.9], &[0.9, 0.0, 0.4], &[0.8, 0.3, 0.6, 0.1]];

    fn law(b: usize, p: f64, warm: bool, n: usize) -> Renewal {
        Renewal::new(b, p, warm, vec![1.0; n]).expect("valid")
    }

    /// Returns Z_T and Z_⊥ over all tuples.
    fn enumerated(
        coefficients: &[f64],
        (b, p, warm, n): (usize, f64, bool, usize),
        order: usize,
        most_busy: usize,
    ) -> (f64, f64) {
        let busy = |wait: usize, taken: &[usize], i: usize| i < wait || taken.iter().any(|&j| j <= i && i < j + b);
        let all: Vec<(Vec<f64>, Vec<usize>, f64)> = waits_and_patterns(b, p, warm, n)
            .into_iter()
            .map(|(wait, taken, q)| {
                let counts =
                    (0..n).map(|i| usize::from(busy(wait, &taken, i))).chain([usize::from(wait > 0)]).collect();
                (mean(coefficients, &taken, n), counts, q)
            })
            .collect();
        let mut tuples = vec![(vec![0.0; n], vec![0_usize; n + 1], 1.0)];
        for _ in 0..order {
            tuples = tuples
                .iter()
                .flat_map(|(sum, counts, weight)| {
                    all.iter().map(move |(one, own, q)| {
                        let inner: f64 = sum.iter().zip(one).map(|(a, b)| a * b).sum();
                        (
                            sum.iter().zip(one).map(|(a, b)| a + b).collect(),
                            counts.iter().zip(own).map(|(a, b)| a + b).collect(),
                            weight * q * inner.exp(),
                        )
                    })
                })
                .collect();
        }
        let few = |counts: &[usize]| counts.iter().all(|&count| count <= most_busy);
        let sum =
            |inside| tuples.iter().filter(|(_, counts, _)| few(counts) == inside).map(|(_, _, weight)| weight).sum();
        (sum(true), sum(false))
    }

    #[test]
    fn sums_are_those_of_all_tuples() {
        let mut checked = 0;
        for (b, n, order, most_busy) in [
            (1, 4, 4, 2),
            (1, 4, 4, 3),
            (2, 5, 3, 2),
            (2, 4, 4, 2),
            (2, 4, 4, 3),
            (3, 6, 3, 2),
            (4, 5, 4, 3),
            (4, 3, 4, 2),
        ] {
            for (shrink, near) in [(1.0, f64::INFINITY), (0.02, 0.03)] {
                for columns in COLUMNS.iter().filter(|c| c.len() <= b) {
                    let coefficients: Vec<f64> = columns.iter().map(|c| c * shrink).collect();
                    for (p, warm) in [(0.1, true), (0.6, true), (1.0, true), (0.3, false), (1.0, false)] {
                        let (run, law) = (Run::default(), law(b, p, warm, n));
                        let (kept, left) = enumerated(&coefficients, (b, p, warm, n), order, most_busy);
                        let steps = rounds::steps(&law, &coefficients, order, Some(most_busy)).expect("valid").0;
                        let own = steps.log_moment(1e-3, &run).expect("no limit");
                        assert!(
                            (own.upper - kept.ln()).abs() < 1e-10 || kept == 0.0,
                            "{b} {n} {order}: {own:?} {kept}"
                        );
                        let found = log_left_out(&law, &coefficients, (order, most_busy), &run).expect("valid");
                        assert!(found >= left.ln() - 1e-13, "{b} {n} {order} {p} {warm}: {found} {}", left.ln());
                        assert!(found <= left.ln() + near, "{b} {n} {order} {p} {warm}: {found} {}", left.ln());
                        let both = log_moment(&law, &coefficients, Replicas::of_few(order, most_busy), 1e-3, &run);
                        let both = both.expect("valid");
                        assert!(both.upper >= (kept + left).ln() - 1e-13 && both.lower <= (kept + left).ln() + 1e-13);
                        checked += 1;
                    }
                }
            }
        }
        assert!(checked > 150, "{checked}");
    }

    #[test]
    fn rounds_that_are_not_computed_cost_little() {
        for (b, p, coefficients, order, most_busy) in [
            (4, 0.05, vec![0.2, 0.1, 0.1, 0.1], 8, 4),
            (9, 0.02, vec![0.3, 0.2, 0.1], 12, 6),
            (5, 0.01, vec![0.1, 0.1, 0.02], 40, 8),
        ] {
            for warm in [true, false] {
                let (law, run) = (law(b, p, warm, 1500), Run::default());
                let (mut steps, overlaps) = rounds::steps(&law, &coefficients, order, Some(most_busy)).expect("valid");
                let found = of_steps(&law, &steps, &overlaps, &run).expect("valid");
                // Every round is computed: no ratio is used.
                steps.last = (0..1500).map(|i| steps.factors(1500 - i).clone()).collect();
                let all = of_steps(&law, &steps, &overlaps, &run).expect("valid");
                assert!(found >= all - 1e-9, "{b} {warm}: {found} is below {all}");
                assert!(found <= all + 0.2, "{b} {warm}: {found} is far above {all}");
            }
        }
    }

    #[test]
    fn what_cannot_be_bounded_is_infinite() {
        let run = Run::default();
        let found = log_left_out(&law(2, 0.5, true, 400), &[4.0, 1.0], (12, 6), &run).expect("valid");
        assert!(found == f64::INFINITY, "{found}");
    }

    #[test]
    fn few_busy_replicas_are_at_least_two() {
        let run = Run::default();
        for most_busy in [0, 1, 4, 5] {
            assert!(log_left_out(&law(2, 0.1, true, 9), &[0.5], (4, most_busy), &run).is_err());
        }
    }
}

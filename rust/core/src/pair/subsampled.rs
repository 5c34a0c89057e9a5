//! Poisson sampling of any mechanism: a unit's data take part with probability q, and otherwise nothing is different.
//!
//! Let (P, Q) be the pair whose profile h is given, of one direction.
//!
//! * **Remove** (P with the unit, Q without): the sampled pair is ((1−q)Q + qP, Q), and (1−q)Q + qP − αQ = q(P − zQ)
//!   with z = 1 + (α − 1)/q. So `h_q(α) = q·h(z)` for z > 0; for z ≤ 0 everything counts, and it is 1 − α.
//! * **Add** (P without the unit, Q with): the sampled pair is (P, (1−q)P + qQ), and P − α(1−q)P − αqQ = w(P − zQ) with w
//!   = 1 − α(1−q) and z = αq/w. So `h_q(α) = w·h(z)` for w > 0, and 0 otherwise.
//!
//! If (P, Q) only dominates what is released, the sampled pair dominates the sampled mechanism in the same direction (Zhu,
//! Dong & Wang 2022, arXiv:2106.08567, Theorem 11); and every convex profile has a pair. Both maps are monotone in h, so
//! a lower bound on h gives a lower bound on h_q. Both preserve convexity: the first composes h with a linear function of
//! α, the second is the perspective of h, also at a linear function.
//!
//! In both, ln z follows from `r = 1 + (e^x − 1)/q`: z = r at x = ε for remove, and z = 1/r at x = −ε for add, where w =
//! αq/z. No number of the size of q is a difference of numbers near 1.
//!
//! **Errors.** ln z is known to an η. h is evaluated at z₀ = ze^{−2η}, which is not above the exact z, and not below it
//! by more than the factor e^{4η}: h falls, so its value there is an upper bound on h(z), and its supporting line there
//! is below h(z) by the slope times e^{4η} − 1 and the errors of value and slope. With that line h(z′) ≥ d − s(z′/z₀ −
//! 1), ρ = z/z₀,
//!
//! * remove: α′ ↦ qd − qs(z′/z₀ − 1) has the slope `sρ·α/z`, since z′ − z = (α′ − α)/q;
//! * add: w′(d − s(z′/z₀ − 1)) has the slope `α(1−q)(d + s) + w s ρ`, since w′z′ = α′q.
//!
//! Value and slope add to the mass of P of the outcomes used, as they do for h, whose outcomes have losses above ln z₀.
//!
//! Where r is below 10⁻¹² its logarithm is not needed. Remove: h(z) − (1 − z) grows with z, so it is at most its value at
//! 10⁻¹². Add: w = αqr, and h(z) is at most h(10¹²).

use std::sync::{Arc, Mutex};

use crate::error::{domain, Result};
use crate::exact::Enclosure;
use crate::pair::check::Checked;
use crate::pair::moments::integrated;
use crate::pair::sampled_moments::{bounded, of_one};
use crate::pair::{LargestLoss, Profile, ProfilePoint, Reversal};
use crate::run::Run;
use crate::special::{real, UNDERFLOW, UNIT_ROUNDOFF};

/// Where r is below this, h is known well enough without ln r.
const CORNER: f64 = 1e-12;

/// Poisson sampling of a mechanism with a given profile.
///
/// * Formula: q·h(1 + (α − 1)/q) for remove, (1 − α(1−q))·h(αq/(1 − α(1−q))) for add.
/// * Guarantee: [`Profile::at_within`] returns values within their stated errors; an upper (lower) bound on the inner
///   profile gives an upper (lower) bound.
/// * Precision: that of the inner profile, and about 10⁻¹⁵ of q.
/// * Source: the head of this file.
#[derive(Debug, Clone)]
pub struct Subsampled {
    inner: Checked,
    probability: f64,
    /// Whether this is the add direction.
    reverse: bool,
    /// An upper bound on what h may add in the corner: on h(z) − (1 − z) for remove, and on h(z) for add.
    corner: f64,
    /// The inner moments of the orders 2, 3, …, as far as they were asked for: sums of several orders share them.
    moments: Arc<Mutex<Vec<Option<f64>>>>,
}

/// What is known about r = 1 + (e^x − 1)/q.
enum Ratio {
    /// ln r, with a bound on its error, and e^x − 1 divided by q.
    Known { log: f64, error: f64 },
    /// An upper bound on an r below [`CORNER`].
    AtMost(f64),
}

/// Returns the sampled mechanism; `inner` is the profile of the same direction, `reverse` gives the add direction.
///
/// # Errors
/// [`Error::Domain`] unless 0 < q ≤ 1.
pub fn subsampled(inner: Checked, probability: f64, reverse: bool) -> Result<Checked> {
    if !(probability > 0.0 && probability <= 1.0) {
        return domain("probability", probability, "greater than 0 and at most 1");
    }
    if probability >= 1.0 {
        return Ok(inner);
    }
    Checked::of(Subsampled::new(inner, probability, reverse))
}

impl Subsampled {
    fn new(inner: Checked, probability: f64, reverse: bool) -> Self {
        let end = if reverse { -CORNER.ln() } else { CORNER.ln() };
        // The logarithm is moved outwards or inwards by more than its rounding, to the safe side of each direction.
        let point = inner.at(end - 1e-12).or_trivial(end);
        let most = point.delta + point.delta_error;
        let corner = if reverse { most } else { most - 1.0 + CORNER * (1.0 + 1e-9) + 4.0 * UNIT_ROUNDOFF };
        Self { inner, probability, reverse, corner: corner.clamp(0.0, 1.0), moments: Arc::default() }
    }

    fn ratio(&self, x: f64) -> Ratio {
        let excess = x.exp_m1() / self.probability;
        let r = 1.0 + excess;
        if r <= CORNER {
            return Ratio::AtMost((r + 8.0 * UNIT_ROUNDOFF).max(0.0));
        }
        // e^x may overflow; beyond x = 1 nothing cancels.
        let log = if x < 1.0 {
            excess.ln_1p()
        } else {
            x - self.probability.ln() + (-(1.0 - self.probability) * (-x).exp()).ln_1p()
        };
        // The excess is off by 4u of itself; where it is small, so is its logarithm, whose error is relative to it.
        let size = excess.abs() / r.max(CORNER);
        let size = if size.is_finite() { size } else { 1.0 };
        let far = if x < 1.0 { 0.0 } else { x.abs() + self.probability.ln().abs() };
        Ratio::Known { log, error: UNIT_ROUNDOFF * (8.0 * size + 4.0 * log.abs() + 4.0 * far) }
    }

    /// Returns the inner profile at z₀, from ln z and its error η, with a bound on ρ − 1.
    fn inner_at(&self, log: f64, error: f64) -> (ProfilePoint, f64) {
        let place = log - 2.0 * error - 2.0 * UNIT_ROUNDOFF * log.abs();
        let away = (log - place).abs() + 2.0 * error + UNIT_ROUNDOFF * log.abs();
        (self.inner.at(place).or_trivial(place), away.exp_m1() * (1.0 + 1e-9))
    }

    fn remove(&self, epsilon: f64) -> ProfilePoint {
        let q = self.probability;
        let rounding = 16.0 * UNIT_ROUNDOFF;
        let (log, error) = match self.ratio(epsilon) {
            Ratio::Known { log, error } => (log, error),
            Ratio::AtMost(r) => {
                let (delta, slope) = (-epsilon.exp_m1(), epsilon.exp());
                return ProfilePoint {
                    delta,
                    delta_error: q * r.min(self.corner) * (1.0 + rounding) + rounding * delta.abs(),
                    slope,
                    slope_error: rounding * slope,
                    threshold: f64::NAN,
                };
            }
        };
        let (point, moved) = self.inner_at(log, error);
        // α/z, as a quotient of positive terms; its error is that of z.
        let share = if epsilon < 1.0 {
            epsilon.exp() / (1.0 + epsilon.exp_m1() / q)
        } else {
            q / (1.0 - (1.0 - q) * (-epsilon).exp())
        };
        let (delta, slope) = (q * point.delta, share * point.slope);
        ProfilePoint {
            delta,
            delta_error: q * (point.delta_error + (point.slope + point.slope_error) * moved) * (1.0 + rounding)
                + rounding * delta
                + UNDERFLOW,
            slope,
            slope_error: (share * point.slope_error + slope * (2.0 * moved + 2.0 * error)) * (1.0 + 2.0 * moved + 1e-9)
                + rounding * slope
                + UNDERFLOW,
            threshold: f64::NAN,
        }
    }

    fn add(&self, epsilon: f64) -> ProfilePoint {
        let q = self.probability;
        let rounding = 16.0 * UNIT_ROUNDOFF;
        let (log, error) = match self.ratio(-epsilon) {
            Ratio::Known { log, error } => (-log, error),
            Ratio::AtMost(r) => {
                // Where r is 0, α may be too large for a double.
                let most = if r > 0.0 { epsilon.exp() * q * r * self.corner * (1.0 + rounding) } else { 0.0 };
                return ProfilePoint {
                    delta: 0.0,
                    delta_error: most,
                    slope: 0.0,
                    slope_error: 0.0,
                    threshold: f64::NAN,
                };
            }
        };
        let (point, moved) = self.inner_at(log, error);
        let alpha = epsilon.exp();
        // α(1−q) is below 1 here; it is α − αq, and w is 1 minus it.
        let kept = alpha * (1.0 - q);
        let weight = (-epsilon.exp_m1() + alpha * q).max(0.0);
        let weight_error = 4.0 * UNIT_ROUNDOFF * (epsilon.exp_m1().abs() + alpha * q);
        let delta = weight * point.delta;
        let slope = kept * (point.delta + point.slope) + weight * point.slope;
        let missed = point.delta_error + (point.slope + point.slope_error) * moved;
        ProfilePoint {
            delta,
            delta_error: ((weight + weight_error) * missed + weight_error * point.delta) * (1.0 + rounding)
                + rounding * delta
                + UNDERFLOW,
            slope,
            slope_error: ((weight * (1.0 + moved) + weight_error + kept) * point.slope_error
                + kept * point.delta_error
                + (weight * moved + weight_error * (1.0 + moved)) * point.slope)
                * (1.0 + rounding)
                + rounding * slope
                + UNDERFLOW,
            threshold: f64::NAN,
        }
    }

    /// Returns the loss of the sampled pair for a loss of the inner one, rounded down or up.
    fn loss(&self, inner: f64, up: bool) -> f64 {
        let q = self.probability;
        let sign = if self.reverse { -1.0 } else { 1.0 };
        let Ratio::Known { log, error } = self.mapped(sign * inner) else { return sign * (-q).ln_1p() };
        let away = error + 4.0 * UNIT_ROUNDOFF * log.abs();
        sign * log + if up { away } else { -away }
    }

    /// Returns ln E_Q[(P/Q)^a] for a whole order and a unit that is removed; `None` if an inner moment is not known.
    fn at_whole(&self, order: u32, run: &Run) -> Result<Option<f64>> {
        // Who does not get the lock computes what is known already: a lock is never waited for, since a process may have been
        // forked off while another thread held it.
        let mut known = self.moments.try_lock().map_or_else(|_| Vec::new(), |kept| kept.clone());
        let count = order as usize - 1;
        for j in known.len()..count {
            run.check()?;
            let inner = self.inner.log_moment(real(j + 2), run)?;
            known.push(inner.map(|moment| moment.max(0.0)));
        }
        if let Ok(mut kept) = self.moments.try_lock() {
            if kept.len() < known.len() {
                kept.clone_from(&known);
            }
        }
        let moments: Option<Vec<f64>> = known[..count].iter().copied().collect();
        moments.map(|moments| of_one(self.probability, &moments)).transpose()
    }

    /// Returns ln(1 − q + qe^x).
    fn mapped(&self, x: f64) -> Ratio {
        let q = self.probability;
        if x == f64::NEG_INFINITY {
            let log = (-q).ln_1p();
            return Ratio::Known { log, error: 4.0 * UNIT_ROUNDOFF * log.abs() };
        }
        let (log, size) = if x < 1.0 {
            let excess = q * x.exp_m1();
            (excess.ln_1p(), excess.abs() / (1.0 + excess))
        } else {
            (x + (q + (1.0 - q) * (-x).exp()).ln(), 1.0 + x)
        };
        Ratio::Known { log, error: UNIT_ROUNDOFF * (8.0 * size + 4.0 * log.abs()) }
    }
}

impl Profile for Subsampled {
    fn at_within(&self, epsilon: f64, _bracket: (f64, f64)) -> ProfilePoint {
        if self.reverse {
            self.add(epsilon)
        } else {
            self.remove(epsilon)
        }
    }

    /// Returns q times the inner pair's mass for remove. For add no outcome is more than 1/(1 − q) times as probable
    /// without the unit.
    fn delta_at_infinity(&self) -> f64 {
        if self.reverse {
            0.0
        } else {
            self.probability * self.inner.delta_at_infinity() * (1.0 - 4.0 * UNIT_ROUNDOFF)
        }
    }

    /// Returns the largest inner loss, mapped. Its outcomes have the same mass under P for add, and (1−q)Q + qP = P·α′/α
    /// for remove, α = e^L the inner ratio and α′ the mapped one.
    ///
    /// Points in the corner are not those of {L > ε}, so no mass is stated where an inner loss may be as large as that.
    fn largest_loss(&self) -> LargestLoss {
        let inner = self.inner.largest_loss();
        if !self.reverse && inner.at_most == f64::INFINITY {
            return LargestLoss::UNBOUNDED;
        }
        let at_most = self.loss(inner.at_most, true);
        if inner.at_least == f64::NEG_INFINITY {
            return LargestLoss { at_most, ..LargestLoss::UNBOUNDED };
        }
        let at_least = self.loss(inner.at_least, false);
        let mass = if !self.reverse {
            inner.mass * (at_least - inner.at_most).exp().min(1.0) * (1.0 - 8.0 * UNIT_ROUNDOFF)
        } else if inner.at_most < -CORNER.ln() - 1.0 {
            inner.mass
        } else {
            0.0
        };
        LargestLoss { at_least, at_most, mass }
    }

    /// Returns the largest inner loss, mapped. For add no loss is larger than −ln(1 − q), whatever the inner ones are.
    fn exact_largest_loss(&self) -> Option<Enclosure> {
        let Some(inner) = self.inner.exact_largest_loss() else {
            let largest = self.largest_loss();
            return Enclosure::between(largest.at_least.max(0.0), largest.at_most);
        };
        let (least, most) = inner.doubles();
        Enclosure::between(self.loss(least, false).max(0.0), self.loss(most, true))
    }

    /// ((1−q)Q + qP, Q) and (Q, (1−q)Q + qP) are the sampled pairs of (P, Q) for remove and of (Q, P) for add.
    fn reversal(&self) -> Reversal {
        match self.inner.reversed() {
            Some(inner) => Reversal::Other(Arc::new(Self::new(inner, self.probability, !self.reverse))),
            None => Reversal::Unknown,
        }
    }

    /// Returns the sum of `sampled_moments` or a chord of it, which the integral of the profile may improve, for remove. For
    /// add, the profile is integrated.
    fn log_moment(&self, order: f64, run: &Run) -> Result<Option<f64>> {
        if self.reverse {
            return integrated(self, order, run);
        }
        bounded(order, |whole| self.at_whole(whole, run), || integrated(self, order, run))
    }

    /// Returns that of the inner pair: with a share of rounds in which nothing differs, no profile is larger.
    fn dominating_shift(&self) -> Option<f64> {
        self.inner.dominating_shift()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pair::discrete::DiscretePair;
    use crate::pair::gaussian::GaussianPair;
    use crate::pair::rare::RarePair;
    use crate::pair::tabulated::Tabulated;

    const OUTCOMES: [(f64, f64); 5] = [(0.4, 0.05), (0.2, 0.1), (0.25, 0.25), (0.1, 0.2), (0.05, 0.4)];

    fn agree(one: ProfilePoint, two: ProfilePoint, note: &str) {
        let most = one.delta_error + two.delta_error;
        assert!((one.delta - two.delta).abs() <= most * 1.01 + 1e-16, "{note}: {one:?} {two:?}");
    }

    #[test]
    fn a_finite_pair_agrees_with_its_mixture() {
        for infinite in [false, true] {
            let mut outcomes = OUTCOMES.to_vec();
            if infinite {
                outcomes[0].1 = 0.0;
                outcomes[4].1 = 0.45;
            }
            for q in [0.9, 0.5, 0.1, 1e-3] {
                let mixed = outcomes.iter().map(|&(p, r)| ((1.0 - q) * r + q * p, r)).collect();
                let without = outcomes.iter().map(|&(p, r)| (p, (1.0 - q) * p + q * r)).collect();
                for (reverse, pair) in [(false, mixed), (true, without)] {
                    let exact = DiscretePair::new(pair).unwrap();
                    let inner = Checked::of(DiscretePair::new(outcomes.clone()).unwrap()).unwrap();
                    let sampled = subsampled(inner, q, reverse).unwrap();
                    for step in -80..80 {
                        // No loss is at one of these points.
                        let epsilon = 0.050_123 * f64::from(step) * if step % 2 == 0 { q } else { 1.0 };
                        let (found, exact) = (sampled.at(epsilon), exact.at(epsilon));
                        agree(found, exact, &format!("{q} {reverse} {epsilon}"));
                        assert!(found.delta_error <= 1e-14, "{found:?}");
                        assert!(
                            (found.slope - exact.slope).abs() < 1e-13,
                            "{q} {reverse} {epsilon} {found:?} {exact:?}"
                        );
                    }
                    let (found, known) = (sampled.largest_loss(), exact.largest_loss());
                    if known.at_most.is_finite() && !(infinite && reverse) {
                        assert!(
                            found.at_least <= known.at_most && known.at_least <= found.at_most,
                            "{found:?} {known:?}"
                        );
                        assert!((found.mass - known.mass).abs() < 1e-13 && found.at_most - found.at_least < 1e-13);
                    }
                    assert!((sampled.delta_at_infinity() - exact.delta_at_infinity()).abs() < 1e-14);
                }
            }
        }
    }

    #[test]
    fn a_gaussian_agrees_with_the_pair_of_rare_sampling() {
        for q in [1e-9, 1e-6, 0.01, 0.4] {
            for reverse in [false, true] {
                let inner = Checked::of(GaussianPair::new(1.0, 0.8).unwrap()).unwrap();
                let sampled = subsampled(inner, q, reverse).unwrap();
                let exact = RarePair::new(q, 0.8, reverse).unwrap();
                let near = (1..40).flat_map(|k| [q * 0.04 * f64::from(k), -q * 0.04 * f64::from(k)]);
                for epsilon in near.chain((-60..60).map(|k| 0.1 * f64::from(k))) {
                    let (found, exact) = (sampled.at(epsilon), exact.at(epsilon));
                    agree(found, exact, &format!("{q} {reverse} {epsilon}"));
                    // Errors are relative to q, or to 1 − α.
                    let scale = q + (-epsilon.exp_m1()).max(0.0);
                    assert!(found.delta_error < 1e-13 * scale, "{q} {reverse} {epsilon} {found:?}");
                    // Both are outcomes above nearly the same loss.
                    let most = found.slope_error + exact.slope_error + 1e-9 * scale + 1e-13;
                    assert!((found.slope - exact.slope).abs() <= most, "{q} {reverse} {epsilon} {found:?} {exact:?}");
                }
            }
        }
    }

    #[test]
    fn lines_support_it() {
        let stated = Tabulated::guarantees(&[(1.0, 1e-3), (2.5, 1e-6)]).unwrap();
        for q in [0.7, 0.03, 1e-7] {
            for reverse in [false, true] {
                let sampled = subsampled(Checked::of(stated.clone()).unwrap(), q, reverse).unwrap();
                let all: Vec<f64> = (-90..90).map(|k| f64::from(k * k * k) * 1e-5).collect();
                for &at in &all {
                    let line = sampled.at(at);
                    for &other in &all {
                        let (point, change) = (sampled.at(other), (other - at).exp_m1());
                        let slope = line.slope + line.slope_error * change.signum();
                        let below = line.delta - line.delta_error - slope * change;
                        assert!(below <= point.delta + point.delta_error + 1e-15, "{q} {reverse} {at} {other}");
                    }
                }
            }
        }
    }

    #[test]
    fn probabilities_outside_of_the_domain_are_refused() {
        let inner = Checked::of(GaussianPair::new(1.0, 1.0).unwrap()).unwrap();
        for q in [0.0, -0.1, 1.1, f64::NAN] {
            assert!(subsampled(inner.clone(), q, false).is_err());
        }
        let whole = subsampled(inner.clone(), 1.0, true).unwrap();
        assert_eq!(whole.at(0.3).delta.to_bits(), inner.at(0.3).delta.to_bits());
    }

    #[test]
    fn moments_are_those_of_the_mixture() {
        let run = Run::default();
        for q in [0.5_f64, 0.1, 1e-3] {
            for reverse in [false, true] {
                let sampled =
                    subsampled(Checked::of(DiscretePair::new(OUTCOMES.to_vec()).unwrap()).unwrap(), q, reverse)
                        .unwrap();
                // In another order than the sums are shared in.
                for a in [9.0, 2.0, 5.5, 1.5, 3.0] {
                    let term = |&(p, r): &(f64, f64)| {
                        let mixed = (1.0 - q) * r + q * p;
                        let kept = (1.0 - q) * p + q * r;
                        let (one, other) = if reverse { (p, kept) } else { (mixed, r) };
                        (a * one.ln() + (1.0 - a) * other.ln()).exp()
                    };
                    let exact = OUTCOMES.iter().map(term).sum::<f64>().ln();
                    let found = sampled.log_moment(a, &run).unwrap().unwrap();
                    assert!(found >= exact * (1.0 - 1e-9) - 1e-14, "{q} {reverse} {a} {found} {exact}");
                    assert!(found <= exact * (1.0 + 3e-4) + 1e-12, "{q} {reverse} {a} {found} {exact}");
                }
            }
        }
    }
}

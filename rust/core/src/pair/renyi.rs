//! Privacy profiles from bounds on Rényi divergences.
//!
//! If D_a(P‖Q) ≤ ρ for an order a > 1, then with X = P/Q under Q, E X^a ≤ e^{(a−1)ρ}, and (x − α)_+ ≤ c x^a for the c with
//! which the two touch: at x = αa/(a−1), c = ((a−1)^{a−1}/a^a) α^{−(a−1)}. So
//!
//! `H_α(P‖Q) ≤ U(α) = e^{(a−1)ρ} ((a−1)^{a−1}/a^a) α^{−(a−1)}`
//!
//! (Canonne, Kamath & Steinke 2020, arXiv:2004.00010, Proposition 12; Asoodeh et al. 2020). The minimum over several
//! orders holds as well, and so does 1. A mechanism is ρ-zCDP if D_a ≤ aρ for every a > 1 in both directions: any order
//! gives a bound, so how its best one is found matters to nothing but the result's sharpness.
//!
//! The bounds become points of a [`Tabulated`] profile, which proves the rest: chords between points are bounds because
//! the true profile is convex. Points are so close that a chord is above U by at most [`LOSS`] of it, down to
//! [`RESOLVED`], and by [`ROUGH_LOSS`] down to δ = [`NOTHING`]; the last value holds for all larger ε.

use crate::error::{domain, Result};
use crate::exact::{decimal, Enclosure, Rational};
use crate::pair::tabulated::Tabulated;
use crate::pair::{LargestLoss, Profile, ProfilePoint, Reversal};
use crate::special::{real, UNIT_ROUNDOFF};

/// How far a chord may be above the curve, as a fraction of it: above [`RESOLVED`], and below.
const LOSS: f64 = 1e-6;
const ROUGH_LOSS: f64 = 1e-3;
const RESOLVED: f64 = 1e-30;
/// Points end where δ is below this.
const NOTHING: f64 = 1e-300;
/// The maximum number of points; with very small orders, they end earlier.
const MOST_POINTS: usize = 200_000;
/// The smallest order, minus 1: below it a bound on δ falls too slowly to be of use.
const SMALLEST: f64 = 1e-6;

/// A pair of which only bounds on its divergences are known, in both directions.
///
/// * Guarantee: the profile is at least every profile that the bounds allow.
/// * Source: the head of this file.
#[derive(Debug, Clone)]
pub struct StatedDivergences {
    profile: Tabulated,
    stated: Stated,
}

#[derive(Debug, Clone)]
enum Stated {
    /// D_a ≤ aρ for every a > 1.
    Concentrated(f64),
    /// Finite bounds at some orders, by increasing order.
    Table(Vec<(f64, f64)>),
}

impl Profile for StatedDivergences {
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

    fn exact_divergence(&self, order: f64) -> Option<Rational> {
        match &self.stated {
            Stated::Concentrated(rho) => Some(decimal(order) * decimal(*rho)),
            Stated::Table(bounds) => between(bounds, order),
        }
    }

    /// Bounds at some orders do not bound others, so a table has no ρ.
    fn concentration(&self) -> Option<Rational> {
        match self.stated {
            Stated::Concentrated(rho) => Some(decimal(rho)),
            Stated::Table(_) => None,
        }
    }
}

/// Returns a bound on D_a from a table: by the chord of (a − 1)D_a, which is convex in a and 0 at a = 1, and by the bounds of
/// larger orders, since divergences do not fall with a. `None` beyond the last order.
fn between(bounds: &[(f64, f64)], order: f64) -> Option<Rational> {
    let (a, one) = (decimal(order), Rational::from_integer(1.into()));
    let above = bounds.partition_point(|bound| bound.0 < order);
    let exact = |&(order, bound): &(f64, f64)| (decimal(order), decimal(bound));
    let (high, most) = exact(bounds.get(above)?);
    let (low, least) =
        above.checked_sub(1).map_or((one.clone(), Rational::from_integer(0.into())), |i| exact(&bounds[i]));
    let share = (&a - &low) / (&high - &low);
    let chord = ((&one - &share) * (&low - &one) * least + share * (&high - &one) * most) / (a - one);
    Some(bounds[above..].iter().map(|bound| decimal(bound.1)).fold(chord, Rational::min))
}

/// Returns ln U at ε for one order a = 1 + k, rounded up.
fn log_bound(k: f64, rho: f64, epsilon: f64) -> f64 {
    let a = 1.0 + k;
    // (k^k/(1+k)^{1+k}) = e^{−k ln(1 + 1/k) − ln(1 + k)}
    let terms = [k * rho, -k * (1.0 / k).ln_1p(), -k.ln_1p(), -k * epsilon];
    let size: f64 = terms.iter().map(|term| term.abs()).sum();
    terms.iter().sum::<f64>() + 12.0 * UNIT_ROUNDOFF * (size + a * rho.abs())
}

/// Returns the profile of both directions from Rényi bounds at some orders that hold in both directions.
///
/// * Units: orders above 1; bounds in nats, +∞ where none is known.
/// * Guarantee: at least every profile that the bounds allow.
/// * Source: the head of this file.
///
/// # Errors
/// [`Error::Domain`] for lists that are empty or of different lengths, orders that are not above 1 and finite, and
/// bounds that are negative or NaN; if no bound is finite, too.
pub fn renyi(orders: &[f64], bounds: &[f64]) -> Result<StatedDivergences> {
    let count = real(orders.len());
    if orders.is_empty() || orders.len() != bounds.len() {
        return domain("number of orders", count, "at least 1, and as many as there are bounds");
    }
    if let Some(&order) = orders.iter().find(|order| !(**order > 1.0 && order.is_finite())) {
        return domain("order", order, "greater than 1 and finite");
    }
    if let Some(&bound) = bounds.iter().find(|bound| bound.is_nan() || **bound < 0.0) {
        return domain("Rényi bound", bound, "at least 0");
    }
    // The difference of an order and 1 is exact below 2, and off by u of the order above.
    let kept: Vec<(f64, f64)> = orders
        .iter()
        .zip(bounds)
        .filter(|(order, bound)| **order - 1.0 >= SMALLEST && bound.is_finite())
        .map(|(order, bound)| (order - 1.0, *bound))
        .collect();
    if kept.is_empty() {
        return domain("number of finite Rényi bounds", 0.0, "at least 1, at an order of at least 1.000001");
    }
    let profile = tabulated(|epsilon| {
        let each = kept.iter().map(|&(k, rho)| (k, log_bound(k, rho, epsilon)));
        each.fold((kept[0].0, f64::INFINITY), |least, one| if one.1 < least.1 { one } else { least })
    })?;
    let finite = orders.iter().copied().zip(bounds.iter().copied()).filter(|(_, bound)| bound.is_finite());
    let mut table: Vec<(f64, f64)> = finite.collect();
    table.sort_unstable_by(|one, other| one.0.total_cmp(&other.0).then(one.1.total_cmp(&other.1)));
    table.dedup_by(|next, kept| next.0 <= kept.0);
    Ok(StatedDivergences { profile, stated: Stated::Table(table) })
}

/// Returns the profile of both directions of a ρ-zCDP mechanism (Bun & Steinke 2016): D_a ≤ aρ for every a > 1.
///
/// # Errors
/// [`Error::Domain`] unless ρ is positive and finite.
pub fn zcdp(rho: f64) -> Result<StatedDivergences> {
    if !(rho > 0.0 && rho.is_finite()) {
        return domain("rho", rho, "a positive finite number");
    }
    let profile = tabulated(|epsilon| best_order(rho, epsilon))?;
    Ok(StatedDivergences { profile, stated: Stated::Concentrated(rho) })
}

/// Returns an upper bound on δ at ε ≥ 0 of a ρ-zCDP mechanism, for a positive finite ρ.
pub(super) fn zcdp_bound(rho: f64, epsilon: f64) -> f64 {
    (best_order(rho, epsilon).1.exp() * (1.0 + 4.0 * UNIT_ROUNDOFF)).clamp(NOTHING, 1.0)
}

/// Returns nearly the best k = a − 1 at ε for ρ-zCDP, and ln U there.
fn best_order(rho: f64, epsilon: f64) -> (f64, f64) {
    // d/dk of k(1+k)ρ − k ln(1 + 1/k) − ln(1 + k) − kε is (1 + 2k)ρ − ln(1 + 1/k) − ε, which rises with k.
    let slope = |k: f64| (1.0 + 2.0 * k) * rho - (1.0 / k).ln_1p() - epsilon;
    let (mut low, mut high) = (SMALLEST, SMALLEST);
    while slope(high) < 0.0 {
        (low, high) = (high, 2.0 * high);
    }
    for _ in 0..40 {
        let middle = 0.5 * (low + high);
        if slope(middle) < 0.0 {
            low = middle;
        } else {
            high = middle;
        }
    }
    (high, log_bound(high, (1.0 + high) * rho * (1.0 + 2.0 * UNIT_ROUNDOFF), epsilon))
}

/// Returns the profile from `least`, which gives the best k = a − 1 at an ε, and ln U there.
fn tabulated(least: impl Fn(f64) -> (f64, f64)) -> Result<Tabulated> {
    let mut points = Vec::new();
    let mut epsilon = 0.0;
    while points.len() < MOST_POINTS {
        let (k, log) = least(epsilon);
        let delta = (log.exp() * (1.0 + 4.0 * UNIT_ROUNDOFF)).min(1.0);
        // Below this, e^log is as inexact as a number that has underflowed.
        points.push((epsilon, delta.max(NOTHING)));
        if delta <= NOTHING {
            break;
        }
        // A chord of α^{−k} over a width w is above it by k(k+1)w²/8 of it. A value of 1 has no chord to lose.
        let loss = if delta > RESOLVED { LOSS } else { ROUGH_LOSS };
        let width = (8.0 * loss / (k * (k + 1.0))).sqrt();
        epsilon += width.clamp(1e-9 * (1.0 + epsilon), 0.5 * (1.0 + epsilon));
    }
    Tabulated::guarantees(&points)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pair::gaussian::GaussianPair;

    /// Returns the minimum of U over a dense grid of orders.
    fn direct(rho: impl Fn(f64) -> f64, orders: impl Iterator<Item = f64>, epsilon: f64) -> f64 {
        let one = |a: f64| {
            let k = a - 1.0;
            (k * (rho(a) - epsilon) + k * k.ln() - a * a.ln()).exp()
        };
        orders.map(one).fold(1.0, f64::min)
    }

    #[test]
    fn zcdp_is_the_best_order_and_holds_for_the_gaussian_mechanism() {
        for rho in [1e-4_f64, 0.02, 0.5, 8.0] {
            let profile = zcdp(rho).unwrap();
            let gaussian = GaussianPair::new((2.0 * rho).sqrt(), 1.0).unwrap();
            for step in -30..80 {
                let epsilon = 0.13 * f64::from(step) * rho.sqrt().max(rho);
                let (point, exact) = (profile.at(epsilon), gaussian.at(epsilon));
                assert!(point.delta >= exact.delta - exact.delta_error, "{rho} {epsilon} {point:?} {exact:?}");
                if epsilon > 0.0 && point.delta < 0.3 {
                    let orders = (0..400_000).map(|k| 1.0 + 1e-4 * 1.0001_f64.powi(k).min(1e9));
                    let best = direct(|a| a * rho, orders.step_by(7), epsilon);
                    let loss = if best > RESOLVED { 3e-6 } else { 2e-3 };
                    assert!(point.delta <= best * (1.0 + loss), "{rho} {epsilon} {point:?} {best}");
                    // U is not convex near ε = 0, so its hull is below it there, and nowhere else.
                    let most = if point.delta < 1e-5 { 1e-5 * best } else { best };
                    assert!(point.delta >= best - most - 1e-30, "{rho} {epsilon} {point:?} {best}");
                }
            }
        }
    }

    #[test]
    fn several_orders_are_below_each_of_them() {
        let (orders, bounds) = ([1.5, 2.0, 4.0, 16.0, 64.0], [0.3, 0.4, 0.9, 4.0, 40.0]);
        let profile = renyi(&orders, &bounds).unwrap();
        let bound = |a: f64| bounds[orders.iter().position(|o| (o - a).abs() < 1e-9).unwrap()];
        for step in 0..100 {
            let epsilon = 0.07 * f64::from(step);
            let best = direct(bound, orders.into_iter(), epsilon);
            assert!(profile.at(epsilon).delta <= best * (1.0 + 2e-6), "{epsilon}");
            // The profile of the other direction, reflected.
            let other = -(-epsilon).exp_m1() + (-epsilon).exp() * best;
            assert!(profile.at(-epsilon).delta <= other * (1.0 + 2e-6), "{epsilon}");
        }
        assert!(renyi(&[], &[]).is_err() && renyi(&[2.0], &[]).is_err() && renyi(&[1.0], &[1.0]).is_err());
        assert!(renyi(&[2.0], &[-1.0]).is_err() && renyi(&[2.0], &[f64::INFINITY]).is_err() && zcdp(0.0).is_err());
    }

    #[test]
    fn stated_divergences_are_exact_with_chords_between_them() {
        let table = renyi(&[2.0, 4.0, 8.0], &[0.1, 0.3, f64::INFINITY]).unwrap();
        // (a − 1)D_a is 0.1 at 2 and 0.9 at 4; at 1.5 the bound of order 2 is no larger than the chord.
        for (order, bound) in [(2.0, 0.1), (4.0, 0.3), (3.0, 0.25), (1.5, 0.1)] {
            assert_eq!(table.exact_divergence(order), Some(decimal(bound)), "{order}");
        }
        assert!(table.exact_divergence(4.1).is_none() && table.concentration().is_none());
        let concentrated = zcdp(0.3).unwrap();
        assert_eq!(concentrated.exact_divergence(3.0), Some(decimal(0.9)));
        assert_eq!(concentrated.concentration(), Some(decimal(0.3)));
        // Bounds of larger orders hold for smaller ones, also where a chord of a table that is not convex is above them.
        let odd = renyi(&[2.0, 3.0, 4.0], &[5.0, 5.0, 0.5]).unwrap();
        assert_eq!(odd.exact_divergence(2.5), Some(decimal(0.5)));
    }
}

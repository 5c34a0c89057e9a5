//! The Gaussian mechanism, for any ratio of sensitivity to noise.
//!
//! `N(c, 1)` against `N(0, 1)`, where c is the sensitivity divided by the noise, has for t = ε/c − c/2 and x = ε/c +
//! c/2 the profile `δ(ε) = Φ(−t) − e^ε Φ(−x)`, in both directions. Since x² − t² = 2ε the second term is
//! `e^{−t²/2}·M(x)/√(2π)`, M the Mills ratio: ε itself is in no exponent, so ε may be as large as a double. For such ε,
//! t is known to a few u of c; where that matters both tails are evaluated at the smallest and the largest possible t,
//! since they fall with t.

use crate::error::{domain, Result};
use crate::exact::{decimal, Rational};
use crate::pair::mixture::MixturePair;
use crate::pair::moments::rounded_shift;
use crate::pair::{Profile, ProfilePoint, Reversal};
use crate::special::{mills_series, scaled_upper_tail, upper_tail, Approximation, UNDERFLOW, UNIT_ROUNDOFF};

/// The profile `H_{e^ε}(N(sensitivity, σ²)‖N(0, σ²))`, which is that of both directions.
///
/// * Units: ε in nats.
/// * Guarantee: [`Profile::at_within`] returns values within their stated errors.
/// * Precision: that of the normal tail at a point known to about 3c·10⁻¹⁶.
/// * Source: Balle & Wang 2018, Theorem 8, for the profile.
#[derive(Debug, Clone)]
pub struct GaussianPair {
    sensitivity: f64,
    noise_multiplier: f64,
    /// c = sensitivity/σ.
    shift: f64,
    /// The same pair as a mixture of one component, where c is at most [`ORDINARY`].
    ordinary: Option<MixturePair>,
}

/// Up to this c the mixture's evaluation is equally exact, and certificates already contain its last digits.
const ORDINARY: f64 = 1e5;

/// From this x on, the asymptotic series of the Mills ratio is exact to u.
const SERIES: f64 = 30.0;
/// If the relative error of a tail exceeds this, the tail is evaluated at both bounds of its argument.
const COARSE: f64 = 1e-6;

impl GaussianPair {
    /// Creates the pair for this sensitivity and noise.
    ///
    /// # Errors
    /// [`Error::Domain`] unless both are positive and finite, and so is their quotient.
    pub fn new(sensitivity: f64, noise_multiplier: f64) -> Result<Self> {
        let shift = sensitivity / noise_multiplier;
        for (name, value) in [
            ("sensitivity", sensitivity),
            ("noise_multiplier", noise_multiplier),
            ("sensitivity/noise_multiplier", shift),
        ] {
            if !(value > 0.0 && value.is_finite()) {
                return domain(name, value, "a positive finite number");
            }
        }
        let ordinary =
            if shift <= ORDINARY { Some(MixturePair::gaussian(sensitivity, noise_multiplier)?) } else { None };
        Ok(Self { sensitivity, noise_multiplier, shift, ordinary })
    }

    /// Returns c² of the decimals.
    fn square(&self) -> Rational {
        let shift = decimal(self.sensitivity) / decimal(self.noise_multiplier);
        &shift * &shift
    }
}

/// Returns Φ(−t) for a t that is known to `error`.
fn tail(t: f64, error: f64) -> Approximation {
    if (t.abs() + 1.0) * error < COARSE {
        return upper_tail(t, error);
    }
    between(upper_tail(t + error, 0.0), upper_tail(t - error, 0.0))
}

/// Returns the interval from `low` to `high` as one number with its error.
fn between(low: Approximation, high: Approximation) -> Approximation {
    let (least, most) = ((low.value - low.error).max(0.0), high.value + high.error);
    Approximation { value: 0.5 * (least + most), error: 0.5 * (most - least) + 2.0 * UNIT_ROUNDOFF * most }
}

/// Returns `e^{−t²/2} M(x)/√(2π)` for t and x ≥ [`SERIES`] that are each known to `error`.
fn scaled_density(t: f64, x: f64, error: f64) -> Approximation {
    let at = |t: f64| {
        if t.abs() > 39.0 {
            // The exact value is below 10⁻³³⁰.
            return Approximation { value: 0.0, error: UNDERFLOW };
        }
        let value = (-0.5 * t * t).exp() * mills_series(x);
        Approximation { value, error: value * UNIT_ROUNDOFF * (16.0 + 2.0 * t * t) + UNDERFLOW }
    };
    if x <= 2.0 * error {
        // Nothing is known about x, so the value can be any probability.
        return Approximation { value: 0.5, error: 0.5 };
    }
    // M(x) changes by less than 1/x of itself for each unit of x.
    let moved = 2.0 * error / x;
    if (t.abs() + 1.0) * error < COARSE {
        let exact = at(t);
        return Approximation { error: exact.error + exact.value * (2.0 * (t.abs() + error) * error + moved), ..exact };
    }
    // The density falls with the distance from 0.
    let (least, most) = ((t.abs() - error).max(0.0), t.abs() + error);
    between(at(most).scaled(1.0, moved), at(least).scaled(1.0, moved))
}

impl Profile for GaussianPair {
    fn at_within(&self, epsilon: f64, bracket: (f64, f64)) -> ProfilePoint {
        if let Some(mixture) = &self.ordinary {
            return mixture.at_within(epsilon, bracket);
        }
        let c = self.shift;
        let center = epsilon / c;
        let (t, x) = (center - 0.5 * c, center + 0.5 * c);
        let error = UNIT_ROUNDOFF * (3.0 * center.abs() + 2.0 * c);
        let above = tail(t, error);
        let below = if x < SERIES { scaled_upper_tail(epsilon, x, error) } else { scaled_density(t, x, error) };
        ProfilePoint::of(above, below)
    }

    /// The two laws are mirror images.
    fn reversal(&self) -> Reversal {
        Reversal::Same
    }

    /// Returns ac²/2, which is D_a exactly: E_Q[(P/Q)^a] = E e^{a(cZ − c²/2)} = e^{a(a−1)c²/2}, Z standard normal.
    fn exact_divergence(&self, order: f64) -> Option<Rational> {
        self.concentration().map(|rho| decimal(order) * rho)
    }

    fn dominating_shift(&self) -> Option<f64> {
        Some(rounded_shift(self.shift))
    }

    /// Returns c²/2.
    fn concentration(&self) -> Option<Rational> {
        Some(self.square() / Rational::from_integer(2.into()))
    }

    /// Returns c²: the pair is its own bound.
    fn gaussian_square(&self) -> Option<Rational> {
        Some(self.square())
    }
}

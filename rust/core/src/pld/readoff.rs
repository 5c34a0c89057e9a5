//! Reads δ(ε) and ε(δ) off a composed law.
//!
//! With weights `m_s = e^{−λ(sh − c)} C_s` relative to a centre c, two recursions from the top of the window give, at
//! every lattice point, the finite part of δ and its slope in units of `e^{K − λc}`: `T_s = e^{−h}(T_{s+1} + m_{s+1})`,
//! `D_s = D_{s+1} + T_s(e^h − 1)`. Both add non-negative terms only, so their relative error is at most a few u for
//! each step. Inside a cell the profile is `D_s − T_s(e^x − 1) = D_{s+1} + T_s·e^x(e^{h−x} − 1)`, again without
//! cancellation.
//!
//! A number that overflows must not become a lower bound: a weight there is at most e^600, which lowers δ, and in an
//! upper bound it may be +∞, so that δ is at most 1. Where a cell is so wide that e^h overflows, the profile inside the
//! next cell is known only at the cell's ends: it is at least D_{s+1} and at most D_s, with
//! `D_s = D_{s+1} + (T_{s+1} + m_{s+1})(1 − e^{−h})`.
//!
//! If the rounds' lattices have offsets, the composed one has their sum, the [`LatticeOrigin`]: δ at ε is δ of the
//! positions at ε minus the origin. An upper bound is read at the smallest possible value of this difference, a lower
//! bound at the largest.

use crate::pld::answer::Budget;
use crate::pld::compose::Composed;
use crate::pld::mesh::Side;
use crate::pld::offset::LatticeOrigin;
use crate::special::{real, UNIT_ROUNDOFF};

/// A composed profile near its tilt's mean, as a bound from one side.
#[derive(Debug)]
pub struct Readoff {
    side: Side,
    spacing: f64,
    /// The lattice position of entry 0.
    first: i64,
    /// D_s and T_s relative to `e^{log_unit}`.
    delta: Vec<f64>,
    slope: Vec<f64>,
    /// K − λc.
    log_unit: f64,
    tilt: f64,
    center: f64,
    length: usize,
    /// The relative error of the finite part.
    relative: f64,
    /// A bound on the rounding error of every entry of the composed law.
    entry_error: f64,
    /// Coefficients of `e^{K − λε}`: transform rounding; mass wrapped from above and from below (for lower bounds only).
    transform: f64,
    wrapped_above: f64,
    wrapped_below: f64,
    /// Absolute terms: mass wrapped from below (for lower bounds only, the alternative to `wrapped_below`), mass above
    /// the window (upper side only), mass at infinity.
    wrapped_below_weighed: f64,
    above: f64,
    read_from: f64,
    at_infinity: f64,
    origin: LatticeOrigin,
}

/// The number of times that a weight is computed from its neighbour before one is computed directly, where weights
/// differ little.
const AFRESH: usize = 32;
/// If neighbouring weights differ by more than this, all are computed directly: one that has underflowed must not keep
/// the next at zero.
const LITTLE: f64 = 0.01;
/// Weights are kept within e^±600 of the centre.
const LARGEST_EXPONENT: f64 = 600.0;
/// In cells wider than this, e^h is too large for the numbers that it is multiplied with.
const WIDE: f64 = 600.0;

impl Readoff {
    /// Prepares `composed`, whose position 0 is the loss `origin`, for questions around the ε `center`, with `room` entries
    /// left of ε = 0 if the law has them.
    #[allow(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_possible_wrap
    )] // lattice positions below 2^50
    pub fn new(composed: &Composed, origin: LatticeOrigin, center: f64, room: f64) -> Self {
        let center = center - origin.loss;
        let (h, tilt) = (composed.spacing, composed.tilt);
        let length = composed.tilted.len();
        // The table starts where weights are representable; questions with this tilt never concern points further left.
        let lowest = if tilt > 0.0 { center - LARGEST_EXPONENT / tilt } else { f64::NEG_INFINITY };
        let skip = ((lowest.max(-origin.loss - room * h) / h).floor() as i64 - composed.first - 1)
            .clamp(0, length as i64 - 1) as usize;
        let first = composed.first + skip as i64;
        let n = length - skip;
        let (mut delta, mut slope) = (vec![0.0; n], vec![0.0; n]);
        let (decay, growth) = ((-h).exp(), h.exp_m1());
        let (mut d, mut t) = (0.0_f64, 0.0_f64);
        // The weights are e^{−λ(loss − centre)}: each is computed from its neighbour, and directly at regular
        // intervals.
        let weight_step = (tilt * h).exp();
        let afresh = if tilt * h < LITTLE { AFRESH } else { 1 };
        let mut weight = 0.0;
        for s in (0..n).rev() {
            delta[s] = d;
            // The mass at s is included for the points to its left.
            if (s + 1) % afresh == 0 || s + 1 == n {
                let loss = real(first + s as i64) * h;
                let exponent = -tilt * (loss - center);
                // The first of these points may lie a cell left of the range in which weights are representable.
                let held = if composed.side == Side::Lower { exponent.min(LARGEST_EXPONENT) } else { exponent };
                weight = held.exp();
            } else {
                weight *= weight_step;
            }
            let mass = composed.tilted[skip + s] * weight;
            let above = t + mass;
            t = decay * above;
            slope[s] = t;
            d += if h > WIDE { above * (1.0 - decay) } else { t * growth };
        }
        // slope[s] is the slope on the cell left of s; this shifts it to the cell right of s.
        slope.rotate_left(1);
        slope[n - 1] = 0.0;
        let log_unit = composed.log_scale - tilt * center;
        let top = real(composed.first + length as i64) * h;
        let lattice_sum = real(length).min(1.0 + 1.0 / (h * tilt * (tilt + 1.0)));
        let scale_rounding = 4.0 * UNIT_ROUNDOFF * (composed.log_scale.abs() + (tilt * center).abs());
        let exponent_rounding = 4.0 * UNIT_ROUNDOFF * (LARGEST_EXPONENT + tilt * (center.abs() + top.abs()));
        Self {
            side: composed.side,
            spacing: h,
            first,
            delta,
            slope,
            log_unit,
            tilt,
            center,
            length,
            relative: composed.relative_error
                + scale_rounding
                + exponent_rounding
                + 8.0 * UNIT_ROUNDOFF * (real(n) + 8.0 + real(AFRESH)),
            entry_error: composed.entry_error,
            transform: composed.entry_error * lattice_sum,
            wrapped_above: composed.wrapped_above / (tilt + 1.0),
            wrapped_below: composed.wrapped_below / (tilt + 1.0),
            wrapped_below_weighed: composed.wrapped_below_weighed,
            above: composed.mass_above,
            read_from: composed.read_from,
            at_infinity: composed.at_infinity,
            origin,
        }
    }

    /// Returns the length of the transform behind this law.
    pub fn length(&self) -> usize {
        self.length
    }

    /// Returns the position on the composed lattice of a loss, moved to this law's safe side.
    fn place(&self, epsilon: f64) -> f64 {
        let error = self.origin.error(epsilon);
        epsilon - self.origin.loss + if self.side == Side::Upper { -error } else { error }
    }

    fn loss(&self, s: usize) -> f64 {
        #[allow(clippy::cast_possible_wrap)] // lattice positions below 2^50
        let index = real(self.first + s as i64);
        index * self.spacing
    }

    /// Returns the tilt λ.
    pub(super) fn tilt(&self) -> f64 {
        self.tilt
    }

    /// Returns a position, inside of the part that may be read, at which δ is at most that at this ε.
    pub(super) fn position_below(&self, epsilon: f64) -> f64 {
        (epsilon - self.origin.loss + self.origin.error(epsilon)).max(self.read_from).max(self.loss(0))
    }

    /// Returns `e^{K − λε}`, where ε is a position, as below.
    pub(super) fn unit(&self, epsilon: f64) -> f64 {
        (self.log_unit - self.tilt * (epsilon - self.center)).exp()
    }

    /// Returns the amount that may have wrapped around to points above ε, in units of δ.
    fn aliasing(&self, epsilon: f64) -> f64 {
        let unit = self.unit(epsilon);
        unit * self.wrapped_above + self.wrapped_below_weighed.min(unit * self.wrapped_below)
    }

    /// Returns an upper bound on `e^{K − λε}` for the law of these masses.
    pub(super) fn unit_at_most(&self, epsilon: f64) -> f64 {
        self.unit(epsilon) * (1.0 + 1e-9 + self.relative)
    }

    /// Returns the finite part at ε as computed, without any allowance for error; ε is inside the table or right of it.
    pub(super) fn finite(&self, epsilon: f64) -> f64 {
        let Some((s, x)) = self.cell(epsilon) else { return 0.0 };
        if self.spacing > WIDE {
            return self.log_unit.exp() * self.delta[if self.side == Side::Upper { s } else { s + 1 }];
        }
        self.log_unit.exp() * (self.delta[s + 1] + self.slope[s] * x.exp() * (self.spacing - x).max(0.0).exp_m1())
    }

    /// Returns the entry at or left of ε and the distance from it; None right of the table.
    fn cell(&self, epsilon: f64) -> Option<(usize, f64)> {
        let last = self.delta.len() - 1;
        if epsilon >= self.loss(last) {
            return None;
        }
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // inside the table
        let mut s = (((epsilon - self.loss(0)) / self.spacing).floor() as usize).min(last - 1);
        if self.loss(s) > epsilon && s > 0 {
            s -= 1;
        }
        Some((s, (epsilon - self.loss(s)).max(0.0)))
    }

    /// Returns a lower bound on the finite part of δ at a position that may be read, for the law of these masses.
    pub(super) fn finite_at_least(&self, epsilon: f64) -> f64 {
        let errors = (self.unit(epsilon) * self.transform + self.aliasing(epsilon)) * (1.0 + 1e-9 + self.relative);
        self.finite(epsilon) * (1.0 - self.relative) - errors
    }

    /// Returns an upper bound on `E[|1 − e^{ε−L}|; |L − ε| ≤ t]` for the law of these masses, at a position ε; None if
    /// the table begins too far right. What lies above the table is missing, here and in [`Self::finite`], where it counts
    /// at least as much.
    ///
    /// With D(x) = δ and T(x) = e^x Q(L > x) it is `D(ε) − D(ε+t) − (1 − e^{−t})T(ε+t)` on the right, and
    /// `D(ε) − D(ε−t) + (e^t − 1)T(ε−t)` on the left. D and T have the relative error of a round's profile and slope: both
    /// P(L > x) and Q(L > x) of each round have it for every x, and a convolution keeps that. Mass that wrapped around
    /// only adds to the result.
    pub(super) fn near(&self, epsilon: f64, distance: f64) -> Option<f64> {
        let (left, right) = ((epsilon - distance).next_down(), (epsilon + distance).next_up());
        if self.spacing > WIDE || distance > WIDE || left < self.loss(0) {
            return None;
        }
        let slope = |at: f64| self.cell(at).map_or(0.0, |(s, x)| self.log_unit.exp() * self.slope[s] * x.exp());
        let [before, at, after] = [left, epsilon, right].map(|place| self.finite(place));
        let (rise, fall) = ((epsilon - left).exp_m1() * slope(left), -(epsilon - right).exp_m1() * slope(right));
        let value = (at - before + rise) + (at - after - fall);
        let size = 2.0 * at + before + after + rise + fall;
        let entries = 2.0 * distance / self.spacing + 3.0;
        let largest = (epsilon - left).exp_m1() * (1.0 + 1e-9 + self.relative);
        let errors = self.unit(left) * self.entry_error * entries * largest;
        let bound = value.max(0.0) + size * (self.relative + 64.0 * UNIT_ROUNDOFF) + errors;
        // The maximum ignores a NaN, which must not become a bound.
        (value.is_finite() && bound.is_finite()).then_some(bound)
    }

    /// Returns a bound on the composed δ at ε, from this law's side, in [0, 1].
    pub fn delta(&self, epsilon: f64) -> f64 {
        let epsilon = self.place(epsilon);
        let start = self.read_from.max(self.loss(0));
        match self.side {
            // Left of the range in which the law may be read, δ is at most 1, and at least its value further right.
            Side::Upper if epsilon < start => 1.0,
            Side::Upper => {
                let errors = self.unit(epsilon) * self.transform + self.above + self.at_infinity;
                (self.finite(epsilon) * (1.0 + self.relative) + errors * (1.0 + 1e-9 + self.relative) + 1e-300).min(1.0)
            }
            Side::Lower => self.finite_at_least(epsilon.max(start)).max(0.0) + self.at_infinity,
        }
    }

    /// Returns a bound on the composed ε ≥ 0 at δ, from this law's side: upper, an ε with δ(ε) ≤ δ; lower, an ε with
    /// δ(ε) ≥ δ or 0.
    ///
    /// It is +∞ (upper) if the law resolves no such ε: the window ends, or errors exceed δ.
    pub fn epsilon(&self, delta: f64) -> f64 {
        if self.side == Side::Lower && self.at_infinity > delta {
            return f64::INFINITY;
        }
        let start = (self.loss(0).max(self.read_from) + self.origin.loss).max(0.0);
        let end = (self.loss(self.delta.len() - 1) + self.origin.loss).max(start);
        let holds = |epsilon: f64| self.delta(epsilon) <= delta;
        // The allowances grow to the left of the centre like e^{−λε}, so the lower bound is monotone only near it: the
        // crossing is bracketed from the centre outwards.
        let (center, step) = (self.center + self.origin.loss, 0.25 / (self.tilt + 1.0));
        let (mut low, mut high) = (center.clamp(start, end), center.clamp(start, end));
        let mut stride = step;
        while !holds(high) {
            if high >= end {
                return match self.side {
                    Side::Upper => f64::INFINITY,
                    Side::Lower => high,
                };
            }
            low = high;
            high = (high + stride).min(end);
            stride *= 2.0;
        }
        stride = step;
        while low >= high || holds(low) {
            if low <= start {
                return match self.side {
                    Side::Upper => low,
                    Side::Lower => 0.0,
                };
            }
            high = low;
            low = (low - stride).max(start);
            stride *= 1.5;
        }
        for _ in 0..200 {
            let middle = 0.5 * (low + high);
            if middle <= low || middle >= high || high - low <= 1e-15 * high {
                break;
            }
            if holds(middle) {
                high = middle;
            } else {
                low = middle;
            }
        }
        match self.side {
            Side::Upper => high,
            Side::Lower => low,
        }
    }

    /// Returns the contribution of each error source at ε, in units of δ.
    pub fn budget(&self, epsilon: f64) -> Budget {
        let epsilon = self.place(epsilon).max(self.read_from).max(self.loss(0));
        let unit = self.unit(epsilon);
        let finite = self.finite(epsilon);
        Budget {
            other_losses: 0.0,
            truncation: self.at_infinity,
            window: self.above,
            aliasing: self.aliasing(epsilon),
            transform_rounding: unit * self.transform,
            mass_rounding: finite * self.relative,
            cells: 0.0,
            profile_relative_error: 0.0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a law of masses, by their entries and logarithms, tilted, with no error except that of reading it.
    fn law(side: Side, spacing: f64, tilt: f64, masses: &[(u32, f64)]) -> Composed {
        let exponents: Vec<f64> = masses.iter().map(|(at, log)| log + tilt * f64::from(*at) * spacing).collect();
        let log_scale = exponents.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let mut tilted = vec![0.0; 64];
        for ((at, _), exponent) in masses.iter().zip(&exponents) {
            tilted[*at as usize] = (exponent - log_scale).exp();
        }
        Composed {
            side,
            spacing,
            first: 0,
            tilt,
            log_scale,
            tilted,
            entry_error: 0.0,
            read_from: 0.0,
            mass_above: 0.0,
            wrapped_above: 0.0,
            wrapped_below: 0.0,
            wrapped_below_weighed: 0.0,
            at_infinity: 0.0,
            relative_error: 1e-12,
        }
    }

    #[test]
    fn what_no_double_holds_is_no_bound_from_below() {
        type Case<'a> = (f64, f64, &'a [(u32, f64)]);
        // The last case has the weight e^800 at its first mass, and e^−700 is its unit.
        let cases: [Case<'_>; 8] = [
            (1.0, 800.0, &[(3, 0.0)]),
            (1.0, 800.0, &[(40, 0.0)]),
            (720.0, 1e-3, &[(3, 0.0)]),
            (720.0, 1.0, &[(20, 0.0)]),
            (0.02, 9e4, &[(20, 0.0)]),
            (1e4, 0.5, &[(40, 0.0)]),
            (1.0, 1.0, &[(3, -0.7), (20, -0.7)]),
            (1.0, 800.0, &[(19, 0.0), (20, -700.0)]),
        ];
        for (spacing, tilt, masses) in cases {
            let read =
                |side| Readoff::new(&law(side, spacing, tilt, masses), LatticeOrigin::default(), 20.0 * spacing, 0.0);
            let (lower, upper) = (read(Side::Lower), read(Side::Upper));
            for place in [0.0, 1.5, 2.0, 2.5, 3.0, 10.0, 18.0, 18.5, 18.999, 19.0, 19.5, 20.0, 39.999, 40.0, 50.0] {
                let epsilon = place * spacing;
                let part = |(at, log): &(u32, f64)| -log.exp() * (epsilon - f64::from(*at) * spacing).min(0.0).exp_m1();
                let exact: f64 = masses.iter().map(part).sum();
                let (low, high) = (lower.delta(epsilon), upper.delta(epsilon));
                assert!(low <= exact && exact <= high, "{spacing} {tilt} {masses:?} {epsilon}: {low} {exact} {high}");
                if exact > 1e-290 && exact < 0.999 {
                    let (low, high) = (lower.epsilon(exact), upper.epsilon(exact));
                    let rounding = 1e-9 * (1.0 + epsilon);
                    assert!(low <= epsilon + rounding && epsilon - rounding <= high, "{tilt} {epsilon}: {low} {high}");
                }
            }
        }
    }
}

//! An upper bound on the hockey stick of all triangles in a box of inner products.
//!
//! For κ ≥ 1, with a = (u − x)/σ and c = (x′ − x)/σ,
//!
//! `H_κ(P‖Q) = ∫ (qN(x) − (κ−1)(1−q)N(u) − κqN(x′))_+ = q·E(1 − λ₁e^X − λ₂e^Y)_+`, λ₁ = (κ−1)(1−q)/q, λ₂ = κ,
//!
//! where X = a·Z − |a|²/2, Y = c·Z − |c|²/2 and Z is normal. It increases in each of |a|², |c|² and a·c:
//!
//! * a larger |a|² with the same |c|² and a·c multiplies e^X by an independent factor of mean 1, and (1 − λ₁w − λ₂w′)_+ is convex
//!   in w (Jensen); the same for |c|²;
//! * (1 − λ₁e^X − λ₂e^Y)_+ has a mixed derivative of at least 0 in (X, Y), so it is supermodular, and its mean increases with the
//!   covariance of a Gaussian vector whose means and variances are fixed (Plackett's identity, from which Slepian's inequality
//!   follows: the derivative of the mean in the covariance is the mean of the mixed derivative).
//!
//! So the Gram matrix of upper bounds is an upper bound for the box: first both squared lengths are raised, which keeps the matrix
//! positive semidefinite, then the product. If the product exceeds the geometric mean of the squared lengths (by rounding), |a|² is
//! raised to what it needs.
//!
//! **In one dimension.** Let y be the coordinate along c, α = a·c/|c| and v² = |a|² − α². Then e^X = m·e^{αy − α²/2} with m = e^{vz −
//! v²/2} independent of y, and the mean over y is convex and falls with m. The law of m is replaced by one that is larger in the convex
//! order: each cell of m has its mass moved to its ends, mean preserved; what lies below the first cell shares its mass between 0
//! and the cell; what lies above the last one is moved down to it, which can only raise the mean of a function that falls.
//! For one m the mean is `Φ(y*) − λ₁mΦ(y* − α) − λ₂Φ(y* − c)`, where y* is the only root of λ₁m e^{αy−α²/2} + λ₂e^{cy−c²/2} = 1. The
//! logarithm s of the left side is convex and rises, so Newton's steps from the right stay on the right of y*; at such a y the
//! expression is too small by at most (y − y*)·φ·(e^{s(y)} − 1), and y − y* is at most 2s/s′ if s is at most 0 there.
//!
//! **A negative product.** For α < 0 the left side falls before it rises, and s is convex still: the mean is over what lies between two
//! roots, and each is approached from outside in the same way. Each term is at most 1 between them, which gives both a start. Where
//! the least s is hardly negative, 1 − e^s is at most that much.

use crate::adaptive::triangles::Gram;
use crate::special::{scaled_upper_tail, upper_tail, Approximation, UNDERFLOW, UNIT_ROUNDOFF};

/// The range of z that cells cover: where m is small, the mean over y is much larger than at 1, so little may be left out there.
const LOWEST: f64 = -9.0;
const HIGHEST: f64 = 5.0;
/// The widths of cells of z: narrow where m varies much.
const WIDTHS: (f64, f64) = (0.15, 0.6);
const NARROW: f64 = 0.06;
/// At this y and below, Φ(y) is less than 10⁻³⁰⁰.
const NOTHING: f64 = -38.0;
/// How near to 1 the left side of the equation for y* must come.
const NEAR: f64 = 1e-9;
const MOST_STEPS: u32 = 100;

/// The bound for a box of inner products, for one sampling probability and noise.
#[derive(Debug, Clone)]
pub(super) struct Level {
    q: f64,
    /// ln((1−q)/q).
    log_odds: f64,
    /// α and |c|, in units of σ.
    along: f64,
    shift: f64,
    /// ln m and the weight of each atom of m > 0.
    atoms: Vec<(f64, f64)>,
    /// The weight of m = 0.
    at_zero: f64,
}

impl Level {
    pub fn new(gram: Gram, q: f64, noise_multiplier: f64) -> Self {
        let rounding = 1.0 + 8.0 * UNIT_ROUNDOFF;
        let shift = gram.other.sqrt() / noise_multiplier * rounding;
        // A negative number is rounded up too, by more than the length that it is multiplied with.
        let along = gram.product / gram.other.sqrt() / noise_multiplier;
        let along = along * if along < 0.0 { 3.0 - 2.0 * rounding } else { rounding };
        let square = gram.stay / (noise_multiplier * noise_multiplier) * rounding - along * along;
        // Rounding of the difference is added to v²: a larger |a|² is safe.
        let across = (square + 8.0 * UNIT_ROUNDOFF * along * along).max(0.0).sqrt() * rounding;
        let (atoms, at_zero) = factors(across);
        Self { q, log_odds: ((1.0 - q) / q).ln(), along, shift, atoms, at_zero }
    }

    /// Returns an upper bound on H_κ at κ = e^ε, ε ≥ 0.
    pub fn at(&self, epsilon: f64) -> f64 {
        self.after(epsilon, &mut self.no_roots())
    }

    /// Returns for each atom, that of 0 last, that nothing is known of y*.
    pub fn no_roots(&self) -> Vec<f64> {
        vec![f64::INFINITY; self.atoms.len() + 1]
    }

    /// Returns the bound at ε. `roots` has y* of a smaller ε for each atom, and is given those of this one.
    pub fn after(&self, epsilon: f64, roots: &mut [f64]) -> f64 {
        let log_stay = epsilon.exp_m1().ln() + self.log_odds;
        let zero = roots.len() - 1;
        let mut sum = 0.0;
        if self.at_zero > 0.0 {
            sum = self.at_zero * self.given(epsilon, f64::NEG_INFINITY, &mut roots[zero]);
        }
        for (&(log_m, weight), root) in self.atoms.iter().zip(roots) {
            sum += weight * self.given(epsilon, log_stay + log_m, root);
        }
        self.q * sum * (1.0 + 64.0 * UNIT_ROUNDOFF) + UNDERFLOW
    }

    /// Returns an upper bound on the mean over y, with ln(λ₁m) = `log_stay`. `root` is on the right of y*, and becomes y* nearly.
    ///
    /// The left side of the equation for y* rises with ε, so y* of a smaller ε is on the right. How near y comes is looked at in the
    /// end, wherever it began.
    #[allow(clippy::many_single_char_names)] // the formula of this file's head
    fn given(&self, epsilon: f64, log_stay: f64, root: &mut f64) -> f64 {
        let (a, c) = (self.along, self.shift);
        let (first, second) = (log_stay - 0.5 * a * a, epsilon - 0.5 * c * c);
        if a < 0.0 && first > f64::NEG_INFINITY {
            return self.between(epsilon, log_stay);
        }
        // With one of both terms equal to 1, the sum is at least 1: y is at least y*.
        let mut y = root.min(-second / c);
        if first > f64::NEG_INFINITY {
            if a > 0.0 {
                y = y.min(-first / a);
            } else if first >= 0.0 {
                return UNDERFLOW;
            }
        }
        let side = Side { first, second, a, c };
        let (s, slope);
        (y, s, slope) = side.root(y);
        *root = y;
        if y <= NOTHING {
            return UNDERFLOW;
        }
        // The logarithms are known to a few units of their size, which counts as a distance from the root as well.
        let known = if first.is_finite() { first.abs() + self.log_odds.abs() } else { 0.0 };
        let extent = 1.0 + known + second.abs() + epsilon + (a + c) * y.abs();
        let s = s.abs() + 8.0 * UNIT_ROUNDOFF * extent;
        let distance = 2.0 * s / slope;
        let density = if y < 0.0 { 0.4 * (-0.5 * y * y).exp() } else { 0.4 };
        let short = if side.at(y - distance).0 <= -8.0 * UNIT_ROUNDOFF * extent {
            2.0 * distance * density * s.exp_m1()
        } else {
            return upper_tail(-y, UNIT_ROUNDOFF * y.abs()).value * (1.0 + 1e-9);
        };
        let error = |x: f64| 4.0 * UNIT_ROUNDOFF * (x.abs() + a + c);
        let whole = upper_tail(-y, 0.0);
        let replaced = scaled_upper_tail(epsilon, c - y, error(y));
        let mut value = whole.value - replaced.value;
        let mut errors = whole.error + replaced.error;
        if log_stay > f64::NEG_INFINITY {
            let stay = scaled_upper_tail(log_stay, a - y, error(y));
            value -= stay.value;
            errors += stay.error;
        }
        // The coefficients λ are known to a few units of their logarithms, and both products are at most Φ(y).
        let coefficients = 8.0 * UNIT_ROUNDOFF * extent * whole.value;
        (value + errors + coefficients + short).max(0.0) + UNDERFLOW
    }

    /// Returns the same for α < 0.
    #[allow(clippy::many_single_char_names)] // the formula of this file's head
    fn between(&self, epsilon: f64, log_stay: f64) -> f64 {
        let (a, c) = (self.along, self.shift);
        let side = Side { first: log_stay - 0.5 * a * a, second: epsilon - 0.5 * c * c, a, c };
        // Where the terms are 1. If a sum below 1 lies between, these are at least ln 4·min(1/|α|, 1/|c|) apart.
        let (left, right) = (side.first / -a, -side.second / c);
        if left >= right {
            return UNDERFLOW;
        }
        let extent =
            |y: f64| 1.0 + side.first.abs() + self.log_odds.abs() + side.second.abs() + epsilon + (c - a) * y.abs();
        let rounding = 8.0 * UNIT_ROUNDOFF * extent(left).max(extent(right));
        let lowest = (side.first - side.second + (-a / c).ln()) / (c - a);
        let least = side.at(lowest).0;
        if least >= rounding {
            return UNDERFLOW;
        }
        if least > -HARDLY {
            let outside = mass(0.0, left, right, rounding * (1.0 + left.abs().max(right.abs())));
            return (outside.value + outside.error) * (rounding - least).max(rounding) * (1.0 + 1e-9) + UNDERFLOW;
        }
        let ((low, s_low, slope_low), (high, s_high, slope_high)) = (side.root(left), side.root(right));
        if high <= NOTHING || low >= -NOTHING {
            return UNDERFLOW;
        }
        let error = UNIT_ROUNDOFF * 4.0 * (low.abs().max(high.abs()) + c - a);
        let whole = mass(0.0, low, high, error);
        let distances =
            [(s_low, slope_low), (s_high, slope_high)].map(|(s, slope)| 2.0 * (s.abs() + rounding) / slope.abs());
        let inner = (low + distances[0], high - distances[1]);
        if side.at(inner.0).0 > -rounding || side.at(inner.1).0 > -rounding {
            return (whole.value + whole.error) * (1.0 + 1e-9) + UNDERFLOW;
        }
        // The largest density between each root and where it was approached from.
        let peak = |nearest: f64| 0.4 * (-0.5 * nearest * nearest).exp();
        let densities = [
            peak(if low > 0.0 { low } else { inner.0.min(0.0) }),
            peak(if high < 0.0 { high } else { inner.1.max(0.0) }),
        ];
        let short: f64 =
            (0..2).map(|k| 2.0 * distances[k] * densities[k] * ([s_low, s_high][k].abs() + rounding).exp_m1()).sum();
        let (stay, replaced) = (mass(log_stay, low - a, high - a, error), mass(epsilon, low - c, high - c, error));
        let value = whole.value - stay.value - replaced.value;
        let coefficients = rounding * whole.value;
        (value + whole.error + stay.error + replaced.error + coefficients + short).max(0.0) + UNDERFLOW
    }
}

/// Where the least s is above this, negated, no roots are looked for.
const HARDLY: f64 = 1e-7;

/// Returns e^`log_factor`·Pr[low < Z < high].
fn mass(log_factor: f64, low: f64, high: f64, error: f64) -> Approximation {
    // The smaller tails are subtracted.
    let (near, far) = if low > 0.0 { (low, high) } else { (-high, -low) };
    let (near, far) = (scaled_upper_tail(log_factor, near, error), scaled_upper_tail(log_factor, far, error));
    Approximation { value: (near.value - far.value).max(0.0), error: near.error + far.error }
}

/// The logarithm s of the left side of the equation for y*.
#[derive(Clone, Copy)]
struct Side {
    first: f64,
    second: f64,
    a: f64,
    c: f64,
}

impl Side {
    /// Returns s and its derivative.
    fn at(self, y: f64) -> (f64, f64) {
        let (p, q) = (self.first + self.a * y, self.second + self.c * y);
        let most = p.max(q);
        let (p, q) = ((p - most).exp(), (q - most).exp());
        (most + (p + q).ln(), (self.a * p + self.c * q) / (p + q))
    }

    /// Approaches a root from outside, where s is positive, and returns y, s and its derivative there.
    fn root(self, mut y: f64) -> (f64, f64, f64) {
        let (mut s, mut slope) = self.at(y);
        let mut steps = 0;
        while s > NEAR && y > NOTHING && steps < MOST_STEPS {
            y -= s / slope;
            (s, slope) = self.at(y);
            steps += 1;
        }
        (y, s, slope)
    }
}

/// Returns atoms (ln m, weight) and the weight of 0: a law that is larger in the convex order than that of m = e^{vz − v²/2}, up to
/// the part above all cells, which is moved down.
fn factors(v: f64) -> (Vec<(f64, f64)>, f64) {
    if v < 1e-12 {
        // The mass is not moved at all: m is 1 up to ten standard deviations of 10⁻¹², which is added to the mean of 0.
        return (vec![(-1e-11, 1.0)], 1e-20);
    }
    // z of the ends of cells; ln m there.
    let width = (NARROW / v).clamp(WIDTHS.0, WIDTHS.1);
    let count = ((HIGHEST - LOWEST) / width).ceil();
    #[allow(clippy::cast_possible_truncation)] // fewer than a hundred
    let ends: Vec<f64> = (0..=count as i32).map(|k| LOWEST + f64::from(k) * width).collect();
    let log_m: Vec<f64> = ends.iter().map(|z| v * z - 0.5 * v * v).collect();
    // Pr[z in cell], and the same for z − v: the mean of m on the cell.
    let mass = |low: f64, high: f64| {
        let (low, high) = if low > 0.0 { (low, high) } else { (-high, -low) };
        (upper_tail(low, 0.0).value - upper_tail(high, 0.0).value).max(0.0)
    };
    let mut weights = vec![0.0; ends.len()];
    for k in 1..ends.len() {
        let (low, high) = (ends[k - 1], ends[k]);
        let (all, part) = (mass(low, high), mass(low - v, high - v));
        let (bottom, top) = (log_m[k - 1].exp(), log_m[k].exp());
        // What goes to the upper end is rounded down: the rest goes to the lower end, where the function is larger.
        let rounding = 32.0 * UNIT_ROUNDOFF * (1.0 + 0.5 * (low.abs() + v) * (low.abs() + v + width));
        let tails = upper_tail(low.abs().min(high.abs()), 0.0).value;
        let shifted = upper_tail((low - v).abs().min((high - v).abs()), 0.0).value;
        let least = part - bottom * all - rounding * (shifted + bottom * tails);
        let up = (least / (top - bottom) * (1.0 - 32.0 * UNIT_ROUNDOFF / (v * width).min(1.0))).clamp(0.0, all);
        weights[k] += up;
        weights[k - 1] += (all - up) + rounding * tails;
    }
    // Below all cells: the mean of m there goes to the first end.
    let (below, part) = (upper_tail(-ends[0], 0.0).value, upper_tail(-(ends[0] - v), 0.0).value);
    let up = (part / log_m[0].exp() * (1.0 - 1e-9)).min(below);
    weights[0] += up;
    let last = weights.len() - 1;
    weights[last] += upper_tail(ends[last], 0.0).value * (1.0 + 1e-9);
    let atoms = log_m.into_iter().zip(weights).filter(|atom| atom.1 > 0.0).collect();
    (atoms, (below - up).max(0.0) + 1e-9 * below)
}

//! Composition of lattice measures by a tilted FFT, with every error bounded.
//!
//! # What is computed
//!
//! Round i has masses a_i on the lattice, `M_i = Σ_j a_{i,j} e^{λ j h}`, and tilted probabilities
//! `b_i = a_{i,j} e^{λ j h} / M_i`. If B is the n-fold convolution of the b, then the composed mass at s is
//! `e^{K(λ)} e^{−λ s h} B_s` with `K = Σ n_i ln M_i`, and for every ε
//!
//! `δ(ε) = e^{K(λ) − λε} Σ_{sh > ε} e^{−λ(sh − ε)} (1 − e^{−(sh − ε)}) B_s  +  [mass at ∞]`.
//!
//! With λ at the saddle point the sum is of order one however small δ is, so an absolute error near 10⁻¹⁴ in B is a
//! relative error near 10⁻¹⁴ in δ: that is the purpose of the tilt.
//!
//! # The sources of error, and where they are counted
//!
//! * **Aliasing.** The cyclic convolution C of length N satisfies C_r = Σ_{s ≡ r} B_s ≥ B_s. For the upper result that
//!   is safe; from the lower one the mass that wrapped to points above ε is subtracted. From above: only mass beyond
//!   ε + Nh can wrap there, and it counts at most `max_x e^{−λx}(1 − e^{−x}) ≤ 1/(λ+1)`. From below: at most
//!   `e^{−λmNh}` of the untilted mass for each turn m, since `Σ_x e^{−λx} B(ε + x − mNh) = e^{λε − K − λmNh} Σ_z A(z)`;
//!   or, if the window starts below nearly all of the tilted law, the tilted mass below its start times 1/(λ+1). The
//!   smaller of the two is used.
//! * **Window top.** Untilted mass above the window is added to the upper result in full.
//! * **Rounding of the transforms.** A power-of-two FFT applies to each input at most `log₂N` twiddle factors and
//!   additions; with the real-transform wrapper the error of each output is at most `32u(log₂N + 2)` times the sum of
//!   the absolute inputs (every butterfly error is relative to the sum of absolute values it combines; Higham 2002,
//!   §24.1, with the ℓ₁ norm as majorant; about 13u a level for a twiddle computed by sine and cosine, its product and
//!   the addition, twice that for the wrapper). So the spectrum F̂ has an error of `η = 32u(log₂N + 2)` since Σb = 1,
//!   its powers of `Π(|F̂_i| + η)^{n_i} · Σ n_i η/(|F̂_i| + η)` (mean value theorem), repeated squaring of `8u Σn_i`
//!   relatively, and the inverse transform of `32u(log₂N + 2)` times the mean modulus of its input. All three are
//!   summed over the actual spectrum into one absolute error E for each entry. With the weights of a δ they add up to
//!   at most `E·min(N, 1 + 1/(hλ(λ+1)))`: `Σ_x e^{−λx}(1 − e^{−x})` over the lattice.
//! * **Rounding of tilted masses and of M.** Relative; raised to the number of rounds ([`Composed::relative_error`]).

use std::collections::BTreeMap;
use std::sync::Arc;

use realfft::num_complex::Complex;
use realfft::{ComplexToReal, RealFftPlanner, RealToComplex};

use crate::error::{Error, Result};
use crate::pld::check;
use crate::pld::cumulant::{Cumulant, Groups};
use crate::pld::masses::Masses;
use crate::pld::mesh::Side;
use crate::pld::window::Grid;
use crate::process::PerProcess;
use crate::run::Run;
use crate::special::{real, UNIT_ROUNDOFF};

/// The transforms of one length, planned once for all compositions on a grid.
pub struct Transforms {
    length: usize,
    forward: Arc<dyn RealToComplex<f64>>,
    inverse: Arc<dyn ComplexToReal<f64>>,
}

impl Transforms {
    /// Returns the transforms of a power-of-two length. Those of usual lengths are planned once for a process.
    pub fn new(length: usize) -> Arc<Self> {
        static PLANS: PerProcess<BTreeMap<usize, Arc<Transforms>>> = PerProcess::new();
        PLANS.with(|plans| {
            if let Some(plan) = plans.get(&length) {
                return Arc::clone(plan);
            }
            let mut planner = RealFftPlanner::new();
            let (forward, inverse) = (planner.plan_fft_forward(length), planner.plan_fft_inverse(length));
            let plan = Arc::new(Self { length, forward, inverse });
            if length <= LONGEST_KEPT {
                plans.insert(length, Arc::clone(&plan));
            }
            plan
        })
    }
}

/// A composed law in tilted form with its errors, accurate near the mean of the tilted law.
#[derive(Debug, Clone)]
pub struct Composed {
    /// The side of the true profile that it bounds.
    pub side: Side,
    /// Lattice spacing h.
    pub spacing: f64,
    /// Lattice position of the first window entry.
    pub first: i64,
    /// The tilt λ.
    pub tilt: f64,
    /// K(λ).
    pub log_scale: f64,
    /// The cyclic convolution on the window, C_s ≥ 0.
    pub tilted: Vec<f64>,
    /// E: a bound on the rounding error of every entry.
    pub entry_error: f64,
    /// The smallest ε at which the law may be read.
    pub read_from: f64,
    /// A bound on the untilted mass above the window.
    pub mass_above: f64,
    /// A bound on the tilted mass that wraps from above to points above `read_from`.
    pub wrapped_above: f64,
    /// A bound on the tilted mass below the window.
    pub wrapped_below: f64,
    /// A bound on the contribution of all mass below after wrapping, in units of δ.
    pub wrapped_below_weighed: f64,
    /// A bound on the composed mass at +∞: an upper bound on the upper side, a lower bound on the lower side.
    pub at_infinity: f64,
    /// The relative error of the finite part from the masses, the tilting and the scale.
    pub relative_error: f64,
}

/// The error for a round whose losses lie beyond the last possible lattice point.
pub(super) const BEYOND_LATTICES: Error =
    Error::Unresolved { reason: "a round has no mass at a finite loss on the lattice" };

/// Composes `groups` of (masses, count) on `grid`.
///
/// # Errors
/// [`Error::Cancelled`], [`Error::TimeLimit`]; [`Error::Unresolved`] if a round has no mass on its lattice, or if its
/// tilted masses leave the range of doubles.
pub fn compose(
    side: Side,
    groups: &[(&Masses, u64)],
    grid: &Grid,
    transforms: &Transforms,
    run: &Run,
) -> Result<Composed> {
    if groups.iter().any(|g| g.0.mass.is_empty()) {
        return Err(BEYOND_LATTICES);
    }
    let (tilt, spacing, length) = (grid.tilt, grid.spacing, transforms.length);
    let cumulants = Groups::new(groups.iter().copied());
    let at = cumulants.at(tilt);
    let logs = cumulants.values(tilt);
    let spectrum = Spectrum::of(groups, &logs, tilt, transforms, run)?;
    let Inverted { tilted, entry_error, sum, least } = spectrum.invert(grid.first, transforms, run)?;
    if !sum.is_finite() {
        // The factor of a mass below the normal doubles, tilted to the size of 1, is infinite.
        return Err(Error::Unresolved { reason: "tilted masses leave the range of doubles" });
    }

    let rounds: f64 = groups.iter().map(|g| real(g.1)).sum();
    let largest = groups.iter().flat_map(|g| &g.0.epsilon).fold(0.0_f64, |a, e| a.max(e.abs()));
    let own = groups.iter().map(|g| real(g.1) * g.0.relative_error).sum::<f64>();
    // This is the error of one tilted mass or one cumulant at a parameter of size t: the rounding of tε, of a
    // logarithm, of two exponentials and of a sum of as many terms as there are masses.
    let terms = real(groups.iter().map(|g| g.0.mass.len()).max().unwrap_or(0));
    let log_size = logs.iter().fold(0.0_f64, |a, l| a.max(l.abs()));
    let rounding = |t: f64| UNIT_ROUNDOFF * rounds * (16.0 + terms + 4.0 * t.abs() * largest + 4.0 * log_size);
    let (start, width) = (real(grid.first) * spacing, real(length) * spacing);
    let [top, above, below] = grid.theta;
    let origin = cumulants.at(0.0);
    let tail = |lambda: f64, at: &Cumulant, sign: f64, x: f64, theta: f64| {
        cumulants.log_tail(lambda, at, sign, x, theta, rounding(lambda) + rounding(lambda + sign * theta)).exp()
    };
    let turn = (-tilt * width).exp();
    // The masses in the cumulant at the origin may sum to slightly more than one.
    let total = (origin.value.max(0.0) + rounding(0.0)).exp();
    let relative_error = (own + rounding(tilt)).exp_m1() + UNIT_ROUNDOFF * 4.0 * at.value.abs();
    let at_infinity = infinite_mass(side, groups);
    check::entries(sum, least, real(length) * (entry_error + UNIT_ROUNDOFF) + relative_error, entry_error)?;
    if side == Side::Upper {
        check::accounted((origin.value + own + rounding(0.0)).exp(), at_infinity)?;
    }
    Ok(Composed {
        side,
        spacing,
        first: grid.first,
        tilt,
        log_scale: at.value,
        tilted,
        entry_error,
        read_from: grid.read_from,
        mass_above: total * own.exp() * tail(0.0, &origin, 1.0, start + width, top),
        wrapped_above: tail(tilt, &at, 1.0, grid.read_from + width, above),
        wrapped_below: tail(tilt, &at, -1.0, start, below),
        wrapped_below_weighed: if turn < 1.0 { total * turn / (1.0 - turn) } else { f64::INFINITY },
        at_infinity,
        relative_error,
    })
}

/// Returns `Π(f_i + m_i)^{n_i} − Π f_i^{n_i}` with f the finite and m the infinite mass of a round, rounded in the safe
/// direction.
fn infinite_mass(side: Side, groups: &[(&Masses, u64)]) -> f64 {
    let (mut log_total, mut log_share) = (0.0, 0.0);
    let mut slack = 0.0;
    for (masses, n) in groups {
        let finite: f64 = masses.mass.iter().sum();
        let total = finite + masses.at_infinity;
        log_total += real(*n) * total.ln();
        log_share += real(*n) * (-masses.at_infinity / total).ln_1p();
        let summation = UNIT_ROUNDOFF * (real(masses.mass.len()) + 16.0);
        slack += real(*n) * (masses.relative_error + summation);
    }
    let value = log_total.exp() * -log_share.exp_m1();
    match side {
        Side::Upper => value * slack.exp() * (1.0 + 16.0 * UNIT_ROUNDOFF),
        Side::Lower => value * (-slack).exp() * (1.0 - 16.0 * UNIT_ROUNDOFF),
    }
}

/// Plans up to this length are kept for the life of the process; each takes about two doubles for each point.
const LONGEST_KEPT: usize = 1 << 20;

/// A frequency whose power is below this is left out, and this bound is counted as its error.
const NEGLIGIBLE: f64 = 1e-28;

/// Returns a bound on the error of each output of a transform of length N for input of unit ℓ₁ norm.
fn transform_error(length: usize) -> f64 {
    32.0 * UNIT_ROUNDOFF * (f64::from(length.ilog2()) + 2.0)
}

/// A law on a window: its entries without their negative errors, the error of each, their sum with these errors, and the
/// least of them or 0.
struct Inverted {
    tilted: Vec<f64>,
    entry_error: f64,
    sum: f64,
    least: f64,
}

/// The transform of the composed law, with the mean modulus of its error.
struct Spectrum {
    length: usize,
    values: Vec<Complex<f64>>,
    /// (1/N)·Σ over all N frequencies of the bound on the error of each value.
    mean_error: f64,
}

impl Spectrum {
    fn of(groups: &[(&Masses, u64)], logs: &[f64], tilt: f64, transforms: &Transforms, run: &Run) -> Result<Self> {
        let (length, forward) = (transforms.length, &transforms.forward);
        let eta = transform_error(length);
        // These are the running product of the powers, and a bound on the error of each.
        let mut values: Vec<Complex<f64>> = Vec::new();
        let mut errors: Vec<f64> = Vec::new();
        let mut input = forward.make_input_vec();
        let mut output = forward.make_output_vec();
        let mut scratch = forward.make_scratch_vec();
        for ((masses, n), log) in groups.iter().zip(logs) {
            input.fill(0.0);
            for ((&index, &epsilon), &mass) in masses.index.iter().zip(&masses.epsilon).zip(&masses.mass) {
                input[position(index, length)] += mass * tilted_factor(tilt * epsilon, *log);
            }
            forward
                .process_with_scratch(&mut input, &mut output, &mut scratch)
                .map_err(|_| Error::Numerics { reason: "the transform refused its buffers" })?;
            run.count(length as u64);
            run.check()?;
            let power = Power::new(*n, eta);
            if errors.is_empty() {
                errors.extend(output.iter_mut().map(|f| {
                    let (value, error) = power.of(*f);
                    *f = value;
                    error
                }));
                values = std::mem::take(&mut output);
                if groups.len() > 1 {
                    output = forward.make_output_vec();
                }
            } else {
                for ((value, error), &f) in values.iter_mut().zip(&mut errors).zip(&output) {
                    let (factor, factor_error) = power.of(f);
                    let (size, factor_size) = (modulus(*value), modulus(factor));
                    *error = (size * factor_error + *error * (factor_size + factor_error))
                        * (1.0 + 16.0 * UNIT_ROUNDOFF)
                        + 8.0 * UNIT_ROUNDOFF * size * factor_size;
                    *value *= factor;
                }
            }
        }
        // Each interior frequency represents two of the N.
        let total = 2.0 * errors.iter().sum::<f64>() - errors[0] - errors[errors.len() - 1];
        let mean_error = total / real(length) + 1e-290;
        Ok(Self { length, values, mean_error })
    }

    /// Returns the law on the window that starts at `first`.
    fn invert(mut self, first: i64, transforms: &Transforms, run: &Run) -> Result<Inverted> {
        let inverse = &transforms.inverse;
        let n = real(self.length);
        let half = self.values.len();
        let size: f64 = self.values.iter().map(|&v| 2.0 * modulus(v)).sum();
        let entry_error = self.mean_error + transform_error(self.length) * (size / n);
        // The endpoints of a real transform's spectrum are real; rounding left small imaginary parts (counted above).
        self.values[0].im = 0.0;
        self.values[half - 1].im = 0.0;
        let mut cyclic = inverse.make_output_vec();
        let mut scratch = inverse.make_scratch_vec();
        inverse
            .process_with_scratch(&mut self.values, &mut cyclic, &mut scratch)
            .map_err(|_| Error::Numerics { reason: "the transform refused its buffers" })?;
        run.count(self.length as u64);
        run.check()?;
        cyclic.rotate_left(position(first, self.length));
        let (mut sum, mut least) = (0.0, 0.0_f64);
        for value in &mut cyclic {
            let entry = *value / n;
            sum += entry;
            least = least.min(entry);
            *value = entry.max(0.0);
        }
        Ok(Inverted { tilted: cyclic, entry_error: entry_error * (1.0 + 1e-6), sum, least })
    }
}

/// Returns `e^{exponent − log}`; the difference is taken first so that neither side overflows.
fn tilted_factor(exponent: f64, log: f64) -> f64 {
    (exponent - log).exp()
}

/// Returns the residue of a lattice index modulo the transform length.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_possible_wrap)] // residues fit
fn position(index: i64, length: usize) -> usize {
    index.rem_euclid(length as i64) as usize
}

/// Computes the n-th powers of transformed values that each have an error of at most η.
struct Power {
    exponent: u64,
    eta: f64,
    /// Values below this have a power below [`NEGLIGIBLE`].
    faint: f64,
    /// The relative rounding of a power.
    rounding: f64,
}

impl Power {
    fn new(exponent: u64, eta: f64) -> Self {
        let n = real(exponent);
        Self { exponent, eta, faint: (NEGLIGIBLE.ln() / n).exp() * (1.0 - 1e-12), rounding: 8.0 * UNIT_ROUNDOFF * n }
    }

    /// Returns fⁿ and a bound on its error: `(|f| + η)ⁿ·nη/(|f| + η)` from f, and rounding; for n = 1 that is η.
    fn of(&self, f: Complex<f64>) -> (Complex<f64>, f64) {
        let size = modulus(f) + self.eta;
        if size < self.faint {
            // The error of replacing it by zero is at most the bound on the power.
            return (Complex::new(0.0, 0.0), NEGLIGIBLE);
        }
        if self.exponent == 1 {
            return (f, (self.eta + size * self.rounding) * (1.0 + self.rounding));
        }
        let relative = real(self.exponent) * self.eta / size;
        let bound = real_power(size, self.exponent);
        (complex_power(f, self.exponent), bound * (1.0 + self.rounding) * (relative + self.rounding))
    }
}

/// Returns |z|, rounded up.
fn modulus(z: Complex<f64>) -> f64 {
    z.norm_sqr().sqrt() * (1.0 + 4.0 * UNIT_ROUNDOFF)
}

/// Returns zⁿ by repeated squaring: relative error at most 2n·√5·u, far below the 8nu counted.
fn complex_power(z: Complex<f64>, mut n: u64) -> Complex<f64> {
    let mut result = Complex::new(1.0, 0.0);
    let mut base = z;
    loop {
        if n & 1 == 1 {
            result *= base;
        }
        n >>= 1;
        if n == 0 {
            return result;
        }
        base *= base;
    }
}

/// Returns xⁿ for x ≥ 0 by repeated squaring, and stops early once the result is 0.
fn real_power(x: f64, mut n: u64) -> f64 {
    let mut result = 1.0;
    let mut base = x;
    loop {
        if n & 1 == 1 {
            result *= base;
        }
        n >>= 1;
        if n == 0 || result == 0.0 {
            return result;
        }
        base *= base;
    }
}

//! The recursion on a lattice of s = ln α, with every error bounded.
//!
//! Let W = V − (1 − α)_+. For laws p on the lattice of spacing h, with profiles g, the recursion of [`super`] at the points s ≥ 0 of the
//! lattice is
//!
//! `W_t(s) = max over p of Σ_j p_j W_{t−1}(s − jh) + g(s)`, `W(−s) = e^{−s}W(s)`, W_0 = 0,
//!
//! since Σ_j p_j (1 − e^{s−jh})_+ with the mass at infinity is g(s). If the two directions have different classes, each has its own W, and
//! W(−s) = e^{−s}W′(s) with that of the other direction: the reflection of every pair gives it by induction. Errors are the larger ones of
//! both. It needs W at points of the lattice only, so nothing is interpolated. Computed are
//! M = e^{θs}W and the masses e^{θjh}p_j, whose convolution has an absolute error that is small beside the values near the s that are
//! asked for. With errors e^{−θs}E_t + F_t of W_t (the recursion is monotone, subadditive, and the reflection contracts both):
//!
//! * **Infinite losses.** A mass m at infinity adds m, whatever s is: F_t = μF_{t−1} + m, μ the largest mass of a law.
//! * **Window.** W is taken as 0 from s = S on. With Λ(θ) = max Σ p_j e^{θjh}, W_t(s) ≤ b_t e^{−θ′s} for every θ′ ≥ 0, with b_t = Λ(θ′)(b_{t−1} + c),
//!   c = θ′^θ′/(1+θ′)^{1+θ′} the maximum of e^{−θ′x}(1 − e^{−x}). So what is omitted is at most b_t e^{−θ′S}·e^{(s−S)/2}, at every s ≥ S. An
//!   error of the form Ae^{(s−S)/2} stays one under the recursion: A is multiplied by Λ(−½), which is about 1, and the reflection
//!   e^{−s}·e^{s/2} = e^{−s/2} keeps it. So A_t = Λ(−½)(A_{t−1} + b_{t−1}e^{−θ′S}). From below, the window is a bound as it is.
//! * **Transforms.** A transform of length N = 2^k has a relative error η = 64u(k + 2) in the ℓ₂ norm (Higham 2002, Theorem 24.2; each
//!   stage is √2 times a unitary matrix, and the wrapper for real inputs is one more pass; twice of what [`crate::pld::compose`] counts). By Parseval
//!   and Cauchy-Schwarz each entry of a cyclic convolution of M with p is known to η‖M‖₂(2‖p‖₂ + ‖p‖₁) and a rounding of the
//!   products, which is counted in η.
//! * Their errors add up to E_t = Λ(θ)E_{t−1} + transforms.
//! * **Rounding of masses, weights and profiles** is relative, for each round: all terms are positive.
//!
//! The maximum over laws does not depend on who takes it, so neither does the answer on the number of threads.

use std::sync::Arc;

use realfft::num_complex::Complex;
use realfft::{ComplexToReal, RealFftPlanner, RealToComplex};

use rayon::prelude::*;

use crate::error::{Error, Result};
use crate::pld::masses::Masses;
use crate::pld::mesh::Side;
use crate::run::Run;
use crate::special::{UNDERFLOW, UNIT_ROUNDOFF};

/// The lattice of s, the tilt, and the length of the transforms.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Lattice {
    /// h, with at most twelve significant bits.
    pub spacing: f64,
    /// The number of points s = 0, h, …
    pub points: usize,
    /// θ ≥ 0.
    pub tilt: f64,
    /// N, a power of two.
    pub length: usize,
}

/// So many rounds with the same class of laws, for each direction, or for both.
#[derive(Debug)]
pub(super) struct Stage {
    pub laws: Vec<Vec<Masses>>,
    pub count: u64,
}

/// W at the points of a lattice, with its errors in units of δ.
#[derive(Debug, Clone)]
pub(super) struct LatticeCurve {
    pub lattice: Lattice,
    pub side: Side,
    /// The computed M_T.
    tilted: Vec<f64>,
    /// E_T.
    pub transforms: f64,
    /// A_T.
    pub window: f64,
    /// F_T.
    pub infinite: f64,
    /// The relative error.
    pub relative: f64,
}

#[allow(clippy::cast_precision_loss)] // positions on a lattice
fn position(k: usize) -> f64 {
    k as f64
}

impl LatticeCurve {
    /// Returns s at a point.
    pub fn at(&self, k: usize) -> f64 {
        position(k) * self.lattice.spacing
    }

    /// Returns what the window may have omitted at a point.
    fn omitted(&self, k: usize) -> f64 {
        self.window * (0.5 * (self.at(k) - self.at(self.lattice.points))).exp()
    }

    /// Returns the bound on W, which is that on δ, at every point.
    pub fn values(&self) -> Vec<f64> {
        let errors = self.transforms;
        let bound = |(k, &tilted): (usize, &f64)| {
            let weight = (-self.lattice.tilt * self.at(k)).exp();
            match self.side {
                Side::Upper => {
                    let rounded = (tilted + errors) * weight * (1.0 + self.relative) * (1.0 + 1e-14);
                    (rounded + (self.infinite + self.omitted(k)) * (1.0 + 1e-12) + UNDERFLOW).min(1.0)
                }
                Side::Lower => {
                    ((tilted * (1.0 - self.relative) - errors) * weight * (1.0 - 1e-14) - UNDERFLOW).max(0.0)
                }
            }
        };
        let mut values: Vec<f64> = self.tilted.iter().enumerate().map(bound).collect();
        // V falls: a bound from above holds further right as well, and one from below further left.
        let points = 1..values.len();
        match self.side {
            Side::Upper => points.for_each(|k| values[k] = values[k].min(values[k - 1])),
            Side::Lower => points.rev().for_each(|k| values[k - 1] = values[k - 1].max(values[k])),
        }
        values
    }

    /// Returns the parts of the error at a point, in units of δ: transforms, window, infinite losses, rounding.
    pub fn errors(&self, k: usize) -> [f64; 4] {
        let weight = (-self.lattice.tilt * self.at(k)).exp();
        [self.transforms * weight, self.omitted(k), self.infinite, self.tilted[k] * weight * self.relative]
    }
}

/// A law, ready to be convolved.
struct Kernel {
    spectrum: Vec<Complex<f64>>,
    /// e^{θs} times its profile, without the mass at infinity, at the points of the lattice.
    profile: Vec<f64>,
}

/// What is known of all laws of a stage: norms of tilted masses, and the relative rounding of a round.
#[derive(Debug, Clone, Copy, Default)]
struct Sizes {
    /// Λ(θ), which is also the largest ‖p‖₁.
    moment: f64,
    /// The largest 2‖p‖₂ + ‖p‖₁.
    norms: f64,
    mass: f64,
    infinite: f64,
    relative: f64,
}

/// Kernels of one direction that one worker takes, with its buffers.
struct Worker {
    direction: usize,
    kernels: Vec<Kernel>,
    product: Vec<Complex<f64>>,
    output: Vec<f64>,
    scratch: Vec<Complex<f64>>,
    best: Vec<f64>,
}

/// The most workers of a round; more would not share the work any better.
const WORKERS: usize = 16;

/// The transforms of one length.
struct Transforms {
    forward: Arc<dyn RealToComplex<f64>>,
    inverse: Arc<dyn ComplexToReal<f64>>,
    length: usize,
}

impl Transforms {
    /// Returns η.
    fn error(&self) -> f64 {
        64.0 * UNIT_ROUNDOFF * (f64::from(self.length.ilog2()) + 2.0)
    }
}

const REFUSED: Error = Error::Numerics { reason: "the transform refused its buffers" };

/// Returns e^{θs}g(s), without the mass at infinity, at the points of the lattice.
fn tilted_profile(masses: &Masses, lattice: Lattice) -> Vec<f64> {
    let mut profile = vec![0.0; lattice.points];
    let (decay, growth) = ((-lattice.spacing).exp(), lattice.spacing.exp_m1());
    let mut left = masses.mass.len();
    // The mass above a point, in units of Q there; and g.
    let (mut slope, mut value) = (0.0_f64, 0.0_f64);
    let last = masses.index.last().copied().unwrap_or(0).max(0);
    for k in (0..=last).rev() {
        // From k + 1 to k: everything above k counts.
        while left > 0 && masses.index[left - 1] > k {
            slope += masses.mass[left - 1] * decay_over(masses.index[left - 1] - k - 1, lattice.spacing);
            left -= 1;
        }
        // `slope` is Σ p_j e^{−(j−k−1)h} over j > k.
        slope *= decay;
        value += slope * growth;
        // Now slope is Σ p_j e^{−(j−k)h}, and g(k) = g(k+1) + slope·(e^h − 1).
        if let Some(entry) = usize::try_from(k).ok().and_then(|k| profile.get_mut(k)) {
            *entry = value;
        }
    }
    for (k, entry) in profile.iter_mut().enumerate() {
        *entry *= (lattice.tilt * position(k) * lattice.spacing).exp();
    }
    profile
}

#[allow(clippy::cast_precision_loss)] // a distance on the lattice
fn decay_over(steps: i64, spacing: f64) -> f64 {
    if steps == 0 {
        1.0
    } else {
        (-(steps as f64) * spacing).exp()
    }
}

/// Returns Σ p_j e^{θjh}, rounded up.
pub(super) fn moment(masses: &Masses, tilt: f64) -> f64 {
    let sum: f64 = masses.epsilon.iter().zip(&masses.mass).map(|(loss, mass)| mass * (tilt * loss).exp()).sum();
    sum * (1.0 + 1e-11 + masses.relative_error)
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_possible_wrap)] // a residue
fn residue(index: i64, length: usize) -> usize {
    index.rem_euclid(length as i64) as usize
}

fn kernel(masses: &Masses, lattice: Lattice, transforms: &Transforms) -> Result<(Kernel, Sizes)> {
    let mut input = transforms.forward.make_input_vec();
    let mut spectrum = transforms.forward.make_output_vec();
    let (mut largest, mut square) = (0.0_f64, 0.0);
    for ((&index, &loss), &mass) in masses.index.iter().zip(&masses.epsilon).zip(&masses.mass) {
        let tilted = mass * (lattice.tilt * loss).exp();
        input[residue(index, lattice.length)] += tilted;
        square += tilted * tilted;
        largest = largest.max(loss.abs());
    }
    transforms.forward.process(&mut input, &mut spectrum).map_err(|_| REFUSED)?;
    // The inverse transform is not normalised.
    let scale = 1.0 / position(lattice.length);
    for value in &mut spectrum {
        *value *= scale;
    }
    let profile = tilted_profile(masses, lattice);
    let moment = moment(masses, lattice.tilt);
    let reach = largest.max(position(lattice.points) * lattice.spacing);
    // The sums of a profile have as many terms as the lattice; exponents are rounded.
    let terms = position(lattice.points) + largest / lattice.spacing;
    let relative =
        masses.relative_error + UNIT_ROUNDOFF * (64.0 + 8.0 * terms + 8.0 * (1.0 + 2.0 * lattice.tilt) * reach);
    let sizes = Sizes {
        moment,
        norms: (2.0 * square.sqrt() + moment) * (1.0 + 1e-9),
        mass: (masses.mass.iter().sum::<f64>() + masses.at_infinity) * (1.0 + 1e-11 + masses.relative_error),
        infinite: masses.at_infinity * (1.0 + masses.relative_error),
        relative,
    };
    Ok((Kernel { spectrum, profile }, sizes))
}

impl Sizes {
    fn larger(self, other: Self) -> Self {
        Self {
            moment: self.moment.max(other.moment),
            norms: self.norms.max(other.norms),
            mass: self.mass.max(other.mass),
            infinite: self.infinite.max(other.infinite),
            relative: self.relative.max(other.relative),
        }
    }
}

impl Worker {
    /// Sets `best` to the maximum of the next M over this worker's kernels.
    fn step(&mut self, spectra: &[Vec<Complex<f64>>], left: usize, transforms: &Transforms) -> Result<()> {
        self.best.fill(0.0);
        for kernel in &self.kernels {
            for ((product, a), b) in self.product.iter_mut().zip(&spectra[self.direction]).zip(&kernel.spectrum) {
                *product = a * b;
            }
            let end = self.product.len() - 1;
            self.product[0].im = 0.0;
            self.product[end].im = 0.0;
            transforms
                .inverse
                .process_with_scratch(&mut self.product, &mut self.output, &mut self.scratch)
                .map_err(|_| REFUSED)?;
            let entries = self.output[left..].iter().zip(&kernel.profile);
            for (best, (entry, profile)) in self.best.iter_mut().zip(entries) {
                // A negative entry is an error; W is not negative.
                *best = best.max(entry.max(0.0) + profile);
            }
        }
        Ok(())
    }
}

/// Runs the recursion over stages in the order of time; the last round is the first one that the recursion takes. Returns a curve for
/// each direction, or one for both.
///
/// # Errors
/// [`Error::Domain`] if the lattice does not have room for the laws, [`Error::Numerics`] for numbers that are not finite,
/// [`Error::Cancelled`] and [`Error::TimeLimit`].
pub(super) fn solve(stages: &[Stage], lattice: Lattice, side: Side, run: &Run) -> Result<Vec<LatticeCurve>> {
    let mut planner = RealFftPlanner::new();
    let transforms = Transforms {
        forward: planner.plan_fft_forward(lattice.length),
        inverse: planner.plan_fft_inverse(lattice.length),
        length: lattice.length,
    };
    let extremes =
        |end: fn(&Masses) -> Option<i64>| stages.iter().flat_map(|stage| &stage.laws).flatten().filter_map(end);
    let lowest = extremes(|law| law.index.first().copied()).fold(0, i64::min);
    let highest = extremes(|law| law.index.last().copied()).fold(0, i64::max);
    let room = |steps: i64| usize::try_from(steps).unwrap_or(usize::MAX / 4);
    let (left, right) = (room(highest), room(-lowest));
    if left + right + lattice.points > lattice.length {
        return Err(Error::Domain {
            name: "points",
            value: position(lattice.points),
            allowed: "room in the transform",
        });
    }
    // M(−s) = e^{−(1+2θ)s} M′(s).
    let reflection: Vec<f64> =
        (0..=left).map(|k| (-(1.0 + 2.0 * lattice.tilt) * position(k) * lattice.spacing).exp()).collect();
    let directions = stages.first().map_or(1, |stage| stage.laws.len());
    let mut tilted = vec![vec![0.0; lattice.points]; directions];
    let mut extended = transforms.forward.make_input_vec();
    let mut spectra = vec![transforms.forward.make_output_vec(); directions];
    let mut scratch = transforms.forward.make_scratch_vec();
    let (mut errors, mut infinite, mut relative) = (0.0_f64, 0.0_f64, 0.0_f64);
    for stage in stages.iter().rev() {
        let (mut workers, mut sizes) = (Vec::new(), Sizes::default());
        for (direction, laws) in stage.laws.iter().enumerate() {
            let made: Vec<(Kernel, Sizes)> =
                laws.par_iter().map(|law| kernel(law, lattice, &transforms)).collect::<Result<_>>()?;
            sizes = made.iter().map(|one| one.1).fold(sizes, Sizes::larger);
            workers.extend(shared(direction, made.into_iter().map(|one| one.0).collect(), lattice, &transforms));
        }
        let laws: usize = stage.laws.iter().map(Vec::len).sum();
        for _ in 0..stage.count {
            let mut norm = 0.0_f64;
            for (direction, spectrum) in spectra.iter_mut().enumerate() {
                extended.fill(0.0);
                extended[left..left + lattice.points].copy_from_slice(&tilted[direction]);
                let reflected = &tilted[directions - 1 - direction];
                for k in 1..=left.min(lattice.points - 1) {
                    extended[left - k] = reflected[k] * reflection[k];
                }
                norm = norm.max(extended.iter().map(|x| x * x).sum::<f64>().sqrt());
                transforms.forward.process_with_scratch(&mut extended, spectrum, &mut scratch).map_err(|_| REFUSED)?;
            }
            workers.par_iter_mut().try_for_each(|worker| worker.step(&spectra, left, &transforms))?;
            for one in &mut tilted {
                one.fill(0.0);
            }
            for worker in &workers {
                for (entry, best) in tilted[worker.direction].iter_mut().zip(&worker.best) {
                    *entry = entry.max(*best);
                }
            }
            errors = (sizes.moment * errors + transforms.error() * norm * sizes.norms) * (1.0 + 1e-12);
            infinite = (sizes.mass * infinite + sizes.infinite) * (1.0 + 1e-15);
            relative += sizes.relative;
            run.count((lattice.length * (directions + laws)) as u64);
            run.check()?;
        }
    }
    let window = if side == Side::Upper { window(stages, lattice) } else { 0.0 };
    let finite = [errors, infinite, relative].iter().chain(tilted.iter().flatten()).all(|x| x.is_finite());
    if !finite || relative > 0.1 {
        return Err(Error::Numerics { reason: "the recursion of adaptive gradients lost its precision" });
    }
    let relative = relative.exp_m1() * (1.0 + 1e-9);
    let infinite = if side == Side::Upper { infinite } else { 0.0 };
    let curve = |tilted| LatticeCurve { lattice, side, tilted, transforms: errors, window, infinite, relative };
    Ok(tilted.into_iter().map(curve).collect())
}

/// Returns the kernels of a direction, shared by a fixed number of workers with their buffers.
fn shared(direction: usize, kernels: Vec<Kernel>, lattice: Lattice, transforms: &Transforms) -> Vec<Worker> {
    let number = kernels.len().clamp(1, WORKERS);
    let mut shared: Vec<Worker> = (0..number)
        .map(|_| Worker {
            direction,
            kernels: Vec::new(),
            product: transforms.inverse.make_input_vec(),
            output: transforms.inverse.make_output_vec(),
            scratch: transforms.inverse.make_scratch_vec(),
            best: vec![0.0; lattice.points],
        })
        .collect();
    for (k, kernel) in kernels.into_iter().enumerate() {
        shared[k % number].kernels.push(kernel);
    }
    shared
}

/// Tilts θ′ of bounds on W, relative to nothing: the best one is taken.
pub(super) fn tilts() -> impl Iterator<Item = f64> {
    (0..48).map(|k| 0.05 * 1.2_f64.powi(k))
}

/// The maximum of e^{−θx}(1 − e^{−x}).
pub(super) fn most(tilt: f64) -> f64 {
    (tilt * tilt.ln() - (1.0 + tilt) * tilt.ln_1p()).exp() * (1.0 + 1e-12)
}

/// Returns A_T for the best θ′.
fn window(stages: &[Stage], lattice: Lattice) -> f64 {
    let end = position(lattice.points) * lattice.spacing;
    let largest =
        |stage: &Stage, tilt: f64| stage.laws.iter().flatten().map(|law| moment(law, tilt)).fold(0.0, f64::max);
    let kept: Vec<f64> = stages.iter().map(|stage| largest(stage, -0.5)).collect();
    let omitted = |tilt: f64| {
        let (mut bound, mut error, weight) = (0.0_f64, 0.0_f64, (-tilt * end).exp());
        for (stage, kept) in stages.iter().zip(&kept).rev() {
            let growth = largest(stage, tilt);
            for _ in 0..stage.count {
                error = kept * (error + bound * weight) * (1.0 + 1e-12);
                bound = growth * (bound + most(tilt)) * (1.0 + 1e-12);
            }
        }
        // The bound that comes last is that of W_T itself, which is not read there.
        if error.is_finite() && bound.is_finite() {
            error + UNDERFLOW
        } else {
            f64::INFINITY
        }
    };
    tilts().map(omitted).fold(f64::INFINITY, f64::min)
}

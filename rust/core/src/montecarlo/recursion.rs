//! The recursion f_i = (1 − p) f_{i+1} + φ_i f_{i+b}, eight samples side by side: in the linear domain while that holds the numbers, in
//! logarithms for any range. Whoever calls it brings φ.
//!
//! f is kept with a power of two for each lane, adjusted whenever f leaves [2⁻³⁰⁰, 2³⁰⁰] (for p = 1 and with phases, where the f_i of
//! different residues mod b are unrelated, nothing is adjusted). An exponent beyond what a step can carry is reported, and the
//! samples are then computed again one by one, with a power of two for each f_i ([`log_recursion`]).

use crate::montecarlo::lanes::{exp_in_range, ln};
use crate::montecarlo::vector::{splat, Lanes, Vector, LANES};
use crate::participation::renewal::Renewal;

/// A step whose exponent is above this, or below −[`LOWEST`], leaves the linear domain.
const HIGHEST: f64 = 100.0;
const LOWEST: f64 = 600.0;
/// f is looked at once in so many rounds: in between it grows by less than e^{4·100}.
pub(super) const SETTLED: usize = 4;
/// f is brought back to 1 when it leaves [1/LARGE, LARGE].
const LARGE: f64 = 2.037_035_976_334_486e90; // 2³⁰⁰
const TINY: f64 = 1.183_052_186_166_774_7e-271; // 2⁻⁹⁰⁰

/// The last b values of a recursion, and a power of two for each lane.
#[derive(Debug, Clone, Default)]
pub(super) struct Ring {
    values: Vec<Lanes>,
    exponent: Lanes,
    mask: usize,
}

impl Ring {
    pub(super) fn reset(&mut self, separation: usize) {
        let length = (separation + 1).next_power_of_two();
        self.values.clear();
        self.values.resize(length, splat(1.0));
        self.exponent = splat(0.0);
        self.mask = length - 1;
    }

    /// Bring lanes that left the range back to it. False if the spread of a lane is too large for the linear domain.
    #[cold]
    fn rescale(&mut self, newest: usize, separation: usize) -> bool {
        for lane in 0..LANES {
            let live = (0..separation).map(|k| self.values[(newest + k) & self.mask][lane]);
            let (least, most) = live.fold((f64::INFINITY, 0.0f64), |(l, m), v| (l.min(v), m.max(v)));
            if !(most.is_finite() && most > 0.0) {
                return false;
            }
            // The power of two of the largest value.
            #[allow(clippy::cast_possible_wrap)] // an 11-bit exponent
            let power = ((most.to_bits() >> 52) & 0x7ff) as i64 - 1023;
            #[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation)] // |power| ≤ 1074
            let (factor, shift) = (2f64.powi(-(power as i32)), power as f64);
            if least * factor < TINY {
                return false;
            }
            for value in &mut self.values {
                value[lane] *= factor;
            }
            self.exponent[lane] += shift;
        }
        true
    }

    /// ln of the start-weighted sum, with f_1 at index 0.
    #[inline(always)]
    pub(super) fn total<V: Vector>(&self, law: &Renewal) -> Lanes {
        let mut sum = V::load(&self.values[0]);
        if law.phased {
            for k in 1..law.min_separation {
                sum = sum.add(V::load(&self.values[k & self.mask]));
            }
            #[allow(clippy::cast_precision_loss)] // b is at most the number of rounds
            let share = 1.0 / law.min_separation as f64;
            sum = sum.mul(V::splat(share));
        }
        if law.warm {
            let mut rest = V::splat(0.0);
            for k in 1..law.min_separation {
                rest = rest.add(V::load(&self.values[k & self.mask]));
            }
            #[allow(clippy::cast_precision_loss)] // b is at most the number of rounds
            let norm = 1.0 / (law.min_separation as f64 - 1.0).mul_add(law.sampling_probability, 1.0);
            sum = V::splat(law.sampling_probability).mul_add(rest, sum).mul(V::splat(norm));
        }
        let mut out = splat(0.0);
        V::load(&self.exponent).mul_add(V::splat(std::f64::consts::LN_2), ln(sum)).store(&mut out);
        out
    }
}

/// Steps of the recursion at rounds `first + count − 1`, …, `first`; false if an exponent leaves the linear domain.
#[inline(always)]
pub(super) fn advance<V: Vector>(
    ring: &mut Ring,
    first: usize,
    count: usize,
    law: &Renewal,
    p: f64,
    exponents: [V; SETTLED],
    (scale, squares): (f64, &[f64; SETTLED]),
) -> bool {
    let growth = growths(law, exponents, (scale, squares));
    // Several records at once have several times the exponent.
    #[allow(clippy::cast_precision_loss)] // at most 1000
    let records = law.log_counts.len() as f64;
    step(ring, first, count, law, p, growth) & in_linear_domain(&exponents[..count], records)
}

/// What a participation multiplies f_{i+b} with: e^{a_i}, and for several records at once the sum over their numbers.
///
/// The exponentials of all [`SETTLED`] rounds are taken side by side; those beyond the last round are of no consequence.
#[inline(always)]
pub(super) fn growths<V: Vector>(
    law: &Renewal,
    exponents: [V; SETTLED],
    (scale, squares): (f64, &[f64; SETTLED]),
) -> [V; SETTLED] {
    let mut growth = exponents;
    for k in 0..SETTLED {
        growth[k] = exp_in_range(exponents[k]);
    }
    if law.log_counts.len() > 1 {
        // Nearly all rounds have the same squared norm.
        let usual = (-scale * squares[0]).exp();
        for k in 0..SETTLED {
            // T_1 = t, T_{j+1} = T_j·t·d^j.
            let same = squares[k].to_bits() == squares[0].to_bits();
            let decay = V::splat(if same { usual } else { (-scale * squares[k]).exp() });
            let (mut term, mut factor) = (growth[k], growth[k]);
            let mut sum = term.mul(V::splat(law.counts[0]));
            for probability in &law.counts[1..] {
                factor = factor.mul(decay);
                term = term.mul(factor);
                sum = term.mul_add(V::splat(*probability), sum);
            }
            growth[k] = sum;
        }
    }
    growth
}

/// f_i = (1 − p) f_{i+1} + p·growth·f_{i+b} for the rounds `first + count − 1`, …, `first`; false if f leaves its range where
/// [`settle`] would not see it.
#[inline(always)]
pub(super) fn step<V: Vector>(
    ring: &mut Ring,
    first: usize,
    count: usize,
    law: &Renewal,
    p: f64,
    mut growth: [V; SETTLED],
) -> bool {
    let b = law.min_separation;
    for k in 0..SETTLED {
        growth[k] = growth[k].mul(V::splat(p));
    }
    let (stay, mask) = (V::splat(1.0 - p), ring.mask);
    let mut value = V::load(&ring.values[(first + count) & mask]);
    let mut inside = true;
    for k in (0..count).rev() {
        let after = V::load(&ring.values[(first + k + b) & mask]);
        value = if law.phased { stay.add(growth[k]).mul(after) } else { value.mul_add(stay, growth[k].mul(after)) };
        value.store(&mut ring.values[(first + k) & mask]);
        if p >= 1.0 || law.phased {
            // Then f_i and f_{i+1} have nothing to do with each other, and `settle` would not see all of them.
            inside &= value.within(V::splat(1.0 / LARGE), V::splat(LARGE));
        }
    }
    inside
}

/// Whether exponents, each met `times` over, stay where a step can carry them.
#[inline(always)]
pub(super) fn in_linear_domain<V: Vector>(exponents: &[V], times: f64) -> bool {
    let (mut least, mut most) = (exponents[0], exponents[0]);
    for exponent in &exponents[1..] {
        least = least.min(*exponent);
        most = most.max(*exponent);
    }
    let (low, high) = (V::splat(-LOWEST), V::splat(HIGHEST / times));
    least.within(low, high) & most.within(low, high)
}

/// Keep the newest value in range; false if that is not possible.
#[inline(always)]
pub(super) fn settle<V: Vector>(ring: &mut Ring, newest: usize, separation: usize) -> bool {
    let value = V::load(&ring.values[newest & ring.mask]);
    value.within(V::splat(1.0 / LARGE), V::splat(LARGE)) || ring.rescale(newest, separation)
}

/// ln Σ_x w_x exp(κΣ x_i u_i − κ²Σ x_i² s_i/2) of eight samples whose products are all at hand: w and whether it starts warm from `law`,
/// s from `squares`, (factor, κ) with factor·`sums`_i = κu_i. `sums` is as long as the rounds, rounded up to [`SETTLED`].
#[inline(always)]
pub(super) fn log_density<V: Vector>(
    law: &Renewal,
    (factor, stretch): (f64, f64),
    squares: &[f64],
    sums: &[Lanes],
    ring: &mut Ring,
) -> Lanes {
    let (n, b, p) = (law.iterations(), law.min_separation, law.sampling_probability);
    let scale = stretch * stretch;
    ring.reset(b);
    let mut inside = true;
    for group in (0..n.div_ceil(SETTLED)).rev().map(|k| k * SETTLED) {
        let count = SETTLED.min(n - group);
        let mut own = [V::splat(0.0); SETTLED];
        let mut near = [0.0; SETTLED];
        for k in 0..SETTLED {
            near[k] = squares[(group + k).min(n - 1)];
            own[k] = V::load(&sums[group + k]).mul_add(V::splat(factor), V::splat(-0.5 * scale * near[k]));
        }
        inside &= advance(ring, group, count, law, p, own, (scale, &near));
        inside &= settle::<V>(ring, group, b);
        if !inside {
            break;
        }
    }
    if inside {
        return ring.total::<V>(law);
    }
    let law = Renewal { squares: squares.to_vec(), ..law.clone() };
    let mut out = splat(0.0);
    for lane in 0..LANES {
        out[lane] = log_ratio(&law, scale, |i| sums[i][lane].mul_add(factor, -0.5 * scale * squares[i]));
    }
    out
}

/// ln of the likelihood ratio by the recursion for any range; `exponent` is that of a single participation, and j at once have j
/// times it less (j² − j)/2 times the squared norm, scaled.
pub(super) fn log_ratio(law: &Renewal, scale: f64, exponent: impl Fn(usize) -> f64) -> f64 {
    let join = law.sampling_probability.ln();
    log_recursion(law, |i| {
        let (single, square) = (exponent(i), scale * law.squares[i]);
        (1u32..).zip(&law.log_counts).map(move |(j, log)| {
            let j = f64::from(j);
            join + log + j * single - 0.5 * (j * j - j) * square
        })
    })
}

/// ln of the start-weighted sum by a recursion for any range; `joining` are the logarithms of what f_{i+b} is multiplied with, to be summed.
///
/// Each f_i has a power of two of its own: with logarithms a step would be rounded by u|ln f_i|, which n steps add up. So a step adds 4u, as in
/// the linear domain, and a participation what its exponent is rounded by, and 4u.
pub(super) fn log_recursion<I>(law: &Renewal, joining: impl Fn(usize) -> I) -> f64
where
    I: Iterator<Item = f64>,
{
    let (n, b) = (law.iterations(), law.min_separation);
    let stay = Scaled::new(1.0 - law.sampling_probability, 0.0);
    let mut sums = vec![Scaled::new(1.0, 0.0); n + b + 1];
    for i in (0..n).rev() {
        let taken = joining(i).fold(Scaled::ZERO, |sum, log| sum.plus(Scaled::exp(log)));
        sums[i] = stay.times(sums[i + law.waiting()]).plus(taken.times(sums[i + b]));
    }
    let starts = law.log_start().into_iter().zip(&sums);
    starts.fold(Scaled::ZERO, |sum, (start, value)| sum.plus(Scaled::exp(start).times(*value))).ln()
}

/// A number that is not negative: `fraction`·2^`power`, the fraction in [1, 2) or 0.
#[derive(Debug, Clone, Copy)]
struct Scaled {
    fraction: f64,
    power: f64,
}

/// ln 2 in two parts: products of the first with whole numbers below 2²⁰ are exact.
const LN_2_HIGH: f64 = 6.931_471_803_691_238e-1;
const LN_2_LOW: f64 = 1.908_214_929_270_587_7e-10;

/// 2^k for a whole number k ≤ 1023, 0 where that is no normal number.
fn power_of_two(k: f64) -> f64 {
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // a biased exponent
    if k < -1022.0 {
        0.0
    } else {
        f64::from_bits(((k + 1023.0) as u64) << 52)
    }
}

impl Scaled {
    const ZERO: Self = Self { fraction: 0.0, power: 0.0 };

    /// `value`·2^`power`, for a value of ordinary size.
    fn new(value: f64, power: f64) -> Self {
        if value <= 0.0 {
            return Self::ZERO;
        }
        #[allow(clippy::cast_precision_loss, clippy::cast_possible_wrap)] // an 11-bit exponent
        let shift = ((value.to_bits() >> 52) & 0x7ff) as f64 - 1023.0;
        Self { fraction: value * power_of_two(-shift), power: power + shift }
    }

    /// e^log, with an error of at most 3u beside that of `log`.
    fn exp(log: f64) -> Self {
        if log == f64::NEG_INFINITY {
            return Self::ZERO;
        }
        let power = (log * std::f64::consts::LOG2_E).round();
        let rest = (-power).mul_add(LN_2_LOW, (-power).mul_add(LN_2_HIGH, log));
        Self::new(libm::exp(rest), power)
    }

    fn times(self, other: Self) -> Self {
        Self::new(self.fraction * other.fraction, self.power + other.power)
    }

    fn plus(self, other: Self) -> Self {
        if self.fraction == 0.0 || other.fraction == 0.0 {
            return if self.fraction == 0.0 { other } else { self };
        }
        let (large, small) = if self.power >= other.power { (self, other) } else { (other, self) };
        // What is too small to matter underflows to 0.
        Self::new(small.fraction.mul_add(power_of_two(small.power - large.power), large.fraction), large.power)
    }

    fn ln(self) -> f64 {
        self.power.mul_add(std::f64::consts::LN_2, self.fraction.ln())
    }
}

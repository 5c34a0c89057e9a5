//! The recursion f_i = (1 − p) f_{i+1} + φ_i f_{i+b} for any range, one sample after the other: slower than
//! [`super::ring`], used for samples that leave the linear domain.

use crate::participation::renewal::Renewal;
use crate::special::real;

/// Returns ln of the likelihood ratio by the recursion for any range; `exponent` is that of a single participation, and
/// j at once have j times it less (j² − j)/2 times the squared norm, scaled.
pub(super) fn log_ratio(law: &Renewal, squares: &[f64], scale: f64, exponent: impl Fn(usize) -> f64) -> f64 {
    log_recursion(law, |i| joining(law, exponent(i), scale * squares[i]))
}

/// Returns the logarithms of the factors of f_{i+b} for j = 1, 2, … records that take part at once.
pub(in crate::montecarlo) fn joining(law: &Renewal, single: f64, square: f64) -> impl Iterator<Item = f64> + '_ {
    let join = law.sampling_probability.ln();
    (1u32..).zip(&law.log_counts).map(move |(j, log)| {
        let j = f64::from(j);
        join + log + j * single - 0.5 * (j * j - j) * square
    })
}

/// Returns ln of the start-weighted sum by a recursion for any range; `joining` returns the logarithms of the factors
/// of f_{i+b}, which are summed.
///
/// Each f_i has its own power of two: with logarithms a step would be rounded by u|ln f_i|, which would add up over n
/// steps. So a step adds 4u, as in the linear domain, and a participation adds the rounding of its exponent, and 4u.
pub(in crate::montecarlo) fn log_recursion<I>(law: &Renewal, joining: impl Fn(usize) -> I) -> f64
where
    I: Iterator<Item = f64>,
{
    kept_recursion(law, joining, |_, _| ()).0
}

/// Does the same as [`log_recursion`], and passes to `keep` the share of f_i that comes from joining in round i. Also
/// returns the share of the start-weighted sum that each round of the first chance has.
pub(in crate::montecarlo) fn kept_recursion<I>(
    law: &Renewal,
    joining: impl Fn(usize) -> I,
    mut keep: impl FnMut(usize, f64),
) -> (f64, Vec<f64>)
where
    I: Iterator<Item = f64>,
{
    let (n, b) = (law.iterations(), law.min_separation);
    let stay = Scaled::new(1.0 - law.sampling_probability, 0.0);
    let mut sums = vec![Scaled::new(1.0, 0.0); n + b + 1];
    for i in (0..n).rev() {
        let taken = joining(i).fold(Scaled::ZERO, |sum, log| sum.plus(Scaled::exp(log)));
        let joined = taken.times(sums[i + b]);
        sums[i] = stay.times(sums[i + law.waiting()]).plus(joined);
        keep(i, joined.of(sums[i]));
    }
    let starts: Vec<Scaled> =
        law.log_start().into_iter().zip(&sums).map(|(start, value)| Scaled::exp(start).times(*value)).collect();
    let total = starts.iter().fold(Scaled::ZERO, |sum, start| sum.plus(*start));
    (total.ln(), starts.iter().map(|start| start.of(total)).collect())
}

/// A number that is not negative: `fraction` times 2 to the power `power`, the fraction in [1, 2) or 0.
#[derive(Debug, Clone, Copy)]
struct Scaled {
    fraction: f64,
    power: f64,
}

/// ln 2 in two parts: products of the first with whole numbers below 2²⁰ are exact.
const LN_2_HIGH: f64 = 6.931_471_803_691_238e-1;
const LN_2_LOW: f64 = 1.908_214_929_270_587_7e-10;

/// Returns 2^k for a whole number k ≤ 1023, 0 where that is no normal number.
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

    /// Returns `value` times 2 to the power `power`, for a value of ordinary size.
    fn new(value: f64, power: f64) -> Self {
        if value <= 0.0 {
            return Self::ZERO;
        }
        #[allow(clippy::cast_possible_wrap)] // an 11-bit exponent
        let shift = real((value.to_bits() >> 52) & 0x7ff) - 1023.0;
        Self { fraction: value * power_of_two(-shift), power: power + shift }
    }

    /// Returns e^log, with an error of at most 3u in addition to that of `log`.
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
        // A number that is too small to matter underflows to 0.
        Self::new(small.fraction.mul_add(power_of_two(small.power - large.power), large.fraction), large.power)
    }

    /// Returns this number as a share of a number that is not smaller.
    fn of(self, whole: Self) -> f64 {
        self.fraction / whole.fraction * power_of_two(self.power - whole.power)
    }

    fn ln(self) -> f64 {
        self.power.mul_add(std::f64::consts::LN_2, self.fraction.ln())
    }
}

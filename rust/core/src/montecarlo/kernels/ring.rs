//! The last values of a recursion f_i = (1 − p) f_{i+1} + φ_i f_{i+b} in the linear domain, eight samples side by side,
//! and its steps.
//!
//! f is stored with a power of two for each lane, adjusted whenever f leaves [2⁻³⁰⁰, 2³⁰⁰] (for p = 1 and with phases,
//! where the f_i of different residues mod b are unrelated, nothing is adjusted). An exponent that is too large for a
//! step is reported.

use crate::participation::renewal::Renewal;
use crate::special::real;
use crate::vector::functions::{exp_in_range, ln};
use crate::vector::{splat, Lanes, Vector, LANES};

/// A step whose exponent is above this, or below −[`LOWEST`], leaves the linear domain.
const HIGHEST: f64 = 100.0;
const LOWEST: f64 = 600.0;
/// The range of f is checked once in this many rounds: in between it grows by less than e^{4·100}.
pub(in crate::montecarlo) const SETTLED: usize = 4;
/// f is brought back to 1 when it leaves [1/LARGE, LARGE].
const LARGE: f64 = 2.037_035_976_334_486e90; // 2³⁰⁰
const TINY: f64 = 1.183_052_186_166_774_7e-271; // 2⁻⁹⁰⁰

/// The last b values of a recursion, and a power of two for each lane.
#[derive(Debug, Clone, Default)]
pub(in crate::montecarlo) struct Ring {
    values: Vec<Lanes>,
    exponent: Lanes,
    mask: usize,
}

impl Ring {
    fn reset(&mut self, separation: usize) {
        let length = (separation + 1).next_power_of_two();
        self.values.clear();
        self.values.resize(length, splat(1.0));
        self.exponent = splat(0.0);
        self.mask = length - 1;
    }

    /// Brings lanes that left the range back to it. Returns false if the spread of a lane is too large for the linear
    /// domain.
    #[cold]
    fn rescale(&mut self, newest: usize, separation: usize) -> bool {
        for lane in 0..LANES {
            let live = (0..separation).map(|k| self.values[(newest + k) & self.mask][lane]);
            let (least, most) = live.fold((f64::INFINITY, 0.0f64), |(l, m), v| (l.min(v), m.max(v)));
            if !(most.is_finite() && most > 0.0) {
                return false;
            }
            // This is the power of two of the largest value.
            #[allow(clippy::cast_possible_wrap)] // an 11-bit exponent
            let power = ((most.to_bits() >> 52) & 0x7ff) as i64 - 1023;
            #[allow(clippy::cast_possible_truncation)] // |power| ≤ 1074
            let (factor, shift) = (2f64.powi(-(power as i32)), real(power));
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

    /// Returns ln of the start-weighted sum, with f_1 at index 0.
    #[inline(always)]
    fn total<V: Vector>(&self, law: &Renewal) -> Lanes {
        let mut sum = V::load(&self.values[0]);
        if law.phased {
            for k in 1..law.min_separation {
                sum = sum.add(V::load(&self.values[k & self.mask]));
            }
            let share = 1.0 / real(law.min_separation);
            sum = sum.mul(V::splat(share));
        }
        if law.warm {
            let mut rest = V::splat(0.0);
            for k in 1..law.min_separation {
                rest = rest.add(V::load(&self.values[k & self.mask]));
            }
            let norm = 1.0 / (real(law.min_separation) - 1.0).mul_add(law.sampling_probability, 1.0);
            sum = V::splat(law.sampling_probability).mul_add(rest, sum).mul(V::splat(norm));
        }
        let mut out = splat(0.0);
        V::load(&self.exponent).mul_add(V::splat(std::f64::consts::LN_2), ln(sum)).store(&mut out);
        out
    }
}

/// The recursion of one density: the law of its patterns, and the last values.
#[derive(Debug)]
pub(in crate::montecarlo) struct Track<'a> {
    pub law: &'a Renewal,
    ring: &'a mut Ring,
}

impl<'a> Track<'a> {
    /// Starts the recursion before the last round.
    #[inline(always)]
    pub(in crate::montecarlo) fn new(law: &'a Renewal, ring: &'a mut Ring) -> Self {
        ring.reset(law.min_separation);
        Self { law, ring }
    }

    /// Does the steps at rounds `first + count − 1`, …, `first` with φ from the exponents of single participations;
    /// those of several records at once use `scale` times the squared norms. Returns false if the linear domain is
    /// left.
    #[inline(always)]
    pub(super) fn participate<V: Vector>(
        &mut self,
        first: usize,
        count: usize,
        exponents: [V; SETTLED],
        (scale, squares): (f64, &[f64; SETTLED]),
    ) -> bool {
        let growth = growths(self.law, exponents, (scale, squares));
        // Several records at once multiply the exponent.
        let records = real(self.law.log_counts.len());
        self.advance(first, count, growth) & in_linear_domain(&exponents[..count], records)
    }

    /// Does the same steps with φ as given, without the factor p.
    #[inline(always)]
    pub(in crate::montecarlo) fn advance<V: Vector>(
        &mut self,
        first: usize,
        count: usize,
        growth: [V; SETTLED],
    ) -> bool {
        self.advance_kept(first, count, growth, &mut Nothing)
    }

    /// Does the same steps, and passes the numbers of each to `keep`.
    #[inline(always)]
    pub(in crate::montecarlo) fn advance_kept<V: Vector, K: Keep>(
        &mut self,
        first: usize,
        count: usize,
        growth: [V; SETTLED],
        keep: &mut K,
    ) -> bool {
        step(self.ring, first, count, self.law, growth, keep) & settle::<V>(self.ring, first, self.law.min_separation)
    }

    /// Returns ln of the start-weighted sum, after all rounds.
    #[inline(always)]
    pub(in crate::montecarlo) fn total<V: Vector>(&self) -> Lanes {
        self.ring.total::<V>(self.law)
    }

    /// Writes the share of that sum that each round of the first chance has into `shares`, one for each entry of the
    /// law's start.
    #[inline(always)]
    pub(in crate::montecarlo) fn shares<V: Vector>(&self, shares: &mut [Lanes]) {
        let (ring, law) = (&*self.ring, self.law);
        // Without phases, each of the further start rounds has p times the probability of no wait at all.
        let weight = V::splat(if law.phased { 1.0 } else { law.sampling_probability });
        let mut sum = V::splat(0.0);
        for (k, share) in shares.iter_mut().enumerate() {
            let value = V::load(&ring.values[k & ring.mask]);
            let value = if k == 0 { value } else { value.mul(weight) };
            sum = sum.add(value);
            value.store(share);
        }
        for share in shares {
            V::load(share).div(sum).store(share);
        }
    }
}

/// Receives the numbers of a step: p·growth·f_{i+b} and f_i, up to a common factor.
pub(in crate::montecarlo) trait Keep {
    /// Must be `#[inline(always)]`.
    fn keep<V: Vector>(&mut self, round: usize, joined: V, value: V);
}

/// Keeps nothing.
pub(super) struct Nothing;

impl Keep for Nothing {
    #[inline(always)]
    fn keep<V: Vector>(&mut self, _: usize, _: V, _: V) {}
}

/// Returns the factor of f_{i+b} for a participation: e^{a_i}, and for several records at once the sum over their
/// numbers.
///
/// The exponentials of all [`SETTLED`] rounds are computed side by side; those beyond the last round are not used.
#[inline(always)]
pub(in crate::montecarlo) fn growths<V: Vector>(
    law: &Renewal,
    exponents: [V; SETTLED],
    (scale, squares): (f64, &[f64; SETTLED]),
) -> [V; SETTLED] {
    counted_growths(law, exponents, (scale, squares))[0]
}

/// Returns the same, and the sums in which the number of records counts once and twice: Σ_j j^m Pr[j]·T_j for m = 0,
/// 1, 2.
#[inline(always)]
pub(in crate::montecarlo) fn counted_growths<V: Vector>(
    law: &Renewal,
    exponents: [V; SETTLED],
    (scale, squares): (f64, &[f64; SETTLED]),
) -> [[V; SETTLED]; 3] {
    let mut growth = exponents;
    for k in 0..SETTLED {
        growth[k] = exp_in_range(exponents[k]);
    }
    let mut all = [growth; 3];
    if law.log_counts.len() > 1 {
        // Nearly all rounds have the same squared norm.
        let usual = (-scale * squares[0]).exp();
        for k in 0..SETTLED {
            // T_1 = t, T_{j+1} = T_j·t·d^j.
            let same = squares[k].to_bits() == squares[0].to_bits();
            let decay = V::splat(if same { usual } else { (-scale * squares[k]).exp() });
            let (mut term, mut factor) = (growth[k], growth[k]);
            let mut sums = [term.mul(V::splat(law.counts[0])); 3];
            let mut count = 1.0;
            for probability in &law.counts[1..] {
                count += 1.0;
                factor = factor.mul(decay);
                term = term.mul(factor);
                sums[0] = term.mul_add(V::splat(*probability), sums[0]);
                sums[1] = term.mul_add(V::splat(*probability * count), sums[1]);
                sums[2] = term.mul_add(V::splat(*probability * count * count), sums[2]);
            }
            for m in 0..3 {
                all[m][k] = sums[m];
            }
        }
    }
    all
}

/// Computes f_i = (1 − p) f_{i+1} + p·growth·f_{i+b} for the rounds `first + count − 1`, …, `first`; returns false if f
/// leaves its range where [`settle`] would not detect it.
#[inline(always)]
fn step<V: Vector, K: Keep>(
    ring: &mut Ring,
    first: usize,
    count: usize,
    law: &Renewal,
    mut growth: [V; SETTLED],
    keep: &mut K,
) -> bool {
    let (b, p) = (law.min_separation, law.sampling_probability);
    for k in 0..SETTLED {
        growth[k] = growth[k].mul(V::splat(p));
    }
    let (stay, mask) = (V::splat(1.0 - p), ring.mask);
    let mut value = V::load(&ring.values[(first + count) & mask]);
    let mut inside = true;
    for k in (0..count).rev() {
        let after = V::load(&ring.values[(first + k + b) & mask]);
        let joined = growth[k].mul(after);
        value = if law.phased { stay.add(growth[k]).mul(after) } else { value.mul_add(stay, joined) };
        keep.keep(first + k, joined, value);
        value.store(&mut ring.values[(first + k) & mask]);
        if p >= 1.0 || law.phased {
            // In this case f_i and f_{i+1} are unrelated, and `settle` would not check all of them.
            inside &= value.within(V::splat(1.0 / LARGE), V::splat(LARGE));
        }
    }
    inside
}

/// Returns whether exponents, each used `times` over, stay in the range of a step.
#[inline(always)]
pub(in crate::montecarlo) fn in_linear_domain<V: Vector>(exponents: &[V], times: f64) -> bool {
    let (mut least, mut most) = (exponents[0], exponents[0]);
    for exponent in &exponents[1..] {
        least = least.min(*exponent);
        most = most.max(*exponent);
    }
    let (low, high) = (V::splat(-LOWEST), V::splat(HIGHEST / times));
    least.within(low, high) & most.within(low, high)
}

/// Keeps the newest value in range; returns false if that is not possible.
#[inline(always)]
fn settle<V: Vector>(ring: &mut Ring, newest: usize, separation: usize) -> bool {
    let value = V::load(&ring.values[newest & ring.mask]);
    value.within(V::splat(1.0 / LARGE), V::splat(LARGE)) || ring.rescale(newest, separation)
}

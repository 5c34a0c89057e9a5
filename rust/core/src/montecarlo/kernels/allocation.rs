//! The kernel for random allocation: a record takes part in k of t rounds, all choices equally likely, without a
//! matrix.
//!
//! With s = 1/σ² and Z_i = e^{y_i/σ}, ŷ in units of σ, dP/dR = e_k(Z)e^{−ks/2}/C(t, k), e_k the elementary symmetric
//! polynomial. The recursion e_j ← e_j + Z_i e_{j−1} leaves the range of doubles, and a common scale loses terms that
//! matter at the end. Take any ζ > 0 instead, and independent coins with q_i = ζZ_i/(1 + ζZ_i): then
//!
//! `ln e_k(Z) = Σ_i ln(1 + ζZ_i) − k ln ζ + ln Pr[Σ_i coins = k]`,
//!
//! since Pr[coins = x] = Π (ζZ_i)^{x_i}/Π (1 + ζZ_i). With Σ q_i = k that probability is at least Bin(k; t, k/t)
//! (Hoeffding 1956), and its recursion is one of probabilities. ζ need not be exact: a few steps of Newton's method
//! determine it well enough, and otherwise bisection does. Π (1 + ζZ_i) is the reciprocal of the probability that no
//! coin shows heads.
//!
//! The means of a proposal are scaled: patterns have one norm, so that M = Σ_x C(t, k)^{−1} N(κCx, I) has dM/dR =
//! e_k(Z^κ)e^{−κ²ks/2}/C(t, k).
//!
//! **Rounding.** Let A bound |κy_i/σ + ln ζ|. Each ζZ_i has a relative error of (10 + 4A)u, which moves ln e_k by at
//! most k times as much, whatever ζ is. When Newton's method ends, Σ q_i is within [k/2, 2k] and t − Σ q_i at least
//! half of t − k, so that |ln ζ| is at most that of the largest exponent and ln 2t. A coin's two probabilities have a
//! further error of 3u, and the probabilities of counts are sums of products of these, all positive: a round adds at
//! most 8u. Their logarithms have an error of 4u of their size, which is at most 460 as smaller probabilities are not
//! used. Otherwise Σ ln(1 + ζZ_i) has t terms, each with an error of 8u, and is at most 4k(A + 2) if Σ q_i ≤ 2k: terms
//! with q ≤ ½ are at most 2q ln 2, and there are at most 4k other terms, each at most A + 1.

use crate::error::{domain, Result};
use crate::montecarlo::family::{DrawTuples, Family, Kernel, LanePatterns, Origin, Origins, Purpose, Ratios, Weighed};
use crate::montecarlo::source::{check_mean_scale, draw_noise};
use crate::montecarlo::stream::{Stream, LARGEST_NORMAL};
use crate::montecarlo::weight_bounds::{Direction, HolderSums};
use crate::replicas::drawn::Participations;
use crate::special::{real, Approximation, UNIT_ROUNDOFF};
use crate::vector::functions::{exp, ln, EXP_RANGE};
use crate::vector::{splat, Lanes, Vector, LANES};

/// The number of steps of Newton's method, the maximum length of a step, and how near ln Σ q_i must come to ln k.
const STEPS: usize = 12;
const LONGEST: f64 = 8.0;
const NEAR: f64 = 0.03;
/// Probabilities below this are recomputed.
const LEAST: f64 = 1e-200;
/// The number of steps of bisection.
const HALVINGS: usize = 200;

/// The data of the kernel; shared by all threads.
#[derive(Debug, Clone, PartialEq)]
pub struct AllocationKernel {
    /// t.
    rounds: usize,
    /// k.
    taken: usize,
    /// 1/σ.
    unit: f64,
    /// ln C(t, k).
    log_ways: f64,
}

/// A proposal, given by the scale κ of the means.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AllocationProposal {
    /// κ.
    pub mean_scale: f64,
}

/// Buffers of one worker.
#[derive(Debug, Clone, Default)]
pub struct AllocationScratch {
    rows: Vec<Lanes>,
    odds: Vec<Lanes>,
    chances: Vec<Lanes>,
    patterns: LanePatterns,
}

impl AllocationKernel {
    /// Creates the kernel for k of t rounds, 0 < k < t, and 1/σ.
    ///
    /// # Errors
    /// [`Error::Domain`] for another k, and for 1/σ that is not finite and positive.
    pub fn new(rounds: usize, taken: usize, unit: f64) -> Result<Self> {
        if taken == 0 || taken >= rounds {
            let allowed = "at least 1 and less than the number of rounds";
            return domain("participations", real(taken), allowed);
        }
        if !(unit.is_finite() && unit > 0.0) {
            return domain("1/σ", unit, "finite and greater than 0");
        }
        let log_ways = (0..taken).map(|j| (real(rounds - j) / real(taken - j)).ln()).sum();
        Ok(Self { rounds, taken, unit, log_ways })
    }

    fn rounds(&self) -> f64 {
        real(self.rounds)
    }

    fn taken(&self) -> f64 {
        real(self.taken)
    }

    /// Returns a bound on |κy_i/σ + ln ζ|, for samples whose means are at most `means` times those of participations.
    fn largest(&self, mean_scale: f64, means: f64) -> f64 {
        let exponent = mean_scale.abs() * self.unit * (LARGEST_NORMAL + means * self.unit);
        2.0 * exponent + self.rounds().ln() + 2.0
    }

    /// Draws rows of noise plus this multiple of each lane's pattern.
    #[inline(always)]
    fn draw<V: Vector>(&self, mean_scale: f64, stream: &mut Stream, scratch: &mut AllocationScratch) {
        scratch.rows.resize(self.rounds, splat(0.0));
        draw_noise::<V>(stream, &mut scratch.rows);
        if mean_scale == 0.0 {
            return;
        }
        let mut drawing = stream.take::<V>();
        let (mut uniform, mut left) = (splat(0.0), [self.taken; LANES]);
        for (row, rounds) in scratch.rows.iter_mut().zip((1..=self.rounds).rev()) {
            drawing.uniform().store(&mut uniform);
            for lane in 0..LANES {
                if uniform[lane] * real(rounds) <= real(left[lane]) {
                    left[lane] -= 1;
                    row[lane] = mean_scale.mul_add(self.unit, row[lane]);
                }
            }
        }
        stream.put_back(drawing);
    }

    /// Returns ln dM/dR of eight samples whose rows are in `scratch`, for the proposal with this scale of the means.
    #[inline(always)]
    pub(in crate::montecarlo) fn log_density<V: Vector>(
        &self,
        mean_scale: f64,
        scratch: &mut AllocationScratch,
    ) -> Lanes {
        let (slope, log_taken) = (V::splat(mean_scale * self.unit), V::splat(self.taken().ln()));
        let AllocationScratch { rows, odds, chances, .. } = scratch;
        let mut largest = V::splat(f64::NEG_INFINITY);
        for row in rows.iter() {
            largest = largest.max(slope.mul(V::load(row)));
        }
        // The odds are Z_i divided by the largest of them, and ζ is multiplied by it: it starts from ζ ΣZ = k, which is
        // too small.
        odds.resize(self.rounds, splat(0.0));
        let mut sum = V::splat(0.0);
        for (row, odds) in rows.iter().zip(odds.iter_mut()) {
            let z = exp(slope.mul(V::load(row)).sub(largest));
            z.store(odds);
            sum = sum.add(z);
        }
        let (mut log_factor, one) = (log_taken.sub(ln(sum)), V::splat(1.0));
        let mut expected = splat(0.0);
        for step in 0..=STEPS {
            let factor = exp(log_factor);
            let (mut sum, mut slopes) = (V::splat(0.0), V::splat(0.0));
            for odds in odds.iter() {
                let w = factor.mul(V::load(odds));
                let stay = one.div(one.add(w));
                let chance = w.mul(stay);
                sum = sum.add(chance);
                slopes = chance.mul_add(stay, slopes);
            }
            sum.store(&mut expected);
            let away = log_taken.sub(ln(sum));
            let mut gaps = splat(0.0);
            away.store(&mut gaps);
            if step == STEPS || gaps.0.iter().all(|gap| gap.abs() <= NEAR) {
                break;
            }
            let step = away.mul(sum).div(slopes.max(V::splat(1e-300)));
            log_factor = log_factor.add(step.max(V::splat(-LONGEST)).min(V::splat(LONGEST)));
        }
        let factor = exp(log_factor);
        self.coins::<V>(factor, odds, chances);
        // Σ ln(1 + ζZ) is −ln of the probability that no coin shows heads, unless that is too small.
        let mut logs = V::splat(0.0).sub(ln(V::load(&chances[0]).max(V::splat(1e-300))));
        if !chances[0].0.iter().all(|none| *none >= LEAST) {
            logs = V::splat(0.0);
            for odds in odds.iter() {
                logs = logs.add(ln(factor.mul_add(V::load(odds), one)));
            }
        }
        let last = V::load(&chances[self.taken]);
        let (norm, taken) = (0.5 * mean_scale * mean_scale * self.taken() * self.unit * self.unit, self.taken());
        let shift = log_factor.sub(largest);
        let mut log_densities = splat(0.0);
        logs.add(ln(last.max(V::splat(1e-300))))
            .sub(shift.mul(V::splat(taken)))
            .sub(V::splat(norm + self.log_ways))
            .store(&mut log_densities);
        for lane in 0..LANES {
            // The condition is written so that NaN is recomputed.
            let (sum, rest) = (expected[lane], self.rounds() - expected[lane]);
            let near = sum >= 0.5 * taken && sum <= 2.0 * taken && rest >= 0.5 * (self.rounds() - taken);
            if !(chances[self.taken][lane] >= LEAST && near) {
                let exponents = rows.iter().map(|row| mean_scale * self.unit * row[lane]).collect::<Vec<_>>();
                log_densities[lane] = self.log_polynomial(&exponents) - norm - self.log_ways;
            }
        }
        log_densities
    }

    /// Computes Pr[j coins show heads] for j = 0, 1, …, k, from their odds over `factor`; four rounds at a time, as a
    /// polynomial of degree four.
    #[inline(always)]
    fn coins<V: Vector>(&self, factor: V, odds: &[Lanes], chances: &mut Vec<Lanes>) {
        let one = V::splat(1.0);
        let coin = |odds: &Lanes| {
            let w = factor.mul(V::load(odds));
            let stay = one.div(one.add(w));
            (stay, w.mul(stay))
        };
        chances.clear();
        chances.resize(self.taken + 5, splat(0.0));
        // Negative counts, which are impossible, come first.
        chances[4] = splat(1.0);
        let mut groups = odds.chunks_exact(4);
        for group in &mut groups {
            let [(s0, c0), (s1, c1), (s2, c2), (s3, c3)] =
                [coin(&group[0]), coin(&group[1]), coin(&group[2]), coin(&group[3])];
            let (a0, a1, a2) = (s0.mul(s1), s0.mul_add(c1, c0.mul(s1)), c0.mul(c1));
            let (b0, b1, b2) = (s2.mul(s3), s2.mul_add(c3, c2.mul(s3)), c2.mul(c3));
            let product = [
                a0.mul(b0),
                a0.mul_add(b1, a1.mul(b0)),
                a0.mul_add(b2, a1.mul_add(b1, a2.mul(b0))),
                a1.mul_add(b2, a2.mul(b1)),
                a2.mul(b2),
            ];
            for j in (4..chances.len()).rev() {
                let mut sum = product[0].mul(V::load(&chances[j]));
                for back in 1..5 {
                    sum = product[back].mul_add(V::load(&chances[j - back]), sum);
                }
                sum.store(&mut chances[j]);
            }
        }
        for odds in groups.remainder() {
            let (stay, chance) = coin(odds);
            for j in (4..chances.len()).rev() {
                stay.mul_add(V::load(&chances[j]), chance.mul(V::load(&chances[j - 1]))).store(&mut chances[j]);
            }
        }
        chances.drain(..4);
    }

    /// Returns ln e_k(e^{exponents}), with ζ by bisection.
    #[cold]
    fn log_polynomial(&self, exponents: &[f64]) -> f64 {
        let size = exponents.iter().fold(0.0, |most: f64, x| most.max(x.abs())) + self.rounds().ln();
        let expected = |shift: f64| exponents.iter().map(|x| 1.0 / (1.0 + libm::exp(-x - shift))).sum::<f64>();
        let (mut low, mut high) = (-size, size);
        for _ in 0..HALVINGS {
            let middle = 0.5 * (low + high);
            (low, high) = if expected(middle) < self.taken() { (middle, high) } else { (low, middle) };
        }
        let mut chances = vec![0.0; self.taken + 1];
        chances[0] = 1.0;
        let mut logs = 0.0;
        for x in exponents {
            let w = libm::exp(x + low);
            let (chance, stay) = (w / (1.0 + w), 1.0 / (1.0 + w));
            logs += libm::log(1.0 + w);
            for j in (1..=self.taken).rev() {
                chances[j] = stay * chances[j] + chance * chances[j - 1];
            }
            chances[0] *= stay;
        }
        logs - self.taken() * low + libm::log(chances[self.taken])
    }

    /// Returns the log densities of eight samples whose rows are in `scratch`; the proposal's is that of plain
    /// sampling. The mirror image has the means −Cx.
    #[inline(always)]
    pub(in crate::montecarlo) fn ratios<V: Vector>(&self, mirrored: bool, scratch: &mut AllocationScratch) -> Ratios {
        let mixture = self.log_density::<V>(1.0, scratch);
        let mirrored = if mirrored { self.log_density::<V>(-1.0, scratch) } else { splat(0.0) };
        Ratios { mixture, mirrored, proposal: mixture }
    }
}

/// There are no tilts: along the mean participation all patterns are alike.
impl Family for AllocationKernel {
    fn participations(&self) -> Option<Participations<'_>> {
        let (rounds, taken, square) = (self.rounds, self.taken, (self.unit * self.unit).next_up());
        Some(Participations::Allocation { rounds, taken, square })
    }

    fn outcome_length(&self) -> usize {
        self.rounds
    }

    /// See the head of this file. Infinite where exponents leave the range of the exponential.
    fn rounding_at(&self, mean_scale: f64, means: f64) -> f64 {
        let (largest, rounds, taken) = (self.largest(mean_scale.abs().max(1.0), means), self.rounds(), self.taken());
        if largest >= EXP_RANGE {
            return f64::INFINITY;
        }
        let norm = mean_scale * mean_scale * self.unit * self.unit;
        let units = taken * (16.0 + 8.0 * largest + 4.0 * norm)
            + 48.0 * rounds
            + 4.0 * rounds * taken * (largest + 2.0)
            + 8.0 * taken * (self.log_ways + 8.0)
            + 8000.0;
        UNIT_ROUNDOFF * units * (1.0 + 1e-6)
    }

    /// Each derivative is a probability times 1/σ.
    fn lipschitz(&self) -> f64 {
        self.rounds() * self.unit * (1.0 + 1e-9)
    }

    fn largest_mean(&self) -> f64 {
        self.unit
    }

    fn magnitude(&self, mean_scale: f64) -> f64 {
        let scale = mean_scale.abs().max(1.0);
        self.taken() * scale * self.unit * (LARGEST_NORMAL + 2.0 * scale * self.unit) * (1.0 + 1e-9)
    }
}

impl Kernel for AllocationKernel {
    type Proposal = AllocationProposal;
    type Scratch = AllocationScratch;
    type Scaled = AllocationProposal;

    fn scaled(&self, parameter: f64, mean_scale: f64) -> Result<AllocationProposal> {
        self.proposal(parameter, mean_scale)
    }

    fn mean_scale(proposal: &AllocationProposal) -> f64 {
        proposal.mean_scale
    }

    /// All patterns have the same probability in a proposal as in P, and ‖Cx‖² = k/σ².
    fn sums(&self, proposal: &AllocationProposal, direction: Direction) -> HolderSums {
        let square = self.taken() * self.unit * self.unit;
        let sum = |_: f64, exponent: f64| {
            let value = exponent * square;
            Approximation { value, error: 8.0 * UNIT_ROUNDOFF * value.abs() }
        };
        HolderSums::from_patterns(true, proposal.mean_scale, direction, sum, || sum(1.0, -0.5))
    }

    /// For each round the grid of a uniform number, and two roundings.
    fn drawn(&self, _: &AllocationProposal) -> (f64, f64) {
        (4.0 * self.rounds() * f64::EPSILON, 1.0)
    }

    /// Patterns have the same probabilities in every proposal, so the parameter is not used.
    fn proposal(&self, _: f64, mean_scale: f64) -> Result<AllocationProposal> {
        check_mean_scale(mean_scale)?;
        Ok(AllocationProposal { mean_scale })
    }

    /// The proposal's own density is computed only if the proposal is neither P nor R.
    #[inline(always)]
    fn sample<V: Vector>(
        &self,
        proposal: &AllocationProposal,
        purpose: Purpose,
        stream: &mut Stream,
        scratch: &mut AllocationScratch,
    ) -> Ratios {
        let mean_scale = proposal.mean_scale;
        self.draw::<V>(mean_scale, stream, scratch);
        let own = self.ratios::<V>(purpose.direction == Direction::Replace, scratch);
        let plain = mean_scale.to_bits() == 1.0f64.to_bits();
        if mean_scale == 0.0 {
            Ratios { proposal: splat(0.0), ..own }
        } else if plain {
            own
        } else if purpose.worthless(&own) {
            purpose.unweighted(own)
        } else {
            Ratios { proposal: self.log_density::<V>(mean_scale, scratch), ..own }
        }
    }

    #[inline(always)]
    fn weigh<V: Vector>(
        &self,
        origins: &Origins<AllocationProposal>,
        (drawn, direction): (usize, Direction),
        stream: &mut Stream,
        scratch: &mut AllocationScratch,
        out: &mut Weighed,
    ) {
        let mean_scale = match &origins.each[drawn] {
            Origin::Scaled(proposal) => proposal.mean_scale,
            Origin::Tilted(_) => direction.plain_mean_scale(),
        };
        self.draw::<V>(mean_scale, stream, scratch);
        let own = V::load(&self.log_density::<V>(1.0, scratch));
        let zero = V::splat(0.0);
        let (loss, numerator) = match direction {
            Direction::Remove => (own, own),
            Direction::Add => (zero.sub(own), zero),
            Direction::Replace => (own.sub(V::load(&self.log_density::<V>(-1.0, scratch))), own),
        };
        out.add_loss(loss);
        if out.worthless() {
            return;
        }
        for (k, origin) in origins.each.iter().enumerate() {
            if let Origin::Scaled(proposal) = origin {
                let density = self.log_density::<V>(proposal.mean_scale, scratch);
                out.add(k, V::load(&density).sub(numerator));
            }
        }
    }

    #[inline(always)]
    fn given<V: Vector>(&self, _: Direction, outcomes: &[Vec<f64>], _: &[Vec<u64>]) -> Ratios {
        let mut scratch = AllocationScratch { rows: vec![splat(0.0); self.rounds], ..AllocationScratch::default() };
        for (lane, outcome) in outcomes.iter().enumerate() {
            for (row, value) in scratch.rows.iter_mut().zip(outcome) {
                row[lane] = *value;
            }
        }
        self.ratios::<V>(true, &mut scratch)
    }

    #[inline(always)]
    fn replicas<V: Vector>(
        &self,
        tuples: &mut DrawTuples<'_>,
        mirrored: bool,
        stream: &mut Stream,
        scratch: &mut AllocationScratch,
    ) -> Ratios {
        tuples(stream, &mut scratch.patterns);
        self.draw::<V>(0.0, stream, scratch);
        for (lane, pattern) in scratch.patterns.iter().enumerate() {
            for &(round, count) in pattern {
                scratch.rows[round][lane] = count.mul_add(self.unit, scratch.rows[round][lane]);
            }
        }
        self.ratios::<V>(mirrored, scratch)
    }
}

#[cfg(test)]
mod tests {
    use super::AllocationKernel;
    use crate::montecarlo::family::{Family, Kernel};
    use crate::montecarlo::weight_bounds::Direction;
    use crate::replicas::enumeration::uniforms;
    use crate::special::real;
    use crate::vector::Portable;

    /// Returns ln of the likelihood ratio over all subsets; terms are added from the least on.
    fn enumerated(rounds: usize, taken: usize, unit: f64, outcome: &[f64]) -> f64 {
        let mut logs: Vec<f64> = (0..1_usize << rounds)
            .filter(|mask: &usize| mask.count_ones() as usize == taken)
            .map(|mask| (0..rounds).filter(|i| mask >> i & 1 == 1).map(|i| unit * outcome[i] - 0.5 * unit * unit).sum())
            .collect();
        logs.sort_by(f64::total_cmp);
        let count = real(logs.len());
        crate::special::log_sum_exp(logs.into_iter()) - count.ln()
    }

    #[test]
    fn densities_are_those_of_all_subsets() {
        let mut draw = uniforms(4);
        for (rounds, taken, unit) in [(2, 1, 1.0), (5, 2, 0.3), (8, 4, 2.5), (9, 8, 1.4), (10, 1, 4.0), (10, 5, 6.0)] {
            let kernel = AllocationKernel::new(rounds, taken, unit).expect("valid");
            for scale in [0.5, 3.0, 12.0] {
                let outcomes: Vec<Vec<f64>> =
                    (0..8).map(|_| (0..rounds).map(|_| scale * (draw() - 0.4)).collect()).collect();
                let found = kernel.given::<Portable>(Direction::Replace, &outcomes, &[]);
                for (lane, outcome) in outcomes.iter().enumerate() {
                    let opposite: Vec<f64> = outcome.iter().map(|y| -y).collect();
                    for (found, outcome) in [(found.mixture[lane], outcome), (found.mirrored[lane], &opposite)] {
                        let exact = enumerated(rounds, taken, unit, outcome);
                        let error = kernel.rounding_at(1.0, 2.0) + 1e-14 * (1.0 + exact.abs());
                        assert!((found - exact).abs() <= error, "{rounds} {taken} {unit}: {found} {exact}");
                    }
                }
            }
        }
    }

    #[test]
    fn extreme_outcomes_lose_no_terms() {
        // A few outcomes are huge: with one common scale the small terms would underflow, and the sum would be wrong by
        // hundreds.
        let (rounds, taken, unit) = (12, 6, 20.0);
        let kernel = AllocationKernel::new(rounds, taken, unit).expect("valid");
        for place in 0..rounds {
            let outcome: Vec<f64> = (0..rounds).map(|i| if (i + place) % rounds < 4 { 12.0 } else { -3.0 }).collect();
            let exact = enumerated(rounds, taken, unit, &outcome);
            let found = kernel.given::<Portable>(Direction::Remove, &vec![outcome; 8], &[]).mixture[place % 8];
            assert!((found - exact).abs() < 1e-9 * (1.0 + exact.abs()), "{found} {exact}");
        }
        // All exponents are equal: ln e_k = ln C(t, k) + k·exponent.
        let kernel = AllocationKernel::new(3000, 40, 1.0).expect("valid");
        for value in [-8.0, 0.0, 30.0] {
            let found = kernel.given::<Portable>(Direction::Remove, &vec![vec![value; 3000]; 8], &[]).mixture[3];
            assert!((found - 40.0 * (value - 0.5)).abs() < kernel.rounding_at(1.0, 25.0), "{found}");
        }
    }

    #[test]
    fn proposals_are_bounded_by_their_patterns() {
        let kernel = AllocationKernel::new(100, 10, 2.0).expect("valid");
        let proposal = kernel.proposal(0.0, 2.0).expect("valid");
        assert!(kernel.sums(&proposal, Direction::Remove) != crate::montecarlo::weight_bounds::HolderSums::Nothing);
        assert!(kernel.rounding_at(1.0, 3.0) < 1e-9);
        assert!(AllocationKernel::new(10, 10, 1.0).is_err());
        assert!(AllocationKernel::new(10, 0, 1.0).is_err());
        assert!(AllocationKernel::new(10, 2, 0.0).is_err());
    }
}

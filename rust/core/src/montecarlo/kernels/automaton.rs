//! The kernel for any automaton that emits participations, with a banded Toeplitz matrix: Poisson sampling under a
//! matrix, groups of records, and allocations under a matrix.
//!
//! With ĉ = c/σ, u_i = ⟨ĉ_i, ŷ⟩ and r_i(k) = ⟨ĉ_i, ĉ_{i−k}⟩, a pattern x of counts has
//! ‖Ĉx‖² = Σ_i x_i² r_i(0) + 2 Σ_i x_i Σ_k x_{i−k} r_i(k), and the state of the automaton before step i determines
//! h_i = Σ_k x_{i−k} r_i(k). So dP/dR = Σ_x w_x e^{⟨Ĉx, ŷ⟩ − ‖Ĉx‖²/2} is a sum over paths, computed forwards:
//!
//! `f_{i+1}(s′) = Σ_{s → s′} chance · e^{−x h_i(s)} · e^{x u_i − x² r_i(0)/2} · f_i(s)`, f_1 the law of the first state.
//!
//! The first two factors do not depend on the sample, and are tabulated for each step whose columns, probabilities or
//! reachable states are its own. A proposal M = Σ_x v_x N(κĈx, I) has κu, κ²h and κ²r(0) instead, and its own chances.
//!
//! **Range.** All terms are positive. After each step the largest value of a lane is kept between 2^±`HIGH`, and
//! eight samples one of whose values falls below 2^−`LOW`, or one of whose exponents exceeds `MOST_EXPONENT`, are
//! recomputed in logarithms: so nothing is lost that could be large later. A step multiplies a value by at least
//! 2^−`LEAST_FACTOR`·e^{−`MOST_EXPONENT`}, and 2^{−390−100−433} is a normal number.
//!
//! **Rounding.** Relative errors of positive terms do not grow: a path collects in each step the error of a factor, of an
//! exponential and its exponent, and of a sum; [`Family::rounding_at`] adds them up.

use std::sync::Arc;

use crate::error::{domain, Result};
use crate::montecarlo::family::{DrawTuples, Family, Kernel, LanePatterns, Origin, Origins, Purpose, Ratios, Weighed};
pub use crate::montecarlo::kernels::automaton_steps::{AutomatonProposal, Emitted};
use crate::montecarlo::kernels::automaton_steps::{AutomatonSteps, Edge, Forwards, Paths};
use crate::montecarlo::kernels::columns::correlate_all;
use crate::montecarlo::kernels::correlate::Correlator;
use crate::montecarlo::source::{check_mean_scale, draw_noise};
use crate::montecarlo::stream::{Stream, LARGEST_NORMAL, NORMAL_ERROR};
use crate::montecarlo::weight_bounds::{Direction, HolderSums};
use crate::participation::{blend, log_sum_error};
use crate::replicas::automaton::Automaton;
use crate::replicas::drawn::Participations;
use crate::special::{log_sum_exp, real, Approximation, UNIT_ROUNDOFF};
use crate::vector::{splat, Lanes, Vector, LANES};

/// The data of the kernel; shared by all threads.
#[derive(Debug, Clone)]
pub struct AutomatonKernel {
    /// P.
    own: AutomatonProposal,
    steps: Arc<AutomatonSteps>,
    /// ĉ.
    coefficients: Vec<f64>,
    correlator: Correlator,
}

/// Buffers of one worker.
#[derive(Debug, Clone, Default)]
pub struct AutomatonScratch {
    rows: Vec<Lanes>,
    sums: Vec<Lanes>,
    correlated: Vec<Lanes>,
    workspace: Vec<[Lanes; 2]>,
    values: [Vec<Lanes>; 2],
    patterns: LanePatterns,
}

impl AutomatonKernel {
    /// Creates the kernel for coefficients in units of σ (ĉ = c/σ) and `iterations` rounds.
    ///
    /// # Errors
    /// [`Error::Domain`](crate::Error::Domain) for coefficients that are not finite and non-negative or whose first is
    /// zero, for more bands than rounds, for an allocation of no round or of all, and as
    /// [`Automaton::of_poisson`] and [`Automaton::of_group`].
    pub fn new(law: Emitted, coefficients: Vec<f64>, iterations: usize) -> Result<Self> {
        if !(coefficients.first().is_some_and(|&first| first > 0.0)) {
            return domain("first coefficient", coefficients.first().copied().unwrap_or(0.0), "greater than 0");
        }
        if coefficients.len() > iterations {
            return domain("bands", real(coefficients.len()), "at most the number of iterations");
        }
        if let Emitted::Allocation { length, taken } = law {
            if taken >= length {
                return domain("participations", real(taken), "less than the number of rounds of an allocation");
            }
        }
        let automaton = Arc::new(law.automaton(iterations, &coefficients)?);
        let steps = Arc::new(AutomatonSteps::new(&automaton));
        let correlator = Correlator::new(&coefficients, None);
        let own = AutomatonProposal::new(law, automaton, 1.0, &steps);
        Ok(Self { own, steps, coefficients, correlator })
    }

    fn automaton(&self) -> &Automaton {
        &self.own.automaton
    }

    fn iterations(&self) -> f64 {
        real(self.automaton().steps)
    }

    /// Returns the largest number of records that take part in a round.
    fn most(&self) -> f64 {
        real(self.automaton().most())
    }

    fn total(&self) -> f64 {
        self.coefficients.iter().sum()
    }

    /// Draws rows of noise plus this multiple of each lane's pattern.
    #[inline(always)]
    fn draw<V: Vector>(
        &self,
        law: &AutomatonProposal,
        mean_scale: f64,
        stream: &mut Stream,
        scratch: &mut AutomatonScratch,
    ) {
        scratch.rows.resize(law.automaton.steps, splat(0.0));
        draw_noise::<V>(stream, &mut scratch.rows);
        if mean_scale != 0.0 {
            V::apart(Paths { law, steps: &self.steps, stream, patterns: &mut scratch.patterns });
            self.add(mean_scale, scratch);
        }
    }

    /// Adds this multiple of each lane's pattern to its rows.
    fn add(&self, mean_scale: f64, scratch: &mut AutomatonScratch) {
        for (lane, pattern) in scratch.patterns.iter().enumerate() {
            for &(round, count) in pattern {
                let shift = mean_scale * count;
                for (row, c) in scratch.rows[round..].iter_mut().zip(&self.coefficients) {
                    row[lane] = shift.mul_add(*c, row[lane]);
                }
            }
        }
    }

    /// Computes ⟨ĉ_i, ŷ⟩ of all rounds.
    #[inline(always)]
    fn correlate<V: Vector>(&self, scratch: &mut AutomatonScratch) {
        let n = self.automaton().steps;
        let AutomatonScratch { rows, sums, correlated, workspace, .. } = scratch;
        rows.resize(n.next_multiple_of(self.correlator.block()) + self.correlator.tail(), splat(0.0));
        correlate_all::<V>(&self.correlator, n, rows, correlated, workspace);
        rows.truncate(n);
        sums.clear();
        sums.extend_from_slice(&correlated[..n]);
    }

    /// Returns ln dM/dR of eight samples whose products are in `scratch`; `sign` −1 for the mirror image.
    #[inline(always)]
    fn log_density<V: Vector>(&self, proposal: &AutomatonProposal, sign: f64, scratch: &mut AutomatonScratch) -> Lanes {
        let AutomatonScratch { sums, values, .. } = scratch;
        let linear = V::apart(Forwards { steps: &self.steps, proposal, sign, sums, values });
        linear.unwrap_or_else(|| {
            let mut out = splat(0.0);
            for lane in 0..LANES {
                out[lane] = self.logarithmic(proposal, |i| sign * sums[i][lane]);
            }
            out
        })
    }

    /// Returns the same of one sample with these products, for any range.
    #[cold]
    fn logarithmic(&self, proposal: &AutomatonProposal, product: impl Fn(usize) -> f64) -> f64 {
        let automaton = &proposal.automaton;
        let kappa = proposal.mean_scale;
        self.sum(&automaton.start, |i, (edge, square)| {
            let count = real(edge.count);
            let exponent = kappa * count * product(i - 1) - kappa * kappa * count * (0.5 * count * square + edge.field);
            libm::log(automaton.chance(i, edge.source, edge.number)) + exponent
        })
    }

    /// Returns ln of the sum over all paths of the products of e^{log}, from this law of the first state.
    fn sum(&self, start: &[f64], log: impl Fn(usize, (&Edge, f64)) -> f64) -> f64 {
        let mut logs: Vec<f64> = start.iter().map(|chance| libm::log(*chance)).collect();
        let mut next = vec![f64::NEG_INFINITY; logs.len()];
        for (i, &(place, _)) in (1..).zip(&self.steps.of_step) {
            let ways = &self.steps.ways[place];
            let each: Vec<f64> =
                ways.edges.iter().map(|edge| logs[edge.source] + log(i, (edge, ways.square))).collect();
            next.fill(f64::NEG_INFINITY);
            let mut first = 0;
            for bundle in ways.bundles.iter().filter(|bundle| bundle.last) {
                next[bundle.to] = log_sum_exp(each[first..bundle.end].iter().copied());
                first = bundle.end;
            }
            std::mem::swap(&mut logs, &mut next);
        }
        log_sum_exp(logs.into_iter())
    }

    /// Computes ln Σ_x w_x^power v_x^(1−power) e^{exponent·‖Ĉx‖²} for a proposal's v, with a bound on its error: a path
    /// collects in each step the errors of its weight, of its part of the squared norm, of a sum and of its terms.
    fn log_sum(&self, proposal: &AutomatonProposal, power: f64, exponent: f64) -> Approximation {
        let (own, other) = (self.automaton(), &proposal.automaton);
        let bands = real(self.coefficients.len());
        let (heaviest, widest, error) =
            (std::cell::Cell::new(0.0_f64), std::cell::Cell::new(0.0_f64), std::cell::Cell::new(0.0_f64));
        let weight = |mine: f64, theirs: f64| {
            let weight = blend(power, libm::log(mine), libm::log(theirs));
            heaviest.set(heaviest.get().max(weight.value.abs()));
            error.set(error.get().max(weight.error));
            weight.value
        };
        let start: Vec<f64> = own
            .start
            .iter()
            .zip(&other.start)
            .map(|(mine, theirs)| if *mine > 0.0 { libm::exp(weight(*mine, *theirs)) } else { 0.0 })
            .collect();
        let value = self.sum(&start, |i, (edge, square)| {
            let chance = |automaton: &Automaton| automaton.chance(i, edge.source, edge.number);
            let count = real(edge.count);
            let norm = exponent * count * (count * square + 2.0 * edge.field);
            widest.set(widest.get().max(norm.abs()));
            weight(chance(own), chance(other)) + norm
        });
        let counts = power.abs() * own.chance_error + (1.0 - power).abs() * other.chance_error;
        // No partial sum is further from 0 than all steps together.
        let n = self.iterations();
        let largest = (n + 1.0) * (heaviest.get() + widest.get() + real(self.steps.widest).ln());
        let step = error.get()
            + counts
            + UNIT_ROUNDOFF * 4.0 * (bands + 8.0) * widest.get()
            + log_sum_error(self.steps.widest, largest)
            + 4.0 * UNIT_ROUNDOFF * (heaviest.get() + widest.get() + largest);
        let last = log_sum_error(start.len(), largest) + 8.0 * UNIT_ROUNDOFF * largest;
        Approximation { value, error: ((n + 1.0) * step + last) * (1.0 + 1e-9) }
    }

    /// Returns the log densities of P and, if asked for, of its mirror image; the proposal's is that of P.
    #[inline(always)]
    fn ratios<V: Vector>(&self, mirrored: bool, scratch: &mut AutomatonScratch) -> Ratios {
        self.correlate::<V>(scratch);
        let mixture = self.log_density::<V>(&self.own, 1.0, scratch);
        let mirrored = if mirrored { self.log_density::<V>(&self.own, -1.0, scratch) } else { splat(0.0) };
        Ratios { mixture, mirrored, proposal: mixture }
    }
}

/// There are no tilts.
impl Family for AutomatonKernel {
    fn participations(&self) -> Option<Participations<'_>> {
        Some(Participations::Automaton(self.automaton()))
    }

    fn outcome_length(&self) -> usize {
        self.automaton().steps
    }

    fn plain_parameter(&self) -> f64 {
        self.own.law.probability()
    }

    /// The odds are multiplied by e^{κ(κ−1)s/2}, s the squared norm of a whole column.
    fn balanced_parameter(&self, mean_scale: f64) -> f64 {
        let p = self.plain_parameter();
        if p == 0.0 || p >= 1.0 {
            return p;
        }
        let square: f64 = self.coefficients.iter().map(|c| c * c).sum();
        let odds = p * (0.5 * mean_scale * (mean_scale - 1.0) * square).exp();
        let balanced = if odds.is_finite() { odds / (1.0 - p + odds) } else { 1.0 };
        balanced.min(crate::montecarlo::family::MOST_LIKELY).max(p)
    }

    /// Each step: the error of a factor (its chance, and an exponential whose exponent has the error of the overlaps),
    /// of an exponential, 4u, and of its exponent (the correlation's, and a few u of its terms, for each record that
    /// takes part), and of a sum of products. At the end a sum over the states, and the logarithm with its power of two.
    fn rounding_at(&self, mean_scale: f64, means: f64) -> f64 {
        let (n, most, bands) = (self.iterations(), self.most(), real(self.coefficients.len()));
        let scale = 1.0 + mean_scale.abs();
        let largest = LARGEST_NORMAL + means * self.largest_mean();
        let square: f64 = self.coefficients.iter().map(|c| c * c).sum();
        let product = self.correlator.rounding(largest) + 8.0 * UNIT_ROUNDOFF * self.total() * largest;
        let norms = scale * scale * most * (most * square + self.steps.largest_field);
        let step = self.automaton().chance_error
            + scale * most * product
            + UNIT_ROUNDOFF * (4.0 * (bands + 8.0) * norms + 24.0 + real(self.steps.widest));
        let last = real(self.automaton().moves.len()) + 64.0 + 4.0 * scale * n * self.largest_mean() * largest;
        (n * step + UNIT_ROUNDOFF * last) * (1.0 + 1e-6)
    }

    /// Each derivative is a mean of entries of Ĉx.
    fn lipschitz(&self) -> f64 {
        self.iterations() * self.largest_mean() * (1.0 + 1e-9)
    }

    fn largest_mean(&self) -> f64 {
        self.most() * self.total() * (1.0 + 1e-9)
    }

    fn magnitude(&self, mean_scale: f64) -> f64 {
        let scale = 1.0 + mean_scale.abs();
        let means = self.largest_mean();
        scale * scale * self.iterations() * means * (LARGEST_NORMAL + means) * (1.0 + 1e-9)
    }

    /// A row has up to as many participations as columns reach it, and each addition rounds by u of the sum so far.
    fn coordinate_error(&self, mean_scale: f64, _: f64) -> f64 {
        let added = real(self.coefficients.len()) + 1.0;
        NORMAL_ERROR + UNIT_ROUNDOFF * added * (1.0 + 2.0 * mean_scale.abs() * self.largest_mean())
    }

    fn replicas_coordinate_error(&self, power: f64) -> f64 {
        let added = power * (real(self.coefficients.len()) + 1.0);
        NORMAL_ERROR + UNIT_ROUNDOFF * added * (1.0 + 2.0 * power * self.largest_mean())
    }
}

impl Kernel for AutomatonKernel {
    type Proposal = AutomatonProposal;
    type Scratch = AutomatonScratch;
    type Scaled = AutomatonProposal;

    fn scaled(&self, parameter: f64, mean_scale: f64) -> Result<AutomatonProposal> {
        self.proposal(parameter, mean_scale)
    }

    fn mean_scale(proposal: &AutomatonProposal) -> f64 {
        proposal.mean_scale
    }

    fn sums(&self, proposal: &AutomatonProposal, direction: Direction) -> HolderSums {
        let sum = |power: f64, exponent: f64| self.log_sum(proposal, power, exponent);
        let same = proposal.law == self.own.law;
        HolderSums::from_patterns(same, proposal.mean_scale, direction, sum, || self.log_sum(&self.own, 1.0, -0.5))
    }

    /// In each step, and for the start, a uniform number on a grid is compared with sums of chances.
    fn drawn(&self, proposal: &AutomatonProposal) -> (f64, f64) {
        let automaton = &proposal.automaton;
        let widest = automaton.moves.iter().map(Vec::len).max().unwrap_or(1);
        let each = (2.0 * real(widest) + 2.0) * f64::EPSILON + real(widest) * automaton.chance_error;
        let states = real(automaton.start.len());
        (self.iterations() * each + states * (2.0 * f64::EPSILON + automaton.chance_error), self.iterations() + 1.0)
    }

    /// The parameter is the probability to join; an allocation has none.
    fn proposal(&self, parameter: f64, mean_scale: f64) -> Result<AutomatonProposal> {
        check_mean_scale(mean_scale)?;
        let law = self.own.law.with_probability(parameter);
        let automaton = if law == self.own.law {
            Arc::clone(&self.own.automaton)
        } else {
            Arc::new(law.automaton(self.automaton().steps, &self.coefficients)?)
        };
        Ok(AutomatonProposal::new(law, automaton, mean_scale, &self.steps))
    }

    /// The proposal's own density is computed only if the proposal is neither P nor R.
    #[inline(always)]
    fn sample<V: Vector>(
        &self,
        proposal: &AutomatonProposal,
        purpose: Purpose,
        stream: &mut Stream,
        scratch: &mut AutomatonScratch,
    ) -> Ratios {
        self.draw::<V>(proposal, proposal.mean_scale, stream, scratch);
        let own = self.ratios::<V>(purpose.direction == Direction::Replace, scratch);
        let plain = proposal.mean_scale.to_bits() == 1.0f64.to_bits() && proposal.law == self.own.law;
        if proposal.mean_scale == 0.0 {
            Ratios { proposal: splat(0.0), ..own }
        } else if plain {
            own
        } else if purpose.worthless(&own) {
            purpose.unweighted(own)
        } else {
            Ratios { proposal: self.log_density::<V>(proposal, 1.0, scratch), ..own }
        }
    }

    #[inline(always)]
    fn weigh<V: Vector>(
        &self,
        origins: &Origins<AutomatonProposal>,
        (drawn, direction): (usize, Direction),
        stream: &mut Stream,
        scratch: &mut AutomatonScratch,
        out: &mut Weighed,
    ) {
        match &origins.each[drawn] {
            Origin::Scaled(proposal) => {
                self.draw::<V>(proposal, proposal.mean_scale, stream, scratch);
            }
            Origin::Tilted(_) => self.draw::<V>(&self.own, direction.plain_mean_scale(), stream, scratch),
        }
        let ratios = self.ratios::<V>(direction == Direction::Replace, scratch);
        let (own, zero) = (V::load(&ratios.mixture), V::splat(0.0));
        let (loss, numerator) = match direction {
            Direction::Remove => (own, own),
            Direction::Add => (zero.sub(own), zero),
            Direction::Replace => (own.sub(V::load(&ratios.mirrored)), own),
        };
        out.add_loss(loss);
        if out.worthless() {
            return;
        }
        for (k, origin) in origins.each.iter().enumerate() {
            if let Origin::Scaled(proposal) = origin {
                let density = self.log_density::<V>(proposal, 1.0, scratch);
                out.add(k, V::load(&density).sub(numerator));
            }
        }
    }

    #[inline(always)]
    fn given<V: Vector>(&self, _: Direction, outcomes: &[Vec<f64>], _: &[Vec<u64>]) -> Ratios {
        let n = self.automaton().steps;
        let mut scratch = AutomatonScratch { rows: vec![splat(0.0); n], ..AutomatonScratch::default() };
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
        scratch: &mut AutomatonScratch,
    ) -> Ratios {
        tuples(stream, &mut scratch.patterns);
        scratch.rows.resize(self.automaton().steps, splat(0.0));
        draw_noise::<V>(stream, &mut scratch.rows);
        self.add(1.0, scratch);
        self.ratios::<V>(mirrored, scratch)
    }
}

#[cfg(test)]
mod tests {
    use super::{AutomatonKernel, Emitted};
    use crate::montecarlo::family::{Family, Kernel, Purpose};
    use crate::montecarlo::stream::{Stream, StreamKey};
    use crate::montecarlo::weight_bounds::{Direction, HolderSums};
    use crate::replicas::enumeration::{
        after_one_another, allocations, group, independent, inner, spaced, uniforms, Patterns,
    };
    use crate::special::{log_sum_exp, real};
    use crate::vector::Portable;

    type Weighted = (Vec<usize>, f64);

    /// Kernels of each law, with all their patterns.
    fn cases() -> Vec<(Emitted, Vec<f64>, usize, Patterns)> {
        let mut cases = Vec::new();
        for coefficients in [vec![0.7], vec![1.3, 0.4], vec![0.5, 0.0, 0.4], vec![2.0, 1.1, 0.6, 0.3]] {
            for (records, probability, n) in [(1, 0.3, 6), (2, 0.05, 5), (3, 0.4, 4)] {
                let law = Emitted::Poisson { records, probability };
                cases.push((law, coefficients.clone(), n, group(&independent(probability, n), records)));
            }
            for (records, probability, separation, warm, n) in
                [(1, 0.3, 4, true, 7), (2, 0.2, 4, true, 5), (2, 0.1, 5, false, 7), (3, 0.3, 4, true, 4)]
            {
                let law = Emitted::Spaced { records, probability, separation, warm };
                let single = spaced(separation, probability, warm, n);
                cases.push((law, coefficients.clone(), n, group(&single, records)));
            }
            for (taken, length) in [(1, 5), (3, 6), (4, 5)] {
                let law = Emitted::Allocation { length, taken };
                cases.push((law, coefficients.clone(), length, allocations(length, taken)));
            }
            for (taken, length) in [(1, 2), (2, 3)] {
                let law = Emitted::Allocation { length, taken };
                let all = after_one_another(&allocations(length, taken));
                cases.push((law, coefficients.clone(), 2 * length, all));
            }
        }
        cases
    }

    /// Returns ln Σ_x w_x^power v_x^(1−power) e^{exponent·‖Cx‖² + κ⟨Cx, y⟩} over all patterns.
    fn enumerated(
        (patterns, proposed): (&Patterns, &Patterns),
        coefficients: &[f64],
        (power, exponent, scale): (f64, f64, f64),
        outcome: &[f64],
    ) -> f64 {
        let log = |(own, proposed): (&Weighted, &Weighted)| {
            let ((x, w), (same, v)) = (own, proposed);
            assert_eq!(x, same);
            let mean = |i: usize| {
                let reach = (i + coefficients.len()).min(outcome.len());
                (i..reach).map(|row| coefficients[row - i] * outcome[row]).sum::<f64>()
            };
            let product: f64 = x.iter().enumerate().map(|(i, &count)| real(count) * mean(i)).sum();
            power * w.ln() + (1.0 - power) * v.ln() + exponent * inner(x, x, coefficients) + scale * product
        };
        let mut logs: Vec<f64> = patterns.iter().zip(proposed).map(log).collect();
        logs.sort_by(f64::total_cmp);
        log_sum_exp(logs.into_iter())
    }

    #[test]
    fn densities_are_those_of_all_patterns() {
        let mut draw = uniforms(3);
        for (law, coefficients, n, patterns) in cases() {
            let kernel = AutomatonKernel::new(law, coefficients.clone(), n).expect("valid");
            // Beyond some size the recursion runs in logarithms.
            for size in [1.0, 8.0, 300.0] {
                let outcomes: Vec<Vec<f64>> = (0..8).map(|_| (0..n).map(|_| size * (draw() - 0.5)).collect()).collect();
                let found = kernel.given::<Portable>(Direction::Replace, &outcomes, &[]);
                for (lane, outcome) in outcomes.iter().enumerate() {
                    for (found, scale) in [(found.mixture[lane], 1.0), (found.mirrored[lane], -1.0)] {
                        let exact = enumerated((&patterns, &patterns), &coefficients, (1.0, -0.5, scale), outcome);
                        let error = kernel.rounding_at(1.0, size) + 1e-14 * (1.0 + exact.abs());
                        assert!((found - exact).abs() <= error, "{law:?} {coefficients:?}: {found} {exact}");
                    }
                }
            }
        }
    }

    #[test]
    fn sums_over_patterns_are_those_of_all() {
        for (law, coefficients, n, patterns) in cases() {
            let kernel = AutomatonKernel::new(law, coefficients.clone(), n).expect("valid");
            for (parameter, mean_scale) in [(0.2, 1.7), (0.6, 3.0)] {
                let proposal = kernel.proposal(parameter, mean_scale).expect("valid");
                let proposed = match law {
                    Emitted::Poisson { records, .. } => group(&independent(parameter, n), records),
                    Emitted::Spaced { records, separation, warm, .. } => {
                        group(&spaced(separation, parameter, warm, n), records)
                    }
                    Emitted::Allocation { .. } => patterns.clone(),
                };
                // The sum is over paths, and Hölder's inequality holds for them too; several have one pattern only if the
                // first state is random.
                if !matches!(law, Emitted::Spaced { warm: true, .. }) {
                    for (power, exponent) in [(1.0, -0.5), (2.0, 0.3), (1.5, 0.7), (0.4, -0.2)] {
                        let found = kernel.log_sum(&proposal, power, exponent);
                        let exact =
                            enumerated((&patterns, &proposed), &coefficients, (power, exponent, 0.0), &vec![0.0; n]);
                        assert!((found.value - exact).abs() <= found.error + 1e-13 * (1.0 + exact.abs()), "{law:?}");
                        assert!(found.error < 1e-9);
                    }
                }
            }
        }
    }

    #[test]
    fn weights_of_samples_have_the_mean_1_and_are_bounded() {
        for (number, (law, coefficients, n, _)) in (0..).zip(cases()) {
            let kernel = AutomatonKernel::new(law, coefficients, n).expect("valid");
            for (direction, parameter, mean_scale, epsilon) in [
                (Direction::Remove, 0.35, 1.4, 0.2),
                (Direction::Add, 0.2, -0.3, 0.1),
                (Direction::Replace, 0.3, 1.3, 0.2),
            ] {
                let proposal = kernel.proposal(parameter, mean_scale).expect("valid");
                let bound = crate::montecarlo::weight_bounds::weight_bounds(
                    kernel.sums(&proposal, direction),
                    mean_scale,
                    direction,
                    epsilon,
                    None,
                );
                assert!(kernel.sums(&proposal, direction) != HolderSums::Nothing && bound.value.is_finite());
                let key = StreamKey { seed: 5, purpose: 1, candidate: 0, direction: number };
                let (mut stream, mut scratch) = (Stream::new(key, 0), super::AutomatonScratch::default());
                let purpose = Purpose { direction, binding: true, least: f64::NEG_INFINITY };
                let (mut weights, mut squares, count) = (0.0, 0.0, 800_usize);
                for _ in 0..count {
                    let ratios = kernel.sample::<Portable>(&proposal, purpose, &mut stream, &mut scratch);
                    for lane in 0..8 {
                        let (own, mirrored) = (ratios.mixture[lane], ratios.mirrored[lane]);
                        let g = ratios.proposal[lane];
                        let weight = if direction == Direction::Add { -g } else { own - g }.exp();
                        let value = match direction {
                            Direction::Remove => weight * (1.0 - (epsilon - own).exp()),
                            Direction::Add => weight * (1.0 - (epsilon + own).exp()),
                            Direction::Replace => weight * (1.0 - (epsilon - own + mirrored).exp()),
                        };
                        assert!(value <= bound.value, "{law:?} {direction:?}: {value} {}", bound.value);
                        weights += weight;
                        squares += weight * weight;
                    }
                }
                let samples = 8.0 * real(count);
                let mean = weights / samples;
                let error = ((squares / samples - mean * mean) / samples).sqrt();
                assert!((mean - 1.0).abs() < 5.0 * error + 1e-9, "{law:?} {direction:?}: {mean} {error}");
            }
        }
    }

    #[test]
    fn what_has_no_kernel_is_refused() {
        let poisson = |records, probability| Emitted::Poisson { records, probability };
        assert!(AutomatonKernel::new(poisson(1, 0.0), vec![1.0], 4).is_err());
        assert!(AutomatonKernel::new(poisson(0, 0.1), vec![1.0], 4).is_err());
        assert!(AutomatonKernel::new(poisson(60, 1e-5), vec![1.0], 4).is_err());
        assert!(AutomatonKernel::new(poisson(65, 0.5), vec![1.0], 4).is_err());
        assert!(AutomatonKernel::new(poisson(1, 0.1), vec![0.0, 1.0], 4).is_err());
        assert!(AutomatonKernel::new(poisson(1, 0.1), vec![1.0; 5], 4).is_err());
        assert!(AutomatonKernel::new(poisson(1, 0.1), vec![0.1; 20], 40).is_err());
        assert!(AutomatonKernel::new(Emitted::Allocation { length: 4, taken: 4 }, vec![1.0], 4).is_err());
        let close = Emitted::Spaced { records: 2, probability: 0.1, separation: 2, warm: true };
        assert!(AutomatonKernel::new(close, vec![1.0, 0.5, 0.2], 4).is_err());
    }
}

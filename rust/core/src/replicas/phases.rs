//! m replicas under cyclic Poisson sampling with random phases: moments of the likelihood ratio, and tuples drawn from
//! the law of f^m.
//!
//! A record of phase φ may join the rounds φ, φ + b, φ + 2b, …, each with probability p. Given the phases of all
//! replicas, the state is which of them joined at their last chance: with at most b bands the inner product r_i(a) of a
//! column with those before it ends there. A replica that may join round i does so with the factor e^h, h = Σ r_i(a)
//! over the others that joined at their last chance, a rounds ago (0 for those of its own phase that come before it).
//! So with one bit for each replica
//!
//! `β(s) = (1 − p) β′(s without r) + p e^h β′(s with r)`,
//!
//! from one chance to the next, and Z_m is the mean of β_1(nobody) over the phases of m replicas: a sum over their
//! multisets, m of b phases. A tuple is drawn by its phases first, with probabilities proportional to that times β_1,
//! and then chance by chance; the proof is that of [`super::tuples`], with a table for every round. Away from the end
//! of the run a period of b rounds maps β to nearly a multiple of itself: then the tables of one period, from a
//! function u at its end, are used for all periods before it too. There u is multiplied by λ̄, the largest ratio of the
//! image of u after a period to u, and a tuple is given up with the probability of the excess.
//!
//! **Rounding.** Factors and sums are rounded up as in [`super::automaton_tuples`], by more than their operations can
//! lose. All β are between 1 and e^{m(m−1)r(0)/2} times each other, as each pair counts at most once from any state, so
//! nothing underflows.

use rayon::prelude::*;

use crate::error::{domain, Error, Result};
use crate::participation::renewal::Renewal;
use crate::replicas::multisets::{number_of, Multisets};
use crate::replicas::overlaps::Overlaps;
use crate::replicas::stepwise::{Bounds, Stepwise};
use crate::replicas::weighted::Weighted;
use crate::run::Run;
use crate::special::{real, UNIT_ROUNDOFF};

/// The maximum number of multisets of phases, and of replicas, each of which has a bit.
const MOST_CLASSES: usize = 1 << 24;
const MOST_ORDER: usize = 16;
/// The number of multisets in a block.
const BLOCK: usize = 256;
/// How much of ln ρ may be given up by using one table for many periods, and the number of periods after which that is
/// expected.
const GAP: f64 = 1e-2;
pub(super) const EXPECTED: usize = 16;
/// The maximum exponent of all pairs of replicas together in a round: with the scale of β it is within the range of
/// doubles, and so is the range of the values of β.
const MOST_EXPONENT: f64 = 480.0;
/// β is scaled down if it is above this power of two.
const HIGH: i32 = 300;

/// Tuples of m replicas with random phases.
#[derive(Debug)]
pub struct Phases {
    overlaps: Overlaps,
    rounds: usize,
    period: usize,
    probability: f64,
    order: usize,
    classes: Multisets,
    /// ln of the weight of each multiset of phases, rounded up, minus the largest of them.
    logs: Vec<f64>,
    weighted: Weighted,
    log_bound: f64,
    relative: f64,
    /// See [`GAP`].
    gap: f64,
}

/// The state of a tuple that is being drawn: which replicas joined last, and the tables of its phases.
#[derive(Debug, Clone, Default)]
pub struct PhasedTuple {
    phases: Vec<usize>,
    joined: usize,
    /// β before each round in which somebody may join, from the last one back, and its scale.
    tables: Vec<f64>,
    scales: Vec<i32>,
    /// The number of such rounds that were passed.
    passed: usize,
    /// The number of first periods, which use the tables of the last of them, and λ̄.
    alike: usize,
    growth: f64,
    /// The number of rounds of a period in which somebody may join.
    chances: usize,
    buffers: Buffers,
}

#[derive(Debug, Clone, Default)]
struct Buffers {
    factors: Vec<f64>,
    values: Vec<f64>,
    /// β at the end of a period, and its scale.
    before: Vec<f64>,
    exponent: i32,
}

/// Returns the number of multisets of phases, and the number of operations for all of them; `None` if there are too
/// many.
pub(super) fn price(law: &Renewal, order: usize) -> Option<(usize, f64)> {
    let count = number_of(law.min_separation, order)?;
    if count > MOST_CLASSES || order > MOST_ORDER {
        return None;
    }
    let rounds = real(law.iterations().min(EXPECTED * law.min_separation));
    let chances = real(law.iterations().div_ceil(law.min_separation).min(EXPECTED) * order);
    let operations = real(count) * (2.0 * rounds + chances * real(1_u64 << order));
    Some((count, operations))
}

impl Phases {
    /// Creates the tuples of m = `order` replicas with the banded Toeplitz matrix of these coefficients in units of σ.
    ///
    /// * Memory: 8 bytes for each multiset of phases. Time: m·2^m operations for each and every period until they
    ///   settle.
    /// * Guarantee: see the head of this file. The result does not depend on the number of threads.
    ///
    /// # Errors
    /// [`Error::Domain`] for an order below 2, a law without random phases, more bands than phases, and as
    /// [`Overlaps::toeplitz`]; [`Error::Numerics`] for too many multisets, and where a factor leaves the range of
    /// numbers; as [`Run::check`].
    pub(super) fn new(law: &Renewal, coefficients: &[f64], order: usize, run: &Run) -> Result<Self> {
        Self::with_gap(law, coefficients, order, GAP, run)
    }

    fn with_gap(law: &Renewal, coefficients: &[f64], order: usize, gap: f64, run: &Run) -> Result<Self> {
        let domain = |name, value: usize, allowed| domain(name, real(value), allowed);
        if order < 2 {
            return domain("order", order, "at least 2");
        }
        let overlaps = Overlaps::toeplitz(coefficients)?;
        let (period, bands) = (law.min_separation, overlaps.bands());
        if bands > period || !law.phased {
            return domain("bands", bands, "at most the number of phases, which are random");
        }
        if price(law, order).is_none() {
            return Err(Error::Numerics { reason: "replicas have too many phases" });
        }
        if overlaps.product(bands, 0) * real(order * (order - 1) / 2) > MOST_EXPONENT {
            return Err(Error::Numerics { reason: "a chain of replicas leaves the range of numbers" });
        }
        let classes = Multisets::new(period, order)?;
        let (rounds, probability) = (law.iterations(), law.sampling_probability);
        let mut phases = Self {
            overlaps,
            rounds,
            period,
            probability,
            order,
            classes,
            logs: Vec::new(),
            weighted: Weighted::new(Vec::new(), BLOCK, 0),
            log_bound: 0.0,
            relative: 0.0,
            gap,
        };
        phases.settle(run)?;
        Ok(phases)
    }

    fn settle(&mut self, run: &Run) -> Result<()> {
        let count = self.classes.count();
        let (order, period) = (real(self.order), real(self.period));
        let blocks: Vec<Vec<f64>> = (0..count.div_ceil(BLOCK))
            .into_par_iter()
            .map(|block| {
                let mut tuple = PhasedTuple { phases: vec![0; self.order], ..PhasedTuple::default() };
                self.classes.write(block * BLOCK, &mut tuple.phases);
                (block * BLOCK..count.min((block + 1) * BLOCK))
                    .map(|_| {
                        run.check()?;
                        let (log, class) = (self.backwards(&mut tuple, false), self.log_class(&tuple.phases));
                        self.classes.advance(&mut tuple.phases);
                        // A class has a logarithm for each replica, and partial sums of these are no larger than this.
                        let size = 1.0 + log.abs() + order * (libm::log(order) + libm::log(period));
                        Ok(log + class + (16.0 + 4.0 * order) * UNIT_ROUNDOFF * size)
                    })
                    .collect()
            })
            .collect::<Result<_>>()?;
        let top = blocks.iter().flatten().copied().fold(f64::NEG_INFINITY, f64::max);
        if !top.is_finite() {
            return Err(Error::Numerics { reason: "a chain of replicas leaves the range of numbers" });
        }
        let size = blocks.iter().flatten().map(|log| log.abs()).fold(0.0, f64::max);
        self.logs = blocks.into_iter().flatten().map(|log| log - top).collect();
        let sums = self.logs.chunks(BLOCK).map(|logs| logs.iter().map(|log| libm::exp(*log)).sum()).collect();
        self.weighted = Weighted::new(sums, BLOCK, 8);
        let log = libm::log(self.weighted.total());
        let rounded = 16.0 * UNIT_ROUNDOFF * (1.0 + size + log.abs());
        self.log_bound = top + log + rounded;
        // These are, for every chance, its slack and the amount by which its factors are raised; and those of the sums
        // above, and of logarithms.
        let chances = real(self.order * self.rounds.div_ceil(self.period));
        let sums = UNIT_ROUNDOFF * (self.weighted.raised(8) + 64.0);
        self.relative = (chances * 2.0 * (self.slack() - 1.0) + sums + 4.0 * rounded) * (1.0 + 1e-6);
        Ok(())
    }

    /// Returns the factor for a chance's value: more than its operations, and those of its factors, can lose.
    fn slack(&self) -> f64 {
        let (order, bands) = (real(self.order), real(self.overlaps.bands()));
        1.0 + 4.0
            * UNIT_ROUNDOFF
            * (16.0 + order * (8.0 + (bands + 8.0) * (1.0 + self.overlaps.product(self.overlaps.bands(), 0))))
    }

    /// Returns ln of the probability of these phases.
    fn log_class(&self, phases: &[usize]) -> f64 {
        let own: f64 = phases
            .chunk_by(|one, other| one == other)
            .flat_map(|alike| 1..=alike.len())
            .zip(1..)
            .map(|(alike, placed): (usize, usize)| (real(placed) / real(alike)).ln())
            .sum();
        let each = real(self.order) * real(self.period).ln();
        own - each
    }

    /// Returns r_i(a) of round i, from 1 on; 0 beyond the bands.
    fn overlap(&self, i: usize, lag: usize) -> f64 {
        let bands = self.overlaps.bands();
        if lag < bands {
            self.overlaps.product(bands.min(self.rounds - i + 1), lag)
        } else {
            0.0
        }
    }

    /// Returns the rounds since the last chance of a replica, if round i is a chance of another one: 0 for replicas of
    /// the same phase.
    fn lag(&self, i: usize, phase: usize) -> usize {
        (i - 1 + self.period - phase) % self.period
    }

    /// Returns ln of the table value for β_1(nobody), and with `keep` stores the tables of the rounds in which somebody
    /// may join, except those of periods that use a later one's.
    fn backwards(&self, tuple: &mut PhasedTuple, keep: bool) -> f64 {
        let size = 1 << self.order;
        tuple.chances = tuple.phases.chunk_by(|one, other| one == other).count();
        let PhasedTuple { phases, tables, scales, alike, growth, buffers, .. } = tuple;
        let Buffers { factors, values, before, exponent: earlier } = buffers;
        (*alike, *growth) = (0, 1.0);
        before.clear();
        tables.clear();
        scales.clear();
        values.clear();
        values.resize(size, 1.0);
        let (slack, mut exponent) = (self.slack(), 0_i32);
        let (join, stay) = (self.probability * slack, (1.0 - self.probability) * slack);
        for i in (1..=self.rounds).rev() {
            let phase = (i - 1) % self.period;
            let own = phases.partition_point(|&one| one < phase)..phases.partition_point(|&one| one <= phase);
            if own.is_empty() && phase > 0 && i > 1 {
                continue;
            }
            // The last replica of the forward order comes first, as time runs backwards.
            for r in own.clone().rev() {
                // This is e^h by which of the other replicas joined last; of the same phase those that come before.
                factors.clear();
                factors.push(1.0);
                for (s, &other) in phases.iter().enumerate() {
                    let counts = s != r && (other != phase || s < r);
                    let factor = if counts { libm::exp(self.overlap(i, self.lag(i, other))) } else { 1.0 };
                    for k in 0..factors.len() {
                        factors.push(factors[k] * factor);
                    }
                }
                let bit = 1 << r;
                for start in (0..size).step_by(2 * bit) {
                    for without in start..start + bit {
                        let value = stay * values[without] + join * factors[without] * values[without | bit];
                        values[without] = value;
                        values[without | bit] = value;
                    }
                }
            }
            let largest = values.iter().copied().fold(0.0, f64::max);
            if largest > 2.0_f64.powi(HIGH) {
                for value in values.iter_mut() {
                    *value *= 2.0_f64.powi(-HIGH);
                }
                exponent += HIGH;
            }
            if keep && !own.is_empty() {
                tables.extend_from_slice(values);
                scales.push(exponent);
            }
            if phase > 0 || i == 1 {
                continue;
            }
            // A period begins here: if its columns are whole, and all periods before would be nearly the same, its
            // tables are used for them too.
            let whole = i + self.period <= self.rounds + 2 - self.overlaps.bands();
            if whole && !before.is_empty() {
                let ratios = values.iter().zip(&*before).map(|(one, other)| one / other);
                let (least, most) =
                    ratios.fold((f64::INFINITY, 0.0_f64), |(least, most), ratio| (least.min(ratio), most.max(ratio)));
                let periods = (i - 1) / self.period;
                if libm::log(most / least) * real(periods) <= self.gap {
                    let own = most * 2.0_f64.powi(exponent - *earlier) * (1.0 + 4.0 * UNIT_ROUNDOFF);
                    (*alike, *growth) = (periods + 1, own);
                    let all = real(*alike) * libm::log(own);
                    let rest = f64::from(*earlier) * std::f64::consts::LN_2;
                    return libm::log(before[0]) + rest + all + 8.0 * UNIT_ROUNDOFF * (1.0 + all.abs());
                }
            }
            before.clear();
            before.extend_from_slice(values);
            *earlier = exponent;
        }
        libm::log(values[0]) + f64::from(exponent) * std::f64::consts::LN_2
    }
}

impl Bounds for Phases {
    fn log_bound(&self) -> f64 {
        self.log_bound
    }

    /// Returns an upper bound on the excess of the computed ln ρ over the exact one, which it never falls below.
    fn relative(&self) -> f64 {
        self.relative
    }

    /// Returns an upper bound on the total variation between the law that tuples are drawn from and π; in each round up
    /// to 2^m sums are compared with a multiple of 2⁻⁵² of the total.
    fn variation(&self) -> f64 {
        let (rounds, terms) = (real(self.rounds), real(1_usize << self.order));
        UNIT_ROUNDOFF * (4.0 * rounds * terms * (terms + 16.0) + self.weighted.variation()) * (1.0 + 1e-6)
    }
}

impl Stepwise for Phases {
    type Tuple = PhasedTuple;
    type At<'a> = usize;

    fn at(&self, i: usize) -> usize {
        i
    }

    /// This is the same for all tuples.
    fn log_weight(&self, _: &PhasedTuple) -> f64 {
        self.log_bound
    }

    fn rounds(&self) -> usize {
        self.rounds
    }

    fn begin(&self, uniforms: (f64, f64), tuple: &mut PhasedTuple) {
        let number = self.weighted.draw(uniforms, |block| {
            let logs = &self.logs[block * BLOCK..self.logs.len().min((block + 1) * BLOCK)];
            logs.iter()
                .scan(0.0, |sum, log| {
                    *sum += libm::exp(*log);
                    Some(*sum)
                })
                .collect()
        });
        tuple.phases.resize(self.order, 0);
        self.classes.write(number, &mut tuple.phases);
        self.backwards(tuple, true);
        (tuple.joined, tuple.passed) = (0, 0);
    }

    fn step(&self, &i: &usize, uniform: f64, tuple: &mut PhasedTuple) -> Option<usize> {
        let PhasedTuple { phases, joined, tables, scales, passed, alike, growth, chances, buffers } = tuple;
        let Buffers { factors, before: period, exponent, .. } = buffers;
        let phase = (i - 1) % self.period;
        let own = phases.partition_point(|&one| one < phase)..phases.partition_point(|&one| one <= phase);
        if own.is_empty() {
            return Some(0);
        }
        let size = 1 << self.order;
        // The tables are stored from the last such round back; those of the first periods are one period's.
        let early = *alike * *chances;
        let number = if *passed < early {
            scales.len() - 1 - *passed % *chances
        } else {
            scales.len() - 1 - usize::from(early > 0) * *chances - (*passed - early)
        };
        let table = |number: usize| (&tables[number * size..][..size], scales[number]);
        let (before, scale) = table(number);
        let total = if *passed < early && *passed % *chances == 0 {
            *growth * period[*joined] * 2.0_f64.powi(*exponent - scale)
        } else {
            before[*joined]
        };
        let after = number.checked_sub(1).map(table);
        *passed += 1;
        // This is e^{k·h + k(k−1)/2·r(0)}·p^k (1 − p)^{…} for k that join.
        let earlier = phases.iter().enumerate().filter(|(s, _)| !own.contains(s) && *joined >> s & 1 == 1);
        let field: f64 = earlier.map(|(_, &other)| self.overlap(i, self.lag(i, other))).sum();
        let (count, rest) = (own.len(), *joined & !(((1 << own.len()) - 1) << own.start));
        factors.clear();
        // It is rounded up, by less than the tables are for as many chances.
        let up = 1.0 + 0.5 * (self.slack() - 1.0);
        for k in 0..=count {
            let (many, pairs) = (real(k), real(k * k.saturating_sub(1) / 2));
            let chances = (0..count).map(|one| if one < k { self.probability } else { 1.0 - self.probability });
            let each = chances.map(|chance| chance * up).product::<f64>();
            factors.push(each * libm::exp(many * field + pairs * self.overlap(i, 0)));
        }
        let mut sum = 0.0;
        for subset in 0..1_usize << count {
            let state = rest | subset << own.start;
            let value =
                after.map_or(2.0_f64.powi(-scale), |(values, other)| values[state] * 2.0_f64.powi(other - scale));
            sum += factors[subset.count_ones() as usize] * value;
            if sum >= uniform * total {
                *joined = state;
                return Some(subset.count_ones() as usize);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::{PhasedTuple, Phases};
    use crate::participation::renewal::Renewal;
    use crate::replicas::enumeration::{agree, enumerated, from_random_parts, inner, uniforms};
    use crate::replicas::stepwise::{Bounds, Stepwise};
    use crate::run::Run;
    use crate::special::real;

    #[test]
    fn tuples_and_moments_are_those_of_all_tuples() {
        let columns: [&[f64]; 4] = [&[0.8], &[0.7, 0.5], &[0.6, 0.0, 0.5], &[0.9, 0.6, 0.4]];
        for (period, p, n, order) in [(1, 0.3, 3, 4), (2, 0.4, 4, 3), (3, 0.6, 5, 3), (3, 0.2, 7, 2), (2, 1.0, 5, 3)] {
            let law = Renewal::with_phases(period, p, vec![1.0; n]).expect("valid");
            for coefficients in columns.iter().filter(|c| c.len() <= period) {
                let product = |one: &[usize], other: &[usize]| inner(one, other, coefficients);
                let (log, expected) = enumerated(&from_random_parts(period, p, n), product, order);
                let phases = Phases::new(&law, coefficients, order, &Run::default()).expect("valid");
                assert!((phases.log_bound() - log).abs() <= 1e-11 * (1.0 + log), "{} {log}", phases.log_bound());
                assert!(phases.log_bound() >= log - 1e-13 * (1.0 + log));
                assert!(phases.relative() < 1e-9 && phases.variation() < 1e-8);
                let (mut draw, mut tuple) = (uniforms(3), PhasedTuple::default());
                agree(phases.log_bound() + 1e-12, (log, &expected), || {
                    phases.begin((draw(), draw()), &mut tuple);
                    let mut joined = vec![0; n];
                    for i in 1..=n {
                        match phases.step(&i, draw(), &mut tuple) {
                            Some(count) => joined[i - 1] = count,
                            None => return (joined, f64::NEG_INFINITY),
                        }
                    }
                    (joined, phases.log_bound())
                });
            }
        }
    }

    #[test]
    fn periods_that_are_alike_share_their_tables() {
        let (period, p, n, order, columns) = (4, 0.05, 203, 3, [0.5; 4]);
        let law = Renewal::with_phases(period, p, vec![1.0; n]).expect("valid");
        let made = |gap| Phases::with_gap(&law, &columns, order, gap, &Run::default()).expect("valid");
        let (exact, shared) = (made(-1.0), made(1e9));
        let lost = shared.log_bound() - exact.log_bound();
        assert!(lost > 1e-3 && lost <= 2.0, "{lost}");
        // This counts how many join each round on average, and how many tuples are given up.
        let drawn = 40_000;
        let seen = |phases: &Phases| {
            let (mut draw, mut tuple, mut given_up, mut seen) =
                (uniforms(5), PhasedTuple::default(), 0.0, vec![0.0; n]);
            let mut alike = 0;
            for _ in 0..drawn {
                phases.begin((draw(), draw()), &mut tuple);
                alike += tuple.alike;
                let joined: Option<Vec<usize>> = (1..=n).map(|i| phases.step(&i, draw(), &mut tuple)).collect();
                match joined {
                    Some(joined) => seen.iter_mut().zip(joined).for_each(|(sum, count)| *sum += real(count)),
                    None => given_up += 1.0,
                }
            }
            for sum in &mut seen {
                *sum /= f64::from(drawn) - given_up;
            }
            (given_up / f64::from(drawn), seen, alike)
        };
        let ((none, expected, all), (given_up, found, alike)) = (seen(&exact), seen(&shared));
        assert!(none < 1e-9 && all == 0 && alike > 30 * 40_000, "{none} {all} {alike}");
        assert!((given_up - (1.0 - (-lost).exp())).abs() < 4.0 * (lost / f64::from(drawn)).sqrt(), "{given_up} {lost}");
        let error = 5.0 * (6.0 / f64::from(drawn)).sqrt();
        assert!(expected.iter().zip(&found).all(|(one, other)| (one - other).abs() < error));
    }

    #[test]
    fn long_runs_stay_in_range() {
        // With one phase, everybody joins in nearly every round: Z_m = Π E_R f_i^m, far above all doubles.
        let (n, p, square, order) = (400, 0.9, 2.0_f64, 3);
        let law = Renewal::with_phases(1, p, vec![square; n]).expect("valid");
        let phases = Phases::new(&law, &[square.sqrt()], order, &Run::default()).expect("valid");
        let each: f64 = [(0, 1.0), (1, 3.0), (2, 3.0), (3, 1.0)]
            .iter()
            .map(|&(j, ways): &(i32, f64)| {
                ways * p.powi(j) * (1.0 - p).powi(3 - j) * (0.5 * f64::from(j * (j - 1)) * square).exp()
            })
            .sum();
        let log = real(n) * each.ln();
        assert!(log > 800.0 && (phases.log_bound() / log - 1.0).abs() < 1e-11, "{} {log}", phases.log_bound());
        let (mut draw, mut tuple) = (uniforms(3), PhasedTuple::default());
        phases.begin((draw(), draw()), &mut tuple);
        assert!((1..=n).all(|i| phases.step(&i, draw(), &mut tuple).is_some()));
    }
}

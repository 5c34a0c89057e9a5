//! Tuples of m replicas drawn from (nearly) the law that f^m has, and the bound on their weights.
//!
//! **What is drawn.** By the head of [`super::rounds`], f^m R is a mixture of Gaussians: of N(Σ_r Cx^r, I) with the
//! weights Π_r w_{x^r}·e^{Σ_{r<s} ⟨Cx^r, Cx^s⟩} of the tuples (x¹, …, x^m). Draw a tuple with probability π(x¹…x^m), y
//! = Σ_r Cx^r + N(0, I), and let ρ = Π_r w_{x^r} e^{Σ ⟨Cx^r, Cx^s⟩}/π(x¹…x^m). Then for any g ≥ 0
//!
//! `E ρ g(y)/f(y)^m = E_R g`, and with g = (f − e^ε)₊: `E V = δ_remove(ε)`, V = ρ (f − e^ε)₊/f^m ≤ sup ρ·c_m
//! e^{−(m−1)ε}
//!
//! by the inequality of [`super`], if π leaves no tuple out. The method below gives up some tuples while they are
//! drawn, with probabilities that are part of π; a tuple that was given up is a sample with V = 0. Where no more than K
//! replicas may be busy at once, tuples are left out: E V is δ_remove(ε) minus the part that [`super::left_out`]
//! bounds.
//!
//! **How.** Take any positive functions v_1, …, v_n of the states, v_{n+1} = 1, and numbers T̃_i(s) ≥ (T_i v_{i+1})(s),
//! T_i the step of round i. Start in s with probability start(s) v_1(s)/Σ start·v_1. In round i let j free replicas
//! join with probability C(F, j) p^j (1−p)^{F−j} e^{j(j−1)r_i(0)/2 + jh}·v_{i+1}(s′)/T̃_i(s); with the remaining
//! probability the tuple is given up. All v_i in between cancel:
//!
//! `ρ = Σ_s start(s) v_1(s) · Π_i T̃_i(s_i)/v_i(s_i)`.
//!
//! * In the last rounds v_i is a table, T_i v_{i+1} rounded up: T̃_i = v_i up to a power of two. The same holds in the
//!   first rounds of a warm start, if the tables fit.
//! * In all rounds between, v is one table, and T̃ = λ̄v, λ̄ = max Tv/v, as in [`super::chain`]. ρ remains a constant.
//! * If not all tables of the last rounds fit, T̃_i = T_i v_{i+1} itself in the one round between the tables and v, and
//!   ρ has the factor (T_i v_{i+1})(s)/v(s), bounded by its maximum over all states.
//! * If those of the first rounds do not fit, replicas are drawn as if columns from before the run were there: by e^{Σ
//!   r_i(a)} over the ages a ≥ i too often, by which ρ is divided. ρ only gets smaller.
//!
//! **Rounding.** The values of v are single-precision numbers, used exactly. Terms are rounded up, so that the computed
//! ρ is at least the exact one; [`Tuples::relative`] bounds how much larger its logarithm is. Σ start·v, λ̄ and the
//! maximum are rounded up. [`Tuples::variation`] bounds how much partial sums and uniform numbers on a grid of 2⁻⁵²
//! change the law.

use rayon::prelude::*;

use crate::error::Result;
use crate::participation::renewal::Renewal;
use crate::replicas::chain::Chain;
use crate::replicas::overlaps::Overlaps;
use crate::replicas::path::Path;
use crate::replicas::rounds;
use crate::replicas::steps::Stationary;
use crate::replicas::stepwise::{Bounds, Stepwise};
use crate::replicas::tables::{At, Tables};
use crate::run::Run;
use crate::special::{real, UNIT_ROUNDOFF};

/// The number of states in a block; within a block, the start is drawn by looking at each state.
const BLOCK: usize = 256;
/// The number of last states whose sums are kept: most tuples start in these, as most replicas are free.
const KEPT: usize = 1 << 17;

/// Tuples of m replicas of b-min-sep sampling.
#[derive(Debug)]
pub struct Tuples {
    tables: Tables,
    overlaps: Overlaps,
    start: Option<Start>,
    /// ln ρ without the factor of the round between the tables, and a bound on ln ρ.
    log_weight: f64,
    log_bound: f64,
    /// The amount by which the logarithm of ρ was rounded up.
    rounded: f64,
}

/// The law of the first state: cumulative sums of start·v over blocks of states; for each of the last states the sums
/// over its block up to it; and the probabilities of an age and of a free replica.
#[derive(Debug)]
struct Start {
    cumulative: Vec<f64>,
    kept: Vec<f64>,
    busy: f64,
    free: f64,
}

/// The data of a round, for all tuples that pass it.
#[derive(Debug, Clone, Copy)]
pub struct RoundStep<'a> {
    i: usize,
    at: At<'a>,
}

/// The state of a tuple that is being drawn.
#[derive(Debug, Clone, Default)]
pub struct Tuple(Path);

impl Tuples {
    /// Creates the tuples of m = `order` replicas, with tables that have at most `room` numbers in addition to those of
    /// the computation, or the numbers of one table.
    ///
    /// * Memory: 4 bytes for each of these, and up to 24 bytes for each state; where tuples are drawn also 8 for each
    ///   of the (m + 1)b classes of states of each table. Time: as [`super::aged::log_moment`].
    /// * Guarantee: see the head of this file. The result does not depend on the number of threads.
    ///
    /// # Errors
    /// As [`super::aged::log_moment`]; [`Error::Numerics`](crate::error::Error::Numerics) where the tables of a short
    /// run do not fit, and where a chain leaves the range of numbers.
    pub fn new(
        law: &Renewal,
        coefficients: &[f64],
        (order, most_busy): (usize, Option<usize>),
        room: usize,
        run: &Run,
    ) -> Result<Self> {
        let (steps, overlaps) = rounds::steps(law, coefficients, order, most_busy)?;
        let (tables, first) = Tables::new(steps, room, run)?;
        let start = tables.steps.start.map(|law| Start::new(&tables.steps.chain, law, &first, run)).transpose()?;
        let total = start.as_ref().map_or(first.last(), |start| start.cumulative.last()).copied().unwrap_or(0.0);
        // Both sums of logarithms have an error of a few units of rounding of their terms.
        let (total, factors, bridge) = (libm::log(total), tables.log_growth(), libm::log(tables.most_bridged));
        let size = total.abs() + factors.iter().map(|log| log.abs()).sum::<f64>();
        let rounded = 16.0 * UNIT_ROUNDOFF * (1.0 + size);
        let log_weight = total + factors.iter().sum::<f64>() + rounded;
        let log_bound = log_weight + bridge + 4.0 * UNIT_ROUNDOFF * (1.0 + size + bridge.abs());
        Ok(Self { tables, overlaps, start, log_weight, log_bound, rounded })
    }

    /// Returns m, the number of replicas.
    pub fn order(&self) -> usize {
        self.tables.steps.chain.order
    }

    /// Returns Σ r_i(a) over the ages of replicas that would have joined before the run.
    fn missing(&self, i: usize, busy: &[usize]) -> f64 {
        let overlaps = &self.overlaps;
        let before = busy.iter().map(|&kind| kind + 1).filter(|&age| age >= i && age < overlaps.bands());
        before.map(|age| overlaps.product(overlaps.bands(), age)).sum()
    }
}

impl Bounds for Tuples {
    fn prepare(&self, run: &Run) -> Result<()> {
        self.tables.prepare(run)
    }

    fn log_bound(&self) -> f64 {
        self.log_bound
    }

    /// Returns an upper bound on the excess of the computed ln ρ over the exact one, which it never falls below.
    ///
    /// With m replicas: a round's weight has at most m² + 4m + 8 factors and terms, and was raised by 4u for each
    /// ([`Chain::slack`]), as those for joining were by their own number of at most 4m + 6. Inner products are raised
    /// by 4u for each band and are in exponents, which are raised as well: of a tuple's at most m⌈n/b⌉ participations
    /// each has at most m others, whose inner products are at most r(0). Logarithms of weights below all doubles have
    /// an error of 16u of their size. The sum over the first states has [`BLOCK`] terms and as many as there are
    /// blocks. There is no bound where weights themselves are below all doubles.
    fn relative(&self) -> f64 {
        let chain = &self.tables.steps.chain;
        let least = self.start.as_ref().map_or(1.0, |start| start.busy.min(start.free));
        if (real(chain.order)) * libm::log(least) < -650.0 {
            return f64::INFINITY;
        }
        let (n, m, bands, b) =
            (real(self.tables.steps.count), real(chain.order), real(self.overlaps.bands()), real(chain.free) + 1.0);
        let blocks = real(BLOCK + self.start.as_ref().map_or(0, |start| start.cumulative.len()));
        let largest = self.overlaps.product(self.overlaps.bands(), 0);
        let participations = m * (n / b).ceil();
        let rounds = n * (4.0 * (m * m + 8.0 * m + 20.0) + 16.0 * self.tables.steps.logarithms());
        let joined = participations * m * largest * (8.0 * bands + 16.0);
        (UNIT_ROUNDOFF * (rounds + joined + 4.0 * blocks + 64.0) + 2.0 * self.rounded) * (1.0 + 1e-6)
    }

    /// Returns an upper bound on the total variation between the law that tuples are drawn from and π.
    ///
    /// In each round at most m + 1 partial sums, each with an error of at most m + 4 units of rounding of the total,
    /// are compared with a multiple of 2⁻⁵² of it; in the first one those of the blocks and of the states of one.
    fn variation(&self) -> f64 {
        let (n, m) = (real(self.tables.steps.count), real(self.tables.steps.chain.order));
        let (blocks, block) = (real(self.start.as_ref().map_or(0, |start| start.cumulative.len())), real(BLOCK));
        let first = 4.0 * (blocks * (blocks + 8.0) + block * (block + 8.0));
        UNIT_ROUNDOFF * (4.0 * n * (m + 1.0) * (m + 4.0) + first) * (1.0 + 1e-6)
    }
}

impl Stepwise for Tuples {
    type Tuple = Tuple;
    type At<'a> = RoundStep<'a>;

    fn rounds(&self) -> usize {
        self.tables.steps.count
    }

    fn begin(&self, (block, within): (f64, f64), tuple: &mut Tuple) {
        let (chain, Tuple(path)) = (&self.tables.steps.chain, tuple);
        let value = |number| self.tables.value(1, number);
        path.begin(chain, |kinds| match &self.start {
            Some(start) => value(start.draw(chain, (block, within), value, kinds)),
            None => value(chain.multisets.count() - 1),
        });
    }

    fn at(&self, i: usize) -> RoundStep<'_> {
        RoundStep { i, at: self.tables.at(i) }
    }

    #[inline]
    fn step(&self, round: &RoundStep, uniform: f64, Tuple(path): &mut Tuple) -> Option<usize> {
        let chain = &self.tables.steps.chain;
        if path.nobody(chain, &round.at, uniform) {
            path.pass();
            return Some(0);
        }
        let (joined, value) = path.choose(chain, &round.at, uniform)?;
        if self.tables.steps.extended && joined > 0 {
            let many = real(joined);
            path.log_factor -= many * self.missing(round.i, path.kinds());
        }
        path.follow(chain, (joined, value));
        Some(joined)
    }

    fn log_weight(&self, tuple: &Tuple) -> f64 {
        self.log_weight + tuple.0.log_factor
    }
}

impl Start {
    fn new(chain: &Chain, law: Stationary, values: &[f64], run: &Run) -> Result<Self> {
        let Stationary { busy, free } = law;
        let mut start = Self { cumulative: Vec::new(), kept: Vec::new(), busy, free };
        let blocks = values.len().div_ceil(BLOCK);
        let sums: Vec<f64> = (0..blocks)
            .into_par_iter()
            .map(|block| {
                run.check()?;
                let mut sums = [0.0; BLOCK];
                Ok(start.sum(chain, block, |number| values[number], &mut sums).last().copied().unwrap_or(0.0))
            })
            .collect::<Result<_>>()?;
        let up = 1.0 + 4.0 * real(BLOCK + sums.len() + 4 * chain.order + 8) * UNIT_ROUNDOFF;
        let mut sum = 0.0;
        let cumulative = sums.into_iter().map(|block| {
            sum += block * up;
            sum
        });
        start.cumulative = cumulative.collect();
        for block in blocks - blocks.min(KEPT / BLOCK)..blocks {
            let mut sums = [0.0; BLOCK];
            start.kept.extend_from_slice(start.sum(chain, block, |number| values[number], &mut sums));
        }
        Ok(start)
    }

    /// Returns sums of start·v over the states of a block up to each of them.
    fn sum<'a>(
        &self,
        chain: &Chain,
        block: usize,
        value: impl Fn(usize) -> f64,
        sums: &'a mut [f64; BLOCK],
    ) -> &'a [f64] {
        let first = block * BLOCK;
        let sums = &mut sums[..BLOCK.min(chain.multisets.count() - first)];
        let mut kinds = vec![0; chain.most_busy];
        chain.multisets.write(first, &mut kinds);
        let mut sum = 0.0;
        for (number, upto) in (first..).zip(&mut *sums) {
            sum += chain.multinomial(&kinds, self.busy, self.free) * value(number);
            *upto = sum;
            chain.multisets.advance(&mut kinds);
        }
        sums
    }

    /// Returns the number of a state, and writes the state itself, by two uniform numbers.
    fn draw(
        &self,
        chain: &Chain,
        (block, within): (f64, f64),
        value: impl Fn(usize) -> f64,
        kinds: &mut [usize],
    ) -> usize {
        let total = self.cumulative.last().copied().unwrap_or(0.0);
        let chosen = self.cumulative.partition_point(|sum| *sum < block * total).min(self.cumulative.len() - 1);
        let first = chosen * BLOCK;
        let mut computed = [0.0; BLOCK];
        let sums = match first.checked_sub(chain.multisets.count() - self.kept.len()) {
            Some(place) => &self.kept[place..self.kept.len().min(place + BLOCK)],
            None => self.sum(chain, chosen, value, &mut computed),
        };
        let target = within * sums[sums.len() - 1];
        let chosen = first + sums.partition_point(|upto| *upto < target).min(sums.len() - 1);
        chain.multisets.write(chosen, kinds);
        chosen
    }
}

#[cfg(test)]
mod tests {
    use super::{At, RoundStep, Tuple, Tuples};
    use crate::participation::renewal::Renewal;
    use crate::replicas::aged::log_moment;
    use crate::replicas::enumeration::mean_with_error as mean;
    use crate::replicas::enumeration::{participations, uniforms};
    use crate::replicas::stepwise::{Bounds, Stepwise};
    use crate::replicas::{Replicas, GAP};
    use crate::run::Run;

    fn law(b: usize, p: f64, warm: bool, n: usize) -> Renewal {
        Renewal::new(b, p, warm, vec![1.0; n]).expect("valid")
    }

    /// Returns the participations of a tuple, and ln ρ; −∞ if it is given up.
    fn one_of(tuples: &Tuples, rounds: usize, draw: &mut impl FnMut() -> f64) -> (Vec<usize>, f64) {
        one_by_steps(tuples, rounds, |i| tuples.at(i), draw)
    }

    fn one_by_steps<'a>(
        tuples: &Tuples,
        rounds: usize,
        at: impl Fn(usize) -> RoundStep<'a>,
        draw: &mut impl FnMut() -> f64,
    ) -> (Vec<usize>, f64) {
        let mut tuple = Tuple::default();
        tuples.begin((draw(), draw()), &mut tuple);
        let mut joined = vec![0; rounds];
        for i in 1..=rounds {
            match tuples.step(&at(i), draw(), &mut tuple) {
                Some(j) => joined[i - 1] = j,
                None => return (joined, f64::NEG_INFINITY),
            }
        }
        (joined, tuples.log_weight(&tuple))
    }

    #[test]
    fn weights_are_bounded_and_add_up_to_the_moment() {
        let columns: [&[f64]; 3] = [&[0.7], &[0.4, 0.6], &[0.5, 0.3, 0.2, 0.1]];
        let (mut draw, mut checked) = (uniforms(1), 0);
        for (b, n, warm, p) in
            [(1, 5, true, 0.3), (2, 9, true, 0.6), (4, 60, true, 0.1), (4, 400, false, 0.05), (5, 3, true, 1.0)]
        {
            for coefficients in columns.iter().filter(|c| c.len() <= b) {
                for order in [2, 3, 5] {
                    let exact =
                        log_moment(&law(b, p, warm, n), coefficients, Replicas::exact(order), GAP, &Run::default())
                            .expect("valid")
                            .upper;
                    for room in [usize::MAX, 400, 1] {
                        let run = Run::default();
                        let Ok(tuples) = Tuples::new(&law(b, p, warm, n), coefficients, (order, None), room, &run)
                        else {
                            assert!(room < usize::MAX && n < 2 * coefficients.len() + 2, "{b} {n} {room}");
                            continue;
                        };
                        let logs: Vec<f64> = (0..4000).map(|_| one_of(&tuples, n, &mut draw).1).collect();
                        assert!(logs.iter().all(|log| *log <= tuples.log_bound()), "{b} {n} {order} {room}");
                        let (ratio, error) = mean(&logs.iter().map(|log| (log - exact).exp()).collect::<Vec<_>>());
                        if tuples.log_bound() > exact + 3.0 {
                            // Too few of them pass to compare means.
                            assert!(room < usize::MAX);
                            continue;
                        }
                        checked += 1;
                        // Of some 100 cases the worst differs by some three standard errors; the moment itself may be
                        // 0.1 % too large.
                        assert!((ratio - 1.0).abs() <= 4.0 * error + 2e-3, "{b} {n} {order} {room}: {ratio} {error}");
                        assert!(tuples.log_bound() >= exact - crate::replicas::tables::GAP, "{b} {n} {order} {room}");
                        if room == usize::MAX {
                            assert!(
                                tuples.log_bound() <= exact + 2.0 * crate::replicas::tables::GAP,
                                "{b} {n} {order}"
                            );
                        }
                    }
                }
            }
        }
        assert!(checked > 80, "{checked}");
    }

    #[test]
    fn bounds_on_who_joins_change_nothing() {
        for (b, n, warm, p, order) in
            // The last two have more states than one task of the pool computes, and more than have their sums kept.
            [
                (1, 6, true, 0.3, 3),
                (2, 9, true, 0.6, 4),
                (5, 300, true, 0.04, 6),
                (7, 40, false, 0.1, 3),
                (16, 60, true, 0.02, 5),
                (20, 25, true, 0.02, 6),
            ]
        {
            let coefficients = [0.6, 0.3, 0.2, 0.2];
            let (law, coefficients) = (law(b, p, warm, n), &coefficients[..b.min(4)]);
            for room in [usize::MAX, 300, 1] {
                let Ok(tuples) = Tuples::new(&law, coefficients, (order, None), room, &Run::default()) else {
                    continue;
                };
                tuples.prepare(&Run::default()).expect("no limit");
                let (mut draw, mut same) = (uniforms(3), uniforms(3));
                let plain = |i| RoundStep { i, at: At { nobody: &[], ..tuples.at(i).at } };
                for _ in 0..1000 {
                    let (joined, log) = one_of(&tuples, n, &mut draw);
                    let (plainly, other) = one_by_steps(&tuples, n, plain, &mut same);
                    assert_eq!((joined, log.to_bits()), (plainly, other.to_bits()), "{b} {n} {room}");
                }
                assert!((1..=n).any(|i| tuples.at(i).at.nobody.iter().any(|least| *least > 0.1)), "{b} {n} {room}");
            }
        }
    }

    #[test]
    fn participations_have_the_law_of_the_moment() {
        // The weighted numbers of replicas that join each round are compared with those over all tuples of patterns.
        let (b, n, p, order) = (2, 4, 0.35, 3);
        let coefficients = [0.9, 0.5];
        for room in [usize::MAX, 8] {
            let tuples =
                Tuples::new(&law(b, p, true, n), &coefficients, (order, None), room, &Run::default()).expect("valid");
            let mut draw = uniforms(2);
            let mut seen = vec![vec![0.0; order + 1]; n];
            let drawn = 20_000;
            let mut total = 0.0;
            for _ in 0..drawn {
                let (joined, log) = one_of(&tuples, n, &mut draw);
                let weight = log.exp();
                total += weight;
                for (round, j) in joined.into_iter().enumerate() {
                    seen[round][j] += weight;
                }
            }
            let expected = participations(&coefficients, (b, p, true, n), order);
            for (round, counts) in expected.iter().enumerate() {
                for (j, share) in counts.iter().enumerate() {
                    assert!(
                        (seen[round][j] / total - share).abs() < 0.015,
                        "{room} {round} {j}: {} {share}",
                        seen[round][j] / total
                    );
                }
            }
        }
    }
}

//! Tuples of m replicas of b-min-sep sampling, drawn by blocks of rounds: from a majorant of the law that f^m has.
//!
//! [`super::tuples`] proves that samples of y = Σ_r Cx^r + N(0, I) with the weight ρ = Π_r w_{x^r} e^{S}/π of their
//! tuple have the mean δ_remove(ε), whatever positive π the tuples are drawn with, and how functions of the states give
//! π. The same is done here, with the terms of [`super::blocks`]. In step t, j of the F replicas that may join do, any
//! j of them with the same probability; and those that joined the block before, N_1 of them, are placed in it, with the
//! probabilities of the terms of ĝ(N_1; N_2, j), one after another in the order in which they joined, which is random.
//! So with a tuple's own w, S and J
//!
//! `ln ρ = ln A^m v_1(all free) + Σ_t ln T̃_t/v_t + Σ_r ln (w/w̄) + (S − J)`,
//!
//! and the last two terms are at most 0. A tuple with a replica that returns too early, or with a round after the last
//! one, has w = 0: it is given up.

use crate::error::Result;
use crate::participation::renewal::Renewal;
use crate::replicas::blocks::{self, Placements};
use crate::replicas::chain::youngest;
use crate::replicas::path::Path;
use crate::replicas::stepwise::Bounds;
use crate::replicas::tables::{At, Tables};
use crate::run::Run;
use crate::special::{real, UNIT_ROUNDOFF};

/// Tuples of m replicas, drawn by blocks of rounds.
#[derive(Debug)]
pub struct BlockTuples {
    tables: Tables,
    blocks: Placements,
    /// n and b.
    rounds: usize,
    separation: usize,
    warm: bool,
    /// ln (1 − p).
    log_stay: f64,
    /// ln ρ without the factors that depend on the tuple, and a bound on ln ρ.
    log_weight: f64,
    log_bound: f64,
    /// The amount by which the logarithm of ρ was rounded up.
    rounded: f64,
}

/// The state of a tuple that is being drawn, and the participations of its replicas.
#[derive(Debug, Clone, Default)]
pub struct BlockTuple {
    path: Path,
    /// The replica of each kind of the state.
    who: Vec<usize>,
    replicas: Vec<Replica>,
    /// The replicas that were placed so few blocks ago that others may still depend on it, in ascending order.
    recent: Vec<usize>,
    /// S − J so far.
    gained: Carried,
}

/// The first and the last participation of one replica.
#[derive(Debug, Clone, Copy, Default)]
struct Replica {
    first: usize,
    last: Option<Place>,
}

/// A round, counted from 0, and the block that it belongs to.
#[derive(Debug, Clone, Copy)]
struct Place {
    round: usize,
    block: usize,
}

/// The number of replicas that join a step, and the v of the next state; if nobody joins, v is not needed.
pub type Chosen = (usize, f64);

/// Step t, for all tuples that take it.
#[derive(Debug, Clone, Copy)]
pub struct BlockStep<'a> {
    t: usize,
    at: At<'a>,
}

impl BlockTuples {
    /// Creates the tuples of m = `order` replicas in blocks of `length` rounds; the rest is as in
    /// [`super::tuples::Tuples::new`].
    ///
    /// # Errors
    /// As [`super::tuples::Tuples::new`], and for blocks that the law does not have.
    pub fn new(
        law: &Renewal,
        coefficients: &[f64],
        (order, length): (usize, usize),
        room: usize,
        run: &Run,
    ) -> Result<Self> {
        let (steps, blocks) = blocks::steps(law, coefficients, order, length)?;
        let (tables, first) = Tables::new(steps, room, run)?;
        let total = first.last().copied().unwrap_or(0.0);
        let (own, between) = (tables.log_growth(), libm::log(tables.most_bridged));
        let terms = [libm::log(total), own[0], own[1], tables.steps.log_constant];
        let size: f64 = terms.iter().map(|term| term.abs()).sum();
        let rounded = 16.0 * UNIT_ROUNDOFF * (1.0 + size);
        let log_weight = terms.iter().sum::<f64>() + rounded;
        let log_bound = log_weight + between + 4.0 * UNIT_ROUNDOFF * (1.0 + size + between.abs());
        Ok(Self {
            tables,
            blocks,
            rounds: law.iterations(),
            separation: law.min_separation,
            warm: law.warm,
            log_stay: libm::log1p(-law.sampling_probability),
            log_weight,
            log_bound,
            rounded,
        })
    }

    /// Returns m, the number of replicas.
    pub fn order(&self) -> usize {
        self.tables.steps.chain.order
    }

    /// Returns the number of steps of a tuple: one for each block, and one more.
    pub fn steps(&self) -> usize {
        self.tables.steps.count
    }

    /// Returns an upper bound on the number of participations of a tuple that is not given up.
    fn participations(&self) -> f64 {
        real(self.order() * self.rounds.div_ceil(self.separation))
    }

    /// Returns a bound on the error of the sums of S − J and of ln (w/w̄).
    ///
    /// Each participation has two inner products for each replica, none larger than 2M, M the largest of r and α, and
    /// each difference is rounded three times; the rounding errors of the sum are accumulated separately, and added at
    /// the end.
    fn summed(&self) -> f64 {
        let (m, b) = (real(self.order()), real(self.separation));
        let pairs = self.participations() * 2.0 * m * 2.0 * self.blocks.largest();
        8.0 * UNIT_ROUNDOFF * (pairs + 2.0 * m * b * self.log_stay.abs() + self.log_bound.abs() + 1.0)
    }

    /// Initialises a tuple before its first step.
    pub fn begin(&self, tuple: &mut BlockTuple) {
        let BlockTuple { path, who, replicas, recent, gained } = tuple;
        let chain = &self.tables.steps.chain;
        path.begin(chain, |_| self.tables.value(1, chain.multisets.count() - 1));
        who.clear();
        who.extend(0..self.order());
        replicas.clear();
        replicas.resize(self.order(), Replica::default());
        recent.clear();
        *gained = Carried::default();
    }

    /// Returns step t, from 1 on: block t, or the closing step of the run.
    pub fn at(&self, t: usize) -> BlockStep<'_> {
        BlockStep { t, at: self.tables.at(t) }
    }

    /// Returns whether a quick check with this uniform number in (0, 1] shows that nobody joins and nobody is to be
    /// placed; this step is then done.
    #[inline]
    pub fn pass(&self, stage: &BlockStep, uniform: f64, tuple: &mut BlockTuple) -> bool {
        let passed = !tuple.path.young() && tuple.path.nobody(&self.tables.steps.chain, &stage.at, uniform);
        if passed {
            tuple.path.pass();
        }
        passed
    }

    /// Returns how many replicas join, and the v of the next state, by a uniform number in (0, 1]; `None` if the tuple
    /// is given up.
    #[inline]
    pub fn choose(&self, stage: &BlockStep, uniform: f64, tuple: &mut BlockTuple) -> Option<Chosen> {
        let chain = &self.tables.steps.chain;
        if tuple.path.nobody(chain, &stage.at, uniform) {
            return Some((0, f64::NAN));
        }
        tuple.path.choose(chain, &stage.at, uniform)
    }

    /// Returns how many more uniform numbers this step takes: one to place the replicas that joined the block before,
    /// and one for each that joins.
    #[inline]
    pub fn needed(&self, tuple: &BlockTuple, (joined, _): Chosen) -> usize {
        usize::from(tuple.path.young()) + joined
    }

    /// Places the replicas that joined the block before, and lets others join this one; returns whether the tuple
    /// continues. `uniform(k)` are numbers in (0, 1], and `placed` receives every round with participations, counted
    /// from 0, and their number, in ascending order.
    #[inline]
    pub fn step(
        &self,
        stage: &BlockStep,
        chosen: Chosen,
        tuple: &mut BlockTuple,
        uniform: impl Fn(usize) -> f64,
        placed: impl FnMut(usize, usize),
    ) -> bool {
        let chain = &self.tables.steps.chain;
        let (joined, _) = chosen;
        let young = tuple.path.young();
        if young && !self.place(stage, joined, tuple, uniform(0), placed) {
            return false;
        }
        if joined == 0 {
            // Replicas that may join next are at the end, so no position changes.
            tuple.path.follow(chain, chosen);
            return true;
        }
        let waiting = tuple.path.waiting();
        for k in 0..joined {
            let left = chain.order - waiting - k;
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
            // The index is a number from 0 to the order.
            let one = ((uniform(usize::from(young) + k) * real(left)) as usize).min(left - 1);
            tuple.who.swap(waiting + k, waiting + k + one);
        }
        tuple.who[..waiting + joined].rotate_right(joined);
        tuple.path.follow(chain, chosen);
        true
    }

    /// Places the replicas that joined the block before; `joined` replicas join after them. Returns false if a replica
    /// returns too early, or too late.
    fn place(
        &self,
        stage: &BlockStep,
        joined: usize,
        tuple: &mut BlockTuple,
        uniform: f64,
        mut placed: impl FnMut(usize, usize),
    ) -> bool {
        let (order, blocks) = (self.order(), &self.blocks);
        let (young, before) = youngest(tuple.path.kinds());
        let partial = blocks.partial(order, young, before, joined);
        let total = stage.at.factors.near.as_ref().map_or(0.0, |near| near.joining((young, before))[joined]);
        let target = uniform * total;
        let number = partial.partition_point(|sum| *sum < target);
        if number == partial.len() {
            return false;
        }
        // Placements are counted from 0, steps from 1.
        let (block, mut first) = (stage.t - 2, 0);
        let counts = blocks.placement(young, number);
        let BlockTuple { replicas, recent, .. } = tuple;
        recent.retain(|&one| replicas[one].last.is_some_and(|last| block - last.block <= blocks.far.len() + 1));
        for (position, &count) in counts.iter().enumerate().filter(|(_, &count)| count > 0) {
            let (round, count) = (block * blocks.length + position, usize::from(count));
            if round >= self.rounds {
                return false;
            }
            placed(round, count);
            for k in first..first + count {
                if !self.gain(Place { round, block }, (position, counts), k, tuple) {
                    return false;
                }
            }
            first += count;
        }
        // This is updated only now, because pairs of replicas within the block were counted as such.
        first = 0;
        for (position, &count) in counts.iter().enumerate() {
            let round = block * blocks.length + position;
            for &one in &tuple.who[first..first + usize::from(count)] {
                let replica = &mut tuple.replicas[one];
                if replica.last.is_none() {
                    replica.first = round;
                }
                replica.last = Some(Place { round, block });
                if let Err(place) = tuple.recent.binary_search(&one) {
                    tuple.recent.insert(place, one);
                }
            }
            first += usize::from(count);
        }
        true
    }

    /// Adds the contribution to S − J of a participation of the k-th replica that is placed, with all before it;
    /// returns whether it is not too early.
    fn gain(&self, at: Place, (position, counts): (usize, &[u8]), k: usize, tuple: &mut BlockTuple) -> bool {
        let (blocks, bands) = (&self.blocks, self.blocks.overlaps.bands());
        let rows = bands.min(self.rounds - at.round);
        let shared = |rounds: usize| if rounds < bands { blocks.overlaps.product(rows, rounds) } else { 0.0 };
        let own = tuple.who[k];
        for &other in &tuple.recent {
            let Some(last) = tuple.replicas[other].last else { continue };
            let rounds = at.round - last.round;
            if other == own && rounds < self.separation {
                return false;
            }
            let taken = match at.block - last.block {
                1 => blocks.edge[position] + blocks.edge[blocks.length - 1 - last.round % blocks.length],
                distance => blocks.far[distance - 2],
            };
            let pair = if other == own { 0.0 } else { shared(rounds) };
            tuple.gained.add(pair - taken);
        }
        let mut left = k;
        for (earlier, &count) in counts[..=position].iter().enumerate() {
            let many = left.min(usize::from(count));
            left -= many;
            let rounds = position - earlier;
            tuple.gained.add(real(many) * (shared(rounds) - blocks.within(rounds)));
        }
        true
    }

    /// Returns ln ρ of a tuple that has passed all steps.
    pub fn log_weight(&self, tuple: &BlockTuple) -> f64 {
        let (n, b) = (self.rounds, self.separation);
        // These are the rounds that w̄ counts as if the run had them, before the first participation and after the last
        // one.
        let beyond = |replica: &Replica| {
            let after = replica.last.map_or(0, |last| (last.round + b).saturating_sub(n));
            let before = if self.warm && replica.last.is_some() { (b - 1).saturating_sub(replica.first) } else { 0 };
            after + before
        };
        let beyond: usize = tuple.replicas.iter().map(beyond).sum();
        let ends = real(beyond) * self.log_stay;
        let own = tuple.gained.value() + ends + self.summed();
        (self.log_weight + tuple.path.log_factor + own).min(self.log_bound)
    }
}

impl Bounds for BlockTuples {
    fn prepare(&self, run: &Run) -> Result<()> {
        self.tables.prepare(run)
    }

    fn log_bound(&self) -> f64 {
        self.log_bound
    }

    /// Returns an upper bound on the excess of the computed ln ρ over the exact one, which it never falls below.
    ///
    /// A step's weights have at most m² + 8m + 24 factors and terms, each raised by at most 4u; ĝ and its terms were
    /// raised by [`Placements::raised`], and inner products by 4u for each band, which are in exponents: S − J has at
    /// most two of them for each participation and each replica.
    fn relative(&self) -> f64 {
        let (steps, m, bands) = (real(self.steps()), real(self.order()), real(self.blocks.overlaps.bands()));
        let own = 4.0 * (m * m + 8.0 * m + 24.0) * UNIT_ROUNDOFF + 2.0 * self.blocks.raised;
        let joined = self.participations() * 4.0 * m * self.blocks.largest() * (8.0 * bands + 32.0) * UNIT_ROUNDOFF;
        let below = self.tables.steps.logarithms();
        (steps * own + joined + below + 2.0 * (self.rounded + self.summed())) * (1.0 + 1e-6)
    }

    /// Returns an upper bound on the total variation between the law that tuples are drawn from and π.
    ///
    /// In each step the partial sums of m + 1 terms, or of as many as there are ways to place replicas, are compared
    /// with a multiple of 2⁻⁵² of their total; each differs from the one before by its term, up to 2u of the total. A
    /// joining replica is one of m at most, m times, by a multiple of 2⁻⁵². Terms themselves have up to m + 4
    /// roundings.
    fn variation(&self) -> f64 {
        let (steps, m) = (real(self.steps()), real(self.order()));
        let ways = real(self.blocks.most_placements());
        UNIT_ROUNDOFF * 4.0 * steps * ((m + 1.0) * (m + 4.0) + 2.0 * ways + m * m) * (1.0 + 1e-6)
    }
}

/// A sum with its accumulated rounding error (Knuth's two-sum).
#[derive(Debug, Clone, Copy, Default)]
struct Carried {
    sum: f64,
    lost: f64,
}

impl Carried {
    fn add(&mut self, term: f64) {
        let sum = self.sum + term;
        let of_term = sum - self.sum;
        self.lost += (self.sum - (sum - of_term)) + (term - of_term);
        self.sum = sum;
    }

    fn value(self) -> f64 {
        self.sum + self.lost
    }
}

#[cfg(test)]
mod tests {
    use super::{At, BlockStep, BlockTuple, BlockTuples};
    use crate::participation::renewal::Renewal;
    use crate::replicas::aged::log_moment;
    use crate::replicas::enumeration::{mean_with_error, participations, uniforms};
    use crate::replicas::stepwise::Bounds;
    use crate::replicas::{Replicas, GAP};
    use crate::run::Run;

    fn law(b: usize, p: f64, warm: bool, n: usize) -> Renewal {
        Renewal::new(b, p, warm, vec![1.0; n]).expect("valid")
    }

    /// Returns how many replicas join each round of a tuple, and ln ρ; −∞ if it is given up.
    fn one_of(tuples: &BlockTuples, rounds: usize, draw: &mut impl FnMut() -> f64) -> (Vec<usize>, f64) {
        one_by_steps(tuples, rounds, |t| tuples.at(t), draw)
    }

    fn one_by_steps<'a>(
        tuples: &BlockTuples,
        rounds: usize,
        at: impl Fn(usize) -> BlockStep<'a>,
        draw: &mut impl FnMut() -> f64,
    ) -> (Vec<usize>, f64) {
        let mut tuple = BlockTuple::default();
        tuples.begin(&mut tuple);
        let mut joined = vec![0; rounds];
        for t in 1..=tuples.steps() {
            let (stage, uniform) = (at(t), draw());
            if tuples.pass(&stage, uniform, &mut tuple) {
                continue;
            }
            let Some(chosen) = tuples.choose(&stage, uniform, &mut tuple) else { return (joined, f64::NEG_INFINITY) };
            let further: Vec<f64> = (0..tuples.needed(&tuple, chosen)).map(|_| draw()).collect();
            if !tuples.step(&stage, chosen, &mut tuple, |k| further[k], |round, count| joined[round] = count) {
                return (joined, f64::NEG_INFINITY);
            }
        }
        (joined, tuples.log_weight(&tuple))
    }

    const COLUMNS: [&[f64]; 4] = [&[0.7], &[0.3, 0.0, 0.6], &[0.2, 0.3, 0.5, 0.3], &[0.5, 0.3, 0.2, 0.2, 0.1, 0.1]];

    #[test]
    fn weights_are_bounded_and_add_up_to_the_moment() {
        let (mut draw, mut checked) = (uniforms(3), 0);
        for ((b, block), n, warm, p) in [
            ((2, 1), 7, true, 0.4),
            ((4, 1), 9, false, 0.3),
            ((4, 2), 30, true, 0.1),
            ((4, 2), 13, false, 0.5),
            ((6, 2), 5, true, 0.2),
            ((6, 3), 400, true, 0.02),
            ((6, 3), 50, false, 0.1),
        ] {
            for coefficients in COLUMNS.iter().filter(|c| c.len() <= b) {
                for order in [2, 3, 5] {
                    let (law, run) = (law(b, p, warm, n), Run::default());
                    let exact = log_moment(&law, coefficients, Replicas::exact(order), GAP, &run).expect("valid").upper;
                    let above = log_moment(&law, coefficients, Replicas::of_blocks(order, block), GAP, &run);
                    let above = above.expect("valid").upper;
                    assert!(above >= exact - 2e-3, "{b} {block} {n} {order}: {above} {exact}");
                    for room in [usize::MAX, 200, 1] {
                        let Ok(tuples) = BlockTuples::new(&law, coefficients, (order, block), room, &run) else {
                            assert!(room < usize::MAX && n <= 9, "{b} {n} {room}");
                            continue;
                        };
                        if room == usize::MAX {
                            assert!((tuples.log_bound() - above).abs() < 0.02, "{b} {block} {n} {order}");
                        }
                        let logs: Vec<f64> = (0..4000).map(|_| one_of(&tuples, n, &mut draw).1).collect();
                        assert!(logs.iter().all(|log| *log <= tuples.log_bound()), "{b} {n} {order} {room}");
                        if tuples.log_bound() > exact + 3.0 {
                            // Too few of them pass to compare means.
                            continue;
                        }
                        let ratios: Vec<f64> = logs.iter().map(|log| (log - exact).exp()).collect();
                        let (ratio, error) = mean_with_error(&ratios);
                        checked += 1;
                        assert!(
                            (ratio - 1.0).abs() <= 4.0 * error + 2e-3,
                            "{b} {block} {n} {order} {room}: {ratio} {error}"
                        );
                    }
                }
            }
        }
        assert!(checked > 90, "{checked}");
    }

    #[test]
    fn bounds_on_who_joins_change_nothing() {
        for ((b, block), n, warm, p) in [((2, 1), 9, true, 0.3), ((6, 2), 200, true, 0.03), ((6, 3), 41, false, 0.05)] {
            let law = law(b, p, warm, n);
            for room in [usize::MAX, 1] {
                let tuples = BlockTuples::new(&law, &COLUMNS[1][..b.min(3)], (4, block), room, &Run::default());
                let tuples = tuples.expect("valid");
                tuples.prepare(&Run::default()).expect("no limit");
                let (mut draw, mut same) = (uniforms(3), uniforms(3));
                let plain = |t| BlockStep { t, at: At { nobody: &[], ..tuples.at(t).at } };
                for _ in 0..1000 {
                    let (joined, log) = one_of(&tuples, n, &mut draw);
                    let (plainly, other) = one_by_steps(&tuples, n, plain, &mut same);
                    assert_eq!((joined, log.to_bits()), (plainly, other.to_bits()), "{b} {n} {room}");
                }
                assert!(
                    (1..=tuples.steps()).any(|t| tuples.at(t).at.nobody.iter().any(|least| *least > 0.1)),
                    "{b} {n} {room}"
                );
            }
        }
    }

    #[test]
    fn participations_have_the_law_of_the_moment() {
        for ((b, block), n, p, warm, coefficients) in
            [((4, 2), 7, 0.1, true, vec![0.9, 0.4, 1.1]), ((2, 1), 4, 0.35, false, vec![0.9, 0.5])]
        {
            let order = 3;
            let law = law(b, p, warm, n);
            let tuples = BlockTuples::new(&law, &coefficients, (order, block), usize::MAX, &Run::default());
            let tuples = tuples.expect("valid");
            let (mut draw, mut total) = (uniforms(2), 0.0);
            let mut seen = vec![vec![0.0; order + 1]; n];
            for _ in 0..200_000 {
                let (joined, log) = one_of(&tuples, n, &mut draw);
                let weight = log.exp();
                total += weight;
                for (round, j) in joined.into_iter().enumerate() {
                    seen[round][j] += weight;
                }
            }
            for (round, shares) in participations(&coefficients, (b, p, warm, n), order).iter().enumerate() {
                for (j, share) in shares.iter().enumerate() {
                    let found = seen[round][j] / total;
                    assert!((found - share).abs() < 0.012, "{b} {round} {j}: {found} {share}");
                }
            }
        }
    }
}

//! b-min-sep sampling, blocks of h rounds at a time: a chain with few ages that bounds the sum over m replicas from
//! above.
//!
//! **A majorant.** [`super::rounds`] has Z_m = Σ Πw_{x^r}·e^{S}, S = Σ_{r<s} ⟨Cx^r, Cx^s⟩. With any w̄ ≥ w and J ≥ S on
//! all tuples, Z̄ = Σ Πw̄·e^J is at least Z_m; and tuples that are drawn from Πw̄·e^J/Z̄ have the weight ρ =
//! Z̄·Π(w/w̄)·e^{S−J} ≤ Z̄ (see [`super::tuples`]).
//!
//! **Weights.** Let q = p(1−p)^{−b}. A pattern x with |x| > 0 participations in rounds i_1 < … < i_L has, with (z)₊ =
//! max(z, 0),
//!
//! `w_x = p₀ (1−p)^{(i_1−b)₊} · Π_{gaps g} p(1−p)^{g−b} · (1−p)^{(n−i_L−b+1)₊}` (warm; p₀ = p/(1 + (b−1)p), the rate),
//!
//! and p(1−p)^{i_1−1} for the first two factors of a cold start. Without the two (·)₊ the product is no smaller, and
//! depends on |x| alone: w̄ = A·q^{|x|}, A = (p₀/p)(1−p)^{n+1−b} (warm, n ≥ b − 1) or (1−p)^n (cold). If nobody takes
//! part, w̄ = w.
//!
//! **Inner products.** Let h divide b, H = b/h ≥ 2. The age of a replica is the number of blocks, 1, …, H, since the
//! one of its last participation; at age H it may join again, like a free one: two participations of one replica are b
//! or more rounds apart, so at least H blocks, but blocks at a distance of H also contain rounds that are nearer. A
//! round of the tuple's block and one D blocks before it are at least (D−1)h + 1 rounds apart; with r(d) = max_{e ≥ d}
//! ⟨c_i, c_{i−e}⟩ over full columns, J has
//!
//! * within a block r(|v − v′|) for each pair of positions v, v′;
//! * between neighbouring blocks α(u) + α(v), u and v the distances to the edge between them, where α(u) + α(v) ≥ r(u +
//!   v + 1);
//! * r((D−1)h + 1) for D = 2, …, H, with each replica's last participation; also with the replica's own at D = H.
//!
//! Participations more than H blocks apart, and those of a replica before its last one in an earlier block, are more
//! than b rounds apart: their columns share no row. As no entry is negative every term is at least the pair's own inner
//! product, and the pair of a replica with itself is at least 0.
//!
//! **The chain.** Given the numbers of replicas that join the block before and the block after, N_1 and c, the sum over
//! the positions of j joining replicas is
//!
//! `ĝ(j; N_1, c) = Σ_{v_1…v_j} e^{Σ_{r<s} r(|v_r − v_s|) + Σ_r (N_1 α(v_r) + c α(h−1−v_r))}`,
//!
//! which is known one block later. So with N_1 and N_2 replicas of ages 1 and 2, F of age H or free, and the field R =
//! Σ_{ages D ≥ 2} r((D−1)h + 1)
//!
//! `β_t(s) = Σ_{j ≤ F} C(F, j) q^j e^{jR} ĝ(N_1; N_2, j) β_{t+1}(s′)`, `β_{T+1}(s) = ĝ(N_1; N_2, 0)`,
//! `Z̄ = A^m β_1(all free)`,
//!
//! T = ⌈n/h⌉. The last of these is a closing step that nobody joins. There are C(H + m, m) states.
//!
//! **Hypotheses.** Each is checked before a chain is created.
//! * p < 1: q would be infinite.
//! * h divides b, and H = b/h ≥ 2. With h = b two participations of one replica would lie in neighbouring blocks.
//! * A warm start has n ≥ b − 1 rounds, for A. A cold start and a run of any other length are covered: h need not
//!   divide n.
//! * No coefficient is negative and there are at most b bands, so that columns of one replica share no row and all
//!   inner products are at least 0. [`super::overlaps`] and the kernel reject all others.
//! * Single records that are added, removed or set to zero, without truncation and without a random phase: only these
//!   have such a law.

use std::sync::Arc;

use crate::error::{domain, Error, Result};
use crate::participation::renewal::Renewal;
use crate::replicas::chain::{Chain, Factors, Near};
use crate::replicas::overlaps::Overlaps;
use crate::replicas::rounds;
use crate::replicas::steps::Steps;
use crate::special::{real, UNIT_ROUNDOFF};

/// The maximum number of stored sums over the positions of replicas in a block, 128 MiB.
const MOST_PLACEMENTS: usize = 1 << 24;

/// The rounds in which replicas take part within a block, and the corresponding terms of J.
#[derive(Debug)]
pub(super) struct Placements {
    /// h, the number of rounds of a block.
    pub length: usize,
    pub overlaps: Overlaps,
    /// α(u), u = 0, …, h − 1.
    pub edge: Vec<f64>,
    /// r((D−1)h + 1) for D = 2, …, H, at D − 2.
    pub far: Vec<f64>,
    /// r(0), r(1), …, as long as they are not 0.
    envelope: Vec<f64>,
    /// For j = 0, 1, …, m: how many of j replicas are at each of the h positions of the block, one way to place them
    /// after another.
    counts: Vec<Vec<u8>>,
    /// Partial sums of ĝ(j; N_1, c) over the ways to place j, at (N_1·(m + 1) + c)·(m + 1) + j; empty if there is
    /// nothing to place or this cannot happen.
    partial: Vec<Vec<f64>>,
    /// The maximum amount by which ln of a term of ĝ, or of ĝ, may have been raised.
    pub raised: f64,
}

/// Returns a number rounded up, where it is the result of this many operations with a rounding of at most u each.
fn above(value: f64, operations: usize) -> f64 {
    let operations = real(operations);
    value * (1.0 + 2.0 * (operations + 2.0) * UNIT_ROUNDOFF)
}

/// Returns the number of kinds of a replica: its ages, and free.
pub(super) fn kinds(law: &Renewal, length: usize) -> usize {
    law.min_separation / length + 1
}

/// Returns the number of steps after which λ̄ is used whatever it is.
pub(super) fn most(law: &Renewal, length: usize) -> usize {
    (law.iterations().div_ceil(length) + 1).min(8 * kinds(law, length) + 256)
}

/// Returns whether blocks of this many rounds are possible.
pub(super) fn possible(law: &Renewal, length: usize) -> bool {
    let (b, n) = (law.min_separation, law.iterations());
    length >= 1 && b % length == 0 && b / length >= 2 && law.sampling_probability < 1.0 && (!law.warm || n + 1 >= b)
}

/// Returns the steps of m = `order` replicas in blocks of `length` rounds.
///
/// # Errors
/// As [`rounds::steps`]; [`Error::Domain`] for a length that does not divide b at least twice, a probability of 1, a
/// warm start with fewer than b − 1 rounds, and where replicas can be placed in too many ways.
pub(super) fn steps(law: &Renewal, coefficients: &[f64], order: usize, length: usize) -> Result<(Steps, Placements)> {
    let overlaps = rounds::overlaps(law, coefficients, order)?;
    if !possible(law, length) {
        let value = real(length);
        let allowed =
            "a divisor of the separation, at most half of it; the probability is below 1, and a warm start has b − 1 rounds or more";
        return domain("block", value, allowed);
    }
    let count = kinds(law, length);
    let chain = Chain::new(count, count - 2, order)?;
    let (blocks, near) = Placements::new(overlaps, length, order, law.min_separation)?;
    let near = Arc::new(near);
    let (p, b, n) = (law.sampling_probability, law.min_separation, law.iterations());
    // ln (1 − p) has an error of about an ulp, its multiple and the exponential a similar one.
    let stay = libm::log1p(-p);
    let (b, n) = (real(b), real(n));
    let odds = p * libm::exp(-b * stay) * (1.0 + (8.0 - 8.0 * b * stay) * UNIT_ROUNDOFF);
    let terms = if law.warm { [-libm::log1p((b - 1.0) * p), (n + 1.0 - b) * stay] } else { [0.0, n * stay] };
    let size: f64 = terms.iter().map(|term| term.abs()).sum();
    let log_constant = real(order) * (terms.iter().sum::<f64>() + 8.0 * UNIT_ROUNDOFF * (1.0 + size));
    // The product rounds by u of itself.
    let log_constant = log_constant + 4.0 * UNIT_ROUNDOFF * log_constant.abs();
    // Age 1 occurs in ĝ only.
    let field = |&r: &f64| libm::exp(r) * (1.0 + 4.0 * UNIT_ROUNDOFF);
    let by_kind: Vec<f64> = std::iter::once(1.0).chain(blocks.far.iter().map(field)).collect();
    let (joining, logarithms) = joining(order, odds);
    let width = order + 1;
    let mut nobody = vec![0.0; width * width];
    nobody.iter_mut().step_by(width).for_each(|weight| *weight = 1.0);
    let closing =
        Factors { by_kind: vec![1.0; by_kind.len()], joining: nobody, near: Some(Arc::clone(&near)), logarithms: 0.0 };
    let inner = Factors { by_kind, joining, near: Some(near), logarithms };
    let steps = Steps {
        chain,
        count: law.iterations().div_ceil(length) + 1,
        last: vec![closing],
        first: Vec::new(),
        inner,
        extended: false,
        start: None,
        log_constant,
        most: most(law, length),
        raised: None,
    };
    Ok((steps, blocks))
}

/// Returns C(F, j) q^j at F·(m + 1) + j, rounded up; the second value is infinite if a number underflowed and was
/// raised, else 0.
fn joining(order: usize, odds: f64) -> (Vec<f64>, f64) {
    let width = order + 1;
    let (mut all, mut logarithms) = (vec![0.0; width * width], 0.0);
    for available in 0..=order {
        let mut term = 1.0;
        for j in 0..=available {
            all[available * width + j] = term;
            let ways = real(available - j) / real(j + 1);
            term = above(term * ways * odds, 3);
            if j < available && term < 1e-300 {
                (term, logarithms) = (term.max(f64::MIN_POSITIVE), f64::INFINITY);
            }
        }
    }
    (all, logarithms)
}

impl Placements {
    fn new(overlaps: Overlaps, length: usize, order: usize, separation: usize) -> Result<(Self, Near)> {
        let bands = overlaps.bands();
        // The envelope is r(d), d = 0, …: no earlier entry may be smaller.
        let mut envelope: Vec<f64> = (0..bands).map(|k| overlaps.product(bands, k)).collect();
        for k in (1..bands).rev() {
            envelope[k - 1] = envelope[k - 1].max(envelope[k]);
        }
        let at = |d: usize| envelope.get(d).copied().unwrap_or(0.0);
        let edge = edge(length, at);
        let far = (2..=separation / length).map(|distance| at((distance - 1) * length + 1)).collect();
        let mut room = MOST_PLACEMENTS;
        let mut placements = Vec::new();
        for j in 0..=order {
            let all = placed(length, j, room / length.max(1)).ok_or(TOO_MANY)?;
            room -= all.len();
            placements.push(all);
        }
        let mut blocks =
            Self { length, overlaps, edge, far, envelope, counts: placements, partial: Vec::new(), raised: 0.0 };
        let near = blocks.place(order, separation / length, room)?;
        Ok((blocks, near))
    }

    /// Computes ĝ, rounded up, and the partial sums that placements are drawn by.
    fn place(&mut self, order: usize, ages: usize, mut room: usize) -> Result<Near> {
        let (width, h) = (order + 1, self.length);
        let mut values = vec![1.0; width * width * width];
        let mut partial = vec![Vec::new(); width * width * width];
        // The operations are the products and sums of an exponent.
        let operations = h * (h + 1) + 4 * h;
        let mut largest = 0.0_f64;
        for (j, placements) in self.counts.iter().enumerate().skip(1) {
            let within: Vec<(f64, f64)> =
                placements.chunks(h).map(|counts| inside(counts, |d| self.within(d))).collect();
            // Neighbouring blocks have different replicas; so have three in a row, if they are too near for any replica
            // to join twice.
            for before in 0..=order - j {
                for after in 0..=order - j {
                    if ages > 2 && before + after + j > order {
                        continue;
                    }
                    room = room.checked_sub(within.len()).ok_or(TOO_MANY)?;
                    let (a, c) = (real(before), real(after));
                    let outside: Vec<f64> = (0..h).map(|v| a * self.edge[v] + c * self.edge[h - 1 - v]).collect();
                    let (mut sum, mut sums) = (0.0, Vec::with_capacity(within.len()));
                    for (counts, (ways, exponent)) in placements.chunks(h).zip(&within) {
                        let further: f64 = counts.iter().zip(&outside).map(|(&count, x)| f64::from(count) * x).sum();
                        let exponent = above(exponent + further, operations);
                        largest = largest.max(exponent);
                        sum += ways * libm::exp(exponent) * (1.0 + 6.0 * UNIT_ROUNDOFF);
                        sums.push(sum);
                    }
                    // In the chain's terms: j joined the last block, `before` the one before that, `after` join now.
                    let place = (j * width + before) * width + after;
                    values[place] = above(sum, within.len());
                    partial[place] = sums;
                }
            }
        }
        self.partial = partial;
        let most = self.most_placements();
        let raised =
            UNIT_ROUNDOFF * (2.0 * (real(operations) + 4.0) * (1.0 + largest) + 4.0 * real(most + 2 * order + 8));
        self.raised = raised;
        Ok(Near { values, order })
    }

    /// Returns r(d).
    pub(super) fn within(&self, rounds: usize) -> f64 {
        self.envelope.get(rounds).copied().unwrap_or(0.0)
    }

    /// Returns the largest of r and α.
    pub(super) fn largest(&self) -> f64 {
        self.edge.iter().copied().fold(self.within(0), f64::max)
    }

    /// Returns the partial sums over the placements of `joined` replicas, with `before` in the block before theirs and
    /// `after` in the one after.
    pub(super) fn partial(&self, order: usize, joined: usize, before: usize, after: usize) -> &[f64] {
        let width = order + 1;
        &self.partial[(joined * width + before) * width + after]
    }

    /// Returns how many of `joined` replicas are at each position, in the way with this number.
    pub(super) fn placement(&self, joined: usize, number: usize) -> &[u8] {
        &self.counts[joined][number * self.length..][..self.length]
    }

    /// Returns the largest number of ways to place replicas in a block.
    pub(super) fn most_placements(&self) -> usize {
        self.counts.last().map_or(1, Vec::len) / self.length
    }
}

/// The error if placements do not fit in memory.
const TOO_MANY: Error = Error::Numerics {
    reason: "replicas can be placed in a block in too many ways: shorter blocks or fewer replicas have fewer",
};

/// Returns α(u), u = 0, …, h − 1, with α(u) + α(v) ≥ r(u + v + 1): half of r(2u + 1), and if a pair's sum is too small,
/// half of the difference is added to both. The sums in doubles are no smaller either.
fn edge(length: usize, at: impl Fn(usize) -> f64) -> Vec<f64> {
    let mut edge: Vec<f64> = (0..length).map(|u| 0.5 * at(2 * u + 1)).collect();
    for u in 0..length {
        for v in 0..=u {
            let lacking = at(u + v + 1) - (edge[u] + edge[v]);
            if lacking > 0.0 {
                edge[u] += 0.5 * lacking;
                edge[v] += 0.5 * lacking;
            }
        }
    }
    // Rounding may make a sum of two too small by an ulp or two.
    edge.into_iter().map(|value| value * (1.0 + 8.0 * UNIT_ROUNDOFF) + f64::MIN_POSITIVE).collect()
}

/// Returns all ways to place j replicas, as the number at each of the positions; `None` if there are more than `most`.
fn placed(positions: usize, j: usize, most: usize) -> Option<Vec<u8>> {
    if crate::replicas::multisets::number_of(positions, j)? > most {
        return None;
    }
    let mut all = Vec::new();
    let mut counts = vec![0_u8; positions];
    // The count is at most the order; a larger one is refused.
    counts[0] = u8::try_from(j).ok()?;
    loop {
        all.extend_from_slice(&counts);
        // The next way in reverse lexicographic order takes one from the last position before the end that has any, and
        // moves it and all at the end behind it.
        let Some(from) = (0..positions - 1).rev().find(|&v| counts[v] > 0) else { return Some(all) };
        let rest = std::mem::take(&mut counts[positions - 1]);
        counts[from] -= 1;
        counts[from + 1] = rest + 1;
    }
}

/// Returns j!/Π(counts!) rounded up, and Σ r(|v − v′|) over the pairs of a placement.
fn inside(counts: &[u8], at: impl Fn(usize) -> f64) -> (f64, f64) {
    let (mut ways, mut placed, mut exponent) = (1.0, 0.0, 0.0);
    for (v, &count) in counts.iter().enumerate() {
        for alike in 1..=count {
            placed += 1.0;
            ways *= placed / f64::from(alike);
        }
        let count = f64::from(count);
        exponent += 0.5 * count * (count - 1.0) * at(0);
        for (w, &other) in counts.iter().enumerate().skip(v + 1) {
            exponent += count * f64::from(other) * at(w - v);
        }
    }
    // Each replica adds a quotient and a product.
    let replicas: usize = counts.iter().map(|&count| usize::from(count)).sum();
    (above(ways, 2 * replicas), exponent)
}

#[cfg(test)]
mod tests {
    use crate::special::real;
    use std::collections::HashSet;

    use super::{edge, placed, steps, Placements};
    use crate::error::Error;
    use crate::participation::renewal::Renewal;
    use crate::replicas::aged::{log_moment, states};
    use crate::replicas::enumeration::{mean, patterns};
    use crate::replicas::{Replicas, GAP};
    use crate::run::Run;

    fn law(b: usize, p: f64, warm: bool, n: usize) -> Renewal {
        Renewal::new(b, p, warm, vec![1.0; n]).expect("valid")
    }

    #[test]
    fn every_placement_is_listed_once() {
        for (positions, j) in [(1, 0), (1, 4), (2, 3), (4, 1), (5, 4)] {
            let all = placed(positions, j, 1000).expect("few");
            let distinct: HashSet<&[u8]> = all.chunks(positions).collect();
            assert_eq!(Some(distinct.len()), crate::replicas::multisets::number_of(positions, j));
            assert_eq!(distinct.len() * positions, all.len());
            assert!(distinct.iter().all(|counts| counts.iter().map(|&count| usize::from(count)).sum::<usize>() == j));
        }
        assert!(placed(5, 4, 69).is_none());
    }

    #[test]
    fn neighbours_have_no_less_than_their_inner_product() {
        // The functions are convex, concave, flat, and with a step.
        let rows: [fn(f64) -> f64; 4] =
            [|d| 1.0 / (1.0 + d), |d| (30.0 - d).max(0.0).sqrt(), |_| 0.7, |d| if d < 5.0 { 1.0 } else { 0.1 }];
        for r in rows {
            for length in [1, 2, 3, 8, 16] {
                let at = |d: usize| r(real(d));
                let edge = edge(length, at);
                for u in 0..length {
                    for v in 0..length {
                        assert!(edge[u] + edge[v] >= at(u + v + 1), "{length} {u} {v}");
                    }
                }
            }
        }
    }

    /// Returns Z̄ from its definition: all ways for m replicas to take part in rounds of blocks far enough apart, with
    /// w̄ and J.
    #[allow(clippy::many_single_char_names)] // as in the formula
    fn enumerated(coefficients: &[f64], law: &Renewal, order: usize, blocks: &Placements) -> f64 {
        let (b, n, p, h) = (law.min_separation, law.iterations(), law.sampling_probability, blocks.length);
        let (rounds, ages) = (n.div_ceil(h) * h, b / h);
        let mut all: Vec<Vec<usize>> = vec![vec![]];
        let mut open = all.clone();
        while let Some(taken) = open.pop() {
            let first = taken.last().map_or(0, |last| (last / h + ages) * h);
            for round in first..rounds {
                let longer = [&taken[..], &[round]].concat();
                all.push(longer.clone());
                open.push(longer);
            }
        }
        let r = |d: usize| -> f64 {
            let own = |k: usize| coefficients.iter().zip(coefficients.iter().skip(k)).map(|(x, y)| x * y).sum::<f64>();
            (d..coefficients.len()).map(own).fold(0.0, f64::max)
        };
        // This is J's term for a round and another one no earlier than its block.
        let pair = |earlier: usize, later: usize| match later / h - earlier / h {
            0 => r(later.abs_diff(earlier)),
            1 => blocks.edge[later % h] + blocks.edge[h - 1 - earlier % h],
            distance if distance <= ages => r((distance - 1) * h + 1),
            _ => 0.0,
        };
        let both = |x: &[usize], y: &[usize]| -> f64 {
            x.iter().flat_map(|&i| y.iter().map(move |&k| (i.min(k), i.max(k)))).map(|(i, k)| pair(i, k)).sum()
        };
        // These are pairs of a replica with itself, at a distance of H blocks.
        let own = |x: &[usize]| -> f64 {
            x.windows(2).filter(|two| two[1] / h - two[0] / h == ages).map(|_| r((ages - 1) * h + 1)).sum()
        };
        #[allow(clippy::cast_possible_truncation, clippy::cast_possible_wrap)] // small
        let weight = |x: &[usize]| -> f64 {
            let q = p * (1.0 - p).powi(-(b as i32));
            let start = if law.warm {
                (1.0 - p).powi((n + 1 - b) as i32) / (1.0 + (real(b) - 1.0) * p)
            } else {
                (1.0 - p).powi(n as i32)
            };
            start * q.powi(x.len() as i32) * own(x).exp()
        };
        let (both, weight) = (&both, &weight);
        let mut tuples: Vec<(Vec<&[usize]>, f64)> = vec![(vec![], 1.0)];
        for _ in 0..order {
            tuples = tuples
                .iter()
                .flat_map(|(chosen, total)| {
                    all.iter().map(move |x| {
                        let shared: f64 = chosen.iter().map(|y| both(x, y)).sum();
                        ([&chosen[..], &[&x[..]]].concat(), total * weight(x) * shared.exp())
                    })
                })
                .collect();
        }
        tuples.iter().map(|(_, total)| total).sum()
    }

    #[test]
    fn the_chain_adds_up_all_tuples_and_is_a_majorant() {
        let columns: [&[f64]; 3] = [&[0.7], &[0.3, 0.6], &[0.5, 0.2, 0.4, 0.3]];
        for ((b, block), n, order) in
            [((2, 1), 4, 3), ((4, 2), 6, 2), ((4, 2), 5, 3), ((6, 2), 9, 2), ((6, 3), 8, 2), ((4, 1), 6, 2)]
        {
            for coefficients in columns.iter().filter(|c| c.len() <= b) {
                for (p, warm) in [(0.1, true), (0.6, true), (0.3, false)] {
                    let (law, run) = (law(b, p, warm, n), Run::default());
                    let found = log_moment(&law, coefficients, Replicas::of_blocks(order, block), GAP, &run);
                    let found = found.expect("valid").upper;
                    let (_, blocks) = steps(&law, coefficients, order, block).expect("valid");
                    let expected = enumerated(coefficients, &law, order, &blocks).ln();
                    assert!(
                        (found - expected).abs() < 1e-10 * (1.0 + expected.abs()),
                        "{b} {block} {n}: {found} {expected}"
                    );
                    let exact: f64 = {
                        let all: Vec<(Vec<f64>, f64)> =
                            patterns(b, p, warm, n).into_iter().map(|(x, w)| (mean(coefficients, &x, n), w)).collect();
                        let mut sums = vec![(vec![0.0; n], 1.0)];
                        for _ in 0..order {
                            sums = sums
                                .iter()
                                .flat_map(|(sum, total): &(Vec<f64>, f64)| {
                                    all.iter().map(move |(one, w)| {
                                        let shared: f64 = sum.iter().zip(one).map(|(x, y)| x * y).sum();
                                        (sum.iter().zip(one).map(|(x, y)| x + y).collect(), total * w * shared.exp())
                                    })
                                })
                                .collect();
                        }
                        sums.iter().map(|(_, total)| total).sum::<f64>().ln()
                    };
                    assert!(found >= exact - 1e-12, "{b} {block} {n}: {found} is below {exact}");
                }
            }
        }
    }

    #[test]
    fn what_the_theorem_does_not_cover_is_refused() {
        let refused = |law: &Renewal, block| {
            let replicas = Replicas::of_blocks(2, block);
            states(law, replicas).is_none()
                && matches!(log_moment(law, &[1.0], replicas, GAP, &Run::default()), Err(Error::Domain { .. }))
        };
        assert!(
            refused(&law(4, 0.3, false, 9), 4)
                && refused(&law(4, 0.3, false, 9), 3)
                && refused(&law(4, 0.3, false, 9), 0)
        );
        assert!(refused(&law(4, 1.0, false, 9), 2) && refused(&law(4, 0.3, true, 2), 2));
        assert!(!refused(&law(4, 0.3, true, 3), 2) && !refused(&law(4, 0.3, false, 2), 2));
        // Negative entries, overlapping columns and users are refused as for rounds.
        let replicas = Replicas::of_blocks(2, 1);
        assert!(log_moment(&law(2, 0.3, false, 4), &[1.0, -0.5], replicas, GAP, &Run::default()).is_err());
        assert!(log_moment(&law(2, 0.3, false, 4), &[1.0, 0.5, 0.2], replicas, GAP, &Run::default()).is_err());
    }
}

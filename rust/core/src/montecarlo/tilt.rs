//! Mechanisms tilted along their mean participation: the proposals for estimates of small δ.
//!
//! Write m̄ = Ĉx̄ for the mean of Ĉx under the sampler's law, t = ⟨m̄, ŷ⟩ and d = θm̄. The tilted mechanism
//!
//! `dP_θ ∝ e^{θt} dP`, that is `dP_θ/dP = e^{θt − θ²‖m̄‖²/2}/Z(θ)`, Z(θ) = Σ_x w_x e^{θ⟨Ĉx, m̄⟩},
//!
//! is a mixture of the same family: patterns have weights w_x e^{θ⟨Ĉx, m̄⟩} = w_x e^{θΣ x_i h_i} with h_i = ⟨ĉ_i, m̄⟩,
//! which is a renewal law whose probability to join depends on the round, and then ŷ = d + Ĉx + z. Its density relative
//! to P is known from the one number t, without another recursion and without knowing dP/dR: also where that is only
//! enclosed. Likewise for R: N(θm̄, I).
//!
//! The privacy loss of a correlated mechanism is nearly a function of t, so a few values of θ cover all ε of a profile.
//! A tilt alone bounds no weight; mixed with a proposal that does, it can be used for tests too
//! ([`crate::montecarlo::claims::defensive`]). The rest of this page is needed for these tests.
//!
//! **The law that is drawn from.** m̄ is defined by the numbers in `mean`, whatever they are the mean of. With T_i the
//! computed logarithms of Z_i, J_i = ln W_i + T_{i+b} and S_i = ln(1 − p) + T_{i+1}, T_i is the logarithm of e^{J_i} +
//! e^{S_i} up to rounding. A pattern that joins with probability e^{J_i − T_i} and stays away with e^{S_i − T_i} has by
//! telescoping exactly the weight w_x e^{θΣx_i h_i}/e^{T_1}: the errors of the T_i cancel, whatever they are, and only
//! the roundings of the differences remain. The patterns drawn have weights that differ from these by a *relative*
//! error of at most [`Tilted::relative`], which changes the density of the tilt by no more, plus a *total variation* of
//! at most [`Tilted::variation`]:
//!
//! * relative: for each round a few u of the sizes of T, of ln(1 − p) and of ln W (a *step*), and u|s_n|, the rounding
//!   of the running sum s of the ln(1 − q_i); for each participation three steps (the smaller of q and 1 − q is
//!   computed directly, the other as 1 minus it), u|s_n|/q, since q is 1 minus the exponential of a difference of two
//!   of these sums, and the errors of h and of the law of how many records join;
//! * total variation: a waiting time is the first round with s_{r+1} − s_a < ln u. Its distribution function has an
//!   error of 2⁻⁵², the grid of u, and of 8u|x|e^x ≤ 3u of the logarithm and the difference, at each of at most n
//!   rounds. The start and how many records join are found in cumulative sums: each outcome's probability has an error
//!   of u of the sum and 2⁻⁵² of the grid. With phases a chance is taken if u ≤ q: 2⁻⁵² and two steps. Each counts as
//!   often as it is drawn on average: the total variation of two chains is at most the expected sum of that of their
//!   steps.

use crate::montecarlo::source::{add_participations, draw_noise, Source};
use crate::montecarlo::stream::Stream;
use crate::participation::bins::Bins;
use crate::participation::log_sum_error;
use crate::participation::renewal::Renewal;
use crate::special::{log_sum_exp, real, UNIT_ROUNDOFF};
use crate::vector::functions::ln;
use crate::vector::{splat, Lanes, Vector, LANES};

/// The direction of the tilt.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TiltBase {
    /// m̄ by rounds; empty for bins, where outcomes are inner products already.
    pub mean: Vec<f64>,
    /// h: the amount that taking part in a round (a bin) adds to ⟨Ĉx, m̄⟩.
    pub overlap: Vec<f64>,
    /// ‖m̄‖².
    pub square: f64,
    /// E‖Ĉx‖²/2 where columns do not overlap: ln dP/dR ≥ t minus this (Jensen).
    pub offset: f64,
    /// A bound on the error of an entry of `overlap`.
    pub overlap_error: f64,
}

/// One tilt: θ, and ln Z(θ) + θ²‖m̄‖²/2; `law` is that of the patterns, `None` for R.
#[derive(Debug, Clone)]
pub struct Tilted {
    /// θ.
    pub theta: f64,
    /// The number that is subtracted from θt to give the log density relative to the law that is tilted.
    pub norm: f64,
    /// The patterns' law.
    pub law: Option<TiltedLaw>,
    /// A bound on the relative difference between the weight of a drawn pattern and the one that `norm` implies; see
    /// the head of this file.
    pub relative: f64,
    /// A bound on the additional difference in total variation.
    pub variation: f64,
}

/// The law of tilted patterns.
#[derive(Debug, Clone)]
pub enum TiltedLaw {
    /// Patterns of rounds.
    Renewal(TiltedRenewal),
    /// Bins, by their cumulative probabilities.
    Bins(Vec<f64>),
}

/// A renewal law with a probability to join for each round.
#[derive(Debug, Clone)]
pub struct TiltedRenewal {
    min_separation: usize,
    phased: bool,
    /// Cumulative probabilities of the round of the first chance.
    start: Vec<f64>,
    /// Σ_{j<i} ln(1 − q_j), for i up to n (without phases).
    survival: Vec<f64>,
    /// q_i (with phases).
    join: Vec<f64>,
    /// Cumulative probabilities of how many records join at once, for each round; empty for single records.
    counts: Vec<Vec<f64>>,
}

/// Below this the logarithm of staying away is treated as −∞, so that its sums keep their digits.
const NEVER: f64 = -50.0;

/// Returns E x_i, the expected number of a record's participations in each round.
pub fn mean_participations(law: &Renewal) -> Vec<f64> {
    let (n, b, p) = (law.iterations(), law.min_separation, law.sampling_probability);
    let mut available = vec![0.0; n + b + 1];
    for (round, log) in law.log_start().into_iter().enumerate().take(n) {
        available[round] += log.exp();
    }
    let records: f64 = (1u32..).zip(&law.counts).map(|(j, w)| f64::from(j) * w).sum();
    (0..n)
        .map(|i| {
            let here = available[i];
            available[i + law.waiting()] += (1.0 - p) * here;
            available[i + b] += p * here;
            records * p * here
        })
        .collect()
}

impl TiltBase {
    /// Creates the direction for a renewal law, from m̄ and h.
    pub fn of_rounds(law: &Renewal, mean: Vec<f64>, overlap: Vec<f64>, overlap_error: f64) -> Self {
        let square = mean.iter().map(|m| m * m).sum();
        let several: f64 = (1u32..).zip(&law.counts).map(|(j, w)| f64::from(j * j) * w).sum();
        let single: f64 = (1u32..).zip(&law.counts).map(|(j, w)| f64::from(j) * w).sum();
        let expected: f64 = mean_participations(law).iter().zip(&law.squares).map(|(x, s)| x * s).sum();
        Self { mean, overlap, square, offset: 0.5 * expected * several / single, overlap_error }
    }

    /// Creates the direction for bins, from the Gram matrix of the modes, row by row.
    pub fn of_bins(law: &Bins, gram: &[f64]) -> Self {
        let bins = law.squares.len();
        let share: Vec<f64> = law.log_weights.iter().map(|w| w.exp()).collect();
        let overlap: Vec<f64> =
            (0..bins).map(|t| gram[t * bins..(t + 1) * bins].iter().zip(&share).map(|(g, w)| g * w).sum()).collect();
        let square = overlap.iter().zip(&share).map(|(h, w)| h * w).sum();
        let offset = 0.5 * law.squares.iter().zip(&share).map(|(s, w)| s * w).sum::<f64>();
        // These are means of entries of the Gram matrix, which are sums of T products of entries of its factor; the
        // products are in total at most the largest s_t (Cauchy and Schwarz).
        let overlap_error = UNIT_ROUNDOFF * 2.0 * (real(bins) + 2.0) * largest_of(&law.squares);
        Self { mean: Vec::new(), overlap, square, offset, overlap_error }
    }

    /// Returns Σ m̄_i, and the largest m̄_i.
    pub fn sizes(&self) -> (f64, f64) {
        (self.mean.iter().sum(), largest_of(&self.mean))
    }

    /// Returns R tilted: N(θm̄, I).
    pub fn reference(&self, theta: f64) -> Tilted {
        Tilted { theta, norm: 0.5 * theta * theta * self.square, law: None, relative: 0.0, variation: 0.0 }
    }

    /// Returns P tilted, for a renewal law.
    pub fn rounds(&self, law: &Renewal, theta: f64) -> Tilted {
        let tilted = TiltedRenewal::find(law, &self.overlap, theta);
        let records = f64::from(law.records());
        let participation =
            records * theta.abs() * (self.overlap_error + 4.0 * UNIT_ROUNDOFF * largest_of(&self.overlap));
        let relative = tilted.relative + real(law.most_participations()) * (participation + law.counts_error);
        Tilted {
            theta,
            norm: tilted.log_sum + 0.5 * theta * theta * self.square,
            relative: relative * (1.0 + 1e-6),
            variation: tilted.variation * (1.0 + 1e-6),
            law: Some(TiltedLaw::Renewal(tilted.law)),
        }
    }

    /// Returns, for the patterns of a renewal law of single records tilted by θ: the mean of Ĉx, ln Z(θ), and a bound
    /// on the error of ln Z(θ) and on the relative error of each pattern's weight.
    pub fn tilted_mean(&self, law: &Renewal, theta: f64, coefficients: &[f64]) -> (Vec<f64>, f64, f64) {
        let tilted = TiltedRenewal::find(law, &self.overlap, theta);
        let (n, b) = (law.iterations(), law.min_separation);
        let (mut available, mut mean) = (vec![0.0; n + b + 1], vec![0.0; n]);
        let mut below = 0.0;
        for (round, total) in tilted.law.start.iter().enumerate().take(n) {
            available[round] = total - below;
            below = *total;
        }
        for i in 0..n {
            let (here, taken) = (available[i], tilted.law.join[i]);
            available[i + 1] += (1.0 - taken) * here;
            available[i + b] += taken * here;
            for (m, c) in mean[i..].iter_mut().zip(coefficients) {
                *m += c * taken * here;
            }
        }
        let participation = theta.abs() * (self.overlap_error + 4.0 * UNIT_ROUNDOFF * largest_of(&self.overlap));
        let relative = tilted.relative + real(law.most_participations()) * participation + tilted.variation;
        (mean, tilted.log_sum, relative * (1.0 + 1e-6))
    }

    /// Returns P tilted, for bins.
    pub fn bins(&self, law: &Bins, theta: f64) -> Tilted {
        let logs: Vec<f64> = law.log_weights.iter().zip(&self.overlap).map(|(w, h)| w + theta * h).collect();
        let total = log_sum_exp(logs.iter().copied());
        let law = TiltedLaw::Bins(cumulative(logs.iter().map(|log| (log - total).exp())));
        let size = logs.iter().fold(total.abs(), |most, log| most.max(log.abs()));
        let step = 8.0 * UNIT_ROUNDOFF * (size + 1.0) + log_sum_error(logs.len(), total);
        Tilted {
            theta,
            norm: total + 0.5 * theta * theta * self.square,
            law: Some(law),
            relative: step + theta.abs() * self.overlap_error,
            // The difference of the cumulative sum to 1 goes to the last bin.
            variation: 2.0 * f64::EPSILON * real(logs.len()) + step,
        }
    }
}

/// Returns cumulative probabilities.
pub(in crate::montecarlo) fn cumulative(law: impl Iterator<Item = f64>) -> Vec<f64> {
    law.scan(0.0, |sum, p| {
        *sum += p;
        Some(*sum)
    })
    .collect()
}

/// A tilted law with its normalisation and errors.
struct Found {
    law: TiltedRenewal,
    /// ln Z(θ), as computed.
    log_sum: f64,
    /// See [`Tilted::relative`], without the errors of h and of the counts' law.
    relative: f64,
    variation: f64,
}

impl TiltedRenewal {
    /// Computes the law with weights e^{θh_i} for each participation, and ln Z(θ): the recursion Z_i = (1 − p)
    /// Z_{i+1} + W_i Z_{i+b} in logarithms, W_i = p Σ_j Pr[j] e^{jθh_i}; a chance is taken with probability q_i = W_i
    /// Z_{i+b}/Z_i.
    fn find(law: &Renewal, overlap: &[f64], theta: f64) -> Found {
        let (n, b) = (law.iterations(), law.min_separation);
        let (stay, join) = ((-law.sampling_probability).ln_1p(), law.sampling_probability.ln());
        let several = law.log_counts.len() > 1;
        let mut sums = vec![0.0; n + b + 1];
        let (mut taken, mut left) = (vec![0.0; n], vec![0.0; n]);
        let mut counts = Vec::new();
        let (mut widest, mut clamped) = (0.0_f64, false);
        for i in (0..n).rev() {
            let terms: Vec<f64> =
                (1u32..).zip(&law.log_counts).map(|(j, log)| log + f64::from(j) * theta * overlap[i]).collect();
            let inner = log_sum_exp(terms.iter().copied());
            if several {
                counts.push(cumulative(terms.iter().map(|log| (log - inner).exp())));
            }
            let (joins, stays) = (join + inner + sums[i + b], stay + sums[i + law.waiting()]);
            sums[i] = log_sum_exp([stays, joins].into_iter());
            taken[i] = (joins - sums[i]).exp().min(1.0);
            left[i] = if taken[i] <= 0.5 { (-taken[i]).ln_1p() } else { (stays - sums[i]).max(NEVER) };
            clamped |= left[i] <= NEVER;
            widest = widest.max(sums[i].abs() + inner.abs());
        }
        counts.reverse();
        let logs: Vec<f64> = law.log_start().iter().zip(&sums).map(|(start, sum)| start + sum).collect();
        let log_sum = log_sum_exp(logs.iter().copied());
        let start = cumulative(logs.iter().map(|log| (log - log_sum).exp()));
        let survival: Vec<f64> = std::iter::once(0.0).chain(cumulative(left.into_iter())).collect();

        // The rounding of a step covers sums and differences of numbers of these sizes, an exponential and the
        // logarithm of a sum.
        let size = widest + if stay.is_finite() { stay.abs() } else { 0.0 } + join.abs() + 1.0;
        let step = 8.0 * UNIT_ROUNDOFF * size + log_sum_error(2.max(law.log_counts.len()), widest);
        let first = 8.0 * UNIT_ROUNDOFF * (widest + log_sum.abs() + logs.iter().fold(0.0, |m: f64, l| m.max(l.abs())));
        let first = first + log_sum_error(logs.len(), log_sum);
        let (rounds, most) = (real(n), real(law.most_participations()));
        let least = taken.iter().copied().fold(1.0, f64::min);
        let sum = UNIT_ROUNDOFF * survival[n].abs();
        let (running, joining) = if law.phased { (0.0, 0.0) } else { (sum, sum / least) };
        let sound = log_sum.is_finite() && taken.iter().chain(&survival).all(|number| number.is_finite());
        let relative = rounds * (step + running) + most * (3.0 * step + joining) + first;
        let relative = if sound && !relative.is_nan() { relative } else { f64::INFINITY };

        let (chances, participations) = expected(law, &start, &taken);
        let records = real(law.log_counts.len());
        let drawing = if law.phased {
            chances * (f64::EPSILON + 2.0 * step)
        } else {
            (participations + 1.0) * rounds * 2.5 * f64::EPSILON
        };
        let several = if several { participations * (2.0 * f64::EPSILON * records + step) } else { 0.0 };
        let never = if clamped { rounds * NEVER.exp() } else { 0.0 };
        let variation = 2.0 * f64::EPSILON * real(start.len()) + first + drawing + several + never;
        let law = Self { min_separation: b, phased: law.phased, start, survival, join: taken, counts };
        Found { law, log_sum, relative, variation }
    }

    /// Draws the rounds of each lane's participations, and the number of records at once.
    #[inline(always)]
    fn draw<V: Vector>(&self, stream: &mut Stream, patterns: &mut [Vec<(usize, f64)>]) {
        let (n, b) = (self.join.len(), self.min_separation);
        let mut drawing = stream.take::<V>();
        let (mut drawn, mut several) = (splat(0.0), splat(0.0));
        drawing.uniform().store(&mut drawn);
        let mut available = drawn.0.map(|u| self.start.partition_point(|&c| c < u).min(self.start.len() - 1));
        while available.iter().any(|&a| a < n) {
            let uniform = drawing.uniform();
            if !self.counts.is_empty() {
                drawing.uniform().store(&mut several);
            }
            if self.phased {
                uniform.store(&mut drawn);
            } else {
                ln(uniform).store(&mut drawn);
            }
            for lane in 0..LANES {
                // Lanes that are done draw along with the rest, but the numbers are not used.
                let from = available[lane];
                if from >= n {
                    continue;
                }
                let round = if self.phased {
                    if drawn[lane] > self.join[from] {
                        available[lane] = from + b;
                        continue;
                    }
                    from
                } else {
                    // Pr[no chance taken up to round r] = e^{survival(r + 1) − survival(from)}. The difference is
                    // rounded by u of itself; if the level were compared with single sums, the rounding would be by u
                    // of their larger sizes.
                    let (before, level) = (self.survival[from], drawn[lane]);
                    from + self.survival[from + 1..].partition_point(|&s| s - before >= level)
                };
                if round < n {
                    let count = self.counts.get(round).map_or(0, |law| law.partition_point(|&c| c < several[lane]));
                    patterns[lane]
                        .push((round, real(count.min(self.counts.first().map_or(0, |law| law.len() - 1))) + 1.0));
                }
                available[lane] = round.saturating_add(b);
            }
        }
        stream.put_back(drawing);
    }
}

/// Returns the expected number of chances and of participations, from the law of the start and the probabilities to
/// take a chance.
fn expected(law: &Renewal, start: &[f64], taken: &[f64]) -> (f64, f64) {
    let (n, b) = (law.iterations(), law.min_separation);
    let mut available = vec![0.0; n + b + 1];
    let mut below = 0.0;
    for (round, total) in start.iter().enumerate().take(n) {
        available[round] = total - below;
        below = *total;
    }
    let (mut chances, mut participations) = (0.0, 0.0);
    for i in 0..n {
        let here = available[i];
        chances += here;
        participations += taken[i] * here;
        available[i + law.waiting()] += (1.0 - taken[i]) * here;
        available[i + b] += taken[i] * here;
    }
    (chances, participations)
}

fn largest_of(numbers: &[f64]) -> f64 {
    numbers.iter().copied().fold(0.0, f64::max)
}

/// Draws patterns of a tilted law, none for R.
#[inline(always)]
pub(in crate::montecarlo) fn draw_tilted<V: Vector>(
    tilted: &Tilted,
    stream: &mut Stream,
    patterns: &mut Vec<Vec<(usize, f64)>>,
) {
    patterns.resize(LANES, Vec::new());
    patterns.iter_mut().for_each(Vec::clear);
    if let Some(TiltedLaw::Renewal(law)) = &tilted.law {
        law.draw::<V>(stream, patterns);
    }
}

/// Samples of a tilted mechanism with banded Toeplitz columns.
#[derive(Debug)]
pub(in crate::montecarlo) struct TiltedSource<'a> {
    pub stream: &'a mut Stream,
    pub tilted: &'a Tilted,
    pub base: &'a TiltBase,
}

impl Source for TiltedSource<'_> {
    #[inline(always)]
    fn begin<V: Vector>(&mut self, patterns: &mut Vec<Vec<(usize, f64)>>) {
        draw_tilted::<V>(self.tilted, self.stream, patterns);
    }

    #[inline(always)]
    fn fill<V: Vector>(
        &mut self,
        coefficients: &[f64],
        start: usize,
        rows: &mut [Lanes],
        patterns: &mut [Vec<(usize, f64)>],
    ) {
        draw_noise::<V>(self.stream, rows);
        add_participations(coefficients, 1.0, start, rows, patterns);
        shift::<V>(rows, &self.base.mean[start..], self.tilted.theta);
    }
}

/// Adds θm̄ to rows.
#[inline(always)]
pub(in crate::montecarlo) fn shift<V: Vector>(rows: &mut [Lanes], mean: &[f64], theta: f64) {
    if theta != 0.0 {
        for (row, m) in rows.iter_mut().zip(mean) {
            V::load(row).add(V::splat(theta * m)).store(row);
        }
    }
}

/// Returns t = ⟨m̄, ŷ⟩.
#[inline(always)]
pub(in crate::montecarlo) fn statistic<V: Vector>(rows: &[Lanes], mean: &[f64]) -> V {
    let mut sum = V::splat(0.0);
    for (row, m) in rows.iter().zip(mean) {
        sum = V::load(row).mul_add(V::splat(*m), sum);
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Enumerates every pattern of a law with ln of its weight, from the round of the first chance on.
    fn patterns(law: &Renewal, from: usize, log: f64, rounds: &mut Vec<usize>, all: &mut Vec<(Vec<usize>, f64)>) {
        let (n, b, p) = (law.iterations(), law.min_separation, law.sampling_probability);
        if from >= n {
            all.push((rounds.clone(), log));
            return;
        }
        patterns(law, from + law.waiting(), log + (-p).ln_1p(), rounds, all);
        rounds.push(from);
        patterns(law, from + b, log + p.ln(), rounds, all);
        rounds.pop();
    }

    /// Returns ln of the probability with which a tilted law draws a pattern, from its tables alone.
    fn drawn(found: &TiltedRenewal, first: usize, rounds: &[usize]) -> f64 {
        let n = found.join.len();
        let before = if first == 0 { 0.0 } else { found.start[first - 1] };
        let (mut log, mut from) = ((found.start[first] - before).ln(), first);
        let wait = |from: usize, to: usize| {
            if found.phased {
                (from..to).step_by(found.min_separation).map(|i| (-found.join[i]).ln_1p()).sum()
            } else {
                found.survival[to.min(n)] - found.survival[from.min(n)]
            }
        };
        for &round in rounds {
            log += wait(from, round);
            let taken = -(found.survival[round + 1] - found.survival[round]).exp_m1();
            log += if found.phased { found.join[round] } else { taken }.ln();
            from = round + found.min_separation;
        }
        log + wait(from, from.max(n))
    }

    #[test]
    fn what_is_drawn_differs_from_the_tilt_by_less_than_is_said() {
        let squares = |n: usize| vec![0.5; n];
        let laws = [
            Renewal::new(3, 0.2, true, squares(13)),
            Renewal::new(1, 0.05, false, squares(9)),
            Renewal::new(4, 0.9, true, squares(11)),
            Renewal::new(5, 1e-4, false, squares(12)),
            Renewal::with_phases(3, 0.3, squares(12)),
        ];
        for law in laws.map(Result::unwrap) {
            let overlap: Vec<f64> = (0..law.iterations()).map(|i| 0.1 + 0.05 * real(i % 5)).collect();
            for theta in [-30.0, -1.0, 0.0, 0.5, 12.0, 60.0] {
                let found = TiltedRenewal::find(&law, &overlap, theta);
                assert!(found.relative < 1e-9 && found.variation < 1e-9, "the bounds say something");
                // Differences beyond the relative error of weights are counted as total variation.
                let (mut total, mut beyond) = (0.0, 0.0);
                for (first, start) in law.log_start().into_iter().enumerate() {
                    let mut all = Vec::new();
                    patterns(&law, first, start, &mut Vec::new(), &mut all);
                    for (rounds, log) in all {
                        let own = drawn(&found.law, first, &rounds).exp();
                        let tilted = log + theta * rounds.iter().map(|&i| overlap[i]).sum::<f64>() - found.log_sum;
                        beyond += ((own - tilted.exp()).abs() - (found.relative + 1e-15) * tilted.exp()).max(0.0);
                        total += own;
                    }
                }
                assert!(beyond <= 2.0 * found.variation, "{beyond:e} for θ = {theta}, {law:?}");
                assert!((total - 1.0).abs() <= 1e-12 + found.variation, "{total} in all");
            }
        }
    }
}

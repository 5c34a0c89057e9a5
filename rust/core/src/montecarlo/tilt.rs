//! Mechanisms tilted along their mean participation: where estimates of small δ come from.
//!
//! Write m̄ = Ĉx̄ for the mean of Ĉx under the sampler's law, t = ⟨m̄, ŷ⟩ and d = θm̄. The tilted mechanism
//!
//! `dP_θ ∝ e^{θt} dP`, that is `dP_θ/dP = e^{θt − θ²‖m̄‖²/2}/Z(θ)`, Z(θ) = Σ_x w_x e^{θ⟨Ĉx, m̄⟩},
//!
//! is a mixture of the same family: patterns weigh w_x e^{θ⟨Ĉx, m̄⟩} = w_x e^{θΣ x_i h_i} with h_i = ⟨ĉ_i, m̄⟩, which is a renewal law
//! whose probability to join depends on the round, and then ŷ = d + Ĉx + z. Its density relative to P is known from the one number t,
//! without another recursion and without knowing dP/dR: also where that is only enclosed. Likewise for R: N(θm̄, I).
//!
//! The privacy loss of a correlated mechanism is nearly a function of t, so a few values of θ cover all ε of a profile. Samples from
//! here serve estimates; nothing is proven about how large one of them may be.

use crate::montecarlo::lanes::ln;
use crate::montecarlo::source::{add_participations, draw_noise, Source};
use crate::montecarlo::stream::Stream;
use crate::montecarlo::vector::{splat, Lanes, Vector, LANES};
use crate::participation::bins::Bins;
use crate::participation::renewal::Renewal;
use crate::special::log_sum_exp;

/// The direction of the tilt.
#[derive(Debug, Clone, PartialEq)]
pub struct TiltBase {
    /// m̄ by rounds; empty for bins, where outcomes are inner products already.
    pub mean: Vec<f64>,
    /// h: what taking part in a round (a bin) adds to ⟨Ĉx, m̄⟩.
    pub overlap: Vec<f64>,
    /// ‖m̄‖².
    pub square: f64,
    /// E‖Ĉx‖²/2 where columns do not meet: ln dP/dR ≥ t less this (Jensen).
    pub offset: f64,
}

/// One tilt: θ, and ln Z(θ) + θ²‖m̄‖²/2; `law` is that of the patterns, none for R.
#[derive(Debug, Clone)]
pub struct Tilted {
    /// θ.
    pub theta: f64,
    /// What is taken from θt to give the log density relative to what is tilted.
    pub norm: f64,
    /// The patterns' law.
    pub law: Option<TiltedLaw>,
}

/// The law of tilted patterns.
#[derive(Debug, Clone)]
pub enum TiltedLaw {
    /// Of rounds.
    Renewal(TiltedRenewal),
    /// Of bins: their cumulative probabilities.
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

/// Below this the logarithm of staying away is as good as −∞, and sums of it keep their digits.
const NEVER: f64 = -50.0;

/// E x_i, the expected number of a record's participations in each round.
#[must_use]
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
    /// Of a renewal law, from m̄ and h.
    #[must_use]
    pub fn of_rounds(law: &Renewal, mean: Vec<f64>, overlap: Vec<f64>) -> Self {
        let square = mean.iter().map(|m| m * m).sum();
        let several: f64 = (1u32..).zip(&law.counts).map(|(j, w)| f64::from(j * j) * w).sum();
        let single: f64 = (1u32..).zip(&law.counts).map(|(j, w)| f64::from(j) * w).sum();
        let expected: f64 = mean_participations(law).iter().zip(&law.squares).map(|(x, s)| x * s).sum();
        Self { mean, overlap, square, offset: 0.5 * expected * several / single }
    }

    /// Of bins, from the Gram matrix of the modes, row by row.
    #[must_use]
    pub fn of_bins(law: &Bins, gram: &[f64]) -> Self {
        let bins = law.squares.len();
        let share: Vec<f64> = law.log_weights.iter().map(|w| w.exp()).collect();
        let overlap: Vec<f64> =
            (0..bins).map(|t| gram[t * bins..(t + 1) * bins].iter().zip(&share).map(|(g, w)| g * w).sum()).collect();
        let square = overlap.iter().zip(&share).map(|(h, w)| h * w).sum();
        let offset = 0.5 * law.squares.iter().zip(&share).map(|(s, w)| s * w).sum::<f64>();
        Self { mean: Vec::new(), overlap, square, offset }
    }

    /// R tilted: N(θm̄, I).
    #[must_use]
    pub fn reference(&self, theta: f64) -> Tilted {
        Tilted { theta, norm: 0.5 * theta * theta * self.square, law: None }
    }

    /// P tilted, of a renewal law.
    #[must_use]
    pub fn rounds(&self, law: &Renewal, theta: f64) -> Tilted {
        let (found, log_sum) = TiltedRenewal::new(law, &self.overlap, theta);
        Tilted { theta, norm: log_sum + 0.5 * theta * theta * self.square, law: Some(TiltedLaw::Renewal(found)) }
    }

    /// P tilted, of bins.
    #[must_use]
    pub fn bins(&self, law: &Bins, theta: f64) -> Tilted {
        let logs: Vec<f64> = law.log_weights.iter().zip(&self.overlap).map(|(w, h)| w + theta * h).collect();
        let total = log_sum_exp(logs.iter().copied());
        let law = TiltedLaw::Bins(cumulative(logs.iter().map(|log| (log - total).exp())));
        Tilted { theta, norm: total + 0.5 * theta * theta * self.square, law: Some(law) }
    }
}

fn cumulative(law: impl Iterator<Item = f64>) -> Vec<f64> {
    law.scan(0.0, |sum, p| {
        *sum += p;
        Some(*sum)
    })
    .collect()
}

impl TiltedRenewal {
    /// The law with weights e^{θh_i} for each participation, and ln Z(θ): the recursion Z_i = (1 − p) Z_{i+1} + W_i Z_{i+b} in logarithms,
    /// W_i = p Σ_j Pr[j] e^{jθh_i}; a chance is taken with probability q_i = W_i Z_{i+b}/Z_i.
    fn new(law: &Renewal, overlap: &[f64], theta: f64) -> (Self, f64) {
        let (n, b) = (law.iterations(), law.min_separation);
        let (stay, join) = ((-law.sampling_probability).ln_1p(), law.sampling_probability.ln());
        let several = law.log_counts.len() > 1;
        let mut sums = vec![0.0; n + b + 1];
        let (mut taken, mut left) = (vec![0.0; n], vec![0.0; n]);
        let mut counts = Vec::new();
        for i in (0..n).rev() {
            let terms: Vec<f64> =
                (1u32..).zip(&law.log_counts).map(|(j, log)| log + f64::from(j) * theta * overlap[i]).collect();
            let inner = log_sum_exp(terms.iter().copied());
            if several {
                counts.push(cumulative(terms.iter().map(|log| (log - inner).exp())));
            }
            let (joins, stays) = (join + inner + sums[i + b], stay + sums[i + law.waiting()]);
            sums[i] = log_sum_exp([stays, joins].into_iter());
            taken[i] = (joins - sums[i]).exp();
            left[i] = (stays - sums[i]).max(NEVER);
        }
        counts.reverse();
        let logs: Vec<f64> = law.log_start().iter().zip(&sums).map(|(start, sum)| start + sum).collect();
        let total = log_sum_exp(logs.iter().copied());
        let start = cumulative(logs.iter().map(|log| (log - total).exp()));
        let survival = std::iter::once(0.0).chain(cumulative(left.into_iter())).collect();
        (Self { min_separation: b, phased: law.phased, start, survival, join: taken, counts }, total)
    }

    /// The rounds of each lane's participations, and how many records at once.
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
                // Lanes that are done draw along with the others, to no effect.
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
                    // Pr[no chance taken up to round r] = e^{survival(r + 1) − survival(from)}.
                    let level = self.survival[from] + drawn[lane];
                    from + self.survival[from + 1..].partition_point(|&s| s >= level)
                };
                if round < n {
                    let count = self.counts.get(round).map_or(0, |law| law.partition_point(|&c| c < several[lane]));
                    #[allow(clippy::cast_precision_loss)] // at most 1000
                    patterns[lane]
                        .push((round, count.min(self.counts.first().map_or(0, |law| law.len() - 1)) as f64 + 1.0));
                }
                available[lane] = round.saturating_add(b);
            }
        }
        stream.put_back(drawing);
    }
}

/// Patterns of a tilted law, none for R.
#[inline(always)]
pub(super) fn draw_tilted<V: Vector>(tilted: &Tilted, stream: &mut Stream, patterns: &mut Vec<Vec<(usize, f64)>>) {
    patterns.resize(LANES, Vec::new());
    patterns.iter_mut().for_each(Vec::clear);
    if let Some(TiltedLaw::Renewal(law)) = &tilted.law {
        law.draw::<V>(stream, patterns);
    }
}

/// Samples of a tilted mechanism with banded Toeplitz columns.
#[derive(Debug)]
pub(super) struct TiltedSource<'a> {
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
        kernel: &super::renewal::RenewalKernel,
        start: usize,
        rows: &mut [Lanes],
        patterns: &mut [Vec<(usize, f64)>],
    ) {
        draw_noise::<V>(self.stream, rows);
        add_participations(&kernel.coefficients, 1.0, start, rows, patterns);
        shift::<V>(rows, &self.base.mean[start..], self.tilted.theta);
    }
}

/// Add θm̄ to rows.
#[inline(always)]
pub(super) fn shift<V: Vector>(rows: &mut [Lanes], mean: &[f64], theta: f64) {
    if theta != 0.0 {
        for (row, m) in rows.iter_mut().zip(mean) {
            V::load(row).add(V::splat(theta * m)).store(row);
        }
    }
}

/// t = ⟨m̄, ŷ⟩.
#[inline(always)]
pub(super) fn statistic<V: Vector>(rows: &[Lanes], mean: &[f64]) -> V {
    let mut sum = V::splat(0.0);
    for (row, m) in rows.iter().zip(mean) {
        sum = V::load(row).mul_add(V::splat(*m), sum);
    }
    sum
}

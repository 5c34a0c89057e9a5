//! b-min-sep sampling: after a participation a record waits for b − 1 rounds; while available it joins each round with
//! probability p. Also cyclic Poisson sampling with a random phase, where every b-th round is a record's only chance.

use crate::error::{domain, Result};
use crate::laws::binomial;
use crate::participation::{blend, log_sum_error, square_error, PatternSum};
use crate::special::{log_sum_exp, real, Approximation, UNIT_ROUNDOFF};

/// The renewal law of one record's participations (Dong & Ganesh 2026, Algorithms 1 and 2).
///
/// A warm start draws the number of rounds for which the record is still unavailable from the stationary law:
/// 0 with probability 1/(1 + (b−1)p), each of 1…b−1 with probability p/(1 + (b−1)p). A cold start is available at once.
#[derive(Debug, Clone, PartialEq)]
pub struct Renewal {
    /// b: the minimum distance between two participations.
    pub min_separation: usize,
    /// p: the probability to join a round in which the record is available.
    pub sampling_probability: f64,
    /// ln of the probability to take part j = 1, 2, … times at once, given that it joins; one entry for a single
    /// record. For a user with k records that are drawn independently, Bin(j; k, p₁) given j ≥ 1.
    pub log_counts: Vec<f64>,
    /// The same probabilities.
    pub counts: Vec<f64>,
    /// The relative error of `counts`; 0 for a single record.
    pub counts_error: f64,
    /// Whether the start is stationary.
    pub warm: bool,
    /// Whether a record that does not join waits b rounds too: its chances are the rounds φ, φ + b, φ + 2b, … of a
    /// random phase φ, uniform on the first b rounds.
    pub phased: bool,
    /// s_i = ‖c_i‖²/σ² for each round: the squared norm that taking part in it adds.
    pub squares: Vec<f64>,
}

impl Renewal {
    /// Creates the law for `squares.len()` rounds.
    ///
    /// # Errors
    /// [`Error::Domain`] for no rounds, a separation of 0, a probability outside (0, 1] or squares that are not finite
    /// and positive.
    pub fn new(min_separation: usize, sampling_probability: f64, warm: bool, squares: Vec<f64>) -> Result<Self> {
        if squares.is_empty() {
            return domain("iterations", 0.0, "at least 1");
        }
        if min_separation == 0 {
            return domain("min_separation", 0.0, "at least 1");
        }
        if !(sampling_probability > 0.0 && sampling_probability <= 1.0) {
            return domain("sampling_probability", sampling_probability, "greater than 0 and at most 1");
        }
        if let Some(&square) = squares.iter().find(|s| !(s.is_finite() && **s >= 0.0)) {
            return domain("squared column norm", square, "finite and at least 0");
        }
        Ok(Self {
            min_separation,
            sampling_probability,
            log_counts: vec![0.0],
            counts: vec![1.0],
            counts_error: 0.0,
            warm,
            phased: false,
            squares,
        })
    }

    /// Creates the law of cyclic Poisson sampling with a random phase.
    ///
    /// # Errors
    /// As [`Self::new`]; also for more phases than rounds.
    pub fn with_phases(min_separation: usize, sampling_probability: f64, squares: Vec<f64>) -> Result<Self> {
        let law = Self::new(min_separation, sampling_probability, false, squares)?;
        if min_separation > law.iterations() {
            let value = real(min_separation);
            return domain("min_separation", value, "at most the number of iterations");
        }
        Ok(Self { phased: true, ..law })
    }

    /// Creates the law of a user's participations: while the user is available, each of `records` records is drawn with
    /// the probability given; then all of them wait for b − 1 rounds.
    ///
    /// # Errors
    /// As [`Self::new`]; also for no records, or more than 1000.
    pub fn of_users(
        min_separation: usize,
        record_probability: f64,
        records: u32,
        warm: bool,
        squares: Vec<f64>,
    ) -> Result<Self> {
        if !(1..=1000).contains(&records) {
            return domain("records", f64::from(records), "between 1 and 1000");
        }
        if records == 1 {
            return Self::new(min_separation, record_probability, warm, squares);
        }
        let joins = -(f64::from(records) * (-record_probability).ln_1p()).exp_m1();
        let law = Self::new(min_separation, joins, warm, squares)?;
        Ok(law.with_counts(counts(records, record_probability)?))
    }

    /// Returns the largest number of records that take part at once.
    pub fn records(&self) -> u32 {
        // The number is at most 1000 by construction.
        u32::try_from(self.log_counts.len()).unwrap_or(u32::MAX)
    }

    /// Returns the same law with another probability to join; a user's records are then drawn with the probability that
    /// gives it.
    pub fn with_probability(&self, sampling_probability: f64) -> Self {
        #[allow(clippy::float_cmp)] // given as that very number, the law is this one, to the last bit
        if sampling_probability == self.sampling_probability {
            return self.clone();
        }
        let records = self.records();
        let each = -((-sampling_probability).ln_1p() / f64::from(records)).exp_m1();
        let law = Self { sampling_probability, ..self.clone() };
        match counts(records, each) {
            Ok(found) if records > 1 => law.with_counts(found),
            _ => law,
        }
    }

    fn with_counts(self, (log_counts, counts_error): (Vec<f64>, f64)) -> Self {
        Self { counts: log_counts.iter().map(|log| log.exp()).collect(), log_counts, counts_error, ..self }
    }

    /// Returns the number of rounds.
    pub fn iterations(&self) -> usize {
        self.squares.len()
    }

    /// Returns ln of the probability of each number of rounds before the record's first chance (one entry for a cold
    /// start).
    pub fn log_start(&self) -> Vec<f64> {
        if self.phased {
            return vec![-real(self.min_separation).ln(); self.min_separation];
        }
        if !self.warm {
            return vec![0.0];
        }
        let total = (1.0 + (real(self.min_separation) - 1.0) * self.sampling_probability).ln();
        let mut law = vec![self.sampling_probability.ln() - total; self.min_separation];
        law[0] = -total;
        law
    }

    /// Returns the number of rounds from a chance that was not taken to the next: 1, or b with phases.
    pub fn waiting(&self) -> usize {
        if self.phased {
            self.min_separation
        } else {
            1
        }
    }

    /// Returns the largest number of participations.
    pub fn most_participations(&self) -> usize {
        self.iterations().div_ceil(self.min_separation)
    }

    /// Returns a bound on the total variation between the law of a drawn pattern and this one, and the largest number of
    /// its participations plus one.
    pub fn drawn(&self) -> (f64, f64) {
        let (n, draws, b) =
            (real(self.iterations()), real(self.most_participations()) + 1.0, real(self.min_separation));
        let counts = if self.records() > 1 { (f64::from(self.records()) + 2.0) * f64::EPSILON } else { 0.0 };
        let waiting = n * f64::EPSILON + 8.0 * UNIT_ROUNDOFF / self.sampling_probability + counts;
        (draws * waiting + 16.0 * b * f64::EPSILON, draws)
    }
}

/// Returns ln Bin(j; records, p) given j ≥ 1, for j = 1, …, records, and the relative error of the probabilities: that
/// of the binomial law, twice (of a term and of their sum), and of the logarithms, their sum and the exponentials.
/// (What underflows is below 10⁻³⁰⁰.)
fn counts(records: u32, probability: f64) -> Result<(Vec<f64>, f64)> {
    let law = binomial(records, probability)?;
    let mut logs = vec![f64::NEG_INFINITY; records as usize];
    for (&count, &log) in law.count.iter().zip(&law.log_probability) {
        if count > 0 {
            logs[count as usize - 1] = log;
        }
    }
    let total = log_sum_exp(logs.iter().copied());
    let largest = logs.iter().filter(|log| log.is_finite()).fold(0.0, |most: f64, log| most.max(log.abs()));
    let error = 2.0 * law.relative_error + UNIT_ROUNDOFF * (f64::from(records) + 4.0 * largest + 16.0);
    Ok((logs.into_iter().map(|log| log - total).collect(), error))
}

impl PatternSum for Renewal {
    fn log_sum(&self, proposal: &Self, power: f64, exponent: f64) -> Approximation {
        let largest = self.squares.iter().copied().fold(0.0, f64::max);
        self.log_sum_within(proposal, power, exponent, square_error(self.iterations()) * largest)
    }
}

impl Renewal {
    /// Computes [`PatternSum::log_sum`] where a squared norm may have an error of `square_error`, by the recursion of
    /// the law itself: f_i = w₀ f_{i+1} + φ_i f_{i+b} (with phases w₀ f_{i+b}), f_i = 1 beyond the last round, in
    /// logarithms.
    ///
    /// **Error.** The error of the logarithm of a sum is at most the worst of its terms', plus [`log_sum_error`]. So a
    /// pattern that passes n steps and at most m = ⌈n/b⌉ participations collects n times the errors of a step (of w₀,
    /// of the sum, and 4u of the terms, which are at most |weight| + |exponent·j²s_i| + M, M the largest |ln f_i|) and
    /// m times those of a participation: of its weight (and of how many of a user's records are drawn), and of its
    /// squared norm.
    pub fn log_sum_within(&self, proposal: &Self, power: f64, exponent: f64, square_error: f64) -> Approximation {
        let (n, b) = (self.iterations(), self.min_separation);
        let stay = blend(power, (-self.sampling_probability).ln_1p(), (-proposal.sampling_probability).ln_1p());
        let (own, other) = (self.sampling_probability.ln(), proposal.sampling_probability.ln());
        // The weight of taking part j times, and j².
        let join: Vec<(Approximation, f64)> = (1u32..)
            .zip(self.log_counts.iter().zip(&proposal.log_counts))
            .map(|(j, (mine, theirs))| (blend(power, own + mine, other + theirs), f64::from(j) * f64::from(j)))
            .collect();
        let mut sums = vec![0.0; n + b + 1];
        let (mut largest, mut widest) = (0.0_f64, 0.0_f64);
        for i in (0..n).rev() {
            let after = sums[i + b];
            let norm = exponent * self.squares[i];
            let joining = join.iter().map(|(log, square)| log.value + norm * square + after);
            sums[i] = log_sum_exp(std::iter::once(stay.value + sums[i + self.waiting()]).chain(joining));
            largest = largest.max(sums[i].abs());
            widest = widest.max(norm.abs());
        }
        let (start, other) = (self.log_start(), proposal.log_start());
        let starts: Vec<_> = start.iter().zip(&other).map(|(mine, theirs)| blend(power, *mine, *theirs)).collect();
        let value = log_sum_exp(starts.iter().zip(&sums).map(|(start, sum)| start.value + sum));

        // A weight of 0 is exact.
        let possible = |weight: &Approximation| weight.value > f64::NEG_INFINITY;
        let size = |weight: &Approximation| if possible(weight) { weight.value.abs() } else { 0.0 };
        let squares = join.last().map_or(1.0, |(_, square)| *square);
        let heaviest = join.iter().map(|(log, _)| size(log)).fold(size(&stay), f64::max);
        let terms = heaviest + widest * squares + largest;
        let step = stay.error + log_sum_error(join.len() + 1, largest) + 4.0 * UNIT_ROUNDOFF * terms;
        let counts = power.abs() * self.counts_error + (1.0 - power).abs() * proposal.counts_error;
        let participation = join.iter().map(|(log, _)| log.error).fold(0.0, f64::max)
            + counts
            + (exponent.abs() * square_error + 4.0 * UNIT_ROUNDOFF * widest) * squares;
        let first = starts.iter().map(|start| start.error + 4.0 * UNIT_ROUNDOFF * size(start)).fold(0.0, f64::max)
            + 4.0 * UNIT_ROUNDOFF * largest
            + log_sum_error(starts.len(), value);
        let (steps, most) = (real(n), real(self.most_participations()));
        Approximation { value, error: (steps * step + most * participation + first) * (1.0 + 1e-9) }
    }
}

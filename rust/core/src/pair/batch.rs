//! Batches of a fixed number of draws: how many times a group of sensitive records is drawn.
//!
//! There are N records of which k are sensitive, and m draws. Without replacement the number of sensitive draws is
//! hypergeometric, with replacement Binomial(m, k/N). The two-stage samplers draw a subset of b first: distinct
//! records, then m draws from it with replacement ([`Sampler::MustOw`]: each of the b records is drawn Binomial(m, 1/b)
//! times); or b with replacement, then m from these b slots with replacement ([`Sampler::MustWw`]: Σ_i Bin(i; b, 1/N)
//! Bin(j; m, i/b)). Drawing b with replacement and m of these slots without is the same as m draws with replacement:
//! the slots are independent.

use crate::error::{domain, Error, Result};
use crate::laws::{binomial, hypergeometric, Weights};
use crate::run::Run;
use crate::special::{log_sum_exp, real, UNIT_ROUNDOFF};

/// Probabilities that sum to at most this are moved to the largest number of draws: no δ that is resolved is this
/// small.
const NEGLIGIBLE: f64 = 1e-300;

/// How a batch of m records is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sampler {
    /// m distinct records.
    FixedSize,
    /// m independent draws.
    WithReplacement,
    /// b distinct records, then m independent draws from them.
    MustOw {
        /// b, the size of the subset.
        subset: u32,
    },
    /// b independent draws, then m independent draws from these.
    MustWw {
        /// b, the number of slots.
        subset: u32,
    },
}

impl Sampler {
    /// Returns the law of the number of sensitive draws, with a negligible upper tail moved to the largest number.
    ///
    /// * Formula: see the head of this file; `dataset` = N, `batch` = m, `group` = k.
    /// * Guarantee: each probability is within the law's relative error. A bound made with a law holds for every
    ///   stochastically smaller one, and so for larger data sets (see [`super::substitution`]).
    ///
    /// # Errors
    /// [`Error::Domain`] for sizes of zero, batches or subsets of more records than there are without replacement, more
    /// than 10⁶ draws with replacement, and groups of several records with two-stage sampling; those of [`Run::check`].
    pub fn copies(self, group: u32, dataset: u64, batch: u64, run: &Run) -> Result<Weights> {
        let other_records = dataset.checked_sub(u64::from(group)).ok_or(Error::Domain {
            name: "group_size",
            value: f64::from(group),
            allowed: "at most the dataset size",
        })?;
        if group == 0 {
            return domain("group_size", 0.0, "at least 1");
        }
        if self == Self::FixedSize {
            return Ok(folded(&hypergeometric(group, other_records, batch)?));
        }
        // refused, or exact enough for a quotient: 2u
        let (size, asked) = (real(dataset), real(batch));
        let Some(draws) = u32::try_from(batch).ok().filter(|&m| m > 0) else {
            return domain("batch_size", asked, "between 1 and 1,000,000 draws");
        };
        let subset = match self {
            Self::FixedSize | Self::WithReplacement => {
                return Ok(folded(&binomial(draws, f64::from(group) / size)?));
            }
            Self::MustOw { subset } | Self::MustWw { subset } => subset,
        };
        if group > 1 {
            return domain("group_size", f64::from(group), "1 with two-stage sampling");
        }
        if subset == 0 || (matches!(self, Self::MustOw { .. }) && u64::from(subset) > dataset) {
            return domain("subset_size", f64::from(subset), "between 1 and the dataset size");
        }
        let law = if matches!(self, Self::MustOw { .. }) {
            once_in_a_subset(f64::from(subset) / size, draws, subset)?
        } else {
            twice_with_replacement(&folded(&binomial(subset, 1.0 / size)?), draws, subset, run)?
        };
        Ok(folded(&law))
    }
}

/// Returns the law for a record that is in the subset with this probability, and then drawn Binomial(m, 1/b) times.
fn once_in_a_subset(inside: f64, draws: u32, subset: u32) -> Result<Weights> {
    let mut law = binomial(draws, 1.0 / f64::from(subset))?;
    let log_inside = inside.ln();
    for log in &mut law.log_probability {
        *log += log_inside;
    }
    if inside < 1.0 {
        // 1 − b/N is exact to u(1 + b/N)/(1 − b/N); both are quotients of whole numbers.
        if law.count[0] == 0 {
            law.log_probability[0] = (1.0 - inside + law.log_probability[0].exp()).ln();
        } else {
            law.count.insert(0, 0);
            law.log_probability.insert(0, (1.0 - inside).ln());
        }
        law.relative_error += 4.0 * UNIT_ROUNDOFF / (1.0 - inside);
    }
    let span = law.log_probability.iter().fold(0.0_f64, |a, l| a.max(l.abs()));
    law.relative_error += UNIT_ROUNDOFF * (8.0 + 4.0 * span);
    Ok(law)
}

/// Returns the law for a record that is i of the b slots with the first law's probability, and then drawn Binomial(m,
/// i/b) times.
fn twice_with_replacement(first: &Weights, draws: u32, subset: u32, run: &Run) -> Result<Weights> {
    let mut terms: Vec<Vec<f64>> = vec![Vec::new(); draws as usize + 1];
    let mut relative_error = first.relative_error;
    for (&slots, &log_slots) in first.count.iter().zip(&first.log_probability) {
        run.check()?;
        if slots == 0 {
            terms[0].push(log_slots);
            continue;
        }
        let second = binomial(draws, f64::from(slots) / f64::from(subset))?;
        relative_error = relative_error.max(first.relative_error + second.relative_error);
        for (&j, &log) in second.count.iter().zip(&second.log_probability) {
            terms[j as usize].push(log_slots + log);
        }
    }
    let (mut count, mut log_probability) = (Vec::new(), Vec::new());
    for (j, logs) in (0..=draws).zip(&terms) {
        let log = log_sum_exp(logs.iter().copied());
        if log > f64::NEG_INFINITY {
            count.push(j);
            log_probability.push(log);
        }
    }
    let span = log_probability.iter().fold(0.0_f64, |a, l| a.max(l.abs()));
    let sums = real(first.count.len());
    relative_error += UNIT_ROUNDOFF * (16.0 + 4.0 * span + 2.0 * sums);
    Ok(Weights { count, log_probability, relative_error })
}

/// Returns the law without the ends that are negligible together; the upper end is added to the largest number of
/// draws.
///
/// Moving mass up keeps every upper bound valid. Either way no δ changes by more than [`NEGLIGIBLE`] twice, which is
/// within the underflow that every Gaussian tail allows for.
fn folded(law: &Weights) -> Weights {
    let reach = |indices: &mut dyn Iterator<Item = usize>| {
        let (mut sum, mut cut) = (0.0, 0);
        for k in indices {
            sum += law.log_probability[k].exp();
            if sum > NEGLIGIBLE {
                break;
            }
            cut += 1;
        }
        cut
    };
    let last = law.count.len() - 1;
    let (low, high) = (reach(&mut (0..=last)), last - reach(&mut (0..=last).rev()));
    let mut kept = Weights {
        count: law.count[low..=high].to_vec(),
        log_probability: law.log_probability[low..=high].to_vec(),
        relative_error: law.relative_error,
    };
    if high < last {
        kept.count.push(law.count[last]);
        kept.log_probability.push(NEGLIGIBLE.ln());
    }
    kept
}

//! The steps of a run: the chain, the factors of each step, the law of its start, and the resulting moment.

use rayon::prelude::*;

use crate::error::Result;
use crate::replicas::chain::{table, Chain, Factors, Step, CHUNK, LEAST, LOOK, MOST_CHANGE};
use crate::run::Run;
use crate::special::{real, UNIT_ROUNDOFF};

/// How much of ln Z_m may be given up by not computing every step, unless another value is requested.
pub const GAP: f64 = 1e-3;

/// Bounds on ln E f^m.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LogMoment {
    /// A lower bound on it. E f = 1, so that no moment is below 1.
    pub lower: f64,
    /// An upper bound on it; infinite if the chain leaves the range of doubles.
    pub upper: f64,
    /// The part of the upper bound that covers what is left out where few replicas may be busy at once.
    pub left_out: f64,
    /// The number of steps that were computed; the other steps are bounded by λ̄.
    pub steps: usize,
}

/// The steps: their number, and their factors.
#[derive(Debug)]
pub(super) struct Steps {
    pub chain: Chain,
    /// The number of steps.
    pub count: usize,
    /// The factors of the last steps, from the last one back; of the first ones; of all others.
    pub last: Vec<Factors>,
    pub first: Vec<Factors>,
    pub inner: Factors,
    /// Whether the first steps are treated like all others.
    pub extended: bool,
    /// The law of the first state; if there is none, all replicas are free.
    pub start: Option<Stationary>,
    /// ln of the common factor of all values, rounded up.
    pub log_constant: f64,
    /// The number of steps after which λ̄ is used whatever it is: ratios settle within a few times as many as there are
    /// ages, if they do.
    pub most: usize,
    /// A bound on the relative excess of a step with all its factors over the exact one; `None` if the chain is above
    /// Z_m by more than rounding.
    pub raised: Option<f64>,
}

/// The stationary probabilities of one busy age, and of a free replica, rounded up.
#[derive(Debug, Clone, Copy)]
pub(super) struct Stationary {
    pub busy: f64,
    pub free: f64,
}

impl Steps {
    /// Returns the factors of step i, from 1 on.
    pub(super) fn factors(&self, i: usize) -> &Factors {
        let own = self.last.get(self.count - i);
        let own = own.or_else(|| if self.extended { None } else { self.first.get(i - 1) });
        own.unwrap_or(&self.inner)
    }

    /// Returns the largest size of a logarithm of a weight that underflows; 0 if there is none.
    pub(super) fn logarithms(&self) -> f64 {
        self.last.iter().chain(&self.first).chain([&self.inner]).map(|own| own.logarithms).fold(0.0, f64::max)
    }

    /// Returns whether step i is neither one of the first nor one of the last steps, so that it equals its neighbours.
    pub(super) fn same(&self, i: usize) -> bool {
        self.count - i >= self.last.len() && i > self.first.len()
    }

    /// Returns bounds on ln Z_m. Steps that are not computed lose at most `gap`, except after [`Self::most`] steps.
    ///
    /// **From below.** If computed steps are above the exact ones by at most a factor 1 + R and no value was raised to
    /// [`LEAST`], then exact steps, which are linear and keep order, give no less than computed ones over (1 + R) each.
    /// Over all k steps with one factor they multiply by no less than (λ/(1 + R))^k, λ the smallest ratio of a computed
    /// step to its input.
    pub(super) fn log_moment(&self, gap: f64, run: &Run) -> Result<LogMoment> {
        let count = self.chain.multisets.count();
        let (mut values, mut next) = (table(count)?, table(count)?);
        next.fill(1.0);
        // Values represent themselves times 2^exponent e^bulk.
        let (mut exponent, mut scale, mut bulk, mut least_bulk) = (0_i32, 1.0_f64, 0.0_f64, 0.0_f64);
        let (mut i, mut computed, mut smallest) = (self.count, 0, f64::INFINITY);
        while i >= 1 {
            let ratios = self.same(i) && computed % LOOK == 0;
            let against = ratios.then_some(&next[..]);
            let step = Step { next: &next, factors: self.factors(i), scale, against, beyond: None };
            let extremes = self.chain.step(&step, &mut values, run)?;
            let power = libm::ilogb(extremes.largest);
            if !extremes.largest.is_finite() || power.abs() > MOST_CHANGE {
                return Ok(LogMoment { lower: 0.0, upper: f64::INFINITY, left_out: 0.0, steps: computed });
            }
            smallest = smallest.min(extremes.smallest);
            std::mem::swap(&mut values, &mut next);
            computed += 1;
            exponent += power;
            scale = 2.0_f64.powi(-power);
            let left = if ratios { real(i - 1 - self.first.len()) } else { 0.0 };
            let (growth, least) = (libm::log(extremes.most), libm::log(extremes.least));
            let settled = left * (growth - least) <= gap || computed >= self.most;
            if left > 0.0 && settled {
                // The ratio is rounded by 2u, the logarithm and the product by as much of their size.
                bulk = left * (growth + 4.0 * UNIT_ROUNDOFF * (1.0 + growth.abs())) * (1.0 + 4.0 * UNIT_ROUNDOFF);
                least_bulk = left * (least - 8.0 * UNIT_ROUNDOFF * (1.0 + least.abs()));
                i = self.first.len() + 1;
            }
            i -= 1;
        }
        let (total, above) = self.started(&next, run)?;
        let exponent = f64::from(exponent) * std::f64::consts::LN_2;
        let sum = |bulk: f64| {
            let logs = [exponent, libm::log(scale), bulk, libm::log(total), self.log_constant];
            let size: f64 = logs.iter().map(|x| x.abs()).sum();
            (logs.iter().sum::<f64>(), 16.0 * UNIT_ROUNDOFF * (1.0 + size))
        };
        let ((most, rounding), (least, other)) = (sum(bulk), sum(least_bulk));
        let lower = match self.raised {
            Some(raised) if smallest > LEAST => least - other - above - real(self.count) * raised,
            _ => 0.0,
        };
        Ok(LogMoment { lower: lower.max(0.0), upper: most + rounding, left_out: 0.0, steps: computed })
    }

    /// Returns Σ_s start(s) v(s), rounded up, and a bound on its relative excess.
    pub(super) fn started(&self, values: &[f64], run: &Run) -> Result<(f64, f64)> {
        let Some(Stationary { busy, free }) = self.start else { return Ok((values[values.len() - 1], 0.0)) };
        let chain = &self.chain;
        let sums: Vec<f64> = values
            .par_chunks(CHUNK)
            .enumerate()
            .map(|(chunk, values)| {
                run.check()?;
                let mut kinds = vec![0; chain.most_busy];
                chain.multisets.write(chunk * CHUNK, &mut kinds);
                let mut sum = 0.0;
                for &value in values {
                    sum += chain.multinomial(&kinds, busy, free) * value;
                    chain.multisets.advance(&mut kinds);
                }
                Ok(sum)
            })
            .collect::<Result<_>>()?;
        let operations = real(CHUNK.min(values.len()) + sums.len() + 4 * chain.order + 8);
        let rounding = operations * UNIT_ROUNDOFF;
        // Probabilities are raised by fewer than 16u each, and their products where they underflow.
        #[allow(clippy::cast_possible_truncation, clippy::cast_possible_wrap)] // small
        let underflow = busy.min(free).powi(chain.order as i32) < 1e-300;
        let above = 6.0 * rounding + 16.0 * real(chain.order) * UNIT_ROUNDOFF;
        Ok((sums.iter().sum::<f64>() * (1.0 + 4.0 * rounding), if underflow { f64::INFINITY } else { above }))
    }
}

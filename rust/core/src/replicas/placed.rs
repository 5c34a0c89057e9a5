//! m replicas under balls in bins: moments of the likelihood ratio, and tuples drawn from the law of f^m.
//!
//! A replica is in one of T bins for the whole run, each with the same probability, and two of them have the inner
//! product Γ_st of their bins' modes. So Z_m is a sum over the multisets of m bins,
//! `Z_m = T^{−m} Σ_{t_1 ≤ … ≤ t_m} m!/Π counts! · e^{Σ_{r<s} Γ}`, and a tuple is drawn by its number. All of this holds
//! for any modes that have no negative inner products, orthogonal or not.
//!
//! **Rounding.** Γ is raised by the error bound of the kernel that it belongs to. Exponents are sums of m(m − 1)/2 of
//! these, relative to the largest possible one, and their exponentials are above the least positive numbers.

use rayon::prelude::*;

use crate::error::{domain, Error, Result};
use crate::replicas::multisets::{number_of, Multisets};
use crate::replicas::stepwise::Bounds;
use crate::replicas::weighted::Weighted;
use crate::run::Run;
use crate::special::{real, UNIT_ROUNDOFF};

/// The maximum number of multisets.
const MOST: usize = 1 << 26;
/// The number of multisets in a block.
pub(super) const BLOCK: usize = 64;
/// The largest exponent of all pairs together.
const MOST_EXPONENT: f64 = 650.0;

/// Tuples of m replicas in bins.
#[derive(Debug)]
pub struct Placed {
    /// Inner products of the modes, rounded up, row by row.
    gram: Vec<f64>,
    bins: usize,
    order: usize,
    multisets: Multisets,
    /// The largest exponent that a tuple may have.
    top: f64,
    weighted: Weighted,
    log_bound: f64,
    rounded: f64,
    /// A bound on how much exponents may be above the exact ones, because inner products were raised.
    raised: f64,
}

/// Returns the number of multisets of bins; `None` if there are too many.
pub(super) fn price(bins: usize, order: usize) -> Option<usize> {
    number_of(bins, order).filter(|count| *count <= MOST)
}

impl Placed {
    /// Creates the tuples of m = `order` replicas with these inner products of the modes, in units of σ, row by row,
    /// which have an error of at most `error`.
    ///
    /// * Memory: 8 bytes for 64 multisets. Time: m operations for each.
    /// * Guarantee: see the head of this file. The result does not depend on the number of threads.
    ///
    /// # Errors
    /// [`Error::Domain`] for an order below 2, and for inner products that are negative or no numbers;
    /// [`Error::Numerics`] for too many multisets, and where an exponential leaves the range of numbers; as
    /// [`Run::check`].
    pub(super) fn new(gram: &[f64], error: f64, order: usize, run: &Run) -> Result<Self> {
        let gram: Vec<f64> = gram.iter().map(|entry| (entry + error).next_up()).collect();
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // a square
        let bins = real(gram.len()).sqrt().round() as usize;
        if order < 2 {
            return domain("order", real(order), "at least 2");
        }
        if let Some(&wrong) = gram.iter().find(|entry| !(entry.is_finite() && **entry >= 0.0)) {
            return domain("entry of the Gram matrix", wrong, "finite and at least 0");
        }
        if price(bins, order).is_none() {
            return Err(Error::Numerics { reason: "replicas have too many bins" });
        }
        let pairs = real(order * (order - 1) / 2);
        let top = pairs * gram.iter().copied().fold(0.0, f64::max);
        if top > MOST_EXPONENT {
            return Err(Error::Numerics { reason: "a chain of replicas leaves the range of numbers" });
        }
        let multisets = Multisets::new(bins, order)?;
        let weighted = Weighted::new(Vec::new(), BLOCK, 0);
        let raised = 2.0 * pairs * error;
        let mut placed = Self { gram, bins, order, multisets, top, weighted, log_bound: 0.0, rounded: 0.0, raised };
        let count = placed.multisets.count();
        let sums = (0..count.div_ceil(BLOCK))
            .into_par_iter()
            .map(|block| {
                run.check()?;
                Ok(placed.sums(block).last().copied().unwrap_or(0.0))
            })
            .collect::<Result<_>>()?;
        placed.weighted = Weighted::new(sums, BLOCK, 4 * order);
        let constant = real(order) * libm::log(real(bins));
        let total = libm::log(placed.weighted.total());
        placed.rounded = 16.0 * UNIT_ROUNDOFF * (1.0 + top + constant + total.abs());
        placed.log_bound = total + top - constant + placed.rounded;
        Ok(placed)
    }

    /// Returns sums of the weights of a block's multisets, times T^m e^{−top}, up to each of them; their terms are
    /// rounded up.
    fn sums(&self, block: usize) -> Vec<f64> {
        let first = block * BLOCK;
        let mut chosen = vec![0; self.order];
        self.multisets.write(first, &mut chosen);
        // The operations are a sum of m² numbers in the exponent, the exponential, and m products and quotients.
        let order = real(self.order);
        let up = 1.0 + 4.0 * UNIT_ROUNDOFF * (order * order * (1.0 + self.top) + 2.0 * order + 8.0);
        let mut sum = 0.0;
        (first..self.multisets.count().min(first + BLOCK))
            .map(|_| {
                let (mut exponent, mut ways, mut alike) = (-self.top, 1.0, 0.0);
                for (k, &bin) in chosen.iter().enumerate() {
                    let row = &self.gram[bin * self.bins..][..self.bins];
                    exponent += chosen[..k].iter().map(|&other| row[other]).sum::<f64>();
                    alike = if k > 0 && chosen[k - 1] == bin { alike + 1.0 } else { 1.0 };
                    let placed = real(k + 1);
                    ways *= placed / alike;
                }
                sum += ways * libm::exp(exponent) * up;
                self.multisets.advance(&mut chosen);
                sum
            })
            .collect()
    }

    /// Draws the bins of a tuple, by two uniform numbers in (0, 1], in ascending order.
    pub fn draw(&self, uniforms: (f64, f64), bins: &mut Vec<usize>) {
        let number = self.weighted.draw(uniforms, |block| self.sums(block));
        bins.resize(self.order, 0);
        self.multisets.write(number, bins);
    }
}

impl Bounds for Placed {
    fn log_bound(&self) -> f64 {
        self.log_bound
    }

    /// Returns an upper bound on the excess of the computed ln ρ over the exact one, which it never falls below: the
    /// amount by which terms and their sums are rounded up.
    fn relative(&self) -> f64 {
        let (order, raised) = (real(self.order), self.weighted.raised(4 * self.order));
        UNIT_ROUNDOFF * (8.0 * (order * order * (1.0 + self.top) + 6.0 * order + 32.0) + raised)
            + 2.0 * self.rounded
            + self.raised
    }

    /// Returns an upper bound on the total variation between the law that tuples are drawn from and π.
    fn variation(&self) -> f64 {
        UNIT_ROUNDOFF * self.weighted.variation() * (1.0 + 1e-6)
    }
}

#[cfg(test)]
mod tests {
    use super::Placed;
    use crate::replicas::enumeration::{agree, enumerated, uniforms, Patterns};
    use crate::replicas::stepwise::Bounds;
    use crate::run::Run;
    use crate::special::real;

    #[test]
    fn tuples_and_moments_are_those_of_all_tuples() {
        // A ring of modes: of any lengths and overlaps, t at most m(B − 1) or more.
        for (bins, order, gram) in [
            (1, 3, vec![1.5]),
            (3, 4, vec![2.0, 0.7, 0.5, 0.7, 1.6, 0.9, 0.5, 0.9, 1.0]),
            (4, 3, vec![1.0, 0.4, 0.0, 0.4, 0.4, 1.0, 0.4, 0.0, 0.0, 0.4, 1.0, 0.4, 0.4, 0.0, 0.4, 1.0]),
            (2, 6, vec![0.8, 0.8, 0.8, 0.8]),
        ] {
            let weight = 1.0 / real(bins);
            let one = |bin| (0..bins).map(|other| usize::from(other == bin)).collect();
            let patterns: Patterns = (0..bins).map(|bin| (one(bin), weight)).collect();
            let place = |pattern: &[usize]| pattern.iter().position(|&count| count == 1).expect("somewhere");
            let (log, expected) = enumerated(&patterns, |one, other| gram[place(one) * bins + place(other)], order);
            let placed = Placed::new(&gram, 0.0, order, &Run::default()).expect("valid");
            assert!((placed.log_bound() - log).abs() <= 1e-12 * (1.0 + log), "{} {log}", placed.log_bound());
            assert!(placed.log_bound() >= log - 1e-14 * (1.0 + log) && placed.relative() < 1e-10);
            let (mut draw, mut chosen) = (uniforms(9), Vec::new());
            agree(placed.log_bound(), (log, &expected), || {
                placed.draw((draw(), draw()), &mut chosen);
                let mut counts = vec![0; bins];
                for &bin in &chosen {
                    counts[bin] += 1;
                }
                (counts, placed.log_bound())
            });
        }
    }

    #[test]
    fn what_has_no_tuples_is_refused() {
        let run = Run::default();
        assert!(Placed::new(&[1.0], 0.0, 1, &run).is_err());
        assert!(Placed::new(&[-1.0], 0.0, 2, &run).is_err());
        assert!(Placed::new(&[700.0], 0.0, 3, &run).is_err());
        assert!(Placed::new(&vec![0.0; 1 << 20], 0.0, 4, &run).is_err());
    }
}

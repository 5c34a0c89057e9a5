//! A mixture of unit-variance Gaussians on the line: its density and its tails.
//!
//! The law of a large group has thousands of components, of which a few hundred matter at any one point. Components are
//! stored in blocks, and a block is skipped if its largest weight at its best position is negligible.

use crate::special::{real, scaled_upper_tail, Approximation, UNDERFLOW, UNIT_ROUNDOFF};

/// One Gaussian of a mixture: its log weight and its shift in units of the noise's standard deviation.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct NormalComponent {
    pub(super) log_weight: f64,
    weight: f64,
    pub(super) shift: f64,
}

/// A mixture of unit-variance Gaussians.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct NormalMixture {
    /// Sorted by shift.
    pub(super) components: Vec<NormalComponent>,
    /// The largest log weight of each [`BLOCK`] of components.
    heaviest: Vec<f64>,
}

/// The number of components in a block.
const BLOCK: usize = 32;
/// Up to this many components, densities and tails are summed over all components.
const FEW: usize = 64;
/// Terms whose logarithm is this far below that of the largest are left out of a density, and of a tail.
const FAINT: f64 = 45.0;
const FAINT_TAIL: f64 = 60.0;

impl NormalMixture {
    /// Creates a mixture of (log weight, shift).
    pub(super) fn new(components: impl Iterator<Item = (f64, f64)>) -> Self {
        let mut components: Vec<NormalComponent> = components
            .map(|(log_weight, shift)| NormalComponent { log_weight, weight: log_weight.exp(), shift })
            .collect();
        components.sort_by(|a, b| a.shift.total_cmp(&b.shift));
        let heaviest = components
            .chunks(BLOCK)
            .map(|block| block.iter().map(|c| c.log_weight).fold(f64::NEG_INFINITY, f64::max))
            .collect();
        Self { components, heaviest }
    }

    pub(super) fn mirrored(&self) -> Self {
        Self::new(self.components.iter().map(|c| (c.log_weight, -c.shift)))
    }

    /// Returns the blocks that may hold terms within `faint` of the largest one, and the largest term, of
    /// `log_weight + size(shift)`.
    ///
    /// `largest_size(low, high)` is at least `size` on `[low, high]`. `faint` is increased by one to allow for the
    /// rounding of both.
    fn within(
        &self,
        faint: f64,
        size: impl Fn(f64) -> f64,
        largest_size: impl Fn(f64, f64) -> f64,
    ) -> (impl Iterator<Item = &[NormalComponent]>, f64) {
        let bounds: Vec<f64> = self
            .components
            .chunks(BLOCK)
            .zip(&self.heaviest)
            .map(|(block, heaviest)| heaviest + largest_size(block[0].shift, block[block.len() - 1].shift))
            .collect();
        let largest_in = |block: &[NormalComponent]| {
            block.iter().map(|c| c.log_weight + size(c.shift)).fold(f64::NEG_INFINITY, f64::max)
        };
        let mut order: Vec<(usize, &[NormalComponent])> = self.components.chunks(BLOCK).enumerate().collect();
        order.sort_unstable_by(|a, b| bounds[b.0].total_cmp(&bounds[a.0]));
        let mut largest = f64::NEG_INFINITY;
        for (k, block) in order {
            if bounds[k] < largest - 1.0 {
                break;
            }
            largest = largest.max(largest_in(block));
        }
        let blocks = self.components.chunks(BLOCK).zip(bounds);
        (blocks.filter(move |(_, bound)| *bound >= largest - faint - 1.0).map(|(block, _)| block), largest)
    }

    /// Returns `ln(density(y)/φ(y))`, its derivative, and a bound on the rounding of the former.
    pub(super) fn log_ratio(&self, y: f64) -> (f64, f64, f64) {
        if let [only] = self.components[..] {
            let (linear, square) = (only.shift * y, 0.5 * only.shift * only.shift);
            let rounding = 6.0 * UNIT_ROUNDOFF * (linear.abs() + square + only.log_weight.abs());
            return (only.log_weight + linear - square, only.shift, rounding);
        }
        if let [one, other] = &self.components[..] {
            return Self::log_ratio_of_two(y, one, other);
        }
        if self.components.len() <= FEW {
            return self.log_ratio_of(y, std::iter::once(&self.components[..]));
        }
        let size = |shift: f64| shift * (y - 0.5 * shift);
        // The size is a parabola in the shift, with its maximum at y.
        let (blocks, _) = self.within(FAINT, size, |low, high| size(y.clamp(low, high)));
        let blocks: Vec<&[NormalComponent]> = blocks.collect();
        self.log_ratio_of(y, blocks.into_iter())
    }

    /// Computes [`NormalMixture::log_ratio_of`] for two components, with the same bits: e^0 is 1.
    fn log_ratio_of_two(y: f64, one: &NormalComponent, other: &NormalComponent) -> (f64, f64, f64) {
        let exponent = |c: &NormalComponent| c.log_weight + c.shift * (y - 0.5 * c.shift);
        let size = |c: &NormalComponent| c.log_weight.abs() + c.shift.abs() * (y.abs() + c.shift.abs());
        let (first, second) = (exponent(one), exponent(other));
        let (larger, largest, smaller, difference) =
            if first >= second { (one, first, other, second - first) } else { (other, second, one, first - second) };
        let (mut sum, mut moment, mut magnitude) = (1.0, larger.shift, size(larger));
        if difference > -FAINT {
            let term = difference.exp();
            sum += term;
            moment += term * smaller.shift;
            magnitude = magnitude.max(size(smaller));
        }
        let rounding = UNIT_ROUNDOFF * (6.0 * magnitude + 8.0) + 6e-20;
        (largest + sum.ln(), moment / sum, rounding)
    }

    /// Computes [`NormalMixture::log_ratio`] from the blocks that matter.
    fn log_ratio_of<'a>(&self, y: f64, blocks: impl Iterator<Item = &'a [NormalComponent]> + Clone) -> (f64, f64, f64) {
        let exponent = |c: &NormalComponent| c.log_weight + c.shift * (y - 0.5 * c.shift);
        let largest = blocks.clone().flatten().map(exponent).fold(f64::NEG_INFINITY, f64::max);
        let (mut sum, mut moment, mut magnitude) = (0.0, 0.0, 0.0_f64);
        for c in blocks.flatten() {
            let e = exponent(c);
            if e > largest - FAINT {
                let term = (e - largest).exp();
                sum += term;
                moment += term * c.shift;
                magnitude = magnitude.max(c.log_weight.abs() + c.shift.abs() * (y.abs() + c.shift.abs()));
            }
        }
        // The terms left out are at most e^-45 each; the rest is the rounding of the exponents that matter.
        let count = real(self.components.len());
        let rounding = UNIT_ROUNDOFF * (6.0 * magnitude + 2.0 * count + 4.0) + 3e-20 * count;
        (largest + sum.ln(), moment / sum, rounding)
    }

    /// Returns `e^ε Pr[Y > τ]` under the mixture.
    pub(super) fn scaled_tail(&self, epsilon: f64, tau: f64, weight_error: f64) -> Approximation {
        let mut total = Approximation::default();
        if self.components.len() <= FEW {
            for c in &self.components {
                total += c.scaled_tail(epsilon, tau, weight_error);
            }
            return total;
        }
        // Pr[Z > x] ≤ e^{−x²/2} for x ≥ 0.
        let size = |shift: f64| -0.5 * (tau - shift).max(0.0).powi(2);
        let (blocks, largest) = self.within(FAINT_TAIL, size, |_, high| size(high));
        let mut left_out = self.components.len();
        for c in blocks.flatten() {
            if c.log_weight + size(c.shift) >= largest - FAINT_TAIL {
                total += c.scaled_tail(epsilon, tau, weight_error);
                left_out -= 1;
            }
        }
        if left_out > 0 {
            // Each term left out is at most e^{ε + largest − 60}; another factor of e² covers the rounding of the
            // exponents and of the weights.
            let each = (epsilon + largest - FAINT_TAIL + 2.0).exp();
            let count = real(left_out);
            total.error += count * each + UNDERFLOW;
        }
        total
    }
}

impl NormalComponent {
    /// Returns this component's part of [`NormalMixture::scaled_tail`].
    fn scaled_tail(&self, epsilon: f64, tau: f64, weight_error: f64) -> Approximation {
        let x = tau - self.shift;
        let x_error = UNIT_ROUNDOFF * (x.abs() + 2.0 * self.shift.abs());
        if self.weight > UNDERFLOW {
            scaled_upper_tail(epsilon, x, x_error).scaled(self.weight, weight_error)
        } else {
            // The weight has left the normal range; e^ε may bring the product back.
            let relative = weight_error + 2.0 * UNIT_ROUNDOFF * (epsilon.abs() + self.log_weight.abs());
            scaled_upper_tail(epsilon + self.log_weight, x, x_error).scaled(1.0, relative)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::laws::binomial;

    fn group() -> NormalMixture {
        let weights = binomial(3000, 0.02).unwrap();
        NormalMixture::new(weights.count.iter().zip(&weights.log_probability).map(|(&j, &l)| (l, f64::from(j) * 0.7)))
    }

    #[test]
    fn blocks_leave_a_density_as_it_is() {
        let mixture = group();
        for y in [-40.0, 0.0, 12.5, 42.0, 90.0, 400.0, 1800.0] {
            assert_eq!(mixture.log_ratio(y), mixture.log_ratio_of(y, std::iter::once(&mixture.components[..])));
        }
    }

    #[test]
    fn blocks_leave_out_of_a_tail_what_its_error_holds() {
        let mixture = group();
        for (epsilon, tau) in [(0.0, -3.0), (0.0, 42.0), (3.0, 60.0), (0.0, 120.0), (40.0, 95.0), (-20.0, 5.0)] {
            let mut all = Approximation::default();
            for c in &mixture.components {
                all += c.scaled_tail(epsilon, tau, 1e-13);
            }
            let some = mixture.scaled_tail(epsilon, tau, 1e-13);
            assert!((some.value - all.value).abs() <= 1e-15 * all.value, "{epsilon} {tau}: {some:?} {all:?}");
            assert!(some.error <= all.error + 1e-14 * all.value + UNDERFLOW);
            // The error covers what was left out: dropped terms are positive.
            assert!(some.value <= all.value * (1.0 + 1e-15));
        }
    }
}

//! Inner products of the columns of a banded Toeplitz matrix.

use crate::error::{domain, Result};
use crate::special::UNIT_ROUNDOFF;

/// Upper bounds on r_i(k) = ⟨c_i, c_{i−k}⟩, the inner product of two columns k rounds apart over the rows that the run
/// has.
///
/// Column i begins in row i. With `rows` = min(bands, n − i + 1) of its entries inside the run, r = Σ_{l < min(rows,
/// bands − k)} c_l c_{l+k}.
#[derive(Debug, Clone)]
pub struct Overlaps {
    bands: usize,
    /// r for `rows` = 1..=bands and k = 0..bands, row by row.
    products: Vec<f64>,
}

impl Overlaps {
    /// Returns the inner products for coefficients c_0, c_1, … in units of σ, each rounded up.
    ///
    /// # Errors
    /// [`Error::Domain`] for no coefficients, or any that is negative or not finite: with signs the noise may hide a
    /// pattern less well than its replicas' inner products imply.
    pub fn toeplitz(coefficients: &[f64]) -> Result<Self> {
        let bad = coefficients.iter().find(|c| !(c.is_finite() && **c >= 0.0));
        if let Some(&value) = bad.or(coefficients.is_empty().then_some(&0.0)) {
            return domain("coefficient", value, "at least one, finite and at least 0");
        }
        let bands = coefficients.len();
        let mut products = vec![0.0; bands * bands];
        for k in 0..bands {
            let mut sum = 0.0;
            for rows in 1..=bands {
                if let Some(later) = coefficients.get(rows - 1 + k) {
                    // A product, a sum, and the increment here: three roundings of at most u of the sum, which 4u
                    // covers. What a product loses to underflow is below 2⁻¹⁰⁷⁴, and the factor's own addition is
                    // larger.
                    sum = (sum + coefficients[rows - 1] * later) * (1.0 + 4.0 * UNIT_ROUNDOFF) + f64::MIN_POSITIVE;
                }
                products[(rows - 1) * bands + k] = sum;
            }
        }
        Ok(Self { bands, products })
    }

    /// Returns this multiple of all of them, each rounded up.
    pub fn times(&self, factor: f64) -> Self {
        let product = |r: &f64| r * factor * (1.0 + 4.0 * UNIT_ROUNDOFF);
        Self { bands: self.bands, products: self.products.iter().map(product).collect() }
    }

    /// Returns the number of bands.
    pub fn bands(&self) -> usize {
        self.bands
    }

    /// Returns r for a column with this many rows inside the run (at least 1, at most the bands) and an earlier one k <
    /// bands rounds before it.
    pub fn product(&self, rows: usize, k: usize) -> f64 {
        self.products[(rows - 1) * self.bands + k]
    }
}

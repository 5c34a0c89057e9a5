//! Integrals of a log-normal law over the cells of a grid, by Gauss–Legendre quadrature.

use crate::special::{upper_tail, UNIT_ROUNDOFF};

/// Nodes in (0, 1) and weights of the rule with 16 points on [−1, 1] (Abramowitz & Stegun, Table 25.4).
const RULE: [(f64, f64); 8] = [
    (0.095_012_509_837_637_44, 0.189_450_610_455_068_5),
    (0.281_603_550_779_258_9, 0.182_603_415_044_923_6),
    (0.458_016_777_657_227_4, 0.169_156_519_395_002_5),
    (0.617_876_244_402_643_7, 0.149_595_988_816_576_73),
    (0.755_404_408_355_003, 0.124_628_971_255_533_87),
    (0.865_631_202_387_831_7, 0.095_158_511_682_492_78),
    (0.944_575_023_073_232_6, 0.062_253_523_938_647_89),
    (0.989_400_934_991_649_9, 0.027_152_459_411_754_1),
];

/// The density of ln Z, N(−s/2, s).
#[derive(Debug, Clone, Copy)]
pub struct LogNormal {
    square: f64,
}

impl LogNormal {
    /// Creates the density for this s.
    pub const fn new(square: f64) -> Self {
        Self { square }
    }

    /// Returns ∫₀^h weight(w)·φ(v + w) dw over a cell that begins at v, for weights that are not negative.
    ///
    /// In units of the cell the integrand is an entire function whose logarithm moves by at most c·z + c² over
    /// distances of a few cells, c = h/√s ≤ 2⁻⁴ and z ≤ 34 the distance from the mean in standard deviations: on the
    /// ellipse with ρ = 6 around the cell it is at most e^9 times its smallest value there, so that the rule's relative
    /// error is below e^9·(64/15)·6^{−32} < 1e-19 (Trefethen 2013, Theorem 19.3). What remains is rounding, see
    /// [`LogNormal::error`].
    pub fn over_cell(self, v: f64, h: f64, weight: impl Fn(f64) -> f64) -> f64 {
        let scale = 0.5 * h / (2.0 * std::f64::consts::PI * self.square).sqrt();
        let term = |node: f64, share: f64| {
            let w = 0.5 * h * (1.0 + node);
            let z = v + w + 0.5 * self.square;
            share * weight(w) * (-0.5 * z * z / self.square).exp()
        };
        scale * RULE.iter().map(|&(node, share)| term(-node, share) + term(node, share)).sum::<f64>()
    }

    /// Returns a bound on the relative error of such integrals within `reach` standard deviations of either mean: the
    /// rounding of the exponent, and that of the exponential, of weights, nodes and sums.
    pub fn error(self, reach: f64) -> f64 {
        let far = reach + self.square.sqrt();
        UNIT_ROUNDOFF * (8.0 * far * far + 64.0)
    }

    /// Returns upper bounds on Pr[ln Z < v] and E[Z; ln Z < v].
    pub fn below(self, v: f64) -> (f64, f64) {
        let root = self.square.sqrt();
        (tail((-0.5 * self.square - v) / root), tail((0.5 * self.square - v) / root))
    }

    /// Returns upper bounds on Pr[ln Z > v] and E[Z; ln Z > v].
    pub fn above(self, v: f64) -> (f64, f64) {
        let root = self.square.sqrt();
        (tail((v + 0.5 * self.square) / root), tail((v - 0.5 * self.square) / root))
    }
}

/// Returns an upper bound on Pr[N(0, 1) > x].
fn tail(x: f64) -> f64 {
    let approximation = upper_tail(x, 8.0 * UNIT_ROUNDOFF * (x.abs() + 1.0));
    approximation.value + approximation.error
}

//! The largest sums of weights over sets of rounds that are at least b apart.
//!
//! For non-negative weights the best set is found by a recursion over the last round: best(d) = max(best(d − 1),
//! weight(d) + best(d − b)).

/// For each column of a matrix: its squared norm, and a bound on the sum of its inner products with the other columns
/// of any pattern.
#[derive(Debug, Clone, PartialEq)]
pub struct GramBounds {
    /// ‖c_i‖², of the part within the run.
    pub squares: Vec<f64>,
    /// Γ_i = max over sets S of rounds at least b apart, i among them, of Σ_{j ∈ S, j ≠ i} ⟨c_i, c_j⟩.
    pub off_diagonals: Vec<f64>,
}

impl GramBounds {
    /// Returns max over patterns x of ½ Σ_{i ∈ x} Γ_i: how far ln of the upper recursion may be above that of the lower
    /// one.
    pub fn gap(&self, min_separation: usize) -> f64 {
        0.5 * best_sum(&self.off_diagonals, min_separation).last().copied().unwrap_or(0.0)
    }
}

/// Returns best(d) for each d: the largest sum of weights of indices ≤ d at least `min_separation` apart.
pub fn best_sum(weights: &[f64], min_separation: usize) -> Vec<f64> {
    let mut best: Vec<f64> = Vec::with_capacity(weights.len());
    for (d, weight) in weights.iter().enumerate() {
        let apart = if d >= min_separation { best[d - min_separation] } else { 0.0 };
        let before = if d > 0 { best[d - 1] } else { 0.0 };
        best.push((weight + apart).max(before));
    }
    best
}

/// Returns the largest sum over distances in [b, `farthest`] that are at least b apart.
fn best_distances(products: &[f64], farthest: usize, b: usize, best: &mut Vec<f64>) -> f64 {
    if farthest < b {
        return 0.0;
    }
    best.clear();
    best.resize(farthest + 1, 0.0);
    for d in b..=farthest {
        best[d] = best[d - 1].max(products[d] + best[d - b]);
    }
    best[farthest]
}

/// Returns the bounds for a Toeplitz matrix by its first column; time O(n²), memory O(n).
///
/// Column i of a run of n rounds ends after m = n − 1 − i further rounds. Its inner product with the column d rounds
/// later is Σ_{l ≤ m − d} c_{l+d} c_l, with the one d rounds earlier Σ_{l ≤ m} c_{l+d} c_l; one round earlier each has
/// one more term.
pub fn toeplitz_gram(coefficients: &[f64], min_separation: usize) -> GramBounds {
    let (n, c) = (coefficients.len(), coefficients);
    let (mut later, mut earlier) = (vec![0.0; n], vec![0.0; n]);
    let (mut squares, mut off_diagonals, mut best) = (vec![0.0; n], vec![0.0; n], Vec::new());
    for m in 0..n {
        let i = n - 1 - m;
        for (sum, other) in later[..=m].iter_mut().zip(c[..=m].iter().rev()) {
            *sum += c[m] * other;
        }
        for (sum, other) in earlier[..=i].iter_mut().zip(&c[m..]) {
            *sum += c[m] * other;
        }
        squares[i] = later[0];
        off_diagonals[i] = best_distances(&later, m, min_separation, &mut best)
            + best_distances(&earlier, i, min_separation, &mut best);
    }
    GramBounds { squares, off_diagonals }
}

/// Returns the bounds for any matrix by its columns, each from the diagonal down; time O(n³) in general.
pub fn dense_gram(columns: &[&[f64]], min_separation: usize) -> GramBounds {
    let n = columns.len();
    let (mut squares, mut off_diagonals, mut best) = (vec![0.0; n], vec![0.0; n], Vec::new());
    let dot = |i: usize, j: usize| -> f64 {
        let (early, late) = (i.min(j), i.max(j));
        columns[early][late - early..].iter().zip(columns[late]).map(|(a, b)| a * b).sum()
    };
    let mut products = vec![0.0; n];
    for i in 0..n {
        squares[i] = dot(i, i);
        for (d, product) in products.iter_mut().enumerate().take(n - i).skip(min_separation) {
            *product = dot(i, i + d);
        }
        off_diagonals[i] = best_distances(&products, n - 1 - i, min_separation, &mut best);
        for (d, product) in products.iter_mut().enumerate().take(i + 1).skip(min_separation) {
            *product = dot(i, i - d);
        }
        off_diagonals[i] += best_distances(&products, i, min_separation, &mut best);
    }
    GramBounds { squares, off_diagonals }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns every set of rounds at least b apart.
    fn sets(n: usize, b: usize) -> Vec<Vec<usize>> {
        (0u32..1 << n)
            .map(|mask| (0..n).filter(|i| mask >> i & 1 == 1).collect::<Vec<_>>())
            .filter(|set| set.windows(2).all(|pair| pair[1] - pair[0] >= b))
            .collect()
    }

    #[test]
    fn off_diagonals_are_the_largest_of_all_sets() {
        let c = [1.0, 0.3, 0.7, 0.1, 0.4, 0.25, 0.05, 0.6, 0.2];
        let n = c.len();
        let columns: Vec<Vec<f64>> = (0..n).map(|i| c[..n - i].to_vec()).collect();
        let views: Vec<&[f64]> = columns.iter().map(Vec::as_slice).collect();
        let product = |i: usize, j: usize| -> f64 { (i.max(j)..n).map(|k| c[k - i] * c[k - j]).sum() };
        for b in 1..=n {
            let found = toeplitz_gram(&c, b);
            let dense = dense_gram(&views, b);
            let mut gap = 0.0f64;
            for set in sets(n, b) {
                gap = gap.max(0.5 * set.iter().map(|&i| found.off_diagonals[i]).sum::<f64>());
            }
            assert!((gap - found.gap(b)).abs() < 1e-12);
            for i in 0..n {
                let exact = sets(n, b)
                    .into_iter()
                    .filter(|set| set.contains(&i))
                    .map(|set| set.iter().filter(|&&j| j != i).map(|&j| product(i, j)).sum::<f64>())
                    .fold(0.0, f64::max);
                assert!((found.off_diagonals[i] - exact).abs() < 1e-12, "{b} {i}");
                assert!((dense.off_diagonals[i] - exact).abs() < 1e-12, "{b} {i}");
                assert!((found.squares[i] - product(i, i)).abs() < 1e-12);
                assert!((dense.squares[i] - product(i, i)).abs() < 1e-12);
            }
        }
    }
}

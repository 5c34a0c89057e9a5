//! Correlation with the matrix's coefficients: u_i = Σ_j ĉ_j ŷ_{i+j}, by the cheaper of direct sums and Fourier
//! transforms.
//!
//! Both work on blocks of time with eight samples side by side. The direct sums read each row once for a tile of
//! outputs. The transforms use overlap-save: a transform of N rows gives N − bands + 1 outputs; since ĉ is real, the
//! real part carries one span of time and the imaginary part the next. The forward transform leaves its frequencies in
//! digit-reversed order, in which they are multiplied and from which the inverse starts, so nothing is ever reordered.

use crate::special::{real, UNIT_ROUNDOFF};
use crate::vector::{splat, Lanes, Vector, Vectored};

/// The number of outputs that are summed together.
const TILE: usize = 8;
/// The number of outputs of a block of direct sums.
const DIRECT_BLOCK: usize = 128;
/// Transforms are a power of 4 between these.
const TRANSFORMS: [usize; 4] = [256, 1024, 4096, 16384];
/// The cost of a vector operation of the transforms relative to one of the direct sums: they load and store more.
const TRANSFORM_WEIGHT: f64 = 1.1;

/// The way in which the coefficients are correlated with rows.
#[derive(Debug, Clone)]
pub struct Correlator {
    coefficients: Vec<f64>,
    transform: Option<Transform>,
    /// Σ ĉ, for the rounding bound.
    total: f64,
}

impl Correlator {
    /// Creates the correlator for these coefficients with the cheaper way; `transform` forces one of them.
    pub fn new(coefficients: &[f64], transform: Option<bool>) -> Self {
        let bands = coefficients.len();
        let best = TRANSFORMS
            .into_iter()
            .filter(|&length| length >= 2 * bands)
            .min_by(|&a, &b| transform_cost(a, bands).total_cmp(&transform_cost(b, bands)));
        let direct = real(bands);
        let wanted = transform.unwrap_or_else(|| best.is_some_and(|length| transform_cost(length, bands) < direct));
        Self {
            coefficients: coefficients.to_vec(),
            transform: best.filter(|_| wanted).map(|length| Transform::new(coefficients, length)),
            total: coefficients.iter().sum(),
        }
    }

    /// Returns the number of outputs of one block.
    pub fn block(&self) -> usize {
        self.transform.as_ref().map_or(DIRECT_BLOCK, |t| 2 * t.fresh)
    }

    /// Returns the number of rows that must follow a block.
    pub fn tail(&self) -> usize {
        self.coefficients.len() - 1 + if self.transform.is_some() { 0 } else { TILE - 1 }
    }

    /// Returns a bound on the error of each output for rows whose entries are at most `largest` in absolute value.
    ///
    /// Direct: bands·u·Σ ĉ_j|ŷ| (Higham 2002, Section 3.1). Transforms: the error of forward transform, product and
    /// inverse relative to ‖ĉ‖₂‖ŷ‖₂ is at most (2·log₂N + 1)·16u in the Euclidean norm of the block (Higham 2002,
    /// Theorem 24.2, with twiddles whose error is at most 10u), which bounds each entry.
    pub fn rounding(&self, largest: f64) -> f64 {
        match &self.transform {
            None => (real(self.coefficients.len()) + 2.0) * UNIT_ROUNDOFF * self.total * largest,
            Some(transform) => {
                let length = real(transform.length);
                let levels = 2.0 * length.log2() + 1.0;
                // The spectrum's largest entry is at most Σ ĉ; both parts of the complex signal count.
                16.0 * levels * UNIT_ROUNDOFF * self.total * (2.0 * length).sqrt() * largest
            }
        }
    }

    /// Correlates a block: `rows` holds [`Correlator::block`] rows and the tail behind them. Only outputs below
    /// `length` are needed.
    #[inline(always)]
    pub fn correlate<V: Vector>(
        &self,
        rows: &[Lanes],
        length: usize,
        sums: &mut [Lanes],
        workspace: &mut Vec<[Lanes; 2]>,
    ) {
        V::apart(Block { correlator: self, rows, length, sums, workspace });
    }

    /// Computes the derivative of the outputs' weighted sum Σ_i w_i u_i in each coefficient: Σ_i w_i ŷ_{i+j} for j <
    /// bands, over all rounds, ŷ = 0 beyond the last.
    ///
    /// `weights` and `rows` have the same length. The derivative is computed in the way that the coefficients are
    /// correlated: directly, or by transforms, where a block's products conj(w)·ŷ are summed before one inverse. There
    /// the real part of the sum has the products of each span with its own rows, the imaginary part those of a span
    /// with the other's.
    #[inline(always)]
    pub fn adjoint<V: Vector>(
        &self,
        weights: &[Lanes],
        rows: &[Lanes],
        out: &mut [Lanes],
        workspace: &mut AdjointWorkspace,
    ) {
        if let Some(transform) = &self.transform {
            transform.adjoint::<V>(weights, rows, out, workspace);
            return;
        }
        for (tile, out) in out.chunks_mut(TILE).enumerate() {
            let rows = &rows[(tile * TILE).min(rows.len())..];
            if V::WIDE || out.len() <= TILE / 2 {
                adjoint_tile::<V, TILE>(weights, rows, out);
            } else {
                // As above, fewer sums at a time fit the registers.
                let (first, second) = out.split_at_mut(TILE / 2);
                adjoint_tile::<V, { TILE / 2 }>(weights, rows, first);
                adjoint_tile::<V, { TILE / 2 }>(weights, &rows[(TILE / 2).min(rows.len())..], second);
            }
        }
    }

    /// Computes K outputs, the first of which starts at the first row: row m contributes to output k with coefficient m
    /// − k.
    #[inline(always)]
    fn tile<V: Vector, const K: usize>(&self, rows: &[Lanes], out: &mut [Lanes]) {
        let (c, bands) = (&self.coefficients[..], self.coefficients.len());
        let mut sums = [V::splat(0.0); K];
        if bands < K {
            for k in 0..K {
                for (c, row) in c.iter().zip(&rows[k..]) {
                    sums[k] = V::splat(*c).mul_add(V::load(row), sums[k]);
                }
            }
        } else {
            // First come rows that the later outputs do not reach yet, then rows that all outputs share, then rows that
            // only later outputs use.
            for m in 0..K - 1 {
                let row = V::load(&rows[m]);
                for k in 0..=m {
                    sums[k] = V::splat(c[m - k]).mul_add(row, sums[k]);
                }
            }
            for (row, window) in rows[K - 1..bands].iter().zip(c.windows(K)) {
                let row = V::load(row);
                for k in 0..K {
                    sums[k] = V::splat(window[K - 1 - k]).mul_add(row, sums[k]);
                }
            }
            let (last, behind) = (&c[bands - K..], &rows[bands..bands + K - 1]);
            for m in 0..K - 1 {
                let row = V::load(&behind[m]);
                for k in m + 1..K {
                    sums[k] = V::splat(last[K + m - k]).mul_add(row, sums[k]);
                }
            }
        }
        for k in 0..K {
            sums[k].store(&mut out[k]);
        }
    }
}

/// A block of outputs.
struct Block<'a> {
    correlator: &'a Correlator,
    rows: &'a [Lanes],
    length: usize,
    sums: &'a mut [Lanes],
    workspace: &'a mut Vec<[Lanes; 2]>,
}

impl Vectored for Block<'_> {
    type Output = ();

    #[inline(always)]
    fn run<V: Vector>(self) {
        let Self { correlator, rows, length, sums, workspace } = self;
        if let Some(transform) = &correlator.transform {
            transform.correlate::<V>(rows, sums, workspace);
            return;
        }
        for (tile, out) in sums[..length.next_multiple_of(TILE)].chunks_exact_mut(TILE).enumerate() {
            let rows = &rows[tile * TILE..tile * TILE + correlator.coefficients.len() + TILE - 1];
            if V::WIDE {
                correlator.tile::<V, TILE>(rows, out);
            } else {
                // Half as many sums at a time fit the registers; each sum adds the same terms in the same order.
                let (first, second) = out.split_at_mut(TILE / 2);
                correlator.tile::<V, { TILE / 2 }>(rows, first);
                correlator.tile::<V, { TILE / 2 }>(&rows[TILE / 2..], second);
            }
        }
    }
}

/// Computes up to K sums Σ_i w_i ŷ_{i+k}, whose rows begin with those of k = 0.
#[inline(always)]
fn adjoint_tile<V: Vector, const K: usize>(weights: &[Lanes], rows: &[Lanes], out: &mut [Lanes]) {
    let mut sums = [V::splat(0.0); K];
    for (weight, window) in weights.iter().zip(rows.windows(K)) {
        let weight = V::load(weight);
        for k in 0..K {
            sums[k] = weight.mul_add(V::load(&window[k]), sums[k]);
        }
    }
    // These windows reach beyond the last row.
    for start in (rows.len() + 1).saturating_sub(K)..rows.len() {
        let weight = V::load(&weights[start]);
        for (k, row) in rows[start..].iter().enumerate() {
            sums[k] = weight.mul_add(V::load(row), sums[k]);
        }
    }
    for (sum, out) in sums.into_iter().zip(out) {
        sum.store(out);
    }
}

/// Buffers of [`Correlator::adjoint`], reused from call to call.
#[derive(Debug, Clone, Default)]
pub struct AdjointWorkspace {
    weights: Vec<[Lanes; 2]>,
    rows: Vec<[Lanes; 2]>,
    sums: Vec<[Lanes; 2]>,
}

/// Returns the number of vector operations for each output: two transforms of 7 operations a point and pass, and a
/// product.
fn transform_cost(length: usize, bands: usize) -> f64 {
    let (length, fresh) = (real(length), real(length - bands + 1));
    TRANSFORM_WEIGHT * length * (14.0 * 0.5 * length.log2() + 4.0) / (2.0 * fresh)
}

/// Overlap-save correlation with transforms of one length.
#[derive(Debug, Clone)]
struct Transform {
    length: usize,
    /// The number of outputs that each transform yields for each part.
    fresh: usize,
    /// For each pass, (w^j, w^2j, w^3j) as six numbers for each j.
    twiddles: Vec<Vec<[f64; 6]>>,
    /// The conjugate spectrum of ĉ over N, in the order that the forward transform leaves.
    spectrum: Vec<[f64; 2]>,
}

impl Transform {
    fn new(coefficients: &[f64], length: usize) -> Self {
        let mut twiddles = Vec::new();
        let mut size = length;
        while size >= 4 {
            twiddles.push(
                (0..size / 4)
                    .map(|j| {
                        let turn = |multiple: usize| {
                            let angle = -2.0 * std::f64::consts::PI * real((multiple * j) % size) / real(size);
                            (libm::cos(angle), libm::sin(angle))
                        };
                        let (a, b, c) = (turn(1), turn(2), turn(3));
                        [a.0, a.1, b.0, b.1, c.0, c.1]
                    })
                    .collect(),
            );
            size /= 4;
        }
        let mut this = Self { length, fresh: length - coefficients.len() + 1, twiddles, spectrum: Vec::new() };
        let mut signal = vec![[splat(0.0); 2]; length];
        for (c, point) in coefficients.iter().zip(&mut signal) {
            point[0] = splat(*c);
        }
        this.forward::<crate::vector::Portable>(&mut signal);
        let scale = 1.0 / real(length);
        this.spectrum = signal.iter().map(|point| [point[0][0] * scale, -point[1][0] * scale]).collect();
        this
    }

    #[inline(always)]
    fn correlate<V: Vector>(&self, rows: &[Lanes], sums: &mut [Lanes], workspace: &mut Vec<[Lanes; 2]>) {
        workspace.resize(self.length, [splat(0.0); 2]);
        for (k, point) in workspace.iter_mut().enumerate() {
            *point = [rows[k], rows[self.fresh + k]];
        }
        self.forward::<V>(workspace);
        for (point, factor) in workspace.iter_mut().zip(&self.spectrum) {
            let value = times::<V>(load(point), (V::splat(factor[0]), V::splat(factor[1])));
            store(value, point);
        }
        self.inverse::<V>(workspace);
        for (k, point) in workspace[..self.fresh].iter().enumerate() {
            sums[k] = point[0];
            sums[self.fresh + k] = point[1];
        }
    }

    #[inline(always)]
    fn adjoint<V: Vector>(
        &self,
        weights: &[Lanes],
        rows: &[Lanes],
        out: &mut [Lanes],
        workspace: &mut AdjointWorkspace,
    ) {
        let AdjointWorkspace { weights: own, rows: other, sums } = workspace;
        sums.clear();
        sums.resize(self.length, [splat(0.0); 2]);
        for start in (0..rows.len()).step_by(2 * self.fresh) {
            // `own` holds two spans of weights, each followed by zeros, and `other` the rows that they are multiplied
            // with.
            self.spans(weights, (start, self.fresh), own);
            self.spans(rows, (start, self.length), other);
            self.forward::<V>(own);
            self.forward::<V>(other);
            for ((sum, a), b) in sums.iter_mut().zip(&*own).zip(&*other) {
                let (a, b, total) = (load::<V>(a), load::<V>(b), load::<V>(sum));
                let conjugate = (a.0, V::splat(0.0).sub(a.1));
                store(plus(total, times(conjugate, b)), sum);
            }
        }
        self.inverse::<V>(sums);
        let scale = V::splat(1.0 / real(self.length));
        for (out, point) in out.iter_mut().zip(&*sums) {
            V::load(&point[0]).mul(scale).store(out);
        }
    }

    /// Copies two spans of `from`, `length` rows each, that begin [`Self::fresh`] rows apart; zeros follow.
    #[inline(always)]
    fn spans(&self, from: &[Lanes], (start, length): (usize, usize), into: &mut Vec<[Lanes; 2]>) {
        let row = |k: usize| from.get(k).copied().unwrap_or(splat(0.0));
        into.clear();
        into.extend((start..start + length).map(|k| [row(k), row(self.fresh + k)]));
        into.resize(self.length, [splat(0.0); 2]);
    }

    /// The forward transform, by decimation in frequency, radix 4: natural order in, digit-reversed order out.
    #[inline(always)]
    fn forward<V: Vector>(&self, data: &mut [[Lanes; 2]]) {
        let mut size = self.length;
        for factors in &self.twiddles {
            let quarter = size / 4;
            for group in data.chunks_exact_mut(size) {
                let (low, high) = group.split_at_mut(2 * quarter);
                let (first, second) = low.split_at_mut(quarter);
                let (third, fourth) = high.split_at_mut(quarter);
                for (j, w) in factors.iter().enumerate() {
                    let (a, b, c, d) = (load::<V>(&first[j]), load(&second[j]), load(&third[j]), load(&fourth[j]));
                    let (even, odd, sum, difference) = (plus(a, c), minus(a, c), plus(b, d), minus(b, d));
                    // −i·(b − d)
                    let turned = (difference.1, V::splat(0.0).sub(difference.0));
                    store(plus(even, sum), &mut first[j]);
                    store(times(plus(odd, turned), (V::splat(w[0]), V::splat(w[1]))), &mut second[j]);
                    store(times(minus(even, sum), (V::splat(w[2]), V::splat(w[3]))), &mut third[j]);
                    store(times(minus(odd, turned), (V::splat(w[4]), V::splat(w[5]))), &mut fourth[j]);
                }
            }
            size = quarter;
        }
    }

    /// The inverse transform without its factor 1/N, by decimation in time: digit-reversed order in, natural order out.
    #[inline(always)]
    fn inverse<V: Vector>(&self, data: &mut [[Lanes; 2]]) {
        let mut size = 4;
        for factors in self.twiddles.iter().rev() {
            let quarter = size / 4;
            for group in data.chunks_exact_mut(size) {
                let (low, high) = group.split_at_mut(2 * quarter);
                let (first, second) = low.split_at_mut(quarter);
                let (third, fourth) = high.split_at_mut(quarter);
                for (j, w) in factors.iter().enumerate() {
                    // The inverse uses conjugate twiddles.
                    let a = load::<V>(&first[j]);
                    let b = times(load(&second[j]), (V::splat(w[0]), V::splat(-w[1])));
                    let c = times(load(&third[j]), (V::splat(w[2]), V::splat(-w[3])));
                    let d = times(load(&fourth[j]), (V::splat(w[4]), V::splat(-w[5])));
                    let (even, odd, sum, difference) = (plus(a, c), minus(a, c), plus(b, d), minus(b, d));
                    // i·(b − d)
                    let turned = (V::splat(0.0).sub(difference.1), difference.0);
                    store(plus(even, sum), &mut first[j]);
                    store(plus(odd, turned), &mut second[j]);
                    store(minus(even, sum), &mut third[j]);
                    store(minus(odd, turned), &mut fourth[j]);
                }
            }
            size *= 4;
        }
    }
}

#[inline(always)]
fn load<V: Vector>(point: &[Lanes; 2]) -> (V, V) {
    (V::load(&point[0]), V::load(&point[1]))
}

#[inline(always)]
fn store<V: Vector>(value: (V, V), point: &mut [Lanes; 2]) {
    value.0.store(&mut point[0]);
    value.1.store(&mut point[1]);
}

#[inline(always)]
fn plus<V: Vector>(a: (V, V), b: (V, V)) -> (V, V) {
    (a.0.add(b.0), a.1.add(b.1))
}

#[inline(always)]
fn minus<V: Vector>(a: (V, V), b: (V, V)) -> (V, V) {
    (a.0.sub(b.0), a.1.sub(b.1))
}

#[inline(always)]
fn times<V: Vector>(a: (V, V), b: (V, V)) -> (V, V) {
    let minus_one = V::splat(-1.0);
    let real = a.0.mul_add(b.0, a.1.mul(b.1).mul(minus_one));
    (real, a.0.mul_add(b.1, a.1.mul(b.0)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vector::{Portable, LANES};

    #[test]
    fn both_ways_of_the_adjoint_are_the_sum_that_defines_it() {
        let noisy =
            |i: usize, l: usize, k: usize| f64::from(u32::try_from((i * 37 + l * 11 * k) % 101).unwrap()) - 50.0;
        for (bands, n) in [(1, 1), (1, 20), (3, 5), (5, 5), (12, 40), (60, 700), (200, 1999), (200, 200)] {
            let rows: Vec<Lanes> = (0..n).map(|i| Lanes(std::array::from_fn(|l| noisy(i, l, 1) / 17.0))).collect();
            let weights: Vec<Lanes> =
                (0..n).map(|i| Lanes(std::array::from_fn(|l| noisy(i * i, l, 3).abs() / 50.0))).collect();
            for transform in [false, true] {
                let correlator = Correlator::new(&vec![0.5; bands], Some(transform));
                let mut out = vec![splat(f64::NAN); bands];
                let mut workspace = AdjointWorkspace::default();
                correlator.adjoint::<Portable>(&weights, &rows, &mut out, &mut workspace);
                let first = out.clone();
                correlator.adjoint::<Portable>(&weights, &rows, &mut out, &mut workspace);
                assert_eq!(first, out, "buffers are left as they were found");
                for (j, sum) in out.iter().enumerate() {
                    for l in 0..LANES {
                        let exact: f64 = (0..n - j).map(|i| weights[i][l] * rows[i + j][l]).sum();
                        assert!((sum[l] - exact).abs() <= 1e-11, "{bands} {n} {transform} {j}: {} {exact}", sum[l]);
                    }
                }
            }
        }
    }

    #[test]
    fn both_ways_are_the_sum_that_defines_them() {
        for bands in [1, 2, 7, 60, 200] {
            let coefficients: Vec<f64> = (0..bands).map(|j| 1.0 / (1.0 + f64::from(j))).collect();
            for transform in [false, true] {
                let correlator = Correlator::new(&coefficients, Some(transform));
                assert_eq!(correlator.transform.is_some(), transform);
                let block = correlator.block();
                let rows: Vec<Lanes> = (0..block + correlator.tail())
                    .map(|i| Lanes(std::array::from_fn(|l| (real((i * 37 + l * 11) % 101) - 50.0) / 17.0)))
                    .collect();
                let mut sums = vec![splat(0.0); block];
                correlator.correlate::<Portable>(&rows, block, &mut sums, &mut Vec::new());
                for (i, sum) in sums.iter().enumerate() {
                    for l in 0..LANES {
                        let exact: f64 = coefficients.iter().enumerate().map(|(j, c)| c * rows[i + j][l]).sum();
                        assert!((sum[l] - exact).abs() <= correlator.rounding(3.0), "{bands} {transform} {i}");
                    }
                }
            }
        }
    }
}

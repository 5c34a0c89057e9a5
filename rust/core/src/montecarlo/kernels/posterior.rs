//! The posterior means of a record's participations, given the outcome: one pass backward over the rounds and one
//! forward, eight samples side by side.
//!
//! With f as in [`crate::montecarlo::kernels::recursion`], a record that has its chance in round i takes it with
//! posterior probability
//!
//! `q_i = φ_i f_{i+b}/f_i`,
//!
//! and its start has the posterior law w_s f_s/Σ_s w_s f_s. So A_i, the posterior probability of having a chance in
//! round i, is computed forward: A_i·q_i of it goes to round i + b, the rest to round i + 1 (with phases to i + b too),
//! and γ_i = A_i q_i is the posterior probability of taking part (the forward–backward algorithm: Rabiner 1989, in the
//! form of a smoothing chain). Only the q_i are stored; being shares, they need no scaling. For a user j records may
//! take part: then E[x_i | ŷ] and E[x_i² | ŷ] are γ_i times the mean of j and of j² under the terms of φ_i.
//!
//! Every number is a sum of products of non-negative ones except for 1 − q_i: the error of γ_i is at most some n·u
//! of 1.

use crate::montecarlo::kernels::logarithms::{joining, kept_recursion};
use crate::montecarlo::kernels::products::AtHand;
use crate::montecarlo::kernels::recursion::{backwards, near, Growth};
use crate::montecarlo::kernels::ring::{counted_growths, in_linear_domain, Keep, Ring, Track, SETTLED};
use crate::participation::renewal::Renewal;
use crate::special::real;
use crate::vector::{splat, Lanes, Vector, LANES};

/// The posterior of eight samples, and buffers: a few numbers for each round.
#[derive(Debug, Clone, Default)]
pub(in crate::montecarlo) struct Posterior {
    ring: Ring,
    /// The posterior law of the start.
    start: Vec<Lanes>,
    /// q_i; after the pass forward, E[x_i | ŷ].
    means: Vec<Lanes>,
    /// E[x_i² | ŷ]; empty for a single record, where these equal the means.
    squares: Vec<Lanes>,
    /// The means of j and of j², where several records may take part.
    counts: Vec<[Lanes; 2]>,
    /// A_i.
    available: Vec<Lanes>,
}

/// Stores the q_i.
struct Chances<'a>(&'a mut [Lanes]);

impl Keep for Chances<'_> {
    #[inline(always)]
    fn keep<V: Vector>(&mut self, round: usize, joined: V, value: V) {
        joined.div(value).store(&mut self.0[round]);
    }
}

/// The growth of P, with the numbers that the pass forward needs.
struct KeptGrowth<'a> {
    track: Track<'a>,
    chances: Chances<'a>,
    counts: &'a mut [[Lanes; 2]],
}

impl Growth for KeptGrowth<'_> {
    #[inline(always)]
    fn advance<V: Vector>(&mut self, first: usize, count: usize, products: &[V; SETTLED]) -> bool {
        let law = self.track.law;
        let squares = near(&law.squares, first);
        let mut exponents = *products;
        for k in 0..SETTLED {
            exponents[k] = products[k].sub(V::splat(0.5 * squares[k]));
        }
        let growths = counted_growths(law, exponents, (1.0, &squares));
        if law.log_counts.len() > 1 {
            for k in 0..count {
                growths[1][k].div(growths[0][k]).store(&mut self.counts[first + k][0]);
                growths[2][k].div(growths[0][k]).store(&mut self.counts[first + k][1]);
            }
        }
        let records = real(law.log_counts.len());
        self.track.advance_kept(first, count, growths[0], &mut self.chances)
            & in_linear_domain(&exponents[..count], records)
    }
}

impl Posterior {
    /// Does the pass backward: returns ln f of eight samples whose products ⟨ĉ_i, ŷ⟩ are given, one per round, the
    /// number rounded up to [`SETTLED`].
    #[inline(always)]
    pub(in crate::montecarlo) fn backward<V: Vector>(&mut self, law: &Renewal, sums: &[Lanes]) -> Lanes {
        let n = law.iterations();
        let several = law.log_counts.len() > 1;
        let starts = if law.warm || law.phased { law.min_separation } else { 1 };
        self.start.resize(starts, splat(0.0));
        self.means.resize(n, splat(0.0));
        self.counts.resize(if several { n } else { 0 }, [splat(0.0); 2]);
        let mut growth = KeptGrowth {
            track: Track::new(law, &mut self.ring),
            chances: Chances(&mut self.means),
            counts: &mut self.counts,
        };
        if backwards::<V, _, _>(n, &mut AtHand(sums), &mut growth) {
            growth.track.shares::<V>(&mut self.start);
            return growth.track.total::<V>();
        }
        self.logarithmic(law, sums)
    }

    /// Computes the same for any range, one sample after the other.
    #[cold]
    fn logarithmic(&mut self, law: &Renewal, sums: &[Lanes]) -> Lanes {
        let mut out = splat(0.0);
        for lane in 0..LANES {
            let squares = &law.squares;
            let terms = |i: usize| joining(law, sums[i][lane] - 0.5 * squares[i], squares[i]);
            let (log, start) = kept_recursion(law, terms, |i, chance| self.means[i][lane] = chance);
            out[lane] = log;
            for (place, share) in self.start.iter_mut().zip(start) {
                place[lane] = share;
            }
            for (i, counts) in self.counts.iter_mut().enumerate() {
                let largest = terms(i).fold(f64::NEG_INFINITY, f64::max);
                let (mut total, mut first, mut second) = (0.0, 0.0, 0.0);
                for (j, log) in (1u32..).map(f64::from).zip(terms(i)) {
                    let share = (log - largest).exp();
                    total += share;
                    first += j * share;
                    second += j * j * share;
                }
                (counts[0][lane], counts[1][lane]) = (first / total, second / total);
            }
        }
        out
    }

    /// Does the pass forward, after the one backward: returns E[x_i | ŷ] and E[x_i² | ŷ] for each round.
    #[inline(always)]
    pub(in crate::montecarlo) fn forward<V: Vector>(&mut self, law: &Renewal) -> (&[Lanes], &[Lanes]) {
        let (n, b, waiting) = (law.iterations(), law.min_separation, law.waiting());
        self.available.clear();
        self.available.extend_from_slice(&self.start);
        self.available.resize(n + b, splat(0.0));
        let available = &mut self.available;
        for (i, mean) in self.means.iter_mut().enumerate() {
            let here = V::load(&available[i]);
            let joined = here.mul(V::load(mean));
            V::load(&available[i + b]).add(joined).store(&mut available[i + b]);
            V::load(&available[i + waiting]).add(here.sub(joined)).store(&mut available[i + waiting]);
            joined.store(mean);
        }
        if self.counts.is_empty() {
            return (&self.means, &self.means);
        }
        self.squares.resize(n, splat(0.0));
        for ((mean, square), counts) in self.means.iter_mut().zip(&mut self.squares).zip(&self.counts) {
            let joined = V::load(mean);
            joined.mul(V::load(&counts[1])).store(square);
            joined.mul(V::load(&counts[0])).store(mean);
        }
        (&self.means, &self.squares)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vector::Portable;

    /// Returns ln f and the posterior means of x_i and x_i² by enumerating all patterns.
    fn enumerated(law: &Renewal, products: &[f64]) -> (f64, Vec<f64>, Vec<f64>) {
        let n = law.iterations();
        let (mut total, mut means, mut squares) = (0.0, vec![0.0; n], vec![0.0; n]);
        let mut open: Vec<_> =
            law.log_start().iter().enumerate().map(|(s, log)| (s, log.exp(), Vec::<(usize, f64)>::new())).collect();
        while let Some((round, weight, taken)) = open.pop() {
            if round >= n {
                total += weight;
                for (i, count) in taken {
                    means[i] += weight * count;
                    squares[i] += weight * count * count;
                }
                continue;
            }
            let p = law.sampling_probability;
            open.push((round + law.waiting(), weight * (1.0 - p), taken.clone()));
            for (count, share) in (1u32..).map(f64::from).zip(&law.counts) {
                let growth = (count * products[round] - 0.5 * count * count * law.squares[round]).exp();
                let mut taken = taken.clone();
                taken.push((round, count));
                open.push((round + law.min_separation, weight * p * share * growth, taken));
            }
        }
        let shares = |sums: Vec<f64>| sums.into_iter().map(|sum| sum / total).collect();
        (total.ln(), shares(means), shares(squares))
    }

    #[test]
    fn means_are_those_of_the_enumeration_in_and_beyond_the_linear_domain() {
        let squares: Vec<f64> = (0..9).map(|i| 1.0 + 0.125 * f64::from(i % 3)).collect();
        let laws = [
            Renewal::new(3, 0.3, false, squares.clone()).unwrap(),
            Renewal::new(3, 0.3, true, squares.clone()).unwrap(),
            Renewal::new(1, 0.2, true, squares.clone()).unwrap(),
            Renewal::new(4, 1.0, true, squares.clone()).unwrap(),
            Renewal::new(12, 0.4, true, squares.clone()).unwrap(),
            Renewal::with_phases(3, 0.3, squares.clone()).unwrap(),
            Renewal::of_users(3, 0.2, 3, true, squares.clone()).unwrap(),
            Renewal::of_users(2, 0.4, 2, false, squares).unwrap(),
        ];
        let mut posterior = Posterior::default();
        for law in &laws {
            for size in [1.0, 8.0, 160.0] {
                let sums: Vec<Lanes> = (0..12usize)
                    .map(|i| {
                        let entry = |l: usize| f64::from(u32::try_from((i * 29 + l * 13) % 23).unwrap()) / 11.0 - 1.0;
                        Lanes(std::array::from_fn(|l| size * entry(l)))
                    })
                    .collect();
                let logs = posterior.backward::<Portable>(law, &sums);
                let (means, squares) = posterior.forward::<Portable>(law);
                for lane in 0..LANES {
                    let products: Vec<f64> = sums[..9].iter().map(|row| row[lane]).collect();
                    let (log, mean, square) = enumerated(law, &products);
                    if !log.is_finite() {
                        continue;
                    }
                    assert!((logs[lane] - log).abs() < 1e-12 * (1.0 + log.abs()), "{law:?}");
                    for i in 0..9 {
                        assert!((means[i][lane] - mean[i]).abs() < 1e-12, "{law:?} {size} {i}");
                        assert!((squares[i][lane] - square[i]).abs() < 1e-11, "{law:?} {size} {i}");
                    }
                }
            }
        }
    }
}

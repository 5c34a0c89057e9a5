//! b-min-sep sampling, round by round: the sum over m replicas that defines Z_m, by a chain over their ages.
//!
//! **The sum.** `f^m = Σ_{x¹…x^m} Π_r w_{x^r} e^{⟨Cx^r,y⟩ − ‖Cx^r‖²/2}`, and
//! `E_R e^{⟨Σ_r Cx^r, y⟩} = e^{‖Σ_r Cx^r‖²/2}`, so
//!
//! `Z_m = Σ_{x¹…x^m} Π_r w_{x^r} · e^{Σ_{r<s} ⟨Cx^r, Cx^s⟩}`.
//!
//! A replica that took part a < b rounds ago is busy, all others are free: the state is one of C(b + m − 1, m)
//! multisets of m ages. If j of the F free replicas join round i, the new pairs add j(j−1)/2·r_i(0) among themselves
//! and j·h with the busy ones, h = Σ_{busy ages a} r_i(a) (r_i(k) of [`super::overlaps`]; columns that would begin
//! before the run count as 0). Hence with β_{n+1} = 1
//!
//! `β_i(s) = Σ_{j ≤ F} C(F, j) p^j (1−p)^{F−j} · e^{j(j−1)r_i(0)/2 + jh} · β_{i+1}(s′)`, `Z_m = Σ_s start(s) β_1(s)`,
//!
//! where s′ has j replicas of age 1, all busy ones a round older, and the other F − j free; start(s) is the multinomial
//! law of m stationary ages, or the free state alone. This is exact if a record's own columns do not overlap (C ≥ 0,
//! bands ≤ b: then ‖Cx‖² = Σ‖c_i‖², which the law's f assumes).

use crate::error::{domain, Result};
use crate::participation::renewal::Renewal;
use crate::replicas::chain::{Chain, Factors, LEAST};
use crate::replicas::overlaps::Overlaps;
use crate::replicas::steps::{Stationary, Steps};
use crate::special::{real, UNIT_ROUNDOFF};

/// Returns the number of rounds after which λ̄ is used whatever it is.
pub(super) fn most(law: &Renewal) -> usize {
    law.iterations().min(8 * law.min_separation + 256)
}

/// Returns the steps of m = `order` replicas, and the inner products that they are computed from.
///
/// # Errors
/// [`Error::Domain`] for an order below 2, more bands than the separation, negative coefficients, users with several
/// records or random phases; [`Error::Machine`] where the tables do not fit in memory.
pub(super) fn steps(
    law: &Renewal,
    coefficients: &[f64],
    order: usize,
    most_busy: Option<usize>,
) -> Result<(Steps, Overlaps)> {
    let overlaps = overlaps(law, coefficients, order)?;
    let most_busy = busy(order, most_busy)?;
    Ok((of_overlaps(law, &overlaps, order, most_busy)?, overlaps))
}

/// Returns the maximum number of busy replicas: the order, or `most_busy`, which must be at least 2.
fn busy(order: usize, most_busy: Option<usize>) -> Result<usize> {
    match most_busy {
        None => Ok(order),
        Some(most) if (2..order).contains(&most) => Ok(most),
        Some(most) => domain("most busy", real(most), "at least 2, and below the order"),
    }
}

/// Returns the steps of m = `order` replicas with these inner products, of which no more than `most_busy` are busy at
/// once.
pub(super) fn of_overlaps(law: &Renewal, overlaps: &Overlaps, order: usize, most_busy: usize) -> Result<Steps> {
    let (n, b, bands, p) = (law.iterations(), law.min_separation, overlaps.bands(), law.sampling_probability);
    let chain = Chain::of_few(b, b - 1, order, most_busy)?;
    let few = bands.min(n + 1);
    let last = (1..few).map(|rows| factors(&chain, overlaps, p, rows, n - rows)).collect();
    let first = (1..few).map(|i| factors(&chain, overlaps, p, bands, i - 1)).collect();
    let inner = factors(&chain, overlaps, p, bands, bands);
    let start = law.warm.then(|| stationary(law));
    let (log_constant, most) = (0.0, most(law));
    let mut steps =
        Steps { chain, count: n, last, first, inner, extended: false, start, log_constant, most, raised: None };
    // Terms computed from logarithms are raised by more.
    steps.raised = (steps.logarithms() <= 0.0).then(|| raised(&steps.chain, overlaps));
    Ok(steps)
}

/// Returns a bound on the relative excess of a computed step over the exact one: 10u(m + 3)²(1 + Br), with B bands and
/// r the largest inner product.
///
/// An inner product is raised by at most 7Bu of itself, and its exponential by 8u more. Fewer than m²/4 of those occur
/// in a term, and one of up to m²/2 inner products; 19m + 40 units come with the other factors of [`factors`], 5.2(m² +
/// 4m + 8) with [`Chain::slack`] and the operations that it covers. In total fewer than 7.5m² + 40m + 84 + 7m²Br units.
fn raised(chain: &Chain, overlaps: &Overlaps) -> f64 {
    let (order, bands) = (real(chain.order) + 3.0, real(overlaps.bands()));
    10.0 * UNIT_ROUNDOFF * order * order * (1.0 + bands * overlaps.product(overlaps.bands(), 0))
}

/// Checks the hypotheses that every chain of b-min-sep sampling needs, and returns the inner products.
pub(super) fn overlaps(law: &Renewal, coefficients: &[f64], order: usize) -> Result<Overlaps> {
    let domain = |name, value: usize, allowed| domain(name, real(value), allowed);
    if order < 2 {
        return domain("order", order, "at least 2");
    }
    if coefficients.len() > law.min_separation {
        return domain("bands", coefficients.len(), "at most the separation: a record's own columns must not overlap");
    }
    if law.records() != 1 || law.phased {
        return domain("records", law.records() as usize, "single records, without random phases");
    }
    Overlaps::toeplitz(coefficients)
}

/// Returns the stationary probabilities of one busy age and of a free replica.
fn stationary(law: &Renewal) -> Stationary {
    let total = 1.0 + (real(law.min_separation) - 1.0) * law.sampling_probability;
    // There are three roundings of the total, and one of the quotient.
    let up = 1.0 + 8.0 * UNIT_ROUNDOFF;
    Stationary { busy: law.sampling_probability / total * up, free: 1.0 / total * up }
}

/// Returns the factors of a round in which a column has `rows` rows, and columns begin in at most `earlier` rounds
/// before it.
fn factors(chain: &Chain, overlaps: &Overlaps, probability: f64, rows: usize, earlier: usize) -> Factors {
    let bands = overlaps.bands();
    let exponential = |x: f64| libm::exp(x) * (1.0 + 4.0 * UNIT_ROUNDOFF);
    let by_kind = (1..=chain.free)
        .map(|age| if age < bands && age <= earlier { exponential(overlaps.product(rows, age)) } else { 1.0 })
        .collect();
    let width = chain.order + 1;
    let (mut joining, mut logarithms) = (vec![0.0; width * width], 0.0_f64);
    // 1 − p is rounded by at most u of its size; p itself is given.
    let stay = (1.0 - probability) * (1.0 + 2.0 * UNIT_ROUNDOFF);
    let own = overlaps.product(rows, 0);
    for free in 0..=chain.order {
        let mut ways = 1.0;
        for j in 0..=free {
            let (count, pairs) = (real(j), real(j * j.saturating_sub(1) / 2));
            // This is a power with a positive integer exponent by multiplication: at most `free` roundings each; the
            // products, the exponent's rounding (u of it) and the ways (2j roundings) are added.
            #[allow(clippy::cast_possible_truncation, clippy::cast_possible_wrap)] // at most the order
            let powers = (0..j).map(|_| probability).chain((j..free).map(|_| stay)).product::<f64>();
            let exponent = pairs * own * (1.0 + 2.0 * UNIT_ROUNDOFF);
            let slack = 1.0 + 4.0 * (real(free) + 2.0 * count + 6.0) * UNIT_ROUNDOFF;
            // Partial products only fall, so none has lost digits if the last one has not. If it may have, the term is
            // computed from logarithms, which have an error of a few u of their size.
            let possible = stay > 0.0 || j == free;
            let term = if powers > LEAST {
                ways * powers * exponential(exponent) * slack
            } else {
                let absent = real(free - j);
                let logs =
                    [libm::log(ways), count * libm::log(probability), absent * libm::log1p(-probability), exponent];
                let size: f64 = logs.iter().map(|log| log.abs()).sum();
                let sum = logs.iter().sum::<f64>() + 16.0 * UNIT_ROUNDOFF * (1.0 + size);
                if possible {
                    logarithms = if sum < -700.0 { f64::INFINITY } else { logarithms.max(1.0 + size) };
                }
                (exponential(sum) * slack).max(f64::MIN_POSITIVE)
            };
            joining[free * width + j] = if possible { term } else { 0.0 };
            let following = ways * real(free - j) / (count + 1.0);
            ways = following;
        }
    }
    Factors { by_kind, joining, near: None, logarithms }
}

#[cfg(test)]
mod tests {
    use crate::error::Error;
    use crate::participation::renewal::Renewal;
    use crate::replicas::aged::log_moment;
    use crate::replicas::enumeration::{mean, patterns};
    use crate::replicas::{LogMoment, Replicas, GAP};
    use crate::run::Run;

    fn law(b: usize, p: f64, warm: bool, n: usize) -> Renewal {
        Renewal::new(b, p, warm, vec![1.0; n]).expect("valid")
    }

    /// Returns Z_m over all tuples of patterns.
    fn enumerated(coefficients: &[f64], b: usize, p: f64, warm: bool, n: usize, order: usize) -> f64 {
        let all: Vec<(Vec<f64>, f64)> =
            patterns(b, p, warm, n).into_iter().map(|(taken, q)| (mean(coefficients, &taken, n), q)).collect();
        let mut tuples: Vec<(Vec<f64>, f64)> = vec![(vec![0.0; n], 1.0)];
        for _ in 0..order {
            tuples = tuples
                .iter()
                .flat_map(|(sum, weight)| {
                    all.iter().map(move |(one, q)| {
                        let inner: f64 = sum.iter().zip(one).map(|(a, b)| a * b).sum();
                        (sum.iter().zip(one).map(|(a, b)| a + b).collect(), weight * q * inner.exp())
                    })
                })
                .collect();
        }
        compensated(tuples.iter().map(|(_, weight)| *weight))
    }

    /// Returns a sum that accumulates its rounding errors separately (Kahan).
    fn compensated(terms: impl Iterator<Item = f64>) -> f64 {
        let (mut sum, mut lost) = (0.0_f64, 0.0_f64);
        for term in terms {
            let next = sum + (term - lost);
            lost = (next - sum) - (term - lost);
            sum = next;
        }
        sum
    }

    fn close(found: LogMoment, exact: f64, gap: f64) {
        assert!(found.upper >= exact - 1e-14 * (1.0 + exact.abs()), "{found:?} is below {exact}");
        assert!(found.upper <= exact + gap, "{found:?} is far above {exact}");
        assert!(found.lower <= exact + 1e-14 * (1.0 + exact.abs()), "{found:?} is above {exact}");
        assert!(found.lower >= exact - gap, "{found:?} is far below {exact}");
    }

    #[test]
    fn moments_are_those_of_all_tuples() {
        let columns: [&[f64]; 4] = [&[0.7], &[0.5, 0.9], &[0.9, 0.0, 0.4], &[0.8, 0.3, 0.6, 0.1]];
        for (b, n, order) in [(1, 5, 3), (2, 6, 2), (2, 5, 4), (3, 7, 3), (3, 5, 4), (4, 8, 3), (4, 3, 5)] {
            for coefficients in columns.iter().filter(|c| c.len() <= b) {
                for (p, warm) in [(0.1, true), (0.6, true), (1.0, true), (0.3, false), (1.0, false)] {
                    let exact = enumerated(coefficients, b, p, warm, n, order).ln();
                    let found =
                        log_moment(&law(b, p, warm, n), coefficients, Replicas::exact(order), GAP, &Run::default())
                            .expect("valid");
                    close(found, exact, if found.steps == n { 1e-10 } else { GAP });
                }
            }
        }
    }

    /// Returns ln Z_2 by pairs of ages directly, without merging equal states, over every round.
    #[allow(clippy::many_single_char_names)] // as in the formula
    fn of_pairs(coefficients: &[f64], b: usize, p: f64, n: usize) -> f64 {
        let (mut values, mut log) = (vec![1.0; b * b], 0.0);
        for i in (1..=n).rev() {
            let overlap = |age: usize| -> f64 {
                let rows = coefficients.len().min(n + 1 - i);
                (0..rows).filter_map(|l| coefficients.get(l + age).map(|c| c * coefficients[l])).sum()
            };
            let seen = |age: usize| if age < b && age < i { overlap(age).exp() } else { 1.0 };
            let older = |age: usize| (age + 1).min(b);
            let mut before = vec![0.0; b * b];
            for one in 1..=b {
                for other in 1..=b {
                    let after = |x: usize, y: usize| values[(x - 1) * b + y - 1];
                    let (x, y) = (older(one), older(other));
                    let stay = |age: usize| if age == b { 1.0 - p } else { 1.0 };
                    let mut sum = stay(one) * stay(other) * after(x, y);
                    if one == b {
                        sum += p * stay(other) * seen(other) * after(1, y);
                    }
                    if other == b {
                        sum += p * stay(one) * seen(one) * after(x, 1);
                    }
                    if one == b && other == b {
                        sum += p * p * overlap(0).exp() * after(1, 1);
                    }
                    before[(one - 1) * b + other - 1] = sum;
                }
            }
            let largest = before.iter().copied().fold(0.0, f64::max);
            log += largest.ln();
            values = before.iter().map(|value| value / largest).collect();
        }
        log + values[b * b - 1].ln()
    }

    #[test]
    fn rounds_that_are_not_computed_cost_no_more_than_the_gap() {
        for (b, p, coefficients) in [(4, 0.05, vec![0.6, 0.4, 0.3, 0.2]), (9, 0.2, vec![0.9, 0.5, 0.2])] {
            for gap in [GAP, 1e-10] {
                let (n, run) = (3000, Run::default());
                let found =
                    log_moment(&law(b, p, false, n), &coefficients, Replicas::exact(2), gap, &run).expect("valid");
                assert!(found.steps < n / 2, "{found:?}");
                close(found, of_pairs(&coefficients, b, p, n), gap + 1e-9);
            }
        }
    }

    /// Returns ln Z_m of a single round that everybody may join: a sum over how many do, in logarithms.
    fn of_one_round(p: f64, square: f64, order: u32) -> f64 {
        let mut ways = 0.0;
        let terms: Vec<f64> = (0..=order)
            .map(|j| {
                let count = f64::from(j);
                let joined = if j == 0 { 0.0 } else { count * p.ln() };
                let term = ways + joined + f64::from(order - j) * (-p).ln_1p() + 0.5 * count * (count - 1.0) * square;
                ways += (f64::from(order - j) / (count + 1.0)).ln();
                term
            })
            .collect();
        crate::special::log_sum_exp(terms.iter().copied())
    }

    #[test]
    fn probabilities_below_all_doubles_are_not_lost() {
        // p^m is below the least double, and e^{m(m−1)s/2} makes it relevant: s = 1/σ².
        for (p, sigma, orders) in
            [(1e-6, 1.39374, 2..=64), (1e-12, 0.6773, 2..=64), (1e-20, 1.0, 2..=64), (1e-3, 3.0, 2..=64)]
        {
            let coefficient = 1.0 / sigma;
            for order in orders {
                let run = Run::default();
                let exact = of_one_round(p, coefficient * coefficient, order);
                let found =
                    log_moment(&law(1, p, false, 1), &[coefficient], Replicas::exact(order as usize), GAP, &run)
                        .expect("valid");
                assert!(found.upper >= exact - 1e-9 * (1.0 + exact.abs()), "{p} {order}: {found:?} is below {exact}");
                assert!(found.upper < exact + 1e-6 || exact > 100.0, "{p} {order}: {found:?} is far above {exact}");
                // This holds from a warm start of many ages too.
                let warm = log_moment(&law(2, p, true, 1), &[coefficient], Replicas::exact(order as usize), GAP, &run)
                    .expect("valid");
                assert!(warm.upper > -1e-9 && (warm.upper <= found.upper + 1e-9 || found.upper > 100.0), "{warm:?}");
            }
        }
    }

    #[test]
    fn what_the_theorem_does_not_cover_is_refused() {
        let run = Run::default();
        let refused = |law: &Renewal, coefficients: &[f64], order| {
            matches!(log_moment(law, coefficients, Replicas::exact(order), GAP, &run), Err(Error::Domain { .. }))
        };
        // A record's own columns would overlap: Z_m may then lie below E f^m.
        assert!(refused(&law(1, 0.3, false, 2), &[1.0, 1.0], 3));
        assert!(refused(&law(2, 0.3, false, 2), &[1.0, -0.5], 3));
        assert!(refused(&law(2, 0.3, false, 2), &[1.0], 1));
        assert!(refused(&Renewal::of_users(2, 0.3, 2, false, vec![1.0; 4]).expect("valid"), &[1.0], 2));
        assert!(refused(&Renewal::with_phases(2, 0.3, vec![1.0; 4]).expect("valid"), &[1.0], 2));
    }

    #[test]
    #[allow(clippy::float_cmp)] // the same operations
    fn the_number_of_threads_changes_nothing() {
        let coefficients: Vec<f64> = (0..12).map(|k| 0.4 / f64::from(k + 1)).collect();
        let law = law(12, 0.02, true, 200);
        let of = |threads: usize| {
            let pool = crate::run::pool(threads).expect("threads");
            pool.install(|| log_moment(&law, &coefficients, Replicas::exact(6), GAP, &Run::default()))
                .expect("valid")
                .upper
        };
        assert_eq!(of(1), of(3));
    }

    #[test]
    fn little_noise_gives_an_infinite_bound() {
        let found =
            log_moment(&law(2, 0.1, true, 50), &[100.0, 1.0], Replicas::exact(5), GAP, &Run::default()).expect("valid");
        assert!(found.upper == f64::INFINITY || found.upper > 700.0, "{found:?}");
    }
}

//! The theorem on finite games, the cover against random triangles, and the recursion against quadrature and a simulated attack.
//!
//! Nothing here uses the functions under test as an oracle: profiles of triangles are integrals on a grid.

use super::class::{self, Places};
use super::*;
use crate::laws::Weights;
use crate::pair::batch::Sampler;
use crate::pair::substitution::Change;
use crate::pld::masses::Masses;
use crate::pld::mesh::{exact_spacing, Side};
use crate::run::Run;

/// A deterministic source of numbers, uniform in (0, 1).
struct Source(u64);

impl Source {
    #[allow(clippy::cast_precision_loss)] // 53 bits
    fn uniform(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / 9_007_199_254_740_992.0 + 1e-17
    }

    fn normal(&mut self) -> f64 {
        (-2.0 * self.uniform().ln()).sqrt() * (std::f64::consts::TAU * self.uniform()).cos()
    }
}

/// Phi(y) by libm, which the code under test uses as well, at ordinary arguments only.
fn normal(y: f64) -> f64 {
    0.5 * libm::erfc(-y * std::f64::consts::FRAC_1_SQRT_2)
}

/// Returns rounds with batches of a fixed size.
fn phase(dataset: u64, batch: u64, noise_multiplier: f64, count: u64) -> Phase {
    let weights = Sampler::FixedSize.copies(1, dataset, batch, &Run::default()).unwrap();
    Phase::new(weights, noise_multiplier, count).unwrap()
}

/// One point of the plane.
type Point = (f64, f64);

fn inner(a: Point, b: Point) -> f64 {
    a.0 * b.0 + a.1 * b.1
}

/// Returns E(1 − λ₁e^X − λ₂e^Y)_+·q at a level of at least 1, by the midpoint rule along one axis and bisection along the other.
#[allow(clippy::many_single_char_names)] // the formula of `level`
fn exact(q: f64, sigma: f64, (u, x, y): (Point, Point, Point), level: f64) -> f64 {
    let minus = |a: Point, b: Point| ((a.0 - b.0) / sigma, (a.1 - b.1) / sigma);
    let (a, c) = (minus(u, x), minus(y, x));
    let length = inner(c, c).sqrt();
    if length < 1e-9 {
        return 0.0;
    }
    let along = inner(a, c) / length;
    let across = (inner(a, a) - along * along).max(0.0).sqrt();
    let (stay, replaced) = ((level - 1.0) * (1.0 - q) / q, level);
    let number = if across < 1e-9 { 1 } else { 81 };
    let mut sum = 0.0;
    for k in 0..number {
        let z = if number == 1 { 0.0 } else { (f64::from(k) - 40.0) * 0.2 };
        let weight = if number == 1 { 1.0 } else { 0.2 * (-0.5 * z * z).exp() / std::f64::consts::TAU.sqrt() };
        let m = stay * (across * z - 0.5 * across * across).exp();
        let left = |v: f64| {
            m * (along * v - 0.5 * along * along).exp() + replaced * (length * v - 0.5 * length * length).exp() - 1.0
        };
        // The side rises for a product that is not negative; otherwise it is convex, and the set where it is negative is an
        // interval.
        let ends = if along >= 0.0 {
            (f64::NEG_INFINITY, bisected(-40.0, 40.0, left))
        } else {
            let (mut low, mut high) = (-40.0, 40.0);
            for _ in 0..80 {
                let (one, two) = (low + (high - low) / 3.0, high - (high - low) / 3.0);
                if left(one) < left(two) {
                    high = two;
                } else {
                    low = one;
                }
            }
            let least = 0.5 * (low + high);
            if left(least) >= 0.0 {
                continue;
            }
            (-bisected(-least, 40.0, |v| left(-v)), bisected(least, 40.0, left))
        };
        let part = |shift: f64| normal(ends.1 - shift) - if ends.0.is_finite() { normal(ends.0 - shift) } else { 0.0 };
        sum += weight * (part(0.0) - m * part(along) - replaced * part(length)).max(0.0);
    }
    q * sum
}

/// Returns where a function that rises from below 0 crosses it.
fn bisected(mut low: f64, mut high: f64, rising: impl Fn(f64) -> f64) -> f64 {
    for _ in 0..60 {
        let middle = 0.5 * (low + high);
        if rising(middle) > 0.0 {
            high = middle;
        } else {
            low = middle;
        }
    }
    low
}

/// Returns a law's profile without its rounding.
fn profile(law: &Masses, epsilon: f64) -> f64 {
    law.at_infinity
        + law.epsilon.iter().zip(&law.mass).map(|(l, m)| m * (-(epsilon - l).exp_m1()).max(0.0)).sum::<f64>()
}

/// Returns a random triangle: anywhere, on the circle, nearly on a line, or small.
fn triangle(source: &mut Source) -> (Point, Point, Point) {
    let kind = source.uniform();
    let mut point = |least: f64, wide: f64| {
        let (angle, radius) =
            (wide * std::f64::consts::TAU * source.uniform(), least + (1.0 - least) * source.uniform());
        (radius * angle.cos(), radius * angle.sin())
    };
    if kind < 0.4 {
        (point(1.0, 1.0), point(1.0, 1.0), point(1.0, 1.0))
    } else if kind < 0.6 {
        (point(0.9, 0.03), (-1.0, 0.0), point(0.9, 0.03))
    } else if kind < 0.7 {
        (point(0.9, 0.03), point(0.9, 0.03), (-1.0, 0.0))
    } else if kind < 0.8 {
        let (a, b, c) = (point(0.0, 0.0), point(0.0, 0.0), point(0.0, 0.0));
        (a, (-b.0, b.1), (c.0 - 0.5, 0.0))
    } else {
        (point(0.0, 1.0), point(0.0, 1.0), point(0.0, 1.0))
    }
}

const LEVELS: [f64; 9] = [0.0, 3e-3, 0.02, 0.1, 0.4, 1.0, 2.0, 3.5, 5.0];

/// Returns the first of these triangles whose profile no pair of laws is above at all levels, in both directions.
fn uncovered(
    change: Change,
    laws: &[[Masses; 2]],
    q: f64,
    sigma: f64,
    mut triangles: impl Iterator<Item = (Point, Point, Point)>,
) -> Option<(Point, Point, Point)> {
    let table = |law: &Masses| -> Vec<f64> { LEVELS.iter().map(|&at| profile(law, at)).collect() };
    let tables: Vec<[Vec<f64>; 2]> = laws.iter().map(|[one, other]| [table(one), table(other)]).collect();
    triangles.find(|&(u, x, y)| {
        let one: Vec<f64> = LEVELS.iter().map(|e| exact(q, sigma, (u, x, y), e.exp())).collect();
        let other: Vec<f64> = LEVELS.iter().map(|e| exact(q, sigma, (u, y, x), e.exp())).collect();
        let above =
            |table: &[f64], exact: &[f64]| table.iter().zip(exact).all(|(most, e)| *e <= most * (1.0 + 1e-9) + 1e-13);
        // Both orders of a ring are in one class, if the record is replaced.
        let exchanged = |a, b| change == Change::Replaced && above(b, &one) && above(a, &other);
        !tables.iter().any(|[a, b]| (above(a, &one) && above(b, &other)) || exchanged(a, b))
    })
}

/// Returns the laws of both orders of each ring.
fn covered(change: Change, q: (u64, u64), sigma: f64, rings: u32) -> Vec<[Masses; 2]> {
    let places = Places { spacing: exact_spacing(4e-3), left: 12.0, right: 12.0 };
    let one = phase(q.1, q.0, sigma, 1);
    let mut laws = class::above(change, &one, rings, 0.03, &places, &Run::default()).unwrap().into_iter();
    match (laws.next().unwrap(), laws.next()) {
        (remove, Some(add)) => remove.into_iter().zip(add).map(|(one, other)| [one, other]).collect(),
        (both, None) => both.chunks(2).map(|pair| [pair[0].clone(), pair[1].clone()]).collect(),
    }
}

#[test]
fn no_triangle_is_above_the_cover_and_a_hole_is_found() {
    let number = if std::env::var_os("PYACCOUNT_NIGHTLY").is_some() { 5_000 } else { 40 };
    // The triangles with u at x′, and u at x, which play nearly all of V, are those of the first ring.
    let replaced = [((-1.0, 0.0), (1.0, 0.0), (-1.0, 0.0)), ((-1.0, 0.0), (-1.0, 0.0), (1.0, 0.0))];
    // Those with u = −x, and u = x, are those of the last interval and of the first one.
    let zeroed = [((-1.0, 0.0), (1.0, 0.0), (0.0, 0.0)), ((1.0, 0.0), (1.0, 0.0), (0.0, 0.0))];
    for (q, sigma, rings) in [((1, 100), 1.0, 5), ((1, 20), 2.0, 6), ((1, 2), 0.7, 4)] {
        #[allow(clippy::cast_precision_loss)] // small
        let rate = q.0 as f64 / q.1 as f64;
        for (change, ends) in [(Change::Replaced, replaced), (Change::Zeroed, zeroed)] {
            let mut laws = covered(change, q, sigma, rings);
            let mut source = Source(7);
            let third = |(u, x, y)| (u, x, if change == Change::Zeroed { (0.0, 0.0) } else { y });
            let random: Vec<_> = (0..number).map(|_| third(triangle(&mut source))).collect();
            let found =
                |laws: &[[Masses; 2]], triangles: Vec<_>| uncovered(change, laws, rate, sigma, triangles.into_iter());
            assert_eq!(found(&laws, random), None, "{q:?} {sigma}");
            assert_eq!(found(&laws, ends.to_vec()), None, "{q:?} {sigma}");
            let last = laws.pop().unwrap();
            if change == Change::Zeroed {
                assert_eq!(found(&laws, vec![ends[0]]), Some(ends[0]), "{q:?} {sigma}");
            }
            laws.push(last);
            laws.remove(0);
            assert_eq!(found(&laws, vec![ends[1]]), Some(ends[1]), "{q:?} {sigma}");
            if change == Change::Replaced {
                assert_eq!(found(&laws, vec![ends[0]]), Some(ends[0]), "{q:?} {sigma}");
            }
        }
    }
}

/// Returns H at a level of at least 1 of one round's best pair of the class, for a removed record and for an added one.
fn one_round(change: Change, q: f64, sigma: f64, reverse: bool, alpha: f64) -> f64 {
    // q·G_c at 1 + (α − 1)/q: N(0) against the mixture, or the mixture against N(0).
    let joint = |c: f64| {
        let level = (1.0 + (alpha - 1.0) / q).ln();
        q * (normal(0.5 * c - level / c) - level.exp() * normal(-0.5 * c - level / c))
    };
    match (change, reverse) {
        (Change::Replaced, _) => joint(2.0 / sigma),
        (Change::Zeroed, true) => joint(1.0 / sigma),
        (Change::Zeroed, false) => {
            let c = 1.0 / sigma;
            let ratio = |shift: f64, y: f64| 1.0 - q + q * (shift * y - 0.5 * shift * shift).exp();
            let at = bisected(1.5 * c, 60.0 + c, |y| ratio(2.0 * c, y) - alpha * ratio(c, y));
            let tail = |shift: f64| normal(shift - at);
            (1.0 - q) * tail(0.0) * (1.0 - alpha) + q * (tail(2.0 * c) - alpha * tail(c))
        }
    }
}

#[test]
fn two_rounds_are_those_of_every_triangle() {
    for (change, reverse) in [(Change::Replaced, false), (Change::Zeroed, false), (Change::Zeroed, true)] {
        two_rounds(change, reverse);
    }
}

#[allow(clippy::many_single_char_names)] // the formulas of the head
fn two_rounds(change: Change, reverse: bool) {
    let (q, sigma) = (0.05, 1.0);
    let phases = [phase(20, 1, sigma, 2)];
    let effort = Effort { spread: 1e-4, cells: 30_000_000, rings: 8 };
    let (most, least) = (
        above(change, &phases, Target::Delta(1e-5), effort, &Run::default()).unwrap().profiles().unwrap(),
        below(change, &phases, Target::Delta(1e-5), effort, &Run::default()).unwrap().profiles().unwrap(),
    );
    let (most, least) = (&most[usize::from(reverse)], &least[usize::from(reverse)]);
    // V_1, reflected below 1.
    let one = |alpha: f64| {
        if alpha >= 1.0 {
            one_round(change, q, sigma, reverse, alpha)
        } else {
            1.0 - alpha + alpha * one_round(change, q, sigma, !reverse, 1.0 / alpha)
        }
    };
    // E_P[V_1(αdQ/dP)] on a grid of this width; V_1 has a corner at 1, so the error is of second order.
    let mean = |(u, x, y): (Point, Point, Point), alpha: f64, across: i32, h: f64| {
        let reach = |wide: f64| -> i32 {
            #[allow(clippy::cast_possible_truncation)] // a number of cells
            let cells = (wide / h) as i32;
            cells
        };
        let mut sum = 0.0;
        for (i, j) in (-reach(9.0)..reach(9.0)).flat_map(|i| (-across..across).map(move |j| (i, j))) {
            let at = (f64::from(i) * h, if across == 1 { f64::from(j) + 1.0 } else { f64::from(j) * h });
            let density = |m: Point| {
                let d = (at.0 - m.0 / sigma, at.1 - m.1 / sigma);
                (-0.5 * inner(d, d)).exp() / std::f64::consts::TAU
            };
            let (p, r) = ((1.0 - q) * density(u) + q * density(x), (1.0 - q) * density(u) + q * density(y));
            let (p, r) = if reverse { (r, p) } else { (p, r) };
            if p > 1e-30 {
                sum += h * h * p * one(alpha * r / p);
            }
        }
        sum
    };
    let mut source = Source(3);
    let ends = match change {
        Change::Replaced => [((-1.0, 0.0), (1.0, 0.0), (-1.0, 0.0)), ((-1.0, 0.0), (-1.0, 0.0), (1.0, 0.0))],
        Change::Zeroed => [((-1.0, 0.0), (1.0, 0.0), (0.0, 0.0)), ((1.0, 0.0), (1.0, 0.0), (0.0, 0.0))],
    };
    for epsilon in [0.2_f64, 1.0, 2.5] {
        let alpha = epsilon.exp();
        // For points on one line, one row of a fine grid, over that row's part of the mass.
        let h = 1e-3;
        let row = std::f64::consts::TAU.sqrt() / h;
        let best = ends.iter().map(|&one| mean_of_row(&mean, one, alpha, h) * row).fold(0.0, f64::max);
        let (low, high) = (least.bounds(epsilon).0, most.bounds(epsilon).1);
        assert!(best <= high * (1.0 + 1e-7), "{epsilon}: {best} above {high}");
        assert!(low <= best * (1.0 + 1e-7), "{epsilon}: {low} above {best}");
        assert!(best <= 1.03 * low && high <= 1.03 * best, "{epsilon}: {low} {best} {high}");
        for _ in 0..5 {
            let (u, x, y) = triangle(&mut source);
            let random = (u, x, if change == Change::Zeroed { (0.0, 0.0) } else { y });
            let (coarse, fine) = (mean(random, alpha, 60, 0.15), mean(random, alpha, 90, 0.1));
            assert!(fine <= high + (fine - coarse).abs(), "{epsilon} {random:?}: {fine} {coarse} above {high}");
        }
    }
}

/// Returns the sum over one row of the grid, at 0 of the other axis.
fn mean_of_row(
    mean: &dyn Fn((Point, Point, Point), f64, i32, f64) -> f64,
    points: (Point, Point, Point),
    alpha: f64,
    h: f64,
) -> f64 {
    // Two rows, at 0 and 1: the second one is e^{−1/2} of the first, exactly, since the points are on the axis.
    mean(points, alpha, 1, h) / (1.0 + (-0.5_f64).exp())
}

#[test]
fn a_simulated_attack_lies_inside() {
    for (change, reverse) in [(Change::Replaced, false), (Change::Zeroed, false), (Change::Zeroed, true)] {
        simulated_attack(change, reverse);
    }
}

fn simulated_attack(change: Change, reverse: bool) {
    let (q, sigma, rounds) = (0.05, 1.5, 40);
    let phases = [phase(20, 1, sigma, rounds)];
    let effort = Effort { spread: 5e-4, cells: 200_000_000, rings: 16 };
    let run = Run::default();
    let (most, least) = (
        above(change, &phases, Target::Epsilon(1.5), effort, &run).unwrap().profiles().unwrap(),
        below(change, &phases, Target::Epsilon(1.5), effort, &run).unwrap().profiles().unwrap(),
    );
    let (most, least) = (&most[usize::from(reverse)], &least[usize::from(reverse)]);
    let paths = if std::env::var_os("PYACCOUNT_NIGHTLY").is_some() { 1_000_000 } else { 50_000 };
    // u, x and x′ while ε is not reached, and after that; and the loss of an outcome.
    let played = match change {
        Change::Replaced => [[0.0, 2.0, 0.0], [0.0, 0.0, 2.0]],
        Change::Zeroed => [[0.0, 2.0, 1.0], [0.0, 0.0, 1.0]],
    };
    let log_density = |[u, x]: [f64; 2], y: f64| {
        let normal = |mean: f64| (-0.5 * (y - mean / sigma).powi(2)).exp();
        ((1.0 - q) * normal(u) + q * normal(x)).ln()
    };
    // Where the one gives way to the other: at ε for a replaced record, which is both directions at once; otherwise this far from it
    // for each round that remains.
    let switches: &[f64] = if change == Change::Replaced { &[0.0] } else { &[0.0, 0.0103] };
    for epsilon in [0.5, 1.5, 3.0] {
        let attack = |switch: f64| {
            let (mut sum, mut squares, mut source) = (0.0, 0.0, Source(11));
            for _ in 0..paths {
                // What is left of ε.
                let mut left: f64 = epsilon;
                for remaining in (1..=rounds).rev() {
                    // For an added record the two are exchanged.
                    #[allow(clippy::cast_precision_loss)] // small
                    let away = switch * remaining as f64;
                    let first = if reverse { left < away } else { left >= -away };
                    let [stay, one, other] = played[usize::from(!first)];
                    let (own, other) = if reverse { (other, one) } else { (one, other) };
                    let out = source.normal() + if source.uniform() < q { own } else { stay } / sigma;
                    left -= log_density([stay, own], out) - log_density([stay, other], out);
                }
                let value = (-left.exp_m1()).max(0.0);
                sum += value;
                squares += value * value;
            }
            let mean = sum / f64::from(paths);
            (mean, (squares / f64::from(paths) - mean * mean).sqrt() / f64::from(paths).sqrt())
        };
        let found: Vec<(f64, f64)> = switches.iter().map(|&switch| attack(switch)).collect();
        let (low, high) = (least.bounds(epsilon).0, most.bounds(epsilon).1);
        for (mean, error) in &found {
            assert!(*mean <= high + 4.0 * error, "{epsilon}: {mean} {error} above {high}");
        }
        let (mean, error) = found.into_iter().fold((0.0, 0.0), |a, b| if b.0 > a.0 { b } else { a });
        // What no path meets may have a probability of a few in their number.
        assert!(
            low <= 1.01 * mean + 4.0 * error + 10.0 / f64::from(paths),
            "{change:?} {reverse} {epsilon}: {low} above {mean} {error}"
        );
        // Both are accurate around ε = 1.5, for the larger one of both directions; what the window may omit is below 10⁻⁵.
        assert!(low <= high && high <= 1.03 * low + 1e-5, "{epsilon}: {low} {high}");
    }
}

/// Channels on Z_5: the sum of contributions in {−1, 0, 1} and a noise of this law.
const NOISE: [f64; 5] = [0.5, 0.2, 0.07, 0.03, 0.2];
const OUTPUTS: i32 = 5;
const CHOICES: [i32; 3] = [-1, 0, 1];

#[allow(clippy::cast_sign_loss)] // a residue
fn channel(sum: i32, output: i32) -> f64 {
    NOISE[(output - sum).rem_euclid(OUTPUTS) as usize]
}

/// Returns the law of the output: N = 3 records with these contributions, of which a random subset of `batch` is summed.
fn mechanism(records: [i32; 3], batch: usize) -> Vec<f64> {
    let subsets: Vec<i32> = match batch {
        1 => records.to_vec(),
        _ => vec![records[0] + records[1], records[0] + records[2], records[1] + records[2]],
    };
    (0..OUTPUTS).map(|y| subsets.iter().map(|&sum| channel(sum, y)).sum::<f64>() / 3.0).collect()
}

#[test]
fn all_strategies_of_finite_games_are_at_most_the_recursion() {
    // In one group, where all sums are possible, the theorem's class is all (u, x, x′); the record is the first one.
    for (batch, zeroed) in [(1, false), (2, false), (1, true), (2, true)] {
        // What takes the record's place contributes 0, or anything.
        let triples = || triples().filter(move |triple| !zeroed || triple[2] == 0);
        #[allow(clippy::cast_precision_loss)] // 1 or 2
        let q = batch as f64 / 3.0;
        let class: Vec<(Vec<f64>, Vec<f64>)> = triples()
            .map(|[u, x, y]| {
                let law = |to: i32| {
                    (0..OUTPUTS).map(|o| (1.0 - q) * channel(u, o) + q * channel(to, o)).collect::<Vec<f64>>()
                };
                (law(x), law(y))
            })
            .collect();
        let games: Vec<(Vec<f64>, Vec<f64>)> = triples()
            .flat_map(|[a, x, y]| CHOICES.map(|b| (mechanism([x, a, b], batch), mechanism([y, a, b], batch))))
            .collect();
        let exchanged: Vec<_> = class.iter().map(|(p, q)| (q.clone(), p.clone())).collect();
        for alpha in [0.3, 0.9, 1.0, 1.2, 1.7, 2.5, 4.0] {
            // Every strategy: a first choice, and for each output a second one.
            let played = value(&games, &|a| value(&games, &|b| (1.0_f64 - b).max(0.0), a), alpha);
            let recursion = value(&class, &|a| value(&class, &|b| (1.0_f64 - b).max(0.0), a), alpha);
            assert!(played <= recursion + 1e-14, "{batch} {alpha}: {played} {recursion}");
            // With all other records equal, the class is attained.
            assert!(played >= recursion - 1e-14, "{batch} {alpha}: {played} {recursion}");
            let reflected = value(&exchanged, &|a| value(&exchanged, &|b| (1.0_f64 - b).max(0.0), a), 1.0 / alpha);
            assert!((recursion - (1.0 - alpha + alpha * reflected)).abs() < 1e-14);
        }
    }
}

#[test]
fn two_rounds_with_several_draws_are_those_of_two_data_sets() {
    let (sigma, chances) = (1.5_f64, [0.9_f64, 0.08, 0.02]);
    let weights =
        Weights { count: vec![0, 1, 2], log_probability: chances.map(f64::ln).to_vec(), relative_error: 1e-15 };
    let phases = [Phase::new(weights, sigma, 2).unwrap()];
    let effort = Effort { spread: 1e-4, cells: 30_000_000, rings: 8 };
    // Outcomes of one round on a grid: with a record that contributes x, what takes its place y, and all others u, up to a shift.
    let h = 2e-3;
    let density = |unit: f64, at: f64| -> f64 {
        let normal = |j: usize, chance: f64| {
            #[allow(clippy::cast_precision_loss)] // at most 2
            let mean = unit * j as f64 / sigma;
            chance * (-0.5 * (at - mean) * (at - mean)).exp() / std::f64::consts::TAU.sqrt()
        };
        chances.iter().enumerate().map(|(j, &chance)| normal(j, chance)).sum()
    };
    let pair = |x: f64, y: f64| -> Vec<(f64, f64)> {
        (-5000..6000).map(|k| f64::from(k) * h).map(|at| (h * density(x, at), h * density(y, at))).collect()
    };
    for (change, reverse) in [(Change::Replaced, false), (Change::Zeroed, false), (Change::Zeroed, true)] {
        let found = below(change, &phases, Target::Delta(1e-3), effort, &Run::default()).unwrap().profiles().unwrap();
        let pairs = match change {
            Change::Replaced => [pair(2.0, 0.0), pair(0.0, 2.0)],
            Change::Zeroed => [pair(2.0, 1.0), pair(0.0, -1.0)],
        };
        let pairs = pairs.map(|pair| if reverse { pair.into_iter().map(|(p, q)| (q, p)).collect() } else { pair });
        let mean = |next: &dyn Fn(f64) -> f64, alpha: f64| {
            let of = |pair: &Vec<(f64, f64)>| -> f64 {
                pair.iter().filter(|one| one.0 > 1e-30).map(|(p, q)| p * next(alpha * q / p)).sum()
            };
            pairs.iter().map(of).fold(0.0, f64::max)
        };
        // V_1 at the states that the second round may reach, and between them by chords.
        let table: Vec<f64> =
            (-3000..3000).map(|k| mean(&|b| (1.0_f64 - b).max(0.0), (f64::from(k) * 4e-3).exp())).collect();
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // a place in the table
        let one = |alpha: f64| {
            let place = (alpha.max(1e-5).ln() / 4e-3 + 3000.0).clamp(0.0, 5998.0);
            let (k, part) = (place as usize, place.fract());
            table[k] + part * (table[k + 1] - table[k])
        };
        for epsilon in [0.3_f64, 1.0, 2.5] {
            let (exact, low) = (mean(&one, epsilon.exp()), found[usize::from(reverse)].bounds(epsilon).0);
            assert!(low <= exact * (1.0 + 1e-4) + 1e-9, "{change:?} {reverse} {epsilon}: {low} above {exact}");
            assert!(exact <= 1.03 * low + 1e-5, "{change:?} {reverse} {epsilon}: {low} {exact}");
        }
        assert!(above(change, &phases, Target::Delta(1e-3), effort, &Run::default()).is_err());
    }
}

fn triples() -> impl Iterator<Item = [i32; 3]> {
    CHOICES.into_iter().flat_map(|a| CHOICES.into_iter().flat_map(move |b| CHOICES.map(|c| [a, b, c])))
}

/// Returns the largest Σ_y p(y)·next(α q(y)/p(y)).
fn value(pairs: &[(Vec<f64>, Vec<f64>)], next: &dyn Fn(f64) -> f64, alpha: f64) -> f64 {
    let of = |(p, q): &(Vec<f64>, Vec<f64>)| p.iter().zip(q).map(|(p, q)| p * next(alpha * q / p)).sum::<f64>();
    pairs.iter().map(of).fold(0.0, f64::max)
}

#[test]
fn the_first_rounds_of_a_schedule_come_first() {
    let run = Run::default();
    let effort = Effort { spread: 1e-4, cells: 60_000_000, rings: 5 };
    let (one, two) = (phase(10, 3, 2.0, 1), phase(50, 1, 1.0, 1));
    let ends = |phases: &[Phase]| {
        let target = Target::Epsilon(0.144);
        let least =
            below(Change::Replaced, phases, target, effort, &run).unwrap().profiles().unwrap()[0].bounds(0.144).0;
        (least, above(Change::Replaced, phases, target, effort, &run).unwrap().profiles().unwrap()[0].bounds(0.144).1)
    };
    let (forth, back) = (ends(&[one.clone(), two.clone()]), ends(&[two, one]));
    // Doubles: .08281 and .08222.
    assert!(forth.0 <= 0.08281 && 0.08281 <= forth.1 + 5e-6, "{forth:?}");
    assert!(back.0 <= 0.08222 + 5e-6 && 0.08222 <= back.1 + 5e-6, "{back:?}");
    assert!(back.1 < forth.0 * 1.02);
}

#[test]
fn bounds_do_not_depend_on_the_number_of_threads() {
    let phases = [phase(100, 1, 1.0, 20)];
    let effort = Effort { spread: 1e-3, cells: 10_000_000, rings: 3 };
    let with = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| above(Change::Replaced, &phases, Target::Delta(1e-5), effort, &Run::default()).unwrap().points)
    };
    assert_eq!(with(1), with(3));
}

#[test]
fn rounds_that_the_theorem_does_not_cover_are_refused() {
    let made = |n, b, sigma, count| Phase::new(Sampler::FixedSize.copies(1, n, b, &Run::default())?, sigma, count);
    assert!(made(10, 10, 1.0, 1).is_err() && made(10, 0, 1.0, 1).is_err());
    assert!(made(10, 1, 0.0, 1).is_err() && made(10, 1, f64::NAN, 1).is_err() && made(10, 1, 1.0, 0).is_err());
    let half = Weights { count: vec![0, 1], log_probability: vec![-1.0, -1.0], relative_error: 0.0 };
    assert!(Phase::new(half, 1.0, 1).is_err());
    let effort = Effort { spread: 1e-3, cells: 1 << 30, rings: 8 };
    assert!(above(Change::Replaced, &[], Target::Delta(1e-5), effort, &Run::default()).is_err());
}

#[test]
#[ignore = "prints the table of the documentation"]
fn the_table_of_the_documentation() {
    let run = Run::default();
    let settings =
        [(100, 1, 1.0, 500), (1000, 1, 0.8, 1000), (20, 1, 2.0, 200), (100, 1, 2.0, 5000), (1000, 1, 1.0, 20_000)];
    let only: Option<usize> = std::env::var("SETTING").ok().and_then(|s| s.parse().ok());
    for (k, (n, b, sigma, count)) in settings.into_iter().enumerate() {
        if only.is_some_and(|only| only != k) {
            continue;
        }
        let phases = [phase(n, b, sigma, count)];
        for side in [Side::Upper, Side::Lower] {
            let effort = Effort::usual(&phases);
            let time = std::time::Instant::now();
            let bounds = match side {
                Side::Upper => above(Change::Replaced, &phases, Target::Delta(1e-5), effort, &run),
                Side::Lower => below(Change::Replaced, &phases, Target::Delta(1e-5), effort, &run),
            }
            .unwrap();
            let seconds = time.elapsed().as_secs_f64();
            let [profile, _] = bounds.profiles().unwrap();
            let at = |e: f64| if side == Side::Upper { profile.bounds(e).1 } else { profile.bounds(e).0 };
            let epsilon = bisected(0.0, 40.0, |e| 1e-5 - at(e));
            println!(
                "{b}/{n} {sigma} {count} {side:?} {epsilon:.5} {} laws {:?} {seconds:.1} s {:?}",
                bounds.laws,
                bounds.lattice,
                bounds.errors(epsilon)
            );
        }
    }
}

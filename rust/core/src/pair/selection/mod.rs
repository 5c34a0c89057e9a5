//! Private selection: a random number of runs, of which the best one is released.
//!
//! **The mechanism.** K is drawn from a law with generating function f, finite mean and no regard for the data ([`Runs`]).
//! The mechanism runs K times, each time on fresh randomness. Its outcomes are in a fixed total order, which may depend
//! on public data alone: a score that is part of the private output, then any rule for ties that looks at nothing but
//! the outcomes. The best outcome is released; K and the other outcomes are not. If K = 0, a fixed symbol is released.
//! A run may draw its own hyperparameters at random: they are part of its outcome.
//!
//! **The law of the best run.** Let P and Q be the laws of one run on two neighbouring data sets. Give every outcome a
//! uniform random number as the last rule for ties: neither the best outcome nor any H_α(P‖Q) changes, and no two
//! outcomes are equal. With b(y) = P(outcomes better than y), P(K ≥ 1, the best is at most y) = f(1 − b(y)) − f(0), so
//! the best run has the law A(dy) = f′(1 − b(y)) P(dy), and on the other data set B(dy) = f′(1 − b_Q(y)) Q(dy). Both
//! have the mass f(0) on the symbol. f′ increases, since its coefficients are at least 0, and f′(1) = E\[K\] < ∞.
//!
//! **Theorem.** Let H_β(Q‖P) ≤ h_Q(β) for all β > 0, B(b) = inf_β (β·b + h_Q(β)), and H_α(P‖Q) ≤ h(α). For α ≥ 1, every v ≥
//! 0 on \[0, 1\] and `Ω(z) = sup_b (f′(1 − b) − v(b) − z·f′(1 − B(b)))_+`, let `Ω(z) ≤ c + Σ_j w_j (z_j − z)_+` with w_j ≥ 0
//! for all z ≥ 0. Then
//!
//! `H_α(A‖B) ≤ ∫_0^1 v(b) db + c + Σ_j w_j z_j h(α/z_j).`
//!
//! *Proof.* The set S of outcomes better than y has Q(S) ≤ β·P(S) + H_β(Q‖P) for every β, so b_Q(y) ≤ B(b(y)) and
//! f′(1 − b_Q) ≥ f′(1 − B(b)). For a set E of outcomes with K ≥ 1, and q/p the density of Q's part that P has,
//! `A(E) − αB(E) ≤ ∫_E (f′(1 − b) − α f′(1 − B(b)) q/p) dP ≤ ∫ v(b) dP + ∫ Ω(α q/p) dP`. Under P, b(y) is uniform on
//! \[0, 1\]: the first term is ∫ v. The second is at most c + Σ_j w_j ∫ (z_j p − α q)_+, and each integral is
//! z_j H_{α/z_j}(P‖Q). The symbol adds f(0)(1 − α)_+ = 0. ∎
//!
//! **Near ε = 0.** With t = H_1(P‖Q), the total variation, `H_α(A‖B) ≤ 1 − f(1 − t)` for α ≥ 1, which is at most E\[K\]·t.
//! *Proof.* Draw the runs on both data sets together, so that each of the K pairs of outcomes differs with probability t,
//! independently of K and of the other pairs. If no pair differs, the best outcomes are the same, and so is the symbol. So the
//! total variation of A and B is at most 1 − E\[(1 − t)^K\], and H_α falls with α. ∎ It is attained where an outcome that only P
//! has is the best one.
//!
//! For α < 1, H_α(A‖B) = 1 − α + α·H_{1/α}(B‖A), where the theorem holds with P and Q exchanged. The profile of the best
//! run is convex, so chords in α between values of the bound are bounds as well ([`Tabulated`]).
//!
//! **What it contains.** v = 0 and the hinge of the largest root 1/min r, r(b) = f′(1 − B(b))/f′(1 − b), give
//! E\[K\]·h(α min r), the theorem of Koskela, Redberg & Wang 2024 (arXiv:2402.06701) with the best of its ε̂ for each
//! law. If one run is ε-DP, B(b) ≤ e^ε b, so r ≥ e^{−(η+1)ε} for a truncated negative binomial law, and the bound is 0
//! from (2 + η)ε on: Theorem 1.3 of Liu & Talwar 2019, Corollary 3 of Papernot & Steinke 2022 (arXiv:2110.03620). Since also 1 −
//! b ≤ e^ε(1 − B(b)), less is true, for every law ([`Runs::gain`]). The
//! Rényi bounds of the latter, converted, are never smaller if h and h_Q are at most the conversions of the Rényi bounds of
//! one run: (u − z)_+ ≤ u^λ z^{1−λ} (λ−1)^{λ−1}/λ^λ under the integral leaves sup_b f′(1 − b)^λ f′(1 − B)^{1−λ} times the
//! Rényi integral of (P, Q), which is how they are proved; and B is at most e^{(1 − 1/λ)ρ} b^{1 − 1/λ}, since the infimum
//! over β of β·b plus the conversion of a Rényi bound ρ of order λ is exactly that.
//!
//! One file each: [`runs`] (the laws), `table` (the profiles of one run), `positions` (where the best run can stand),
//! `payoff` (the bound with v = 0), `capacity` (the bound with other v).

mod capacity;
mod payoff;
mod positions;
pub mod runs;
mod table;

use crate::error::Result;
use crate::pair::check::Checked;
use crate::pair::tabulated::Tabulated;
use crate::run::Run;
use capacity::Capacity;
use payoff::Payoff;
use positions::Positions;
pub use runs::Runs;
use table::{nodes, reflected, Table};

/// The cells of positions for the two parts of the bound: the largest change of a logarithm on a cell, and about how
/// many cells there are at most.
const FINE: (f64, usize) = (0.02, 2500);
const COARSE: (f64, usize) = (0.08, 300);
/// Below this δ positions have room for all outcomes that matter.
const ROOMY: f64 = 1e-4;
/// The same for this ε: a bound near 1 at such an ε is not improved.
const FAR: f64 = 600.0;
/// Values below this need no nodes of their own.
const NOTHING: f64 = 1e-60;
/// Neighbouring values differ by at most this much in their logarithm, where the number of nodes allows it.
const STEP: f64 = 0.05;

/// Returns an upper bound on the profile of the best of K runs.
///
/// * Formula: the theorem at the head of this file, for ε ≥ 0; reflected from the other direction for ε < 0.
/// * Arguments: `forward` and `backward` are upper bounds on the two directions H(P‖Q) and H(Q‖P) of one run, for the
///   same set of neighbouring pairs; the result is that of the first direction.
/// * Units: ε in nats.
/// * Guarantee: an upper bound on H_α(A‖B) for every α, whatever the order of the outcomes; not tight.
/// * Precision: chords and cells raise δ by about 0.1 % for δ below 1e-4, and by about 1 % above.
///
/// # Errors
/// The errors of [`Run::check`], and those of [`Tabulated::new`], which do not occur.
pub fn selection(forward: &Checked, backward: &Checked, runs: &Runs, run: &Run) -> Result<Tabulated> {
    let (there, back) = Table::both(&**forward, &**backward, run)?;
    // Where one run has bounded losses, so has the best one: α f′(1 − B)/f′(1 − b) is above their largest ratio.
    let losses = [forward, backward].map(|profile| profile.largest_loss().at_most);
    let largest = |one: f64, other: f64| (one + runs.gain(one, other)) * (1.0 + 1e-14);
    let ahead = one_sided(&there, &back, (runs, largest(losses[0], losses[1])), run)?;
    let behind = if there == back {
        ahead.clone()
    } else {
        one_sided(&back, &there, (runs, largest(losses[1], losses[0])), run)?
    };
    let mirrored = behind.iter().filter(|node| node.0 > 0.0).map(|node| (-node.0, reflected(-node.0, node.1)));
    Tabulated::new(mirrored.chain(ahead.iter().copied()).collect())
}

/// Returns values of the bound at nodes ε ≥ 0, from the tables of H(P‖Q) and H(Q‖P), the law of K, and an upper bound on
/// the losses of the best run.
fn one_sided(forward: &Table, backward: &Table, (runs, largest): (&Runs, f64), run: &Run) -> Result<Vec<(f64, f64)>> {
    let fine = Positions::new(runs, backward, FINE.0, FINE.1, run)?;
    let payoff = Payoff::new(&fine.cells, fine.rest);
    let coarse = Positions::new(runs, backward, COARSE.0, COARSE.1, run)?;
    let mut capacity = Capacity::new(coarse, forward, backward);
    let (end, nearest) = (largest.min(forward.end().max(0.0) + payoff.reach() + 1e-9), runs.once(forward.at(0.0, 0.0)));
    let mut calls = 0_u32;
    let mut stopped = None;
    let value = |epsilon: f64| {
        calls += 1;
        if calls.is_multiple_of(16) && stopped.is_none() {
            stopped = run.check().err();
        }
        if stopped.is_some() {
            return 1.0;
        }
        if epsilon >= largest {
            return 0.0;
        }
        let free = payoff.at(forward, epsilon);
        let bound = if free > ROOMY && epsilon < FAR { free.min(capacity.at(epsilon)) } else { free };
        bound.min(nearest)
    };
    let mut nodes = nodes(value, (end, NOTHING, STEP), run)?;
    if largest.is_finite() {
        nodes.push((largest, 0.0));
    }
    stopped.map_or(Ok(nodes), Err)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pair::discrete::DiscretePair;
    use crate::pair::gaussian::GaussianPair;
    use crate::pair::laplace::Laplace;
    use crate::pair::Profile;
    use crate::special::real;

    /// The generating function of the number of runs, in closed form.
    fn generating(law: &str, parameters: &[f64], x: f64) -> f64 {
        match (law, parameters) {
            ("logarithmic", [stopping]) => (1.0 - (1.0 - stopping) * x).ln() / stopping.ln(),
            ("geometric", [stopping]) => stopping * x / (1.0 - (1.0 - stopping) * x),
            ("negative-binomial", [shape, stopping]) => {
                ((1.0 - (1.0 - stopping) * x).powf(-shape) - 1.0) / (stopping.powf(-shape) - 1.0)
            }
            ("poisson", [mean]) => (mean * (x - 1.0)).exp(),
            ("binomial", [trials, probability]) => (1.0 - probability + probability * x).powf(*trials),
            _ => panic!("{law}"),
        }
    }

    const LAWS: [(&str, &[f64]); 9] = [
        ("geometric", &[0.2]),
        ("geometric", &[0.9]),
        ("logarithmic", &[0.03]),
        ("negative-binomial", &[-0.6, 0.01]),
        ("negative-binomial", &[3.5, 0.4]),
        ("poisson", &[0.3]),
        ("poisson", &[12.0]),
        ("binomial", &[5.0, 0.6]),
        ("binomial", &[40.0, 0.1]),
    ];

    /// Returns H_α of the best run for outcomes in this order, the best one last.
    fn exact(law: (&str, &[f64]), outcomes: &[(f64, f64)], epsilon: f64) -> f64 {
        let masses = |probabilities: Vec<f64>| {
            let mut below = 0.0;
            let mut last = generating(law.0, law.1, 0.0);
            let mut masses = vec![last];
            for p in probabilities {
                below = (below + p).min(1.0);
                let next = generating(law.0, law.1, below);
                masses.push(next - last);
                last = next;
            }
            masses
        };
        let one = masses(outcomes.iter().map(|o| o.0).collect());
        let other = masses(outcomes.iter().map(|o| o.1).collect());
        one.iter().zip(&other).map(|(a, b)| (a - epsilon.exp() * b).max(0.0)).sum()
    }

    /// Returns pseudorandom numbers in (0, 1).
    fn stream(seed: u64) -> impl FnMut() -> f64 {
        let mut state = seed.wrapping_mul(2).wrapping_add(1);
        move || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (real(state >> 33) + 0.5) / 2_147_483_648.0
        }
    }

    #[test]
    fn no_order_of_few_outcomes_exceeds_the_bound() {
        let mut next = stream(7);
        for case in 0..9 {
            let law = LAWS[case % LAWS.len()];
            let runs = Runs::new(law.0, law.1).unwrap();
            // Some probabilities are extreme.
            let mut masses: Vec<(f64, f64)> =
                (0..3).map(|_| (next().powf(1.0 + [0.0, 3.0, 7.0][case % 3]), next())).collect();
            if case % 5 == 4 {
                masses[0].1 = 0.0;
            }
            let sums = masses.iter().fold((0.0, 0.0), |sum, o| (sum.0 + o.0, sum.1 + o.1));
            let outcomes: Vec<(f64, f64)> = masses.iter().map(|o| (o.0 / sums.0, o.1 / sums.1)).collect();
            let pair = DiscretePair::new(outcomes.clone()).unwrap();
            let pair = Checked::of(pair).unwrap();
            let profile = selection(&pair, &pair.reversed().unwrap(), &runs, &Run::default()).unwrap();
            for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
                let ordered: Vec<(f64, f64)> = order.iter().map(|k| outcomes[*k]).collect();
                for step in -60..=120 {
                    let epsilon = 0.1 * f64::from(step);
                    let (truth, point) = (exact(law, &ordered, epsilon), profile.at(epsilon));
                    assert!(
                        truth <= point.delta + point.delta_error + 1e-14 * (1.0 + epsilon.exp()),
                        "{law:?} {ordered:?} {epsilon} {truth} {point:?}"
                    );
                }
            }
        }
    }

    #[test]
    fn the_mean_is_the_slope_of_the_generating_function() {
        for (law, parameters) in LAWS {
            let runs = Runs::new(law, parameters).unwrap();
            let slope = |x: f64| {
                let step = 1e-6;
                (generating(law, parameters, x) - generating(law, parameters, x - 2.0 * step)) / (2.0 * step)
            };
            for b in [0.0_f64, 0.2, 0.9] {
                // The quotient is the slope at 1 − b − 1e-6.
                let expected = slope(1.0 - b);
                let computed = runs.mean() * (-runs.decay(b + 1e-6)).exp();
                assert!((computed / expected - 1.0).abs() < 1e-7, "{law} {parameters:?} {b} {computed} {expected}");
                let difference = (runs.decay(b + 1e-6) - runs.decay(b)) / 1e-6;
                assert!((difference / runs.decay_slope(b + 5e-7) - 1.0).abs() < 1e-6 || difference.abs() < 1e-9);
            }
        }
    }

    #[test]
    fn pure_runs_are_bounded_by_a_multiple_of_their_loss() {
        for shape in [-0.5, 0.0, 1.0, 4.0] {
            let runs = Runs::new("negative-binomial", &[shape, 1e-4]).unwrap();
            let laplace = Checked::of(Laplace::new(0.3, 1.0).unwrap()).unwrap();
            let largest = selection(&laplace, &laplace, &runs, &Run::default()).unwrap().largest_loss();
            assert!(largest.at_most <= (2.0 + shape) * 0.3 * (1.0 + 1e-9), "{shape} {largest:?}");
            // A loss of ε itself is possible for any law, and practically the whole multiple if runs are many.
            assert!(largest.at_most > (1.9 + shape) * 0.3, "{shape} {largest:?}");
        }
    }

    #[test]
    fn the_largest_loss_is_that_of_the_worst_order() {
        let run = Run::default();
        for law in LAWS {
            let runs = Runs::new(law.0, law.1).unwrap();
            for (ahead, behind) in [(1.0_f64, 1.0_f64), (0.01, 0.01), (0.2, 3.0), (5.0, 0.4)] {
                // The best outcomes have the loss −behind, and all others the loss ahead: first a few of them, then the rest.
                let better = (1.0 - (-ahead).exp()) / (behind.exp() - (-ahead).exp());
                let few = 1e-5 * (1.0 - better);
                let pair = |p: f64, loss: f64| (p, p * (-loss).exp());
                let outcomes = [pair(1.0 - better - few, ahead), pair(few, ahead), pair(better, -behind)];
                let masses = |side: fn(&(f64, f64)) -> f64| {
                    let below = side(&outcomes[0]);
                    let f = |x: f64| generating(law.0, law.1, x);
                    f(below + side(&outcomes[1])) - f(below)
                };
                let loss = (masses(|outcome| outcome.0) / masses(|outcome| outcome.1)).ln();
                let most = ahead + runs.gain(ahead, behind);
                assert!(loss <= most + 1e-10 && loss >= most - 2e-4 * (1.0 + behind.exp()), "{law:?} {loss} {most}");

                if ahead < 1.0 || behind < 1.0 {
                    continue;
                }
                let pair = Checked::of(DiscretePair::new(outcomes.to_vec()).unwrap()).unwrap();
                let best = selection(&pair, &pair.reversed().unwrap(), &runs, &run).unwrap().largest_loss();
                assert!(best.at_most >= loss - 1e-10 && best.at_most <= most * (1.0 + 1e-9), "{law:?} {best:?} {most}");
            }
        }
    }

    #[test]
    fn total_variation_grows_with_the_number_of_runs_at_most() {
        let run = Run::default();
        for law in LAWS {
            let runs = Runs::new(law.0, law.1).unwrap();
            for delta in [1e-9, 1e-5, 0.01, 0.4] {
                // An outcome that only P has, and one that only Q has: the former is the best one, or the worst.
                let outcomes = [(1.0 - delta, 1.0 - delta), (0.0, delta), (delta, 0.0)];
                let pair = Checked::of(DiscretePair::new(outcomes.to_vec()).unwrap()).unwrap();
                let profile = selection(&pair, &pair.reversed().unwrap(), &runs, &run).unwrap();
                // Outcomes of equal probability may be on either side, by a few units of rounding.
                let rounding = 1e-14 * (1.0 + runs.mean()) / delta;
                for epsilon in [0.0, 1e-4, 0.1, 3.0] {
                    let (truth, point) = (exact(law, &outcomes, epsilon), profile.at(epsilon));
                    assert!(point.delta + point.delta_error >= truth * (1.0 - rounding), "{law:?} {delta} {epsilon}");
                    assert!(
                        point.delta <= truth * (1.0 + 1e-9 + rounding),
                        "{law:?} {delta} {epsilon} {truth} {point:?}"
                    );
                }
                assert!(profile.at(0.0).delta <= runs.mean() * delta * (1.0 + 1e-9 + rounding));
            }
        }
    }

    #[test]
    fn one_run_is_that_run() {
        let gaussian = Checked::of(GaussianPair::new(1.0, 1.0).unwrap()).unwrap();
        let runs = Runs::new("binomial", &[1.0, 0.5]).unwrap();
        let profile = selection(&gaussian, &gaussian, &runs, &Run::default()).unwrap();
        for epsilon in [0.5, 1.5, 3.0, 5.0] {
            let (bound, inner) = (profile.at(epsilon).delta, gaussian.at(epsilon).delta);
            assert!(bound >= 0.5 * inner && bound <= 0.5 * inner * 1.002, "{epsilon} {bound} {inner}");
        }
    }

    #[test]
    fn laws_outside_their_ranges_are_refused() {
        for (law, parameters) in [
            ("fixed", &[3.0][..]),
            ("geometric", &[]),
            ("geometric", &[0.0]),
            ("geometric", &[1.0]),
            ("negative-binomial", &[-1.0, 0.1]),
            ("negative-binomial", &[f64::NAN, 0.1]),
            ("poisson", &[0.0]),
            ("poisson", &[f64::INFINITY]),
            ("binomial", &[2.5, 0.5]),
            ("binomial", &[5.0, 1.0]),
        ] {
            assert!(Runs::new(law, parameters).is_err(), "{law} {parameters:?}");
        }
    }
}

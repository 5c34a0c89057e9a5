//! Answers where δ is caused by one large loss in one round: the principle of a single big jump.
//!
//! A record that is sampled very rarely loses nearly nothing in most rounds and, with a tiny probability, a nat or
//! more; around ε the tail of these losses is heavier than that of any exponential law. Then no tilt centres the law of
//! all rounds at ε, and on cells it has too many orders of magnitude. But the sum is large because one loss is (Foss,
//! Korshunov & Zachary 2013, chapter 3): it is enough to know that loss precisely, and the other losses roughly.
//!
//! Cut the law of round i at c. Its profile is g_i = J_i + B_i: J_i is g_i right of c and its supporting line at c left
//! of that, the profile of *jumps* of mass P_i = g_i(c) + slope; B_i is the remainder, the profile of *bodies*. Both
//! are convex in α = e^ε. δ(ε) is linear in the law of all rounds, a product of sums of the two.
//!
//! Values and slopes have errors. For upper bounds let ℓ be the line at c whose value and slope are raised by their
//! errors: the larger one of g_i and ℓ is a profile that ℓ supports, and replaces g_i. For lower bounds the line at c
//! may touch g_i beside c; then J_i is below g_i by at most twice the error of the value at c.
//!
//! * **Lower.** Only outcomes with exactly one jump are counted. With S the sum of the other losses, δ ≥ Σ n_i E J_i(ε
//!   − S), and J_i(ε − s) is convex and decreasing in e^{−s}: by Jensen it is at least the mass of S times its value at
//!   the s with e^{−s} = E e^{−S}/mass. A body has the mass 1 − P_i and at most the mass 1 under Q, so e^s = Π (1 −
//!   P_i)^{n_i} serves for both: **δ(ε) ≥ e^s Σ n_i g_i(ε − s)**, with the cut at ε itself.
//! * **Upper**, by the number of jumps. None: δ of all bodies, by Chernoff ((1 − 1/x)_+ ≤ x^λ λ^λ/(1 + λ)^{1+λ}, x =
//!   e^{S−ε}). Two or more: (1 − e^{ε−S})_+ is at most 1, and at most the sum of (1 − e^{−ℓ})_+ over all losses ℓ. With
//!   Π = Σ n_i P_i, that is Π Σ n_i J_i(0) for jumps, with another one, and Π²/2 times Σ n_i g_i(0) for bodies, with
//!   two. One: Σ n_i E J_i(ε − S), where S lacks one body of this kind. It is given back: over the loss ℓ of a body, E
//!   h(s + ℓ) ≥ (1 − P_i) h(s + ln(1 − P_i)) for h(s) = J_i(ε − s), by Jensen as above. So with S the loss of all
//!   bodies **δ(ε) ≤ Σ n_i/(1 − P_i) E J_i(ε − S + ln(1 − P_i)) + Π Σ n_i J_i(0) + Π²/2 min(1, Σ n_i g_i(0)) +
//!   Chernoff**. The law of S from above is doubled ([`super::doubling`]): J_i(ε − s) is a mean of functions (1 −
//!   αe^{−s})_+, and so no smaller under it.
//!
//! The law of a body from above is the hull of the profile on a mesh that ends at c, without its infinite loss U =
//! g_i(c) + error. Minus U, the hull falls from the node before c to 0 at c in a line; it is at least B_i if U is at
//! most J_i at that node, which is checked.

use crate::error::{Error, Result};
use crate::pair::check::Checked;
use crate::pair::Profile;
use crate::pld::answer::{at_least, at_most, sign_change, Answer, Budget, Query, Round, SMALLEST_DELTA};
use crate::pld::cells::{Care, Outline, Place};
use crate::pld::doubling::Law;
use crate::pld::mesh::{exact_spacing, Mesh, Side};
use crate::pld::question::{Search, Seen};
use crate::pld::without_lattice::{MOST_BASE_NODES, SMALLEST_HAZARD};
use crate::special::{real, UNDERFLOW, UNIT_ROUNDOFF};

/// The losses at which the law of a round is cut, as fractions of ε.
const CUTS: [f64; 3] = [0.5, 0.35, 0.25];
/// This way is used if everything except the single jumps is at most this fraction of the tolerance.
const NEGLIGIBLE: f64 = 0.05;
/// The exponents of Chernoff's bound that are tried: the first, their number, and the ratio of successive ones.
const EXPONENTS: (f64, usize, f64) = (0.5, 64, 1.25);
/// The minimum and maximum number of cells of a product in the first pass; both double in each later pass.
const CELLS: (u32, u32) = (64, 512);
const PASSES: u32 = 4;
/// An upper bound on the rounding of sums and products of a few thousand positive terms.
const SLACK: f64 = 1e-11;

/// One kind of rounds, cut.
#[derive(Debug)]
struct Kind {
    count: u64,
    profile: Checked,
    /// Upper bounds on g and its slope at the cut.
    delta: f64,
    slope: f64,
    /// The law of the bodies' losses, from above.
    body: Law,
}

impl Kind {
    /// Returns the mass of jumps, from above.
    fn jump(&self) -> f64 {
        self.delta + self.slope
    }
}

/// Rounds cut at one loss.
#[derive(Debug)]
struct Cut {
    loss: f64,
    kinds: Vec<Kind>,
    /// An upper bound on δ(ε) of two or more jumps.
    several: f64,
}

// counts are at most 1e18; covered by the slack
fn times(count: u64, value: f64) -> f64 {
    real(count) * value
}

/// Returns upper bounds on g and its slope at a loss.
fn raised(profile: &dyn Profile, loss: f64) -> (f64, f64) {
    let point = profile.at(loss).or_trivial(loss);
    ((point.delta + point.delta_error) * (1.0 + SLACK), (point.slope + point.slope_error) * (1.0 + SLACK))
}

/// Returns an upper bound on Σ n_i P_i at a loss.
fn jumps(rounds: &[Round], loss: f64) -> f64 {
    let mass = |round: &Round| {
        let (delta, slope) = raised(round.profile.as_ref(), loss);
        times(round.count, delta + slope)
    };
    rounds.iter().map(mass).sum::<f64>() * (1.0 + SLACK)
}

/// Returns an upper bound on δ of two or more jumps beyond a loss, at every ε.
fn several(rounds: &[Round], loss: f64) -> f64 {
    let mass = jumps(rounds, loss);
    let (mut within, mut all) = (0.0, 0.0);
    for round in rounds {
        let (delta, slope) = raised(round.profile.as_ref(), loss);
        within += times(round.count, delta + slope * -(-loss).exp_m1());
        all += times(round.count, at_most(round.profile.as_ref(), 0.0));
    }
    (mass * within + 0.5 * mass * mass * all.min(1.0)) * (1.0 + 2.0 * SLACK)
}

/// Returns a lower bound on δ(ε) of one jump beyond ε.
fn one_jump(rounds: &[Round], epsilon: f64) -> f64 {
    let log = |round: &Round| {
        let (delta, slope) = raised(round.profile.as_ref(), epsilon);
        times(round.count, (-(delta + slope).min(1.0)).ln_1p())
    };
    let shift = rounds.iter().map(log).sum::<f64>() * (1.0 + SLACK);
    if shift < -1.0 {
        return 0.0;
    }
    let place = (epsilon - shift) * (1.0 + 2.0 * UNIT_ROUNDOFF);
    let jump = |round: &Round| {
        let profile = round.profile.as_ref();
        // The line at ε may touch the profile elsewhere: then J is below the profile by no more than twice the error
        // there.
        let missed = 2.0 * profile.at(epsilon).or_trivial(epsilon).delta_error;
        times(round.count, (at_least(profile, place) - missed).max(0.0))
    };
    let jumps: f64 = rounds.iter().map(jump).sum();
    jumps * shift.exp() * (1.0 - SLACK)
}

/// Returns approximately the largest ε at which δ of one jump is above this one; 0 if it is not above it even at half of
/// an upper bound on that ε, or if there is no finite such bound.
fn most_at(rounds: &[Round], delta: f64) -> f64 {
    let sum = |epsilon: f64| -> f64 {
        rounds.iter().map(|round| times(round.count, at_most(round.profile.as_ref(), epsilon))).sum()
    };
    let mut above = sign_change(|epsilon| sum(epsilon) > delta).1;
    let mut below = 0.5 * above;
    if !above.is_finite() || one_jump(rounds, below) <= delta {
        return 0.0;
    }
    while above - below > 4.0 * UNIT_ROUNDOFF * above {
        let middle = 0.5 * (below + above);
        if middle <= below || middle >= above {
            break;
        }
        if one_jump(rounds, middle) > delta {
            below = middle;
        } else {
            above = middle;
        }
    }
    below
}

impl Cut {
    /// Returns a bound on everything except single jumps: Chernoff's bound for no jump, and that of two or more.
    fn remainder(&self, epsilon: f64) -> f64 {
        let none = |exponent: f64| {
            let moments = |kind: &Kind| times(kind.count, kind.body.log_moment(exponent));
            let log: f64 = self.kinds.iter().map(moments).sum();
            let largest = exponent * exponent.ln() - (1.0 + exponent) * exponent.ln_1p();
            (log + largest - exponent * epsilon + SLACK * (1.0 + exponent * (1.0 + epsilon) + log.abs())).exp()
        };
        let (first, number, step) = EXPONENTS;
        let tried = std::iter::successors(Some(first), |exponent| Some(exponent * step)).take(number);
        tried.map(none).fold(f64::INFINITY, f64::min) + self.several
    }

    /// Returns an upper bound on δ(ε), with the law from above of the losses of all bodies.
    fn at_most(&self, bodies: &Law, epsilon: f64) -> f64 {
        let mut single = 0.0;
        for kind in &self.kinds {
            let jump = kind.jump();
            let given_back = (-jump).ln_1p() * (1.0 + SLACK);
            let curve = |loss: f64| {
                let place = epsilon - loss + given_back;
                let place = place - 4.0 * UNIT_ROUNDOFF * (epsilon + loss.abs() + given_back.abs());
                // Left of the cut this is J; right of it J is the profile, or this line where errors leave it above the
                // profile.
                let line = kind.delta + kind.slope * -(place - self.loss).exp_m1();
                if place >= self.loss {
                    at_most(kind.profile.as_ref(), place).max(line)
                } else {
                    line
                }
            };
            single += times(kind.count, bodies.mean(curve, jump) / (1.0 - jump));
        }
        (single * (1.0 + SLACK) + self.remainder(epsilon) + UNDERFLOW).min(1.0)
    }
}

impl Search<'_> {
    /// Returns the answer if one large loss causes δ, and otherwise the lower bound from one loss; `None` if there is
    /// no such bound.
    pub(super) fn by_single_jump(&self, seen: &mut Seen<'_>) -> Result<Option<Answer>> {
        let (epsilon, asked) = match self.query {
            Query::Delta(epsilon) => (epsilon, None),
            Query::Epsilon(delta) => (most_at(self.rounds, delta), Some(delta)),
        };
        let delta = one_jump(self.rounds, epsilon);
        if epsilon <= 0.0 || delta <= SMALLEST_DELTA || asked.is_some_and(|asked| delta <= asked) {
            return Ok(None);
        }
        let slope: f64 = self.rounds.iter().map(|r| times(r.count, r.profile.at(epsilon).slope)).sum();
        let hazard = (slope / delta).max(SMALLEST_HAZARD);
        let mut place = Place { epsilon, reach: 0.0, hazard, log_delta: delta.ln(), losses: None };
        // One jump gives a lower bound on δ in any case.
        let (lower, upper) = asked.map_or((delta, 1.0), |_| (epsilon, f64::INFINITY));
        let alone = Answer { lower, upper, ..Answer::default() };
        let Some(cut) = self.cut(&place, NEGLIGIBLE * self.tolerance * delta)? else { return Ok(Some(alone)) };
        place.losses = self.outline(cut.loss);
        let mut best: Option<Answer> = None;
        for pass in 0..PASSES {
            let Some(bodies) = self.bodies(&cut, &place, pass)? else { break };
            let (lower, upper) = (|e: f64| one_jump(self.rounds, e), |e: f64| cut.at_most(&bodies, e));
            seen(&|epsilon| (lower(epsilon), upper(epsilon)));
            let (low, high) = match asked {
                None => (delta, upper(epsilon)),
                Some(delta) => (epsilon, sign_change(|epsilon| upper(epsilon) > delta).1),
            };
            let read = if asked.is_some() && high.is_finite() { high } else { epsilon };
            let answer = Answer {
                lower: low,
                upper: high,
                budget: Budget {
                    other_losses: cut.remainder(read),
                    cells: (upper(read) - lower(read)).max(0.0),
                    ..Budget::default()
                },
                nodes: bodies.len(),
                ..Answer::default()
            };
            // Bounds that cross show a defect in one of them, which must not be hidden.
            if low > high {
                return Err(Error::Numerics { reason: "one jump from below came out above one jump from above" });
            }
            let answer = self.judged(best.map_or(Ok(answer), |earlier| earlier.and(answer))?);
            best = Some(answer);
            if answer.within_tolerance {
                break;
            }
        }
        Ok(best.or(Some(alone)))
    }

    /// Returns the rounds cut where everything except single jumps is at most this much.
    fn cut(&self, place: &Place, negligible: f64) -> Result<Option<Cut>> {
        for loss in CUTS.map(|share| share * place.epsilon) {
            if several(self.rounds, loss) > negligible {
                continue;
            }
            let Some(cut) = self.cut_at(loss, place)? else { continue };
            if cut.remainder(place.epsilon) <= negligible {
                return Ok(Some(cut));
            }
        }
        Ok(None)
    }

    /// Returns the rounds cut near this loss; `None` if errors leave nothing.
    fn cut_at(&self, loss: f64, place: &Place) -> Result<Option<Cut>> {
        // The cut is one loss, and the last node of every mesh.
        let spacing = exact_spacing(loss * 2.0_f64.powi(-30));
        if !spacing.is_normal() {
            return Ok(None);
        }
        let loss = (loss / spacing).ceil() * spacing;
        // Positions are exact up to there; mass further left is spread up to the first node.
        let furthest = -spacing * 2.0_f64.powi(40);
        let mut kinds = Vec::with_capacity(self.rounds.len());
        for (round, extent) in self.rounds.iter().zip(&self.extents) {
            let profile = round.profile.as_ref();
            let ends = Mesh::around(profile, spacing, 0.0, (extent.0.min(0.0).max(furthest), loss));
            let share = 0.05 * self.tolerance / real(self.rounds.len());
            let (limit, cost) = (self.most_nodes(MOST_BASE_NODES), place.cost(times(round.count, 1.0)));
            let mesh = self.graded(ends, profile, share, limit, cost, |_, _, _| true)?;
            let [.., before, last] = mesh.nodes.as_slice() else { return Ok(None) };
            let slope = last.point.slope - last.point.slope_error;
            let (delta, most_slope) = raised(profile, last.epsilon);
            let rise = slope * -(before.epsilon - last.epsilon).exp_m1() * (1.0 - SLACK);
            let ends_there = (last.epsilon - loss).abs() <= 0.0;
            if !ends_there
                || 2.0 * last.point.delta_error + 4.0 * UNIT_ROUNDOFF * delta > rise
                || delta + most_slope > 0.5
            {
                return Ok(None);
            }
            let Some(body) = Law::of_one(Side::Upper, profile, &mesh)? else { return Ok(None) };
            kinds.push(Kind {
                count: round.count,
                profile: round.profile.clone(),
                delta,
                slope: most_slope,
                body: body.finite(),
            });
        }
        Ok(Some(Cut { loss, kinds, several: several(self.rounds, loss) }))
    }

    /// Returns where jumps are, for the choice of cells.
    fn outline(&self, loss: f64) -> Option<Outline> {
        let mut atoms: Vec<(f64, f64)> = Vec::new();
        for (round, sketch) in self.rounds.iter().zip(&self.sketch) {
            let beyond = sketch.epsilon.iter().zip(&sketch.mass).filter(|(at, _)| **at > loss);
            atoms.extend(beyond.map(|(&at, &mass)| (at, times(round.count, mass))));
        }
        Outline::of(atoms)
    }

    /// Returns the law of the losses of all bodies, from above; `None` if too little work is left.
    fn bodies(&self, cut: &Cut, place: &Place, pass: u32) -> Result<Option<Law>> {
        let atoms: Vec<usize> = cut.kinds.iter().map(|kind| kind.body.len()).collect();
        let Some(cells) = self.affordable(&atoms, (CELLS.0 << pass, CELLS.1 << pass)) else { return Ok(None) };
        let common: f64 = self.rounds.iter().zip(&self.extents).map(|(r, e)| times(r.count, e.0.min(0.0))).sum();
        let jump: f64 = cut.kinds.iter().map(|kind| times(kind.count, kind.jump())).sum();
        let care = Care {
            place,
            budget: 0.2 * self.tolerance * 0.25_f64.powi(i32::try_from(pass).unwrap_or(0)) / real(cut.kinds.len()),
            // Infinite losses of bodies count only together with a jump.
            ignored: (1e-3 * self.tolerance * place.log_delta.exp() / (self.total * jump)).min(1e-9),
            cells,
            highest: place.epsilon - cut.loss - common,
        };
        let kinds = cut.kinds.iter().map(|kind| (&kind.body, kind.count));
        Law::of_all(kinds, &care, self.run)?.map(Some).ok_or(Error::Numerics { reason: "no rounds were composed" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pair::discrete::DiscretePair;
    use crate::run::Run;

    /// A law by its rare losses, and the number of its rounds.
    type Kind<'a> = (&'a [(f64, f64)], u64);

    /// Returns the common loss of a round, and its mass.
    fn otherwise(rare: &[(f64, f64)]) -> (f64, f64) {
        let (p, q) = rare.iter().fold((1.0, 1.0), |(p, q), (loss, mass)| (p - mass, q - mass * (-loss).exp()));
        ((p / q).ln(), p)
    }

    fn round(&(rare, count): &Kind) -> Round {
        let (loss, mass) = otherwise(rare);
        let outcomes = rare.iter().copied().chain([(loss, mass)]).map(|(loss, mass)| (mass, mass * (-loss).exp()));
        Round { profile: Checked::of(DiscretePair::new(outcomes.collect()).unwrap()).unwrap(), count }
    }

    /// Returns δ(ε) by enumerating how often each rare loss occurs, up to six of them together.
    fn enumerated(kinds: &[Kind], epsilon: f64) -> f64 {
        fn add(kinds: &[Kind], k: usize, left: u32, loss: f64, mass: f64, epsilon: f64) -> f64 {
            let Some(&(rare, count)) = kinds.first() else { return mass * (-(epsilon - loss).exp_m1()).max(0.0) };
            let common = otherwise(rare);
            if k == rare.len() {
                // The remaining rounds of this kind were counted as common from the start.
                return add(&kinds[1..], 0, left, loss, mass, epsilon);
            }
            let (mut sum, mut loss, mut mass) = (0.0, loss, mass);
            for times in 0..=left {
                sum += add(kinds, k + 1, left - times, loss, mass, epsilon);
                loss += rare[k].0 - common.0;
                mass *= super::times(count, rare[k].1) / common.1 / f64::from(times + 1);
            }
            sum
        }
        let (loss, mass) = kinds.iter().fold((0.0, 1.0), |(loss, mass), (rare, count)| {
            let common = otherwise(rare);
            (loss + times(*count, common.0), mass * times(*count, common.1.ln()).exp())
        });
        add(kinds, 0, 6, loss, mass, epsilon)
    }

    const FEW: &[(f64, f64)] = &[(1e-3, 1e-8), (0.02, 1e-9), (0.6, 3e-12), (1.0, 1e-12), (1.7, 1e-13)];
    const FEWER: &[(f64, f64)] = &[(0.3, 2e-12), (2.5, 1e-14)];

    #[test]
    fn bounds_enclose_all_outcomes_wherever_they_are_cut() {
        for kinds in
            [&[(FEW, 30_000)][..], &[(FEW, 5_000_000)], &[(FEW, 2_000_000), (FEWER, 1)], &[(FEWER, 700_000), (FEW, 3)]]
        {
            let rounds: Vec<Round> = kinds.iter().map(round).collect();
            for epsilon in [0.25, 0.5, 0.6, 0.75, 1.0, 1.3, 1.7, 2.0] {
                let exact = enumerated(kinds, epsilon);
                let run = Run::default();
                let search = Search::new(&rounds, Query::Delta(epsilon), 1e-3, &run, &mut None).unwrap();
                let lower = one_jump(&rounds, epsilon);
                assert!(lower <= exact * (1.0 + 1e-7), "{epsilon}: {lower:e} {exact:e}");
                for cut in [0.2, 0.5, 0.9].map(|share| share * epsilon) {
                    let place = Place { epsilon, reach: 0.0, hazard: 1.0, log_delta: exact.ln(), losses: None };
                    let cut = search.cut_at(cut, &place).unwrap().unwrap();
                    let upper = cut.at_most(&search.bodies(&cut, &place, 0).unwrap().unwrap(), epsilon);
                    assert!(upper >= exact * (1.0 - 1e-7), "{epsilon} {}: {upper:e} {exact:e}", cut.loss);
                }
            }
        }
    }

    #[test]
    fn one_jump_is_taken_where_it_makes_delta() {
        for kinds in [&[(FEW, 30_000)][..], &[(FEW, 200_000), (FEWER, 2)]] {
            let rounds: Vec<Round> = kinds.iter().map(round).collect();
            let run = Run::default();
            for epsilon in [0.25, 0.75, 1.3] {
                let exact = enumerated(kinds, epsilon);
                let find = |query| {
                    let search = Search::new(&rounds, query, 1e-2, &run, &mut None).unwrap();
                    search.by_single_jump(&mut |_| {}).unwrap().unwrap()
                };
                let found = find(Query::Delta(epsilon));
                assert!(found.within_tolerance, "{found:?}");
                assert!(
                    found.lower <= exact * (1.0 + 1e-7) && found.upper >= exact * (1.0 - 1e-7),
                    "{found:?} {exact:e}"
                );
                let found = find(Query::Epsilon(exact));
                assert!(
                    found.lower <= epsilon * (1.0 + 1e-9) && found.upper >= epsilon * (1.0 - 1e-9),
                    "{found:?} {epsilon}"
                );
            }
        }
    }

    #[test]
    fn it_is_not_taken_where_several_losses_make_delta() {
        let rounds = [round(&(FEW, 1_000_000_000_000))];
        let run = Run::default();
        let search = Search::new(&rounds, Query::Delta(1.3), 1e-3, &run, &mut None).unwrap();
        let found = search.by_single_jump(&mut |_| {}).unwrap();
        assert!(found.is_none_or(|found| !found.within_tolerance && found.upper >= 1.0), "{found:?}");
    }
}

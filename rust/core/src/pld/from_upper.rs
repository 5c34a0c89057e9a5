//! A bound from below that is read off the law from above.
//!
//! The law from below ([`super::masses`]) moves an isolated loss down to a lattice point, so it loses up to h for each
//! round. For mechanisms with few outcomes that is far more than the law from above gains, which only *splits* losses.
//! How much a splitting gains can be bounded, and what is left of the upper δ is a lower bound.
//!
//! # The splitting
//!
//! Let H be a round's hull from above, with kinks at the losses l_0 < … < l_m. Let ℓ_j be a line that supports H at l_j
//! and has nearly the slope of the profile there, and let δ̂ be the largest of these lines (left of l_0 also of 1 − α).
//! δ̂ is convex, and equal to H at the kinks. Up to rounding it is at most the profile, since its lines are supporting
//! lines: `δ̂(ε) ≤ (1 + ρ)(δ(ε − τ) − d) + κ` with small ρ, τ and κ, which are computed from the errors of the points. (Where
//! the profile falls to 0, only τ helps: it moves the line.) H is the hull of δ̂
//! from above on the kinks, which means: an outcome of δ̂'s pair with masses p and q, whose loss L lies in the cell
//! (l_j, l_{j+1}), becomes two outcomes with the losses l_j and l_{j+1}, with the same sums of p and of q. With L′ for
//! the loss of one of them and D = L′ − L this says that `E[e^{−D} | L] = 1`. The slope of ℓ_m is a mass at l_m that is not
//! split, and what ℓ_0 leaves of 1 at α = 0 is mass of H at l_0 that is not δ̂'s.
//!
//! Losses of +∞ are taken apart first. The profile's own, d = δ(∞), are those of the composition with the probability
//! `1 − Π(1 − d)`, which is added in the end. H is the law of its finite losses alone, so it is lowered by its mass at +∞,
//! which is at least d, and so are the lines; right of l_m both are 0.
//!
//! # What a composition gains
//!
//! Let L, L′ and D be sums over all rounds from now on, δ′ the composed δ of H, and A the event that no round's outcome is
//! left out: the mass at l_0 that is not δ̂'s, and cells that have hardly any mass. The payoff `g(x) = (1 − e^ε x)_+` at x = e^{−L} is convex with one kink, and x′ = e^{−L′} has the mean
//! x. So on A the splitting gains exactly `E[|1 − e^{ε−L′}|; ε lies between L and L′]`, and
//!
//! `δ̂(ε) ≥ δ′(ε) − E[g(x′); not A] − E[|1 − e^{ε−L′}|; |L′ − ε| ≤ t] − R − S`, for any t > 0, where
//!
//! * the second expectation is read off the composed law: it is a second difference of δ′ ([`Readoff::near`]);
//! * `R = E[g(x′); D > t, A]` and `S = E[e^{ε−L′}; L > ε, D < −t, A]` bound the rest, in which |L′ − ε| > t.
//!
//! # The tails
//!
//! Given L in a cell of width w, D lies in an interval of length w. By Hoeffding's lemma `E e^{yD} ≤ e^{yE[D] + y²w²/8}`;
//! with y = −1 it says that E D ≤ w²/8, and E D ≥ 0 by Jensen's inequality. With λ the tilt, M = E e^{λL′} of a round and u_c the part of it from outcomes of the cell c, also `E[e^{λL}; c] ≤ u_c M`. Since `g(x′) ≤ e^{λ(L′−ε)}/(λ+1)`
//! and, for L > ε, `1 ≤ e^{(λ+1)(L−ε)}`, for every s > 0
//!
//! * `R ≤ e^{K−λε−st}/(λ+1)·Π G(((λ+s)² + λ + s)/8)`, `S ≤ e^{K−λε−st}·Π G((1+s)²/8)`, where `K = Σ ln M` and
//!   `G(y) = 1 + Σ_c u_c (e^{yw_c²} − 1)`, since Σ u_c ≤ 1;
//! * `E[g(x′); not A] ≤ e^{K−λε}/(λ+1)·Σ u_c` over rounds and the cells that are left out.
//!
//! In a cell, δ̂ has one kink. With `a = ℓ_j's distance below H at l_{j+1}` and `b = ℓ_{j+1}'s distance below H at l_j`, the
//! mass a/(e^w − 1) goes to l_j, and b/(1 − e^{−w}) to l_{j+1}.
//!
//! Rounds may also be composed as they are from below ([`super::isolated`]). For them D = 0; they are part of L, L′ and K, but
//! not of the sums over u_c, ρ, κ and τ.
//!
//! Composition is monotone, so in the end
//! `δ(ε) ≥ δ̂(ε + Σ τ)·Π(1 + ρ)^{−1} − (Π(1 + κ) − 1) + 1 − Π(1 − d)`.

use std::collections::BTreeMap;

use crate::pld::cumulant::Groups;
use crate::pld::masses::{upper_values, Masses};
use crate::pld::mesh::{Mesh, Node};
use crate::pld::readoff::Readoff;
use crate::special::{real, UNIT_ROUNDOFF};

/// Shares are raised by this factor: it covers their rounding, and that of the cumulants that they are divided by.
const RAISED: f64 = 1.0 + 1e-9;
/// The relative error of a round's masses, and the largest exponent under the tilt, up to which [`RAISED`] covers their
/// rounding.
const ROUNDED: f64 = 1e-10;
const STEEPEST: f64 = 1e6;
/// With more kinds of rounds than this, choosing takes longer than composing.
const MOST_KINDS: usize = 256;
/// The values of t that are tried, relative to that at which the tails are as small as wanted; and of s, relative to
/// the best for one width of all cells.
const TRIED_DISTANCES: [f64; 5] = [0.5, 0.7, 0.85, 1.0, 1.3];
const TRIED_TILTS: [f64; 6] = [0.4, 0.6, 0.8, 1.0, 1.3, 1.8];

/// The cells of about one width.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Class {
    /// Of a cell's number of lattice steps, the logarithm to base 2, rounded down.
    steps: u32,
    /// The largest width, in nats.
    width: f64,
    /// An upper bound on the part of the round's tilted mass that was split in these cells.
    share: f64,
}

/// How the upper law of one kind of rounds was split.
#[derive(Debug)]
struct Kind {
    count: f64,
    /// In the order of their widths.
    classes: Vec<Class>,
    /// The part of the tilted mass from outcomes that lie outside of all cells.
    outside: f64,
}

/// How the upper laws of all rounds were split from laws that are at most theirs.
#[derive(Debug)]
pub struct Splits {
    kinds: Vec<Kind>,
    /// ln Π(1 + ρ).
    log_excess: f64,
    /// Π(1 + κ) − 1.
    absolute: f64,
    /// Σ τ.
    shift: f64,
    /// A lower bound on 1 − Π(1 − d), the mass of the composition at +∞.
    at_infinity: f64,
}

/// The choices in the bound: they decide how close it is, and it holds for all of them.
#[derive(Debug, Clone, Copy)]
struct Choice {
    /// t.
    distance: f64,
    /// s for larger and for smaller L′.
    tilts: [f64; 2],
    /// Cells that are wider are left out.
    widest: f64,
}

impl Splits {
    /// Returns how the upper laws were split, as seen under a tilt; None if rounding hides it. Each kind of rounds whose
    /// upper law is composed is given as mesh, masses, count, and a lower bound on δ(∞) of a round; `rest` has such bounds
    /// and counts of the kinds that are composed as they are from below.
    ///
    /// δ̂ may exceed the profile by `negligible` in each round, which should be far less than the composed δ divided by
    /// the number of rounds.
    pub fn of(rounds: &[(&Mesh, &Masses, u64, f64)], rest: &[(f64, u64)], tilt: f64, negligible: f64) -> Option<Self> {
        let largest = rounds.iter().flat_map(|round| &round.1.epsilon).fold(0.0_f64, |most, at| most.max(at.abs()));
        if rounds.len() > MOST_KINDS || tilt * largest > STEEPEST {
            return None;
        }
        let groups = Groups::new(rounds.iter().map(|(_, masses, count, _)| (*masses, *count)));
        let logs = groups.values(tilt);
        let mut splits = Self { kinds: Vec::new(), log_excess: 0.0, absolute: 0.0, shift: 0.0, at_infinity: 0.0 };
        let mut absolute_sum = 0.0;
        for ((mesh, masses, count, at_infinity), log) in rounds.iter().zip(logs) {
            let count = real(*count);
            let hull = Hull::of(mesh, masses)?;
            let excess = hull.excess(*at_infinity, negligible)?;
            splits.log_excess += count * excess.relative * RAISED;
            splits.shift += count * excess.shift * RAISED;
            absolute_sum += count * excess.absolute * RAISED;
            splits.kinds.push(hull.split(count, tilt, log));
        }
        splits.absolute = absolute_sum.exp_m1() * RAISED;
        let infinite = rounds.iter().map(|(_, _, count, mass)| (*mass, *count)).chain(rest.iter().copied());
        let log_finite: f64 = infinite.map(|(mass, count)| real(count) * (-mass).ln_1p()).sum();
        splits.at_infinity = -log_finite.exp_m1() * (2.0 - RAISED);
        (splits.log_excess + splits.absolute + splits.shift).is_finite().then_some(splits)
    }

    /// Returns the bound for a composed upper law, chosen to be close around `epsilon`, with tails of about this
    /// fraction of δ. None if the law cannot be read there.
    pub fn bound<'a>(&'a self, upper: &'a Readoff, epsilon: f64, fraction: f64) -> Option<FromUpper<'a>> {
        let at = self.position(upper, epsilon);
        let unit = upper.unit(at);
        let delta = upper.finite(at);
        let log_ratio = (unit / (delta * fraction)).ln();
        if !(log_ratio.is_finite() && delta > 0.0) {
            return None;
        }
        let logs = 2.0 * log_ratio.max(1.0);
        let mut best: Option<(f64, Choice)> = None;
        for widest in self.widths() {
            let variance = self.variance(widest);
            if variance == 0.0 {
                continue;
            }
            for share in TRIED_DISTANCES {
                let distance = share * (0.25 * variance * logs).sqrt();
                let likely = 4.0 * distance / variance;
                let tails = [true, false].map(|larger| {
                    let tried = TRIED_TILTS.iter().map(|part| {
                        let s = part * likely;
                        (self.tail(upper.tilt(), s, distance, widest, larger), s)
                    });
                    tried.fold((f64::INFINITY, likely), |best, one| if one.0 < best.0 { one } else { best })
                });
                let choice = Choice { distance, tilts: [tails[0].1, tails[1].1], widest };
                let lost = self.lost(upper, at, &choice);
                if lost < best.map_or(f64::INFINITY, |(least, _)| least) {
                    best = Some((lost, choice));
                }
            }
        }
        let (lost, choice) = best?;
        (lost < delta).then_some(FromUpper { splits: self, upper, choice })
    }

    /// Returns the position of ε + Σ τ on the lattice, or one further right.
    fn position(&self, upper: &Readoff, epsilon: f64) -> f64 {
        upper.position_below(if self.shift > 0.0 { (epsilon + self.shift).next_up() } else { epsilon })
    }

    /// Returns the widths up to which cells may be counted: for each class the largest of all kinds of rounds.
    fn widths(&self) -> Vec<f64> {
        let mut widths: BTreeMap<u32, f64> = BTreeMap::new();
        for class in self.kinds.iter().flat_map(|kind| &kind.classes) {
            let widest = widths.entry(class.steps).or_insert(0.0);
            *widest = widest.max(class.width);
        }
        widths.into_values().collect()
    }

    /// Returns Σ w² over rounds and cells up to a width, weighted with their shares. This is for choices.
    fn variance(&self, widest: f64) -> f64 {
        let classes = |kind: &Kind| kind.counted(widest).map(|(width, share)| share * width * width).sum::<f64>();
        self.kinds.iter().map(|kind| kind.count * classes(kind)).sum()
    }

    /// Returns the bound on R (`larger`) or S in units of e^{K−λε}.
    fn tail(&self, tilt: f64, s: f64, distance: f64, widest: f64, larger: bool) -> f64 {
        let y = if larger { (tilt + s) * (tilt + s + 1.0) } else { (1.0 + s) * (1.0 + s) } / 8.0;
        let logs: f64 = self.kinds.iter().map(|kind| kind.count * kind.log_moment(y, widest)).sum();
        let size = s * distance + logs;
        let bound = (logs - s * distance + 16.0 * UNIT_ROUNDOFF * size).exp().max(f64::MIN_POSITIVE);
        RAISED * if larger { bound / (tilt + 1.0) } else { bound }
    }

    /// Returns an upper bound on what is subtracted from δ′ at a position, ∞ where the law cannot be read.
    fn lost(&self, upper: &Readoff, at: f64, choice: &Choice) -> f64 {
        let Choice { distance, tilts, widest } = *choice;
        let Some(near) = upper.near(at, distance) else { return f64::INFINITY };
        let left_out: f64 = self.kinds.iter().map(|kind| kind.count * kind.left_out(widest)).sum();
        let tails = self.tail(upper.tilt(), tilts[0], distance, widest, true)
            + self.tail(upper.tilt(), tilts[1], distance, widest, false);
        near + upper.unit_at_most(at) * RAISED * (left_out / (upper.tilt() + 1.0) + tails)
    }
}

/// A lower bound on the composed δ and ε, from the upper law.
#[derive(Debug)]
pub struct FromUpper<'a> {
    splits: &'a Splits,
    upper: &'a Readoff,
    choice: Choice,
}

impl FromUpper<'_> {
    /// Returns a lower bound on δ at any ε ≥ 0.
    pub fn delta(&self, epsilon: f64) -> f64 {
        let at = self.splits.position(self.upper, epsilon);
        let least = self.upper.finite_at_least(at) - self.splits.lost(self.upper, at, &self.choice);
        let finite = least * (-self.splits.log_excess).exp() * (2.0 - RAISED) - self.splits.absolute;
        // The comparison is false for a NaN, which is no bound.
        if finite > 0.0 {
            self.splits.at_infinity + finite
        } else {
            self.splits.at_infinity
        }
    }

    /// Returns an ε ≥ 0 at which δ is above this one; 0 if none is found at most `most`, which is an upper bound on ε.
    pub fn epsilon(&self, delta: f64, most: f64) -> f64 {
        let above = |epsilon: f64| self.delta(epsilon) > delta;
        // The bound falls with ε near the answer only, so the crossing is searched from there to the left.
        let (mut low, mut high, mut stride) = (most, most, 1e-9 * most);
        while !above(low) {
            if low == 0.0 {
                return 0.0;
            }
            high = low;
            low = (low - stride).max(0.0);
            stride *= 2.0;
        }
        for _ in 0..60 {
            let middle = 0.5 * (low + high);
            if middle <= low || middle >= high || high - low <= 1e-12 * high {
                break;
            }
            if above(middle) {
                low = middle;
            } else {
                high = middle;
            }
        }
        low
    }
}

impl Kind {
    /// Yields the width and share of each class up to a width, the widest first; together the shares are at most 1.
    fn counted(&self, widest: f64) -> impl Iterator<Item = (f64, f64)> + '_ {
        let counted = self.classes.iter().rev().filter(move |class| class.width <= widest);
        counted.scan(1.0_f64, |rest, class| {
            let share = class.share.min(*rest);
            *rest -= share;
            Some((class.width, share))
        })
    }

    /// Returns ln G(y).
    fn log_moment(&self, y: f64, widest: f64) -> f64 {
        let sum: f64 = self.counted(widest).map(|(width, share)| share * (y * width * width).exp_m1()).sum();
        (sum * RAISED).ln_1p() * RAISED
    }

    /// Returns the part of the tilted mass in what is left out.
    fn left_out(&self, widest: f64) -> f64 {
        let wide = self.classes.iter().filter(|class| class.width > widest);
        self.outside + wide.map(|class| class.share).sum::<f64>()
    }
}

/// By how much δ̂ may exceed a profile: ρ, κ and τ.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Excess {
    relative: f64,
    absolute: f64,
    shift: f64,
}

impl Excess {
    /// Allows for a line that is above a supporting line of the profile by at most `excess`, on a range on which the
    /// profile is at least `least`, and the supporting line falls by at least (1 − e^{−τ})·`slope` from ε − τ to ε.
    fn add(&mut self, excess: f64, least: f64, slope: f64, negligible: f64) -> Option<()> {
        let per = |whole: f64| if whole > 0.0 { excess / whole } else { f64::INFINITY };
        let (relative, shift) = (per(least), per(slope));
        if excess <= negligible {
            self.absolute = self.absolute.max(excess);
        } else if relative <= shift && relative < 1.0 {
            self.relative = self.relative.max(relative);
        } else if shift < 1.0 {
            self.shift = self.shift.max(-(-shift).ln_1p());
        } else {
            return None;
        }
        Some(())
    }
}

/// A hull from above at its kinks, with a supporting line at each.
struct Hull<'a> {
    nodes: Vec<&'a Node>,
    /// The hull's values.
    values: Vec<f64>,
    /// The slopes of the lines, as those of [`crate::pair::ProfilePoint`].
    slopes: Vec<f64>,
}

impl<'a> Hull<'a> {
    fn of(mesh: &'a Mesh, masses: &Masses) -> Option<Self> {
        if masses.relative_error > ROUNDED {
            return None;
        }
        let mut kinks = masses.index.iter().peekable();
        let nodes = mesh.nodes.iter().zip(upper_values(mesh));
        let (nodes, values): (Vec<&Node>, Vec<f64>) =
            nodes.filter(|(node, _)| kinks.next_if(|index| **index == node.index).is_some()).unzip();
        if nodes.len() != masses.index.len() || nodes.is_empty() {
            return None;
        }
        let last = nodes.len() - 1;
        // The hull falls to its mass at +∞, so that this is its value at the last kink.
        if values[last].to_bits() != masses.at_infinity.to_bits() {
            return None;
        }
        let between = |j: usize| (values[j] - values[j + 1]) / (nodes[j + 1].epsilon - nodes[j].epsilon).exp_m1();
        let slopes = (0..nodes.len())
            .map(|j| {
                let right = if j == last { 0.0 } else { between(j) };
                // The slope of the cell left of the node, in units of 1/α at the node.
                let left = if j == 0 {
                    1.0 - values[0]
                } else {
                    (values[j - 1] - values[j]) / -(nodes[j - 1].epsilon - nodes[j].epsilon).exp_m1()
                };
                nodes[j].point.slope.min(left).max(right)
            })
            .collect();
        Some(Self { nodes, values, slopes })
    }

    /// Returns e^w − 1 and 1 − e^{−w} for the width w of the cell right of kink j, and w.
    fn cell(&self, j: usize) -> (f64, f64, f64) {
        let width = self.nodes[j + 1].epsilon - self.nodes[j].epsilon;
        (width.exp_m1(), -(-width).exp_m1(), width)
    }

    /// Returns by how much δ̂ may exceed the finite part of the profile; None if no such numbers are known. κ is at most
    /// `negligible`, or what rounding makes of the mass at +∞, which is far less than that mass adds.
    fn excess(&self, at_infinity: f64, negligible: f64) -> Option<Excess> {
        let negligible = negligible.max(64.0 * UNIT_ROUNDOFF * at_infinity);
        let mut excess = Excess { relative: 0.0, absolute: 0.0, shift: 0.0 };
        for (j, (node, &slope)) in self.nodes.iter().zip(&self.slopes).enumerate() {
            let point = &node.point;
            let errors = |beyond: f64| 2.0 * point.delta_error + 16.0 * UNIT_ROUNDOFF * (point.delta + beyond);
            // On the left the line may be too steep, and on the right too flat.
            let backward = if j == 0 { 1.0 } else { self.cell(j - 1).1 };
            let left = errors(point.slope) + (slope - point.slope + point.slope_error).max(0.0) * backward;
            // In the cell on the left α is at least e^{−w} times that of the node.
            let falling = (point.slope - point.slope_error) * (1.0 - backward) * (1.0 - 8.0 * UNIT_ROUNDOFF);
            excess.add(left, point.delta - point.delta_error - at_infinity, falling, negligible)?;
            if let Some(next) = self.nodes.get(j + 1).map(|node| &node.point) {
                let forward = self.cell(j).0;
                let right =
                    errors(point.slope * forward) + (point.slope + point.slope_error - slope).max(0.0) * forward;
                let least = next.delta - next.delta_error - at_infinity;
                excess.add(right, least, point.slope - point.slope_error, negligible)?;
            }
        }
        Some(excess)
    }

    /// Returns how much of the tilted mass was split in cells of which width; `log` is the logarithm of all of it.
    fn split(&self, count: f64, tilt: f64, log: f64) -> Kind {
        let tilted = |mass: f64, j: usize| {
            if mass > 0.0 {
                mass * (tilt * self.nodes[j].epsilon - log).exp() * RAISED
            } else {
                0.0
            }
        };
        let last = self.nodes.len() - 1;
        // Left of the first kink is what its line leaves of 1.
        let outside = tilted((1.0 - self.values[0] - self.slopes[0]).max(0.0) + 4.0 * UNIT_ROUNDOFF, 0);
        let mut classes: BTreeMap<u32, Class> = BTreeMap::new();
        for j in 0..last {
            let (forward, backward, width) = self.cell(j);
            let drop = self.values[j] - self.values[j + 1];
            let rounding = 8.0 * UNIT_ROUNDOFF * (self.values[j] + self.values[j + 1]);
            let down = (self.slopes[j] * forward - drop).max(0.0) + rounding * (1.0 + forward);
            let up = (drop - self.slopes[j + 1] * backward).max(0.0) + rounding;
            let share = tilted(down / forward, j) + tilted(up / backward, j + 1);
            let steps = (self.nodes[j + 1].index - self.nodes[j].index).ilog2();
            // A share that underflows must not be lost.
            let class = classes.entry(steps).or_insert(Class { steps, width: 0.0, share: f64::MIN_POSITIVE });
            class.width = class.width.max(width);
            class.share += share;
        }
        Kind { count, classes: classes.into_values().collect(), outside }
    }
}

#[cfg(test)]
mod tests {
    use crate::pair::check::Checked;

    use super::*;
    use crate::pair::discrete::DiscretePair;
    use crate::pair::gaussian::GaussianPair;
    use crate::pair::{Profile, ProfilePoint};
    use crate::pld::answer::Round;
    use crate::pld::compose::{compose, Transforms};
    use crate::pld::mesh::exact_spacing;
    use crate::pld::mesh::Side;
    use crate::pld::offset::LatticeOrigin;
    use crate::pld::window::{choose, Goal, Grid};
    use crate::run::Run;

    /// Losses with their probabilities, and a number of rounds.
    type Law = (Vec<(f64, f64)>, u64);

    /// Returns the pair with outcomes of these losses and probabilities under P.
    fn pair(losses: &[(f64, f64)]) -> DiscretePair {
        DiscretePair::new(losses.iter().map(|&(loss, mass)| (mass, mass * (-loss).exp())).collect()).unwrap()
    }

    /// Returns the composed δ of finite pairs by enumeration.
    fn enumerated(kinds: &[Law], epsilon: f64) -> f64 {
        let mut atoms = vec![(0.0, 1.0)];
        for (law, count) in kinds {
            for _ in 0..*count {
                let mut next: Vec<(f64, f64)> = Vec::new();
                for &(sum, mass) in &atoms {
                    next.extend(law.iter().map(|&(loss, p)| (sum + loss, mass * p)));
                }
                next.sort_by(|a, b| a.0.total_cmp(&b.0));
                // Sums of the same losses in another order differ by rounding.
                atoms = Vec::new();
                for (sum, mass) in next {
                    match atoms.last_mut() {
                        Some(last) if sum - last.0 < 1e-12 => last.1 += mass,
                        _ => atoms.push((sum, mass)),
                    }
                }
            }
        }
        atoms.iter().map(|&(loss, mass)| mass * -(epsilon - loss).min(0.0).exp_m1()).sum()
    }

    /// Returns the bounds from below and from above at each ε, all from the upper law on a lattice of this spacing.
    fn bounds(rounds: &[Round], spacing: f64, reach: f64, tilt: f64, at: &[f64]) -> Vec<(f64, f64)> {
        let (run, spacing) = (Run::default(), exact_spacing(spacing));
        let meshes: Vec<Mesh> = rounds
            .iter()
            .map(|round| {
                let profile = round.profile.as_ref();
                let ends = Mesh::around(profile, spacing, 0.0, (-reach, reach));
                ends.refined(profile, 1 << 16, &run, |_, _, gap| gap <= 1e-18).unwrap()
            })
            .collect();
        let masses: Vec<Masses> = meshes
            .iter()
            .zip(rounds)
            .map(|(mesh, round)| Masses::new(Side::Upper, round.profile.as_ref(), mesh).unwrap())
            .collect();
        let groups: Vec<(&Masses, u64)> = masses.iter().zip(rounds.iter().map(|round| round.count)).collect();
        let total: f64 = rounds.iter().map(|round| f64::from(u32::try_from(round.count).unwrap())).sum();
        let goal = Goal {
            epsilon: at[at.len() / 2],
            margin: at[at.len() / 2],
            log_delta: -40.0,
            slack: 1e-9,
            spacing,
            finest: 1e-9,
            rounds: total,
            longest: 1 << 20,
            spread: true,
            room: 0.0,
        };
        let chosen = choose(&Groups::new(groups.iter().copied()), tilt, &goal);
        // The table begins further left, so that it holds what is near the smallest ε.
        let more = i64::try_from(chosen.length).unwrap();
        let grid = Grid { spacing, length: 4 * chosen.length, first: chosen.first - more, ..chosen };
        let transforms = Transforms::new(grid.length);
        let composed = compose(Side::Upper, &groups, &grid, &transforms, &run).unwrap();
        let read = Readoff::new(&composed, LatticeOrigin::default(), goal.epsilon, 1e4);
        let laws: Vec<_> = meshes
            .iter()
            .zip(&masses)
            .zip(rounds)
            .map(|((mesh, masses), round)| (mesh, masses, round.count, round.profile.delta_at_infinity()))
            .collect();
        let splits = Splits::of(&laws, &[], grid.tilt, 1e-18);
        let one = |&epsilon: &f64| {
            let bound = splits.as_ref().and_then(|splits| splits.bound(&read, epsilon, 1e-6));
            let low = bound.map_or(0.0, |bound| bound.delta(epsilon));
            (low, read.delta(epsilon))
        };
        at.iter().map(one).collect()
    }

    fn rounds<P: Profile + 'static>(profiles: Vec<(P, u64)>) -> Vec<Round> {
        profiles.into_iter().map(|(profile, count)| Round { profile: Checked::of(profile).unwrap(), count }).collect()
    }

    #[test]
    fn finite_pairs_lie_in_the_interval_of_the_upper_law() {
        let response = |epsilon: f64| {
            let p = 1.0 / (1.0 + (-epsilon).exp());
            vec![(epsilon, p), (-epsilon, 1.0 - p)]
        };
        // Three outcomes, with the sum of p·e^{−loss} equal to 1.
        let third = {
            let losses = [0.7_f64, -0.2, -0.9];
            let [first, second, last] = losses.map(|loss| (-loss).exp_m1());
            // The masses times these numbers sum to 0.
            let mass = 0.35;
            let rest = -(mass * first + (1.0 - mass) * last) / (second - last);
            vec![(losses[0], mass), (losses[1], rest), (losses[2], 1.0 - mass - rest)]
        };
        let cases: Vec<(Vec<Law>, f64)> = vec![
            (vec![(response(0.5), 8)], 1.0),
            (vec![(response(0.31), 6), (response(0.77), 3)], 1.0),
            (vec![(third.clone(), 5)], 0.5),
            (vec![(third, 3), (response(0.123), 7)], 2.0),
        ];
        for (kinds, tilt) in cases {
            let made = rounds(kinds.iter().map(|(law, count)| (pair(law), *count)).collect::<Vec<_>>());
            let at: Vec<f64> = (1..40).map(|k| 0.05 * f64::from(k)).collect();
            let (mut widest, mut finest) = (0.0_f64, 0.0_f64);
            for spacing in [1e-2, 1e-3] {
                let mut most = 0.0_f64;
                for (&epsilon, (low, high)) in at.iter().zip(bounds(&made, spacing, 2.0, tilt, &at)) {
                    let exact = enumerated(&kinds, epsilon);
                    let rounding = 1e-12 * exact + 1e-15;
                    assert!(low <= exact + rounding && exact <= high + rounding, "{epsilon} {low} {exact} {high}");
                    most = most.max(high - low);
                }
                (widest, finest) = (widest.max(most), most);
            }
            // The width falls with the spacing, at kinks of δ like it, and elsewhere like its square.
            assert!(finest < 0.2 * widest && finest < 2e-3, "{finest} {widest}");
        }
    }

    #[test]
    fn smooth_pairs_lie_in_it_too() {
        let made = rounds(vec![(GaussianPair::new(1.0, 4.0).unwrap(), 16)]);
        let at: Vec<f64> = (1..30).map(|k| 0.1 * f64::from(k)).collect();
        // 16 rounds of sensitivity over noise 1/4 are one of ratio 1.
        let exact = GaussianPair::new(1.0, 1.0).unwrap();
        for (&epsilon, (low, high)) in at.iter().zip(bounds(&made, 1e-3, 4.0, 2.0, &at)) {
            let delta = exact.at(epsilon).delta;
            assert!(low <= delta * (1.0 + 1e-12) && delta <= high * (1.0 + 1e-12), "{epsilon} {low} {delta} {high}");
            assert!(low > 0.99 * delta, "{epsilon} {low} {delta}");
        }
    }

    #[test]
    fn infinite_losses_are_added_to_those_of_the_finite_law() {
        // Each round shows the data with probability 0.001, and is randomized response otherwise.
        let (epsilon, shown) = (0.4_f64, 1e-3);
        let p = 1.0 / (1.0 + (-epsilon).exp());
        let law = vec![(p * (1.0 - shown), (1.0 - p) * (1.0 - shown)), ((1.0 - p) * (1.0 - shown), p * (1.0 - shown))];
        let made = rounds(vec![(DiscretePair::new([law, vec![(shown, 0.0), (0.0, shown)]].concat()).unwrap(), 9)]);
        let finite = vec![(epsilon, p * (1.0 - shown)), (-epsilon, (1.0 - p) * (1.0 - shown))];
        let at: Vec<f64> = (1..20).map(|k| 0.1 * f64::from(k)).collect();
        for (&epsilon, (low, high)) in at.iter().zip(bounds(&made, 1e-4, 2.0, 1.0, &at)) {
            let exact = enumerated(&[(finite.clone(), 9)], epsilon) + 1.0 - (1.0_f64 - shown).powi(9);
            assert!(low <= exact + 1e-13 && exact <= high + 1e-13, "{epsilon} {low} {exact} {high}");
            assert!(low > exact - 2e-3 * exact, "{epsilon} {low} {exact}");
        }
    }

    /// A pair whose values are known less well where they are 0.
    #[derive(Debug)]
    struct Unsure(DiscretePair, f64);

    impl Profile for Unsure {
        fn at_within(&self, epsilon: f64, bracket: (f64, f64)) -> ProfilePoint {
            let point = self.0.at_within(epsilon, bracket);
            let error = if point.delta > 0.0 { point.delta_error } else { self.1 };
            ProfilePoint { delta_error: error, ..point }
        }
    }

    #[test]
    fn a_value_that_is_less_sure_than_one_before_adds_nothing() {
        let p = 1.0 / (1.0 + (-0.5_f64).exp());
        let kinds = [(vec![(0.5, p), (-0.5, 1.0 - p)], 3)];
        for error in [1e-9, 1e-4, 0.9] {
            let made = rounds(vec![(Unsure(pair(&kinds[0].0), error), 3)]);
            let at: Vec<f64> = (1..30).map(|k| 0.05 * f64::from(k)).collect();
            for (&epsilon, (low, high)) in at.iter().zip(bounds(&made, 1e-2, 2.0, 1.0, &at)) {
                let exact = enumerated(&kinds, epsilon);
                assert!(low <= exact + 1e-15 && exact <= high + 1e-15, "{error} {epsilon} {low} {exact} {high}");
            }
        }
    }
}

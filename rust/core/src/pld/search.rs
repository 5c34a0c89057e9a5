//! Searches for an answer: rounds are composed on lattices that depend on the question and on previous results.
//!
//! The interval is proven whatever the choices made here; choices (tilt, spacing, mesh, window) only decide how narrow
//! it is and how long it takes. A second-order estimate determines the first spacing, and the resulting interval
//! corrects it.

use crate::error::{Error, Result};
use crate::pld::answer::{check_arguments, single, total_variation, Answer, Budget, Query, Round, SMALLEST_DELTA};
use crate::pld::basic;
use crate::pld::compose::{compose, Transforms};
use crate::pld::cumulant::Groups;
use crate::pld::effort::LONGEST;
use crate::pld::isolated::{BothSides, Focus};
use crate::pld::largest::ends;
use crate::pld::masses::Masses;
use crate::pld::mesh::{Mesh, Node, Side};
use crate::pld::offset::LatticeOrigin;
use crate::pld::question::{judged, scale, Search, Seen, Sketch};
use crate::pld::readoff::Readoff;
use crate::pld::window::{choose, Goal, Grid, COSTLY};
use crate::run::Run;
use crate::special::real;

/// The maximum number of profile evaluations for one mesh.
const MOST_NODES: usize = 1 << 18;
/// How much further a lower side that is out of tolerance anyway may fall, in units of its excess width.
const FORGONE: f64 = 4.0;
/// How much coarser a lattice may be than the finest one that the longest transform can hold.
const COARSEST: f64 = 4096.0;
/// A window that loses more than this fraction of δ was too short.
const ESCAPED: f64 = 0.1;
/// The maximum number of attempts at narrowing the interval before it is reported as it is.
const ATTEMPTS: usize = 5;

/// Answers `query` for the composition of `rounds` in one direction, to a relative width of `tolerance`.
///
/// * Formula: δ(ε) = E[(1 − e^{ε − Σ L_i})_+], ε(δ) its inverse (0 where δ(0) ≤ δ).
/// * Guarantee: `lower ≤ exact ≤ upper` for the composition of the given profiles (with separate lower profiles: the
///   lower end is a lower bound for theirs).
/// * Precision: width at most `tolerance` times the upper end when `within_tolerance`.
/// * Source: the proofs are in the documentation of [`crate::pld`], [`super::masses`] and [`super::compose`]; without a
///   lattice in that of [`super::doubling`] and [`super::tangents`]; where losses are bounded, in that of
///   [`super::largest`] too; where they are too large for any lattice, in that of [`super::basic`].
///
/// # Errors
/// [`Error::Domain`] for a query outside its domain or a count of zero; [`Error::Cancelled`]; [`Error::TimeLimit`];
/// [`Error::Numerics`].
pub fn answer(rounds: &[Round], query: Query, tolerance: f64, run: &Run) -> Result<Answer> {
    check_arguments(rounds, query, tolerance)?;
    let known = ends(rounds, query)?.map(|ends| judged(ends, query, tolerance));
    let answer = match (rounds, known) {
        ([only], _) if only.count == 1 => judged(single(only.profile.as_ref(), query)?, query, tolerance),
        (_, Some(known)) if known.within_tolerance => return Ok(known),
        _ => match composed(rounds, query, tolerance, run) {
            Err(Error::Unresolved { .. }) => basic::ends(rounds, query)?,
            answer => answer?,
        },
    };
    let both = judged(known.map_or(Ok(answer), |known| known.and(answer))?, query, tolerance);
    Ok(Answer { within_tolerance: both.within_tolerance || answer.within_tolerance, ..both })
}

/// Computes [`answer`] for several rounds, by composing them.
fn composed(rounds: &[Round], query: Query, tolerance: f64, run: &Run) -> Result<Answer> {
    let distance = total_variation(rounds);
    match query {
        Query::Epsilon(delta) if distance <= delta => Ok(Answer { within_tolerance: true, ..Answer::default() }),
        Query::Epsilon(_) => Search::new(rounds, query, tolerance, run, &mut None)?.solve(tolerance, &mut |_| {}),
        Query::Delta(_) => {
            let answer = Search::new(rounds, query, tolerance, run, &mut None)?.solve(tolerance, &mut |_| {})?;
            Ok(Answer { upper: answer.upper.min(distance), ..answer })
        }
    }
}

/// Computes [`answer`] for δ at one ε of several rounds, and passes every pair of composed laws to `seen`. If
/// transforms give an interval of the relative width `enough`, it is not narrowed by other ways. `ordinary` is kept
/// from one ε to the next, for the same rounds and tolerance.
pub(super) fn observed(
    rounds: &[Round],
    epsilon: f64,
    tolerance: f64,
    enough: f64,
    run: &Run,
    ordinary: &mut Option<Sketch>,
    seen: &mut Seen<'_>,
) -> Result<Answer> {
    Search::new(rounds, Query::Delta(epsilon), tolerance, run, ordinary)?.solve(enough, seen)
}

impl Search<'_> {
    /// Returns the answer if no sum of losses reaches ε: with every loss above a round's extent counted as infinite,
    /// only such losses contribute, at most Σ n_i δ_i(extent).
    fn beyond_all_losses(&self) -> Option<Answer> {
        let Query::Delta(epsilon) = self.query else { return None };
        let (mut reach, mut rest) = (0.0, 0.0);
        for (round, extent) in self.rounds.iter().zip(&self.extents) {
            // counts are at most 1e18; covered by the factor below
            let count = real(round.count);
            let point = round.profile.at(extent.1).or_trivial(extent.1);
            reach += count * extent.1.max(0.0);
            rest += count * (point.delta + point.delta_error);
        }
        let upper = rest * (1.0 + 1e-12);
        (epsilon >= reach * (1.0 + 1e-12)).then(|| Answer {
            upper,
            within_tolerance: upper <= SMALLEST_DELTA,
            budget: Budget { truncation: upper, ..Budget::default() },
            ..Answer::default()
        })
    }

    fn solve(self, enough: f64, seen: &mut Seen<'_>) -> Result<Answer> {
        let jump = self.by_single_jump(seen)?;
        if let Some(answer) = jump.filter(|answer| answer.within_tolerance) {
            return Ok(answer);
        }
        let answer = self.by_transform(seen)?;
        let answer = self.judged(jump.map_or(Ok(answer), |jump| jump.and(answer))?);
        let narrow = answer.upper.is_finite() && answer.upper - answer.lower <= enough * answer.upper;
        if answer.within_tolerance || narrow || !self.worth_doubling(&answer) {
            return Ok(answer);
        }
        self.by_doubling(answer, seen)
    }

    /// Returns the tilt, ε and ln δ around which the answer is searched for first.
    fn first_guess(&self, groups: &Groups) -> (f64, f64, f64) {
        match self.query {
            Query::Delta(epsilon) => {
                let saddle = groups.tilt_for_epsilon(epsilon);
                (saddle, epsilon, groups.saddle_point_log_delta(saddle).max(SMALLEST_DELTA.ln()))
            }
            Query::Epsilon(delta) => {
                let saddle = groups.tilt_for_delta(delta);
                (saddle, groups.at(saddle).mean.max(0.0), delta.ln())
            }
        }
    }

    /// Returns how far left of ε the law is read at first.
    fn first_margin(&self, center: f64, saddle: f64) -> f64 {
        match self.query {
            Query::Delta(_) => 0.0,
            // Without a tilt, reading only a part saves nothing; δ may be so large that ε lies far below the mean.
            Query::Epsilon(_) if saddle == 0.0 => center,
            Query::Epsilon(_) => 0.05 * center + 0.5 / (saddle + 1.0),
        }
    }

    /// Returns how wide the answer may be in ε: d ln δ/dε is about −λ near the saddle point.
    fn width(&self, center: f64, saddle: f64) -> f64 {
        match self.query {
            Query::Epsilon(delta) => self.tolerance * scale(center, delta),
            Query::Delta(_) => self.tolerance / saddle.max(1.0),
        }
    }

    /// Computes the answer by composing lattice measures.
    fn by_transform(&self, seen: &mut Seen<'_>) -> Result<Answer> {
        if let Some(answer) = self.beyond_all_losses() {
            return Ok(answer);
        }
        let groups = self.groups(&self.sketch);
        let (mut saddle, mut center, mut log_delta) = self.first_guess(&groups);
        let mut margin = self.first_margin(center, saddle);
        let mut effort = 1.0;
        let mut best: Option<Answer> = None;
        let (mut previous, mut idle, mut tried) = (f64::INFINITY, 0, None::<(Grid, f64)>);
        let (mut spread, mut focus) = (false, Focus::default());
        for attempt in 0..ATTEMPTS {
            if best.is_some() && self.no_transform_left() {
                break;
            }
            let longest = self.longest();
            let width = self.width(center, saddle) / effort;
            let goal = Goal {
                epsilon: center,
                margin,
                log_delta,
                slack: (1e-2 * width * saddle.max(1.0)).clamp(1e-9, 1e-3),
                // This is the second-order error of both sides on a lattice of spacing h: n(λ+1)h²/4 nats in ε, which
                // may take half of the width.
                spacing: (2.0 * width / (self.total * (saddle + 1.0))).sqrt().min(0.3 / (saddle + 1.0)),
                finest: self.finest(),
                rounds: self.total,
                longest,
                spread,
                room: focus.room,
            };
            let grid = choose(&groups, saddle, &goal);
            let repeats = |grid: &Grid| tried.is_some_and(|(earlier, place)| grid.repeats(&earlier, place));
            if repeats(&grid) {
                break;
            }
            let cut_short = grid.limited && longest < LONGEST;
            if cut_short {
                self.run.record_coarser();
            }
            let (grid, meshes) = if (grid.limited || grid.length > COSTLY) && !cut_short {
                self.coarser(&groups, grid, saddle, &goal, effort, &focus)?
            } else {
                (grid, self.meshes(&grid, saddle, width, &focus)?)
            };
            if repeats(&grid) {
                break;
            }
            let attempted = self.attempt(&grid, &meshes, center, &mut focus, seen)?;
            // This is the position at which the law was read, if it is inside the range that could be read.
            let place = if let Query::Epsilon(_) = self.query { attempted.lower } else { center };
            tried = Some((grid, place));
            let answer = self.judged(match best {
                Some(earlier) => earlier.and(attempted)?,
                None => attempted,
            });
            let (wanted, width) = (self.wanted(&answer), answer.upper - answer.lower);
            best = Some(answer);
            let below = matches!(self.query, Query::Delta(_)) && answer.upper <= SMALLEST_DELTA;
            // Costly work that twice failed to narrow the interval is not repeated with more effort.
            let costly = attempted.transform_length > COSTLY || attempted.nodes > 1 << 15;
            // If rounds lose nearly the same with certainty, what the lattice spreads may leave the window.
            let escaped = attempted.budget.window + attempted.budget.aliasing > ESCAPED * self.delta(answer.upper);
            if escaped && spread && costly && self.worth_doubling(&answer) {
                // This happened with room for the spread, too: no lattice resolves the losses of most rounds.
                break;
            }
            if escaped && !spread && !answer.within_tolerance && (attempt > 0 || !attempted.upper.is_finite()) {
                spread = true;
                continue;
            }
            idle = if costly && width > 0.7 * previous { idle + 1 } else { 0 };
            previous = width;
            // If there is another way, the search gives up earlier.
            let patience = if costly && self.worth_doubling(&answer) { 1 } else { 2 };
            // On the finest possible lattice, another attempt helps only if this one was at the wrong position.
            let spent = grid.limited && (attempt > 0 || matches!(self.query, Query::Delta(_)));
            if answer.within_tolerance || below || idle >= patience || spent {
                break;
            }
            match self.query {
                Query::Epsilon(_) if !attempted.upper.is_finite() => {
                    // The window ended before δ was reached.
                    margin = 2.0 * margin + 0.5 * center;
                    center = 2.0 * center + 2.0 / (saddle + 1.0);
                    saddle = groups.tilt_for_epsilon(center);
                    continue;
                }
                Query::Epsilon(_) => {
                    center = attempted.upper;
                    saddle = groups.tilt_for_epsilon(center);
                    if attempted.upper <= grid.read_from {
                        // At the first position that can be read, the target δ is met already: the answer lies further
                        // left.
                        margin = center.min(4.0 * margin);
                        continue;
                    }
                    margin = if saddle == 0.0 {
                        center
                    } else {
                        (attempted.upper - attempted.lower)
                            .clamp(0.02 / (saddle + 1.0), 2.0 * margin.max(0.01 / (saddle + 1.0)))
                    };
                }
                Query::Delta(_) => log_delta = answer.upper.max(SMALLEST_DELTA).ln(),
            }
            // The excess length of a power-of-two transform over the requested one did not suffice either.
            let given = if costly { (goal.spacing / grid.spacing).powi(2).max(1.0) } else { 1.0 };
            effort *= given * (width / wanted).clamp(2.0, 100.0) * 1.3;
        }
        best.ok_or(Error::Numerics { reason: "no attempt at composing the rounds was made" })
    }

    /// Returns a grid for `goal` where the second-order estimate would require a long transform, and the rounds' meshes
    /// on it.
    ///
    /// The estimate is for losses that are spread evenly over a fine lattice. Where they are not (most rounds lose
    /// nearly nothing, a few lose thousands of nats) a coarser lattice is as good as `finest`: the coarsest such
    /// lattice is used.
    fn coarser(
        &self,
        groups: &Groups,
        finest: Grid,
        saddle: f64,
        goal: &Goal,
        effort: f64,
        focus: &Focus,
    ) -> Result<(Grid, Vec<Mesh>)> {
        let at = groups.at(saddle);
        let deviation = at.variance.sqrt();
        // ln δ falls about as fast as that of a normal law, which hardly falls left of its mean.
        let standing = if saddle == 0.0 { ((goal.epsilon - at.mean) / deviation).min(0.0) } else { 0.0 };
        let hazard = saddle + (-0.5 * standing * standing).exp() / deviation;
        let width = match self.query {
            Query::Epsilon(delta) => self.tolerance * scale(goal.epsilon, delta),
            Query::Delta(_) => (self.tolerance / hazard).min(0.25 * deviation),
        } / effort;
        let slack = (1e-2 * width * hazard).clamp(1e-9, 1e-3);
        let meshes = self.meshes(&finest, saddle, width, focus)?;
        let best = self.sides(&meshes, saddle)?;
        let gap = best[0] - best[1];
        let limited = finest.limited && gap > 0.5 * width;
        // If even the finest lattice is too coarse from below, less time is spent on that side.
        let forgone = if limited { FORGONE * gap } else { 0.0 };
        let mut spacing = finest.spacing * COARSEST;
        while spacing > 2.0 * finest.spacing {
            let grid = choose(groups, saddle, &Goal { slack, spacing, ..*goal });
            let coarse = self.meshes(&grid, saddle, width, focus)?;
            let sides = self.sides(&coarse, saddle)?;
            if sides[0] - best[0] <= 0.25 * width && best[1] - sides[1] <= 0.25 * width + forgone {
                return Ok((Grid { limited, ..grid }, coarse));
            }
            spacing *= 0.25;
        }
        Ok((Grid { limited, ..finest }, meshes))
    }

    /// Returns the values of the upper and the lower side of the rounds on meshes, in nats: by their cumulants, or by
    /// their means where the tilt is small.
    fn sides(&self, meshes: &[Mesh], saddle: f64) -> Result<[f64; 2]> {
        let side = |side: Side| -> Result<f64> {
            let masses = self.discretised(side, meshes)?;
            let at = self.groups(&masses).at(saddle);
            let place = if saddle * saddle * at.variance > 1.0 { at.value / saddle } else { at.mean };
            Ok(place + self.origin(meshes).loss)
        };
        Ok([side(Side::Upper)?, side(Side::Lower)?])
    }

    /// Returns the laws of the rounds from one side on their meshes.
    fn discretised(&self, side: Side, meshes: &[Mesh]) -> Result<Vec<Masses>> {
        meshes.iter().zip(self.rounds).map(|(mesh, round)| Masses::new(side, round.profile.as_ref(), mesh)).collect()
    }

    /// Returns each round's mesh on a grid, for an answer of this width in ε: the meshes may add as much as the lattice
    /// does.
    fn meshes(&self, grid: &Grid, saddle: f64, width: f64, focus: &Focus) -> Result<Vec<Mesh>> {
        let budget = 0.25 * width * saddle.max(1.0);
        let steepest = grid.theta[0].max(grid.tilt + grid.theta[1]);
        let mesh = |group: usize| self.mesh(group, grid.spacing, saddle, steepest, budget * focus.share(group));
        (0..self.rounds.len()).map(mesh).collect()
    }

    /// Returns the loss at position 0 of the composed lattice.
    fn origin(&self, meshes: &[Mesh]) -> LatticeOrigin {
        LatticeOrigin::new(meshes.iter().zip(self.rounds).map(|(mesh, round)| (mesh.offset, round.count)))
    }

    /// Composes both sides once. `focus` is that of this attempt, and then of the next one.
    fn attempt(
        &self,
        grid: &Grid,
        meshes: &[Mesh],
        center: f64,
        focus: &mut Focus,
        seen: &mut Seen<'_>,
    ) -> Result<Answer> {
        let mut profile_error = 0.0_f64;
        for node in meshes.iter().flat_map(|mesh| &mesh.nodes).filter(|n| n.point.delta > SMALLEST_DELTA) {
            profile_error = profile_error.max(node.point.delta_error / node.point.delta);
        }
        let transforms = Transforms::new(grid.length);
        let origin = self.origin(meshes);
        let placed = grid.without(origin.loss);
        let room = focus.room;
        let read = |side: Side, masses: &[&Masses]| {
            let groups: Vec<(&Masses, u64)> = masses.iter().copied().zip(self.rounds.iter().map(|r| r.count)).collect();
            compose(side, &groups, &placed, &transforms, self.run)
                .map(|composed| Readoff::new(&composed, origin, center, room))
        };
        let side = |side: Side| {
            let masses = self.discretised(side, meshes)?;
            read(side, &masses.iter().collect::<Vec<_>>()).map(|law| (law, masses))
        };
        let (upper, lower) = rayon::join(|| side(Side::Upper), || side(Side::Lower));
        let ((upper, above), (lower, below)) = (upper?, lower?);
        let (mut low, high) = match self.query {
            Query::Delta(epsilon) => (lower.delta(epsilon), upper.delta(epsilon)),
            Query::Epsilon(delta) => (lower.epsilon(delta), upper.epsilon(delta)),
        };
        let sides = BothSides { meshes, above: &above, below: &below, tilt: grid.tilt };
        *focus = self.focus(&sides, (low, high));
        // Rounds without isolated losses are composed as they are from below.
        let any = focus.isolated.contains(&true);
        let mixed = any.then(|| read(Side::Upper, &sides.mixed(&focus.isolated))).transpose()?;
        let splits = if any { self.splits(&sides, &focus.isolated, high) } else { None };
        let split = splits.as_ref().zip(mixed.as_ref()).and_then(|(splits, law)| self.split_bound(splits, law, high));
        seen(&|epsilon| {
            let least = split.as_ref().map_or(0.0, |split| split.delta(epsilon));
            (lower.delta(epsilon).max(least), upper.delta(epsilon))
        });
        if let Some(split) = &split {
            low = low.max(match self.query {
                Query::Delta(epsilon) => split.delta(epsilon),
                Query::Epsilon(delta) => split.epsilon(delta, high),
            });
        }
        let at = match self.query {
            Query::Delta(epsilon) => epsilon,
            Query::Epsilon(_) if high.is_finite() => high,
            Query::Epsilon(_) => center,
        };
        // Bounds that cross show a defect in one of them, which must not be hidden.
        if low > high {
            return Err(Error::Numerics { reason: "the lower bound came out above the upper one" });
        }
        Ok(Answer {
            lower: low,
            upper: high,
            within_tolerance: false,
            budget: Budget {
                aliasing: lower.budget(at).aliasing,
                profile_relative_error: profile_error,
                ..upper.budget(at)
            },
            spacing: grid.spacing,
            nodes: meshes.iter().map(|m| m.nodes.len()).sum(),
            transform_length: grid.length,
            tilt: grid.tilt,
        })
    }

    /// Returns a mesh on which the relative error of the moment tilted by `saddle`, summed over all cells and rounds,
    /// is about `budget`, and that of the moment tilted by `steepest`, which only enters Markov bounds, is below one.
    fn mesh(&self, group: usize, spacing: f64, saddle: f64, steepest: f64, budget: f64) -> Result<Mesh> {
        let profile = self.rounds[group].profile.as_ref();
        let range = self.extents[group];
        let offset = self.concentrations[group].map_or(0.0, |at| at.offset(profile, spacing, range.1.max(-range.0)));
        let sketch = Groups::new(std::iter::once((&self.sketch[group], 1)));
        let (log_moment, log_steepest) = (sketch.at(saddle).value, sketch.at(steepest).value);
        let rounds = real(self.rounds[group].count);
        // E e^{λL} changes by λ(λ+1)∫e^{λε}(δ̃ − δ)dε when the profile does.
        let weighed = |tilt: f64, log_moment: f64, left: &Node, right: &Node, gap: f64| {
            if gap == 0.0 {
                return 0.0;
            }
            let lambda = tilt.max(1.0);
            let size = lambda * (lambda + 1.0) * rounds * (right.epsilon - left.epsilon);
            gap * size * (tilt * (right.epsilon + offset) - log_moment).exp()
        };
        let cost = |left: &Node, right: &Node, gap: f64| weighed(saddle, log_moment, left, right, gap);
        let markov = |left: &Node, right: &Node, gap: f64| weighed(steepest, log_steepest, left, right, gap) <= 0.01;
        let share = budget / real(self.rounds.len());
        let limit = self.most_nodes(MOST_NODES);
        self.graded(Mesh::around(profile, spacing, offset, range), profile, share, limit, cost, markov)
    }
}

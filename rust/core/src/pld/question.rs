//! A question about rounds, and what is known of these before they are composed: their extents and coarse laws.
//!
//! None of these numbers is a bound: they only decide how narrow an answer is. The ways to an answer are in the modules
//! above: by transforms in [`super::search`], by one large loss in [`super::single_jump`], and without a lattice in
//! [`super::without_lattice`].

use crate::error::Result;
use crate::pair::Profile;
use crate::pld::answer::{Answer, Query, Round, SMALLEST_DELTA};
use crate::pld::compose::BEYOND_LATTICES;
use crate::pld::cumulant::Groups;
use crate::pld::masses::Masses;
use crate::pld::mesh::{exact_spacing, extent, Defects, Mesh, Node, Side};
use crate::pld::offset::Concentration;
use crate::run::Run;
use crate::special::real;

/// Receives proven (lower, upper) bounds on δ at any ε ≥ 0, each time that rounds were composed.
pub(super) type Seen<'a> = dyn FnMut(&dyn Fn(f64) -> (f64, f64)) + 'a;

/// An ε below this is treated as zero: no interval need be narrower than the tolerance times this.
const SMALLEST_EPSILON: f64 = 1e-6;
/// Nor need an interval for ε be narrower than one across which δ hardly changes: by this many tolerances of itself.
const HARDLY: f64 = 0.1;
/// At first, rounds are followed as far as matters for this δ.
const ORDINARY_DELTA: f64 = 1e-20;
/// Rounds are followed this many nats of δ further than an estimate of it, since a saddle-point estimate may have an
/// error of this size.
const FURTHER: f64 = 12.0;
/// A tilted law with fewer losses than this beyond twice the ε, in all rounds, is not regarded as heavy.
const HEAVY: f64 = 0.01;
/// Returns the answer, with the flag whether it is as narrow as requested.
pub(super) fn judged(answer: Answer, query: Query, tolerance: f64) -> Answer {
    let width = answer.upper - answer.lower;
    let within = width <= wanted(&answer, query, tolerance) && answer.upper.is_finite();
    Answer { within_tolerance: within || unresolved(&answer, query), ..answer }
}

/// Returns how wide an answer may be.
pub(super) fn wanted(answer: &Answer, query: Query, tolerance: f64) -> f64 {
    tolerance
        * match query {
            Query::Delta(_) => answer.upper,
            Query::Epsilon(delta) => scale(answer.upper, delta),
        }
}

/// Returns the number in units of which this ε is to be found at this δ: itself, unless it is near zero.
///
/// −dδ/dε = P(L > ε) − δ ≤ 1 for the loss L, so that δ changes by at most the width of an interval for ε.
pub(super) fn scale(epsilon: f64, delta: f64) -> f64 {
    epsilon.max(SMALLEST_EPSILON).max(HARDLY * delta)
}

/// Returns whether this is a δ below the smallest one that is resolved.
fn unresolved(answer: &Answer, query: Query) -> bool {
    matches!(query, Query::Delta(_)) && answer.upper <= SMALLEST_DELTA
}

/// The extents and coarse laws of rounds before they are composed, followed as far as matters for some δ.
#[derive(Debug, Clone)]
pub(super) struct Sketch {
    extents: Vec<(f64, f64)>,
    masses: Vec<Masses>,
}

/// A question about rounds, with what is known about these before they are composed.
pub(super) struct Search<'a> {
    pub(super) rounds: &'a [Round],
    pub(super) query: Query,
    pub(super) tolerance: f64,
    pub(super) run: &'a Run,
    /// The losses of each round that matter.
    pub(super) extents: Vec<(f64, f64)>,
    /// Upper masses on a coarse mesh, accurate to a few per mille, for estimates.
    pub(super) sketch: Vec<Masses>,
    /// The loss that each round nearly has most often, if there is one.
    pub(super) concentrations: Vec<Option<Concentration>>,
    pub(super) total: f64,
}

impl<'a> Search<'a> {
    /// Creates the search. `ordinary` is the sketch for [`ORDINARY_DELTA`], if it is known, and is set if that had to
    /// be computed.
    pub(super) fn new(
        rounds: &'a [Round],
        query: Query,
        tolerance: f64,
        run: &'a Run,
        ordinary: &mut Option<Sketch>,
    ) -> Result<Self> {
        let total: f64 = rounds.iter().map(|r| real(r.count)).sum();
        let mut search = Self {
            rounds,
            query,
            tolerance,
            run,
            extents: Vec::new(),
            sketch: Vec::new(),
            concentrations: Vec::new(),
            total,
        };
        match query {
            Query::Epsilon(delta) => search.look(delta)?,
            Query::Delta(epsilon) => search.look_around(epsilon, ordinary)?,
        }
        search.concentrations = rounds
            .iter()
            .zip(&search.sketch)
            .map(|(round, sketch)| Concentration::of(round.profile.as_ref(), sketch))
            .collect();
        Ok(search)
    }

    /// Sketches the rounds for the δ at this ε: first for the ordinary δ, then for the estimate from that.
    ///
    /// If rounds are not followed far enough, they have no losses that matter; if they are followed much too far, they
    /// have tails that no lattice for this ε resolves, and heavy tails dominate the tilted law.
    fn look_around(&mut self, epsilon: f64, ordinary: &mut Option<Sketch>) -> Result<()> {
        let (mut near, mut raised) = (ORDINARY_DELTA, false);
        if let Some(known) = ordinary {
            (self.extents, self.sketch) = (known.extents.clone(), known.masses.clone());
        } else {
            self.look(near)?;
            *ordinary = Some(Sketch { extents: self.extents.clone(), masses: self.sketch.clone() });
        }
        loop {
            let groups = self.groups(&self.sketch);
            let tilt = groups.tilt_for_epsilon(epsilon);
            let log_delta =
                if tilt >= groups.steepest() { f64::NEG_INFINITY } else { groups.saddle_point_log_delta(tilt) };
            let next = (log_delta - FURTHER).exp();
            // If the estimate is NaN, it gives no information, and the present sketch is kept.
            if near <= SMALLEST_DELTA || log_delta.is_nan() {
                return Ok(());
            }
            near = if log_delta <= near.ln() + 5.0 {
                if near < ORDINARY_DELTA {
                    SMALLEST_DELTA
                } else {
                    next.clamp(SMALLEST_DELTA, near)
                }
            } else if !raised && next > near && self.heavy(tilt, epsilon) {
                next
            } else {
                return Ok(());
            };
            raised = true;
            self.look(near)?;
        }
    }

    /// Returns whether the tilted law of a round has much weight far beyond ε, most of it where the sketch ends: that
    /// weight does not belong to any ε.
    fn heavy(&self, tilt: f64, epsilon: f64) -> bool {
        self.rounds.iter().zip(&self.sketch).zip(&self.extents).any(|((round, sketch), extent)| {
            let log_moment = Groups::new(std::iter::once((sketch, 1))).at(tilt).value;
            let beyond = |loss: f64| {
                let masses = sketch.epsilon.iter().zip(&sketch.mass).filter(|(at, _)| **at > loss);
                masses.map(|(at, mass)| mass * (tilt * at - log_moment).exp()).sum::<f64>()
            };
            let count = real(round.count);
            let far = beyond(2.0 * epsilon);
            count * far > HEAVY && beyond((2.0 * epsilon).max(0.75 * extent.1)) > 0.5 * far
        })
    }

    /// Sketches the rounds for answers around this δ.
    fn look(&mut self, delta: f64) -> Result<()> {
        let ignored = self.ignored(delta);
        self.extents.clear();
        self.sketch.clear();
        for round in self.rounds {
            let profile = round.profile.as_ref();
            let range = extent(profile, 1e-15, ignored);
            let spacing = exact_spacing((range.1 - range.0) * 2.0_f64.powi(-36));
            let ends = Mesh::around(profile, spacing, 0.0, range);
            let mesh = ends.refined(profile, 4096, self.run, |left, right, gap| {
                let small = right.point.delta.min(1.0 - left.point.delta).max(1e-14 * left.point.delta);
                gap <= 5e-2 * small + 1e-299
            })?;
            let masses = Masses::new(Side::Upper, profile, &mesh)?;
            if masses.mass.is_empty() {
                return Err(BEYOND_LATTICES);
            }
            self.sketch.push(masses);
            self.extents.push(range);
            self.run.check()?;
        }
        Ok(())
    }

    /// Returns the δ of one round that is negligible for this δ of all rounds.
    pub(super) fn ignored(&self, delta: f64) -> f64 {
        (delta * self.tolerance * 1e-3 / self.total).max(1e-299)
    }

    pub(super) fn groups<'b>(&self, masses: &'b [Masses]) -> Groups<'b> {
        Groups::new(masses.iter().zip(self.rounds.iter().map(|r| r.count)))
    }

    /// Returns the δ of the question, or of its answer with this upper end.
    pub(super) fn delta(&self, upper: f64) -> f64 {
        match self.query {
            Query::Epsilon(delta) => delta,
            Query::Delta(_) => upper,
        }
    }

    /// Returns the answer, with the flag whether it is as narrow as requested.
    pub(super) fn judged(&self, answer: Answer) -> Answer {
        judged(answer, self.query, self.tolerance)
    }

    pub(super) fn wanted(&self, answer: &Answer) -> f64 {
        wanted(answer, self.query, self.tolerance)
    }

    /// Returns the finest lattice spacing on which losses have exact positions: these stay below 2⁴¹.
    pub(super) fn finest(&self) -> f64 {
        self.extents.iter().fold(0.0_f64, |a, e| a.max(e.1.max(-e.0))) * 2.0_f64.powi(-38)
    }

    /// Returns a mesh whose cells all cost about the same, and `share` together.
    pub(super) fn graded(
        &self,
        ends: Mesh,
        profile: &dyn Profile,
        share: f64,
        limit: usize,
        cost: impl Fn(&Node, &Node, f64) -> f64,
        markov: impl Fn(&Node, &Node, f64) -> bool,
    ) -> Result<Mesh> {
        // Halving a cell divides its cost by eight, so the sum of cube roots barely depends on the mesh: measured on a
        // coarse one, it gives the cost per cell at which all cells together meet the budget.
        let coarse = ends.refined(profile, 2048, self.run, |left, right, gap| cost(left, right, gap) <= 0.02)?;
        let floor = profile.delta_at_infinity();
        let roots: f64 = coarse
            .nodes
            .windows(2)
            .map(|w| cost(&w[0], &w[1], Defects::between(&w[0], &w[1], floor).gap()).cbrt())
            .sum();
        // With more nodes than the limit, the cells on the right would not be halved; halving leaves up to twice as
        // many cells as are needed.
        let affordable = (2.0 * roots / real(limit)).powi(3);
        let per_cell = (share / roots.max(1e-3)).powf(1.5).min(0.02).max(affordable);
        coarse.refined(profile, limit, self.run, |left, right, gap| {
            cost(left, right, gap) <= per_cell && markov(left, right, gap)
        })
    }
}

//! The laws of a class of rounds: of the cover from above, and of two pairs from below.
//!
//! **A ring of the cover.** At each node κ ≥ 1 the maximum H over the cells of the ring of their bounds ([`Level`]) bounds the profiles of all
//! its triangles, and so does H′ those of the reversed pairs. By the reflection H_κ(P‖Q) = 1 − κ + κH_{1/κ}(Q‖P) the profile of every
//! triangle at 1/κ is at most 1 − 1/κ + H′(κ)/κ. A profile is convex and 1 at 0, so it is at most the lower convex hull of these
//! values with (0, 1) ([`Masses::above`]), although H and H′ may come from different triangles. The hull is the profile of a law on
//! the lattice. The same with H and H′ exchanged bounds the reversed pairs, which are triangles too.
//!
//! **A record that is set to zero.** The class of the reversed pairs is another one, so the laws of both orders stay apart, and the
//! recursion has a curve for each direction.
//!
//! **From below.** The two pairs with u = x′ and u = x, at distance 2, are mixtures in one dimension; so are those of x′ = 0 with u = −x and
//! u = x, of length 1. With the same contributions records that are drawn j times, by whatever law, move the sum by j times as much.

use rayon::prelude::*;

use crate::adaptive::level::Level;
use crate::adaptive::triangles::cover;
use crate::adaptive::Phase;
use crate::error::Result;
use crate::pair::check::Checked;
use crate::pair::mixture::MixturePair;
use crate::pair::opposed::Opposed;
use crate::pair::substitution::Change;
use crate::pair::ProfilePoint;
use crate::pld::answer::Round;
use crate::pld::composition::composition;
use crate::pld::masses::Masses;
use crate::pld::mesh::{Mesh, Node, Side};
use crate::run::{Run, EVALUATION};
use crate::special::UNIT_ROUNDOFF;

/// The cells of t in a ring of the cover.
const CELLS: u32 = 16;
/// How many positions apart all cells of a ring are evaluated.
const APART: usize = 4;
/// The relative rounding of a chord: e^ε has an error of a few units, which the difference of two of them enlarges, and the share that
/// follows changes the chord by at most the difference of its ends.
const CHORD_ROUNDING: f64 = 1e-9;

/// The lattice positions 0 … at which profiles are evaluated, and how far laws reach to both sides.
#[derive(Debug, Clone)]
pub(super) struct Places {
    pub spacing: f64,
    /// Losses reach to −`left` and `right`.
    pub left: f64,
    pub right: f64,
}

impl Places {
    /// Returns positions that are at most `step` apart in ln(1 + (e^ε − 1)/q), the scale of a profile, up to `right`.
    #[allow(clippy::cast_possible_truncation, clippy::cast_precision_loss)] // positions on a lattice
    fn positions(&self, q: f64, step: f64) -> Vec<i64> {
        let last = (self.right / self.spacing).ceil() as i64;
        let mut positions = vec![0];
        let mut at = 0;
        while at < last {
            let rate = 1.0 - (1.0 - q) * (-(at as f64) * self.spacing).exp();
            at = (at + ((step * rate / self.spacing) as i64).max(1)).min(last);
            positions.push(at);
        }
        positions
    }
}

#[allow(clippy::cast_precision_loss)] // positions on a lattice: exact, since the spacing has few bits
fn epsilon(position: i64, spacing: f64) -> f64 {
    position as f64 * spacing
}

/// Returns the mesh of upper bounds on a profile: `ahead` at κ ≥ 1, and by reflection those of the reversed pair, `behind`.
fn mesh(places: &Places, positions: &[i64], ahead: &[f64], behind: &[f64]) -> Mesh {
    let node = |index: i64, delta: f64| Node {
        index,
        epsilon: epsilon(index, places.spacing),
        point: ProfilePoint { delta, delta_error: 0.0, slope: 0.0, slope_error: 0.0, threshold: f64::NAN },
    };
    let reach = positions.iter().take_while(|&&k| epsilon(k, places.spacing) < places.left).count();
    let inside = &positions[1..positions.len().min(reach + 1)];
    let reflected = inside.iter().zip(&behind[1..]).rev().map(|(&k, &value)| {
        let at = epsilon(k, places.spacing);
        let delta = -(-at).exp_m1() + (-at).exp() * value;
        node(-k, (delta * (1.0 + 8.0 * UNIT_ROUNDOFF)).min(1.0))
    });
    // At κ = 1 both are bounds on one number.
    let middle = node(0, ahead[0].max(behind[0]));
    let later = positions.iter().zip(ahead).skip(1).map(|(&k, &value)| node(k, value));
    let nodes = reflected.chain(std::iter::once(middle)).chain(later).collect();
    Mesh { spacing: places.spacing, offset: 0.0, nodes }
}

/// Returns upper bounds on the largest of the profiles of some levels at increasing ε, and the number of evaluations.
///
/// Every level is evaluated at every [`APART`]-th ε. A profile is convex in e^ε, so between two of these its chord is above it: where
/// the chord is below the value of another level, the level is not the largest.
fn largest(levels: &[Level], epsilons: &[f64]) -> (Vec<f64>, u64) {
    let mut values = vec![0.0_f64; epsilons.len()];
    let mut count = levels.len() as u64;
    let mut roots: Vec<Vec<f64>> = levels.iter().map(Level::no_roots).collect();
    let mut left: Vec<f64> =
        levels.iter().zip(&mut roots).map(|(level, root)| level.after(epsilons[0], root)).collect();
    values[0] = left.iter().copied().fold(0.0, f64::max);
    let mut first = 0;
    while first + 1 < epsilons.len() {
        let last = (first + APART).min(epsilons.len() - 1);
        let mut inside = roots.clone();
        let right: Vec<f64> =
            levels.iter().zip(&mut roots).map(|(level, root)| level.after(epsilons[last], root)).collect();
        count += levels.len() as u64;
        let (start, end) = (epsilons[first].exp(), epsilons[last].exp());
        for k in first + 1..last {
            let share = ((end - epsilons[k].exp()) / (end - start)).clamp(0.0, 1.0);
            let chord =
                |level: usize| (right[level] + share * (left[level] - right[level]).max(0.0)) * (1.0 + CHORD_ROUNDING);
            let mut order: Vec<(f64, usize)> = (0..levels.len()).map(|level| (chord(level), level)).collect();
            order.sort_by(|one, other| other.0.total_cmp(&one.0));
            for (above, level) in order {
                if above <= values[k] {
                    break;
                }
                values[k] = values[k].max(levels[level].after(epsilons[k], &mut inside[level]));
                count += 1;
            }
        }
        values[last] = right.iter().copied().fold(0.0, f64::max);
        (first, left) = (last, right);
    }
    for value in &mut values {
        *value = value.min(1.0);
    }
    (values, count)
}

/// Returns the laws of each direction: one list if both directions have the same class.
fn by_direction(change: Change, both: Vec<[Masses; 2]>) -> Vec<Vec<Masses>> {
    match change {
        Change::Replaced => vec![both.into_iter().flatten().collect()],
        Change::Zeroed => {
            let (remove, add) = both.into_iter().map(|[one, other]| (one, other)).unzip();
            vec![remove, add]
        }
    }
}

/// Returns laws whose profiles bound those of all triangles, for each direction. A record is drawn at most once.
pub(super) fn above(
    change: Change,
    phase: &Phase,
    rings: u32,
    step: f64,
    places: &Places,
    run: &Run,
) -> Result<Vec<Vec<Masses>>> {
    let (q, noise) = (phase.drawn(), phase.noise_multiplier);
    let positions = places.positions(q, step);
    let found: Vec<[Masses; 2]> = cover(change, rings, CELLS)
        .par_iter()
        .map(|cells| {
            run.check()?;
            let epsilons: Vec<f64> = positions.iter().map(|&k| epsilon(k, places.spacing)).collect();
            let largest = |end: usize| {
                let levels: Vec<Level> = cells.iter().map(|cell| Level::new(cell[end], q, noise)).collect();
                largest(&levels, &epsilons)
            };
            let ((ahead, some), (behind, more)) = (largest(0), largest(1));
            run.count(EVALUATION * 16 * (some + more));
            Ok([
                Masses::above(&mesh(places, &positions, &ahead, &behind))?,
                Masses::above(&mesh(places, &positions, &behind, &ahead))?,
            ])
        })
        .collect::<Result<_>>()?;
    Ok(by_direction(change, found))
}

/// Returns two pairs of data sets, each with both orders: of a replaced record u = x′ and u = x are one pair and its reversal.
fn pairs(change: Change, phase: &Phase) -> Result<Vec<[Checked; 2]>> {
    let mixture = |distance: f64| MixturePair::counted(&phase.weights, distance, None, phase.noise_multiplier);
    Ok(match change {
        Change::Replaced => {
            let pair = mixture(2.0)?;
            vec![[Checked::of(pair.reversed())?, Checked::of(pair)?]]
        }
        Change::Zeroed => {
            let (against, along) = (Opposed::new(&phase.weights, phase.noise_multiplier)?, mixture(1.0)?);
            vec![
                [Checked::of(against.clone())?, Checked::of(against.reversed())?],
                [Checked::of(along.reversed())?, Checked::of(along)?],
            ]
        }
    })
}

/// Returns the laws of so many rounds of each of these pairs from below, for each direction.
pub(super) fn below(
    change: Change,
    phase: &Phase,
    rounds: u64,
    step: f64,
    places: &Places,
    run: &Run,
) -> Result<Vec<Vec<Masses>>> {
    let positions = places.positions(phase.drawn(), step);
    let reach = positions.iter().take_while(|&&k| epsilon(k, places.spacing) < places.left).count();
    let left = positions[1..positions.len().min(reach + 1)].iter().rev().map(|k| -k);
    let all: Vec<i64> = left.chain(positions.iter().copied()).collect();
    let law = |pair: &Checked| {
        let rounds = [Round { profile: pair.clone(), count: rounds }];
        let block = composition(&rounds, Side::Lower, run)?;
        let node = |&index: &i64| {
            let at = epsilon(index, places.spacing);
            Node { index, epsilon: at, point: block.at(at).or_trivial(at) }
        };
        let mesh = Mesh { spacing: places.spacing, offset: 0.0, nodes: all.iter().map(node).collect() };
        run.count(EVALUATION * all.len() as u64);
        Masses::new(Side::Lower, block.as_ref(), &mesh)
    };
    let both = pairs(change, phase)?
        .par_iter()
        .map(|[one, other]| {
            run.check()?;
            let (one, other) = rayon::join(|| law(one), || law(other));
            Ok([one?, other?])
        })
        .collect::<Result<_>>()?;
    Ok(by_direction(change, both))
}

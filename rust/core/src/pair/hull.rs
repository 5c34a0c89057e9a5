//! The lower convex hull of several bounds on one profile.
//!
//! Where several upper bounds on a profile hold, so does their minimum; and since the profile itself is convex in α =
//! e^ε, so does every chord of the minimum. The hull follows one of the bounds at a time, with chords over the
//! intervals where the minimum is not convex or clearly changes from one bound to another. Sampling determines where
//! these intervals begin and end: that decides how near to the least hull the result is, never whether it is an upper
//! bound.
//!
//! **It is convex**, so that its slopes are those of supporting lines. Where a chord is next to a piece q, the last
//! part of that piece, between two samples at α₁ < α₂, is a chord too: a *short* one. Every chord is steeper than the
//! next by more than the errors of their end points ([`steeper`]); two chords that do not differ by so much become one.
//! What remains to be shown concerns the step between a piece and its short chord. Let the piece be on the left; the
//! end points v_i are above q(α_i) by at most 2e_i, and w = α₂ − α₁.
//!
//! * A line below q that misses q(α) by at most 2e, α < α₁, falls from there to q(α₂) or below. So it is as steep as q
//!   is from α to α₂, up to 2e/(α₂ − α), and that is as steep as the short chord up to 2(e₁ + e₂)/w. The first is added
//!   to the error of the piece's slopes, the second is less than the difference in steepness to the chords behind α₂:
//!   the line stays below all of these.
//! * The short chord, lowered by 2(e₁ + e₂) and less steep by 2(e₁ + e₂)/w, is below q left of α₁, since q is convex
//!   there.
//! * A line from beyond α₂ is at most v₂ there and less steep than the short chord by 2(e₁ + e₂)/w or more; so it is at
//!   most v₁ − 2(e₁ + e₂) at α₁, and below q from there on.
//!
//! If the piece is on the right, the argument is the same, mirrored. Left of all samples the bound is the 1 that every
//! profile is at α = 0; right of them it is the value of the last sample. These are reached by a chord, or by a level
//! line, where there is no other neighbour.

use std::sync::Arc;

use crate::pair::{Profile, ProfilePoint};
use crate::special::{UNDERFLOW, UNIT_ROUNDOFF};

/// The first samples on each side of ε = 0: the smallest, and the number for each doubling. Then the end points of each
/// chord are refined.
const SMALLEST: f64 = 1e-3;
const PER_OCTAVE: f64 = 8.0;
const REFINEMENTS: usize = 16;
/// The hull changes to another piece where that piece is better by this many times the errors. Before that point, it is
/// undetermined whether a chord between the pieces bends the right way, so the chord would have to reach far into the
/// remainder of one of them.
const CLEARLY: f64 = 1e4;
/// The hull is not sampled beyond the ε at which δ falls below this, on either side.
const NOTHING: f64 = 1e-290;

/// The lower convex hull of the minimum of several profiles.
#[derive(Debug, Clone)]
pub struct Hull {
    pieces: Vec<Arc<dyn Profile>>,
    /// The parts from left to right, without gaps.
    parts: Vec<Part>,
}

/// The form of the hull up to some ε.
#[derive(Debug, Clone, Copy)]
enum Part {
    /// One of the pieces, up to `end`; the neighbouring chords reach from `left` on its left side, and to `right` on
    /// its right.
    Piece { piece: usize, end: f64, left: f64, right: f64 },
    /// A chord between two values of the minimum, each taken at the upper end of its error.
    Chord { left: Sample, right: Sample },
}

#[derive(Debug, Clone, Copy)]
struct Sample {
    epsilon: f64,
    value: f64,
    error: f64,
    piece: usize,
}

impl Hull {
    /// Creates the hull of these upper bounds on one profile.
    pub fn new(pieces: Vec<Arc<dyn Profile>>) -> Self {
        let mut hull = Self { pieces, parts: Vec::new() };
        let side = |sign: f64| {
            let end = hull.end(sign).abs();
            (0..)
                .map(|k| SMALLEST * (f64::from(k) / PER_OCTAVE).exp2())
                .take_while(move |x| *x < 2.0 * end)
                .map(move |x| sign * x)
        };
        let mut grid: Vec<f64> = side(-1.0).chain([0.0]).chain(side(1.0)).collect();
        grid.sort_by(f64::total_cmp);
        let mut probes: Vec<Probe> = grid.into_iter().map(|epsilon| hull.probe(epsilon)).collect();
        for _ in 0..REFINEMENTS {
            let samples = chosen(&probes);
            let kept = vertices(&samples);
            let mut finer: Vec<f64> = Vec::new();
            for cell in kept.windows(2).filter(|cell| spans(&samples, cell)) {
                for &end in cell {
                    for (low, high) in [(end.saturating_sub(1), end), (end, (end + 1).min(samples.len() - 1))] {
                        let (low, high) = (samples[low].epsilon, samples[high].epsilon);
                        if high - low > 1e-7 * high.abs().max(1e-3) {
                            finer.push(0.5 * (low + high));
                        }
                    }
                }
            }
            finer.sort_by(f64::total_cmp);
            finer.dedup();
            probes.extend(finer.into_iter().map(|epsilon| hull.probe(epsilon)));
            probes.sort_by(|a, b| a.epsilon.total_cmp(&b.epsilon));
        }
        hull.parts = parts(&chosen(&probes));
        hull
    }

    /// Returns the ε on the side `sign` beyond which every profile practically equals its limit.
    fn end(&self, sign: f64) -> f64 {
        let mut epsilon = SMALLEST * sign;
        // Left of 0 this is the distance from the limit 1 − e^ε.
        while epsilon.abs() < 1e6 {
            let least = self.probe(epsilon).least().1;
            let distance = if sign > 0.0 { least.delta } else { least.delta + epsilon.exp_m1() };
            if distance <= NOTHING.max(2.0 * least.delta_error) {
                break;
            }
            epsilon *= 2.0;
        }
        epsilon
    }

    fn probe(&self, epsilon: f64) -> Probe {
        let points: Vec<_> = self.pieces.iter().map(|piece| piece.at(epsilon).or_trivial(epsilon)).collect();
        Probe { epsilon, points: if points.is_empty() { vec![unknown(epsilon)] } else { points } }
    }
}

/// The values of all pieces at one ε.
#[derive(Debug, Clone)]
struct Probe {
    epsilon: f64,
    points: Vec<ProfilePoint>,
}

impl Probe {
    fn least(&self) -> (usize, ProfilePoint) {
        let mut best = (0, self.points[0]);
        for (piece, point) in self.points.iter().enumerate().skip(1) {
            let least = best.1;
            // Pieces whose values are equal up to rounding meet here: right of this ε the steepest is the least.
            let errors = point.delta_error + least.delta_error;
            let uneven = point.delta_error.max(least.delta_error) > 1e3 * point.delta_error.min(least.delta_error);
            let better = if uneven || (point.delta - least.delta).abs() > errors {
                point.delta + point.delta_error < least.delta + least.delta_error
            } else {
                point.slope > least.slope
            };
            if better {
                best = (piece, *point);
            }
        }
        best
    }

    fn sample(&self, piece: usize) -> Sample {
        let point = self.points[piece];
        Sample { epsilon: self.epsilon, value: point.delta + point.delta_error, error: point.delta_error, piece }
    }
}

/// Returns the least piece at each ε; a piece stays chosen until another is clearly better.
fn chosen(probes: &[Probe]) -> Vec<Sample> {
    let mut samples: Vec<Sample> = Vec::with_capacity(probes.len());
    for probe in probes {
        let (least, point) = probe.least();
        let kept = samples.last().map(|sample| sample.piece).filter(|&before| {
            let one = probe.points[before];
            one.delta - point.delta <= CLEARLY * (one.delta_error + point.delta_error)
        });
        samples.push(probe.sample(kept.unwrap_or(least)));
    }
    samples
}

/// Returns the point of a hull without pieces, about which nothing is known.
fn unknown(epsilon: f64) -> ProfilePoint {
    ProfilePoint { delta: f64::NAN, delta_error: 0.0, slope: 0.0, slope_error: 0.0, threshold: f64::NAN }
        .or_trivial(epsilon)
}

/// Returns whether a chord belongs between two neighbouring vertices: there are samples above it, or the minimum
/// changes its piece.
fn spans(samples: &[Sample], cell: &[usize]) -> bool {
    cell[1] > cell[0] + 1 || samples[cell[0]].piece != samples[cell[1]].piece
}

/// Returns the samples that are vertices of the lower convex hull in α, or so near to it that rounding hides the
/// difference.
fn vertices(samples: &[Sample]) -> Vec<usize> {
    let mut kept: Vec<usize> = Vec::with_capacity(samples.len());
    for k in 0..samples.len() {
        while let [.., i, j] = kept[..] {
            let (first, middle, last) = (&samples[i], &samples[j], &samples[k]);
            // `chord` is the chord's value in the middle; `share` is the relative position in α, without e^ε.
            let share = (middle.epsilon - first.epsilon).exp_m1() / (last.epsilon - first.epsilon).exp_m1();
            let chord = first.value + (last.value - first.value) * share;
            let rounding = first.error + middle.error + last.error + 16.0 * UNIT_ROUNDOFF * first.value;
            if middle.value <= chord + 2.0 * rounding || share.is_nan() {
                break;
            }
            kept.pop();
        }
        kept.push(k);
    }
    kept
}

/// Returns the parts of the hull of these samples: chords where they are needed, with a short one on each side, and
/// pieces in between.
fn parts(samples: &[Sample]) -> Vec<Part> {
    let (Some(&first), Some(&last)) = (samples.first(), samples.last()) else { return Vec::new() };
    let kept = vertices(samples);
    // Since the ends are included, the k-th sample is at k + 1.
    let mut chords: Vec<(usize, usize)> =
        kept.windows(2).filter(|cell| spans(samples, cell)).map(|cell| (cell[0] + 1, cell[1] + 1)).collect();
    let mut all = vec![Sample { epsilon: f64::NEG_INFINITY, value: 1.0, error: 0.0, piece: first.piece }];
    all.extend_from_slice(samples);
    all.push(Sample { epsilon: f64::INFINITY, ..last });
    // Cells that a chord spans at first are never short, and neither are the cells that it spans later.
    let mut spanned = vec![false; all.len()];
    for &(from, to) in &chords {
        spanned[from..to].fill(true);
    }
    let end = all.len() - 1;
    loop {
        let mut full: Vec<(usize, usize)> = Vec::with_capacity(3 * chords.len());
        for (k, &(from, to)) in chords.iter().enumerate() {
            let long = to > from + 1 || spanned[from];
            if long && from > 0 && full.last().is_none_or(|before| before.1 < from) {
                full.push((from - 1, from));
            }
            full.push((from, to));
            if long && to < end && chords.get(k + 1).is_none_or(|next| next.0 > to) {
                full.push((to, to + 1));
            }
        }
        let adjoin = |pair: &[(usize, usize)]| pair[0].1 == pair[1].0;
        let open = full.windows(2).position(|pair| adjoin(pair) && !steeper(&all, pair[0], pair[1]));
        let Some(open) = open else {
            return laid_out(&all, &full);
        };
        let (from, to) = (full[open].0, full[open + 1].1);
        spanned[from..to].fill(true);
        full.splice(open..=open + 1, [(from, to)]);
        chords = full;
    }
}

/// Returns the parts for these chords, with pieces between them.
fn laid_out(samples: &[Sample], chords: &[(usize, usize)]) -> Vec<Part> {
    let end = samples.len() - 1;
    let mut parts = Vec::with_capacity(2 * chords.len() + 1);
    let (mut at, mut left) = (0, f64::NEG_INFINITY);
    let piece = |from: usize, to: usize, left, right| Part::Piece {
        // All samples of a piece from its start to its end are samples of that piece, except at the outermost ends,
        // which take their neighbours' piece.
        piece: samples[if from == 0 { to } else { from }].piece,
        end: samples[to].epsilon,
        left,
        right,
    };
    for &(from, to) in chords {
        if from > at {
            parts.push(piece(at, from, left, samples[to].epsilon));
        }
        parts.push(Part::Chord { left: samples[from], right: samples[to] });
        (at, left) = (to, samples[from].epsilon);
    }
    if at < end {
        parts.push(piece(at, end, left, f64::INFINITY));
    }
    parts
}

/// Returns a point of the chord between two samples; the left sample may be at α = 0, and the right one at infinity,
/// where it has the left one's value.
fn chord(epsilon: f64, left: &Sample, right: &Sample) -> ProfilePoint {
    // Widths in α are relative to the right end; the difference of two values of ε is as exact as its rounding, since x
    // e^{−x} ≤ 1/e.
    let (whole, rest) = (-(left.epsilon - right.epsilon).exp_m1(), -(epsilon - right.epsilon).exp_m1());
    let drop = left.value - right.value;
    let delta = right.value + drop * (rest / whole);
    let ends = 2.0 * (left.error + right.error);
    // `position` is α relative to the right end; it is 0 for a level line.
    let distance = (right.epsilon - epsilon).min(1e4);
    let position = (-distance).exp() / whole;
    let rounding = 16.0 * UNIT_ROUNDOFF;
    ProfilePoint {
        delta: delta.max(0.0),
        delta_error: rounding * left.value + ends + UNDERFLOW,
        slope: (drop * position).max(0.0),
        slope_error: (rounding * (1.0 + distance) * drop.abs() + ends) * position + UNDERFLOW,
        threshold: f64::NAN,
    }
}

/// Returns whether the first of two chords that meet is steeper than the second by more than twice the errors of their
/// end points.
fn steeper(samples: &[Sample], first: (usize, usize), second: (usize, usize)) -> bool {
    let (before, middle, after) = (samples[first.0], samples[first.1], samples[second.1]);
    // Widths in α are relative to the middle.
    let widths = (-(before.epsilon - middle.epsilon).exp_m1(), (after.epsilon - middle.epsilon).exp_m1());
    let slopes = ((before.value - middle.value) / widths.0, (middle.value - after.value) / widths.1);
    let margins = 2.0 * ((before.error + middle.error) / widths.0 + (middle.error + after.error) / widths.1);
    slopes.0 - slopes.1 >= margins * (1.0 + 1e-9) + 16.0 * UNIT_ROUNDOFF * (slopes.0.abs() + slopes.1.abs())
}

impl Profile for Hull {
    fn at_within(&self, epsilon: f64, bracket: (f64, f64)) -> ProfilePoint {
        let next = self.parts.partition_point(|part| match part {
            Part::Piece { end, .. } => *end <= epsilon,
            Part::Chord { right, .. } => right.epsilon <= epsilon,
        });
        match self.parts.get(next).or(self.parts.last()) {
            Some(Part::Chord { left, right }) => chord(epsilon, left, right),
            // The hull consists of a single piece.
            Some(Part::Piece { piece, left, right, .. }) if left.is_infinite() && right.is_infinite() => {
                self.pieces[*piece].at_within(epsilon, bracket)
            }
            Some(Part::Piece { piece, left, right, .. }) => {
                let point = self.pieces[*piece].at(epsilon).or_trivial(epsilon);
                let beside = |width: f64| 2.0 * point.delta_error / width * (1.0 + 1e-9);
                let open = beside((right - epsilon).exp_m1())
                    + if left.is_finite() { beside(-(left - epsilon).exp_m1()) } else { 0.0 };
                // A threshold of one piece cannot be used for the other pieces.
                ProfilePoint { slope_error: point.slope_error + open, threshold: f64::NAN, ..point }
            }
            None => unknown(epsilon),
        }
    }

    /// Returns the smallest shift of all pieces, since all of them bound the same profile.
    fn dominating_shift(&self) -> Option<f64> {
        self.pieces.iter().filter_map(|piece| piece.dominating_shift()).reduce(f64::min)
    }
}

#[cfg(test)]
mod tests {
    use super::{Hull, Part};
    use crate::pair::discrete::DiscretePair;
    use crate::pair::laplace::Laplace;
    use crate::pair::mixture::MixturePair;
    use crate::pair::Profile;
    use std::sync::Arc;

    /// Returns randomised response: two outcomes.
    fn response(epsilon: f64) -> Arc<dyn Profile> {
        let truth = 1.0 / (1.0 + (-epsilon).exp());
        Arc::new(DiscretePair::new(vec![(truth, 1.0 - truth), (1.0 - truth, truth)]).unwrap())
    }

    /// Returns pieces without corners that cross each other.
    fn smooth() -> Vec<Vec<Arc<dyn Profile>>> {
        let gaussian = |sigma: f64| -> Arc<dyn Profile> { Arc::new(MixturePair::gaussian(1.0, sigma).unwrap()) };
        let sampled =
            |p: f64, sigma: f64| -> Arc<dyn Profile> { Arc::new(MixturePair::poisson(1, p, sigma, false).unwrap()) };
        vec![
            vec![gaussian(1.0), sampled(0.1, 0.4)],
            vec![gaussian(2.0), sampled(0.3, 0.7), sampled(0.01, 0.25)],
            vec![gaussian(3.0), gaussian(3.0), sampled(1e-4, 0.2)],
        ]
    }

    fn pieces() -> Vec<Vec<Arc<dyn Profile>>> {
        let laplace = |scale: f64| -> Arc<dyn Profile> { Arc::new(Laplace::new(1.0, scale).unwrap()) };
        let leaking: Arc<dyn Profile> =
            Arc::new(DiscretePair::new(vec![(1e-3, 0.0), (0.6, 0.4), (0.399, 0.6)]).unwrap());
        vec![
            vec![laplace(0.5)],
            vec![laplace(0.5), response(1.2)],
            vec![response(0.4), laplace(0.25), leaking.clone()],
            vec![response(3.0), leaking, response(0.01), laplace(1.0)],
            // The same profile twice: the two differ only by rounding.
            vec![laplace(0.7), laplace(0.7)],
        ]
    }

    /// Returns a grid, and points beside every end of a part.
    fn losses(hull: &Hull) -> Vec<f64> {
        let mut found: Vec<f64> = (-700..700).map(|k| 0.0171 * f64::from(k)).collect();
        for part in &hull.parts {
            let end = match part {
                Part::Piece { end, .. } => *end,
                Part::Chord { right, .. } => right.epsilon,
            };
            for apart in [1e-3, 1e-5, 1e-7, 1e-9, 1e-12, 0.0] {
                found.extend([end - apart, end + apart].into_iter().filter(|epsilon| epsilon.is_finite()));
            }
        }
        found
    }

    #[test]
    fn lines_support_the_hull_everywhere() {
        for pieces in pieces().into_iter().chain(smooth()) {
            let hull = Hull::new(pieces);
            let points: Vec<_> = losses(&hull).into_iter().map(|epsilon| (epsilon, hull.at(epsilon))).collect();
            for (epsilon, point) in &points {
                for (other, found) in &points {
                    let width = (other - epsilon).exp_m1();
                    let slope = point.slope + point.slope_error * width.signum();
                    let line = point.delta - point.delta_error - slope * width;
                    // This allows for the rounding of the test itself.
                    let rounding = 1e-15 * (1.0 + (slope * width).abs());
                    assert!(
                        found.delta + found.delta_error + rounding >= line,
                        "{epsilon} {other} {point:?} {found:?}"
                    );
                }
            }
        }
    }

    #[test]
    fn the_hull_is_near_the_least_of_its_pieces_or_below() {
        for pieces in smooth() {
            let hull = Hull::new(pieces.clone());
            for epsilon in losses(&hull) {
                let least = pieces.iter().map(|piece| piece.at(epsilon)).map(|p| p.delta + p.delta_error);
                let least = least.fold(f64::INFINITY, f64::min);
                assert!(hull.at(epsilon).delta <= least * (1.0 + 1e-6), "{epsilon} {} {least}", hull.at(epsilon).delta);
            }
        }
    }
}

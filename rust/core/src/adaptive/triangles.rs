//! The triangles that three gradients span, and a cover of all of them by boxes of inner products.
//!
//! A round of a fixed-size batch is a pair P = (1−q)N(u) + qN(x), Q = (1−q)N(u) + qN(x′) of points u, x, x′ in the unit ball
//! ([`super`]). Up to isometry it is the triangle with the squared sides A = |u−x|², B = |u−x′|², C = |x−x′|².
//!
//! **Larger triangles dominate.** If the differences of the squared sides of two triangles are squared distances of three points
//! z, the larger triangle is congruent to (y_i, z_i), with y the smaller one, and forgetting the second coordinates is
//! post-processing.
//!
//! **Acute and right triangles inscribed in the unit circle suffice.** An acute triangle in the unit ball has a circumradius
//! ρ ≤ 1, since that circle is the smallest one around it; scaled by 1/ρ, all squared sides gain the same factor, so the
//! differences are those of a similar triangle. Otherwise let c be the largest squared side and a + b ≤ c ≤ 4 (this holds for
//! points on a line and for points that coincide too). The right triangle (2 + (a−b)/2, 2 − (a−b)/2, 4) has the differences
//! (m, m, 4 − c) with m = 2 − (a+b)/2 ≥ 0: an isosceles triangle exists if 4 − c ≤ 4m = 8 − 2(a+b), that is 2(a+b) ≤ 4 + c, and
//! 2(a+b) ≤ 2c ≤ 4 + c.
//!
//! **Coordinates.** With the angles β at x, γ at x′ and υ at u, each side is 2 sin of the angle across it: A = 4 sin²γ,
//! B = 4 sin²β, C = 4 sin²υ. All angles are at most π/2 and sum to π, so γ = π/2 − β(1−t) and υ = π/2 − βt with
//! β ∈ (0, π/2], t ∈ [0, 1] are all of them. Then A = 4cos²(β(1−t)), C = 4cos²(βt), and the inner products are
//! (u−x)·(x′−x) = √(AC) cos β and (u−x′)·(x−x′) = √(BC) cos γ = √(BC) sin(β(1−t)). On a cell of β and t each factor is monotone
//! and is bounded at its own corner; their products are not monotone. Exchanging x and x′ exchanges A and B, so the
//! half γ ≥ β, that is β(2−t) ≤ π/2, with both orders of (P, Q) is all triangles.
//!
//! **A record that is set to zero** has x′ = 0. Let u and x be of length at most 1; with one more coordinate each, √(1 − |u|²) and
//! √(1 − |x|²), they are of length 1, and forgetting it is post-processing. So B = C = 1 suffice, and A = |u−x|² = 4 sin²(υ/2) for the
//! angle υ ∈ [0, π] at 0. The inner products are (u−x)·(x′−x) = A/2 at x, and (u−x′)·(x−x′) = cos υ at x′, which is negative for a
//! wide angle. At x all entries rise with υ, and at x′ the only one that is not constant falls, so each end of an interval of υ
//! bounds one of both. The two orders of (P, Q) are two classes here.

use std::f64::consts::{FRAC_PI_2, PI};

use crate::pair::substitution::Change;
use crate::special::UNIT_ROUNDOFF;

/// Upper bounds on the squared lengths of two vectors and on their inner product, in units of the clip norm.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Gram {
    /// |a|², a from the vertex to u.
    pub stay: f64,
    /// |c|², c from the vertex to the third one.
    pub other: f64,
    /// a·c.
    pub product: f64,
}

/// A set of triangles: the bounds at x, for levels of at least 1, and those at x′, for the levels of the reversed pair.
pub(super) type Bounded = [Gram; 2];

/// A cell of the coordinates β and t.
struct Cell {
    beta: (f64, f64),
    t: (f64, f64),
}

/// More than the rounding of a product of three sines or cosines, whose arguments are rounded too.
const ROUNDING: f64 = 1.0 + 64.0 * UNIT_ROUNDOFF;

impl Cell {
    fn at_record(&self) -> Gram {
        let ((low, _), (first, last)) = (self.beta, self.t);
        let (stay, other) = ((low * (1.0 - last)).cos(), (low * first).cos());
        Gram {
            stay: 4.0 * stay * stay * ROUNDING,
            other: 4.0 * other * other * ROUNDING,
            product: 4.0 * stay * other * low.cos() * ROUNDING,
        }
    }

    fn at_replacement(&self) -> Gram {
        let ((low, high), (first, _)) = (self.beta, self.t);
        let (stay, other) = (high.sin(), (low * first).cos());
        Gram {
            stay: 4.0 * stay * stay * ROUNDING,
            other: 4.0 * other * other * ROUNDING,
            product: 4.0 * stay * other * (high * (1.0 - first)).sin() * ROUNDING,
        }
    }
}

/// Returns a cover of all triangles: sets, each with its cells.
pub(super) fn cover(change: Change, rings: u32, cells: u32) -> Vec<Vec<Bounded>> {
    match change {
        Change::Replaced => replaced(rings, cells)
            .iter()
            .map(|ring| ring.iter().map(|cell| [cell.at_record(), cell.at_replacement()]).collect())
            .collect(),
        Change::Zeroed => zeroed(rings),
    }
}

/// Returns the largest triangles of each direction: those at which the bounds are largest.
pub(super) fn corner(change: Change) -> Bounded {
    match change {
        Change::Replaced => [Gram { stay: 4.0, other: 4.0, product: 4.0 }; 2],
        Change::Zeroed => [Gram { stay: 4.0, other: 1.0, product: 2.0 }, Gram { stay: 1.0, other: 1.0, product: 1.0 }],
    }
}

/// Returns intervals of the angle at 0.
fn zeroed(intervals: u32) -> Vec<Vec<Bounded>> {
    let angle = |k: u32| PI * f64::from(k) / f64::from(intervals);
    (0..intervals)
        .map(|k| {
            let half = (0.5 * angle(k + 1)).sin();
            let square = 4.0 * half * half * ROUNDING;
            // The cosine has an absolute error, and its argument one of a few units.
            let cosine = angle(k).cos() + 64.0 * UNIT_ROUNDOFF;
            vec![[
                Gram { stay: square, other: 1.0, product: 0.5 * square },
                Gram { stay: 1.0, other: 1.0, product: cosine.min(1.0) },
            ]]
        })
        .collect()
}

/// Returns rings of β, each with its cells of t.
///
/// The first ring, whose triangles are nearly those with u = x′, reaches to 0.9/rings; the others have a constant ratio of their
/// ends. It is one cell: its bounds at β = 0 depend on t nowhere, except for one that is largest at t = 0.
fn replaced(rings: u32, cells: u32) -> Vec<Vec<Cell>> {
    let rings = rings.max(2);
    let first = 0.9 / f64::from(rings);
    let ratio = (FRAC_PI_2 / first).powf(1.0 / f64::from(rings - 1));
    let mut cover = vec![vec![Cell { beta: (0.0, first), t: (0.0, 1.0) }]];
    let mut low = first;
    for ring in 1..rings {
        let high = if ring + 1 == rings { FRAC_PI_2 } else { (low * ratio).min(FRAC_PI_2) };
        let parts = (0..cells).map(|k| (f64::from(k) / f64::from(cells), f64::from(k + 1) / f64::from(cells)));
        let kept: Vec<Cell> = parts
            // A cell that lies wholly in the other half is covered by the reversed pairs.
            .filter(|t| low * (2.0 - t.1) <= FRAC_PI_2 * (1.0 + 1e-12))
            .map(|t| Cell { beta: (low, high), t })
            .collect();
        if !kept.is_empty() {
            cover.push(kept);
        }
        low = high;
    }
    cover
}

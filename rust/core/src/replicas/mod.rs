//! Moments of a mechanism's likelihood ratio, by a chain over m independent copies (*replicas*) of a record's
//! participations.
//!
//! This room takes a participation law and the columns of a matrix in units of σ, and returns upper bounds on
//! `Z_m = E_R f^m`, f = dP/dR = Σ_x w_x e^{⟨Cx,y⟩ − ‖Cx‖²/2}, R = N(0, I). It does not know about ε and δ.
//! [`multisets`] numbers the states, [`overlaps`] has the inner products of columns, [`chain`] a step of the recursion
//! and [`steps`] all of them, which [`rounds`] and [`blocks`] create; [`left_out`] bounds the missing part where few
//! replicas may be busy at once; [`tuples`] and [`block_tuples`] draw replicas that have the law of f^m. All of this is
//! for ages; [`aged`] has their moments. Any [`automaton`] has a chain in [`automaton_chain`] and tuples in
//! [`automaton_tuples`], [`phases`] are for cyclic sampling and [`placed`] for bins; [`drawn`] is the common interface
//! of all of them.
//!
//! **Two chains.** Ages are the states of one of the automata, and yet have a chain of their own. A state of ages steps
//! by a shift of its multiset: no list of next states is stored, and a table takes 4 bytes a state instead of 8. Blocks of
//! rounds, which multiply the order that fits, and few busy replicas are known for ages alone. As an automaton single
//! records take, for n = 2000 and a column as long as b, about 1.7 times as long for a moment and 1.5 times for a tuple at
//! b = 64 and m = 3, where ln Z_m comes out 0.09 higher; at b = 8 and m = 8 about 0.6 and 1.2 times. Users and allocations
//! have no ages.
//!
//! **Why a moment is a guarantee.** For x ≥ 0 and an integer m ≥ 2, `(x − e^ε)₊ ≤ c_m e^{−(m−1)ε} x^m` with c_m =
//! (m−1)^{m−1}/m^m: the quotient (x − e^ε)/x^m is largest at x = e^ε m/(m−1), where it is that constant. With x = f and
//! the mean under R,
//!
//! `δ_remove(ε) = E_R (f − e^ε)₊ ≤ W_m(ε) = Z_m c_m e^{−(m−1)ε}`.
//!
//! This is Chernoff's bound on the Rényi divergence of order m (Mironov 2017, arXiv:1702.07476, Proposition 3, with the
//! constant of Canonne, Kamath & Steinke 2020, arXiv:2004.00010, Corollary 13); for balls in bins such moments are
//! computed by a dynamic programme by Schuchardt & Kalinin 2026 (arXiv:2601.21636). The f of independent mechanisms are
//! multiplied, so their ln Z_m add up.

pub mod aged;
pub mod automaton;
mod automaton_chain;
pub mod automaton_tuples;
pub mod block_tuples;
mod blocks;
mod chain;
pub mod drawn;
#[cfg(test)]
pub(crate) mod enumeration;
pub mod left_out;
pub mod multisets;
pub mod overlaps;
mod path;
pub mod phases;
pub mod placed;
mod rounds;
mod steps;
pub mod stepwise;
mod tables;
pub mod tuples;
mod weighted;

use crate::error::Error;
pub use steps::{LogMoment, GAP};

/// m replicas, and the way in which their participations are computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Replicas {
    /// m, the number of replicas.
    pub order: usize,
    /// K if no more than K replicas may be busy at once, at least 2 and below m, round by round; `None` if all may.
    pub most_busy: Option<usize>,
    /// The number of rounds of a block; `None` if every round is a separate step.
    pub block: Option<usize>,
}

impl Replicas {
    /// Returns m replicas, round by round.
    pub fn exact(order: usize) -> Self {
        Self { order, most_busy: None, block: None }
    }

    /// Returns m replicas, round by round, of which no more than `most_busy` may be busy at once.
    pub fn of_few(order: usize, most_busy: usize) -> Self {
        Self { order, most_busy: Some(most_busy), block: None }
    }

    /// Returns m replicas, by blocks of `length` rounds.
    pub fn of_blocks(order: usize, length: usize) -> Self {
        Self { order, most_busy: None, block: Some(length) }
    }
}

/// The error for few busy replicas in blocks: few busy replicas are implemented round by round only.
pub const ONE_OR_OTHER: Error = Error::Numerics { reason: "replicas of which few are busy are drawn round by round" };

//! Moments of a mechanism's likelihood ratio, by an exact chain over m independent copies (*replicas*) of a record's participations.
//!
//! Takes a participation law and the columns of a matrix in units of σ; gives upper bounds on `Z_m = E_R f^m`, f = dP/dR = Σ_x w_x
//! e^{⟨Cx,y⟩ − ‖Cx‖²/2}, R = N(0, I). It knows no ε and no δ. [`multisets`] numbers the states, [`overlaps`] has the inner
//! products of columns, [`chain`] the recursion, and [`tuples`] draws replicas that have the law of f^m.
//!
//! **Why a moment is a guarantee.** For x ≥ 0 and an integer m ≥ 2, `(x − e^ε)₊ ≤ c_m e^{−(m−1)ε} x^m` with c_m = (m−1)^{m−1}/m^m: the
//! quotient (x − e^ε)/x^m is largest at x = e^ε m/(m−1), where it is that constant. With x = f and the mean under R,
//!
//! `δ_remove(ε) = E_R (f − e^ε)₊ ≤ W_m(ε) = Z_m c_m e^{−(m−1)ε}`.
//!
//! This is Chernoff's bound on the Rényi divergence of order m (Mironov 2017, arXiv:1702.07476, Proposition 3, with the constant of
//! Canonne, Kamath & Steinke 2020, arXiv:2004.00010, Corollary 13); for balls in bins such moments are computed by a dynamic programme
//! by Schuchardt & Kalinin 2026 (arXiv:2601.21636). Independent mechanisms multiply their f, so their ln Z_m add up.

pub mod chain;
#[cfg(test)]
pub(crate) mod enumeration;
pub mod multisets;
pub mod overlaps;
mod tables;
pub mod tuples;

pub use chain::{log_moment, LogMoment};
pub use tuples::Tuples;

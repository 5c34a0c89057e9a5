//! Batches of a fixed size whose record is replaced or set to zero: the largest δ over all adaptive gradients, from both sides.
//!
//! The room takes batches of a fixed size, with noise and numbers of rounds in their order, and gives a curve of upper bounds or of
//! lower bounds on δ(ε). It knows no sampler of another kind, and no composition with other rounds.
//!
//! # The theorem
//!
//! Let q = B/N, and let the class be all pairs P = (1−q)N(u, σ²) + qN(x, σ²), Q = (1−q)N(u, σ²) + qN(x′, σ²) with u, x, x′ in the unit
//! ball of any dimension. With V_0(α) = (1 − α)_+ and
//!
//! `V_t(α) = sup over the class of E_{y~P}[V_{t−1}(α·dQ/dP(y))]`,
//!
//! δ(ε) of T rounds is at most V_T(e^ε), for every ε and both directions, whatever the gradients are.
//!
//! **Proof.** By induction V_t is convex, falls, and V_t(0) = 1: suprema and means keep that. Fix a history, and with it all gradients of
//! the next round. Draw a set W of B − 1 other records, one more other record r, and a coin of probability q: the batch is W and the
//! sensitive record i if the coin shows heads, W and r otherwise. This is a uniform subset of B of N records: i is in it with
//! probability B/N, and the rest is uniform given either. So P and Q of the round are the means over one law of (W, r) of pairs of the
//! class, shifted by the sum over W: u is the gradient of r, x and x′ are those of i in the two data sets. Let a be the state α
//! times the ratio of the likelihoods of the history. p·V(aq/p) is jointly convex in (p, q) for a convex V, so
//! ∫ p V_{t−1}(aq/p) is at most its mean over (W, r), which is at most V_t(a). By induction over the rounds that remain,
//! ∫(p − αq)_+ over all outputs is at most V_T(α). The class contains with (P, Q) the pair (Q, P), by exchanging x and x′, so both
//! directions have one bound, and V(α) = 1 − α + αV(1/α).
//!
//! **A record that is set to zero** has x′ = 0, and the rest of the proof is the same. The pairs (Q, P) are another class, that of an
//! added record, with a V′ of its own: V′_t(α) = sup E_Q[V′_{t−1}(α·dP/dQ)] = 1 − α + αV_t(1/α), since E_Q[f·dP/dQ] = E_P[f] for every
//! pair.
//!
//! **Attained.** In the lower bound all other records contribute u, and gradients are functions of past outputs, so the state
//! α·ΠdQ/dP is known: each round may take the pair that is best for it. Two pairs are used, x at 1 with u = x′ at −1, and u = x at −1
//! with x′ at 1, which gradients in one dimension attain; with x′ = 0, x at 1 and u at −1, and x = u at 1.
//!
//! # Hypotheses
//!
//! * Every round draws a fresh uniform subset of exactly B of N records, independent of all before; a contribution is a function of its
//!   own record and of released outputs only. Both are assumptions that certificates state.
//! * B, σ and the number of rounds are fixed in advance. Stopping earlier is covered: the class contains pairs with P = Q, so
//!   V_t ≥ V_{t−1}.
//! * The size of the data set may be a lower bound: a pair of a smaller q is a mixture of that of q and of N(u) against itself, so V
//!   increases with q, by joint convexity.
//! * 0 < B < N, one record, replaced or set to zero: [`Phase::new`] refuses other sizes; plans refuse other adjacencies.
//! * Rounds that differ are taken in their order: the recursion takes the last one first.
//!
//! # From classes to laws
//!
//! A convex V that falls to 0, with V(0) = 1, is a mixture of functions (1 − α/k)_+. So if the profile of every pair is at most that of
//! a law of some finite set, E_P[V(αdQ/dP)] is at most the largest mean of V(αe^{−L}) over these laws; and a law below the profile of a
//! pair gives less than that pair. The profiles need to be compared at all α > 0, and the laws need no total mass of 1. [`triangles`] has
//! the cover, [`level`] its profiles, [`class`] the laws, [`recursion`] the recursion on a lattice with its errors.
//!
//! Values between the points of the lattice: V is convex in α, so a chord in α is above it; V falls, so it is at least its value at
//! the next point. The curve from below is therefore moved by one point.
//!
//! Source: the recursion over a class is that of Dong, Durfee & Rogers (arXiv:1909.13830) for the exponential mechanism; that worst data
//! sets of one round do not survive composition: Lebeda, Regehr, Kamath & Steinke (arXiv:2405.20769); advanced joint convexity:
//! Balle, Barthe & Gaboardi (arXiv:1807.01647); adaptive optima and the order of rounds: Zhu, Dong & Wang (arXiv:2106.08567), Cesar &
//! Rogers (arXiv:2004.07223).

mod class;
mod level;
mod profile;
mod recursion;
mod run;
#[cfg(test)]
mod tests;
mod triangles;

pub use recursion::Lattice;
pub use run::{above, below, DeltaBounds, Effort, Phase, Target};

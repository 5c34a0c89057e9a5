//! Composition of rounds through privacy loss distributions.
//!
//! This room takes profiles (one for each kind of round), counts and a question, and returns a proven interval for the
//! answer with its error budget. It must not know what mechanism a profile came from.
//!
//! ```text
//! profile ──mesh──▶ nodes on a lattice ──masses──▶ two discrete laws ──compose──▶ two composed laws ──answer──▶ interval
//!           δ, slope              upper and lower hull              tilted FFT                 ε(δ), δ(ε)
//! ```
//!
//! Where the law from below is too low, as that of mechanisms with few outcomes, δ is bounded from below by the law from
//! above, less what that law gains (`from_upper`, for the rounds that `isolated` finds). Where one large loss makes up δ, that loss bounds it (`single_jump`). Where no lattice is fine enough for the losses
//! of most rounds, the rounds are composed without one ([`doubling`]), from the hull above and from [`tangents`] below;
//! so is what is drawn together, as a profile again ([`composition`]).
//! Where losses are bounded, the largest ones bound every answer from both sides (`largest`); where losses are too
//! large for any lattice, bounds on the single rounds do (`basic`).
//!
//! [`check`] has what every law satisfies: each is refused where it is made, if it does not.
//!
//! # Why the result is an interval
//!
//! Composition is monotone in each round's profile: for a fixed loss ℓ of the other rounds the integrand is the profile
//! itself at ε − ℓ, so replacing a profile by one that is larger (smaller) for every α can only raise (lower) the
//! composed δ, whether or not the replacement has total mass one. Each round is therefore replaced by two
//! piecewise-linear convex functions of α, one above and one below its profile, whose kinks lie on one lattice of
//! losses (connect-the-dots, Doroshenko et al. 2022, for the upper one; [`masses`] for the lower). Convex and piecewise
//! linear means: the profile of a finite measure on the lattice. Those measures are composed by FFT under an
//! exponential tilt ([`compose`]), and each approximation made on the way is added to the upper result and subtracted
//! from the lower one.

pub mod answer;
mod basic;
pub mod cells;
mod check;
pub mod compose;
pub mod composition;
pub mod cumulant;
pub mod curve;
pub mod doubling;
mod effort;
mod from_upper;
mod isolated;
mod largest;
pub mod masses;
pub mod mesh;
pub mod offset;
mod question;
pub mod readoff;
mod search;
mod single_jump;
pub mod tangents;
pub mod window;
mod without_lattice;

pub use answer::{Answer, Budget, Query, Round};
pub use curve::{curve, DeltaCurve};
pub use search::answer;

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
//!
//! # What each way buys
//!
//! Each was switched off alone for 161 documents: examples, golden documents, settings of `docs/validation.md`, random
//! documents of all kinds, and Poisson sampling with probabilities from 10⁻⁷ to 10⁻³. How many of them took this way, how
//! many changed without it, in how many an interval became more than half as wide again, and the largest such factor:
//!
//! | way | taken | changed | wider | at most |
//! | --- | --- | --- | --- | --- |
//! | largest losses (`largest`) | 81 | 11 | 6 | 5·10⁷ |
//! | one large loss (`single_jump`) | 86 | 10 | 5 | 10⁶ |
//! | rounds without a lattice ([`doubling`]) | 12 | 7 | 7 | 2·10⁴ |
//! | its law from below from [`tangents`], not from chords | 16 | 13 | 7 | 390 |
//! | its cells after the law of a pass ([`cells::Outline`]) | 9 | 5 | 4 | 180 |
//! | heavy atoms over several scales ([`doubling::Law::spread`]) | 8 | 5 | 3 | 43 |
//! | an offset of the lattice ([`offset`]) | 105 | 53 | 17 | 74 |
//! | room for what a lattice spreads (`search`) | 12 | 9 | 2 | 13 |
//! | heavy tails sketched less far (`question`) | 66 | 43 | 6 | 4.3 |
//! | isolated losses from above (`isolated`, `from_upper`) | 33 | 23 | 2 | 3.2 |
//! | a coarser lattice where that is enough (`search`) | 14 | 11 | 2 | 3.2 |
//!
//! None costs time where it changes nothing (the median of the times without it is within 12 % of that with it). `basic`,
//! and the bound where no sum of losses reaches ε, were not needed by any of them: they answer where everything else
//! fails.

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

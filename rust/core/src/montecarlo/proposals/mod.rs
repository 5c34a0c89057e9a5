//! The proposals that samples come from, and their proven properties: scaled laws, tilts, powers of the likelihood
//! ratio, and mixtures.
//!
//! | file | what it holds |
//! | --- | --- |
//! | [`proposal`] | samples of one scaled law, and the proof that their weights are bounded |
//! | [`replicated`] | samples of a power of the likelihood ratio |
//! | [`proposed`] | a mechanism with the proposal of its samples, alone or together with others |
//! | [`components`], [`tilt`] | mixtures of several proposals, and their components |
//! | [`balanced`] | estimates of δ from mixtures |

pub mod balanced;
pub mod components;
pub mod drawn;
pub mod replicated;
pub mod tilt;
pub mod weight_bounds;

//! Where samples come from, and what is proven about them: scaled laws, tilted ones, powers of the likelihood ratio, and mixtures.
//!
//! | file | what it holds |
//! | --- | --- |
//! | [`proposal`] | samples of one scaled law, and the proof that their weights are bounded |
//! | [`replicated`] | samples of a power of the likelihood ratio |
//! | [`proposed`] | a mechanism and where its samples come from, alone or beside others |
//! | [`components`], [`tilt`] | mixtures of several proposals, and what they are made of |
//! | [`balanced`] | estimates of δ from mixtures |

pub mod balanced;
pub mod components;
pub mod proposal;
pub mod proposed;
pub mod replicated;
pub mod tilt;

//! The proposals that samples come from: scaled laws, powers of the likelihood ratio, and mixtures.
//!
//! | file | what it holds |
//! | --- | --- |
//! | [`drawn`] | several mechanisms with their proposals, and the bounds of their samples |
//! | [`replicated`] | samples of a power of the likelihood ratio |
//! | [`components`] | mixtures of several proposals |
//! | [`balanced`] | estimates of δ from mixtures |

pub mod balanced;
pub mod components;
pub mod drawn;
pub mod replicated;

//! The two profiles of a finite law of the likelihood ratio, computed without cancellation.

use crate::pair::ProfilePoint;
use crate::special::{real, UNIT_ROUNDOFF};

/// A value of the likelihood ratio and its mass under Q.
#[derive(Debug, Clone, Copy)]
pub struct Atom {
    /// x > 0.
    pub value: f64,
    /// Pr_Q[S = x] > 0.
    pub mass: f64,
}

/// A law of S = dP/dQ under Q: atoms by increasing value, a mass at 0, and a mass of P where Q has none.
#[derive(Debug)]
pub struct RatioLaw {
    values: Vec<f64>,
    /// Pr[S ≥ x_k] and E(S − x_k)₊, without the mass at infinity.
    tail: Vec<f64>,
    call: Vec<f64>,
    /// Pr[S ≤ x_k], E[S; S ≤ x_k] and E(x_k − S)₊.
    head: Vec<f64>,
    moment: Vec<f64>,
    put: Vec<f64>,
    nothing: f64,
    beyond: f64,
    /// Bounds on the relative errors of masses, and of values.
    error: f64,
    moved: f64,
}

impl RatioLaw {
    /// Creates the law from atoms by increasing value, a mass at 0 (`nothing`) and a mass at infinity (`beyond`).
    pub fn new(atoms: Vec<Atom>, nothing: f64, beyond: f64, error: f64, moved: f64) -> Self {
        let count = atoms.len();
        let (mut tail, mut call) = (vec![0.0; count], vec![0.0; count]);
        for k in (0..count).rev() {
            let (later, value) = if k + 1 < count { (tail[k + 1], call[k + 1]) } else { (0.0, 0.0) };
            tail[k] = later + atoms[k].mass;
            // E(S − x_k)₊ = E(S − x_{k+1})₊ + (x_{k+1} − x_k)·Pr[S ≥ x_{k+1}]: no term is negative.
            call[k] = if k + 1 < count { value + (atoms[k + 1].value - atoms[k].value) * later } else { 0.0 };
        }
        let (mut head, mut moment, mut put) = (vec![0.0; count], vec![0.0; count], vec![0.0; count]);
        for k in 0..count {
            let (mass, mean, value, step) = if k > 0 {
                (head[k - 1], moment[k - 1], put[k - 1], atoms[k].value - atoms[k - 1].value)
            } else {
                (nothing, 0.0, 0.0, atoms[k].value)
            };
            head[k] = mass + atoms[k].mass;
            moment[k] = mean + atoms[k].mass * atoms[k].value;
            put[k] = value + step * mass;
        }
        let sums = 4.0 * (real(count) + 4.0) * UNIT_ROUNDOFF;
        let values = atoms.into_iter().map(|atom| atom.value).collect();
        Self { values, tail, call, head, moment, put, nothing, beyond, error: error + sums, moved }
    }

    /// Returns the point of the profile E(S − e^ε)₊.
    pub fn remove(&self, epsilon: f64) -> ProfilePoint {
        let (alpha, off) = (epsilon.exp(), self.off(epsilon));
        if !alpha.is_finite() {
            return self.point(self.beyond, [0.0; 3], off);
        }
        let from = |edge: f64| self.values.partition_point(|value| *value <= edge);
        let slope = |edge: f64| self.tail.get(from(edge)).map_or(0.0, |mass| alpha * mass);
        let k = from(alpha);
        let delta = if k < self.values.len() { self.call[k] + (self.values[k] - alpha) * self.tail[k] } else { 0.0 };
        let slopes = [alpha * (1.0 - 2.0 * off), alpha, alpha * (1.0 + 2.0 * off)].map(slope);
        self.point(delta + self.beyond, slopes, off)
    }

    /// Returns the point of the profile E(1 − e^ε S)₊.
    pub fn add(&self, epsilon: f64) -> ProfilePoint {
        let (alpha, edge, off) = (epsilon.exp(), (-epsilon).exp(), self.off(epsilon));
        if !alpha.is_finite() {
            return self.point(self.nothing, [0.0; 3], off);
        }
        let before = |edge: f64| self.values.partition_point(|value| *value < edge);
        let slope = |edge: f64| before(edge).checked_sub(1).map_or(0.0, |last| alpha * self.moment[last]);
        let delta = before(edge).checked_sub(1).map_or(self.nothing, |last| {
            alpha * self.put[last] + (1.0 - alpha * self.values[last]).max(0.0) * self.head[last]
        });
        let slopes = [edge * (1.0 + 2.0 * off), edge, edge * (1.0 - 2.0 * off)].map(slope);
        self.point(delta, slopes, off)
    }

    /// Returns the limit of δ for large ε: the mass where the other law has none.
    pub fn at_infinity(&self, add: bool) -> f64 {
        let mass = if add { self.nothing } else { self.beyond };
        mass * (1.0 - self.error - 1e-12)
    }

    /// Returns a bound on how far values may be from their nominal ones, relatively: equivalent to an error of ε of
    /// this size.
    fn off(&self, epsilon: f64) -> f64 {
        self.moved + UNIT_ROUNDOFF * (16.0 + 4.0 * epsilon.abs())
    }

    /// Returns a point with its errors. The three slopes are: with the values that are almost at the edge, as computed,
    /// and without them. Masses are known to `error`. While values move by `off`, δ changes by at most Pr[L > ε] = δ +
    /// slope per unit, for the largest slope.
    fn point(&self, delta: f64, [most, slope, least]: [f64; 3], off: f64) -> ProfilePoint {
        let relative = self.error + 16.0 * UNIT_ROUNDOFF;
        ProfilePoint {
            delta,
            delta_error: 1.01 * (relative * delta + off * (most + delta)) + 1e-300,
            slope,
            slope_error: 1.01 * ((relative + off) * most + (most - least)) + 1e-300,
            threshold: f64::NAN,
        }
    }
}

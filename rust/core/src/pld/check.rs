//! What every law satisfies, checked where one is made.
//!
//! A law stands for a profile from one side. Whatever the profile is:
//!
//! * Its losses increase, and its masses are finite and not negative.
//! * From above, its masses and that of infinite loss sum to 1: a mass that is missing would be a loss that nobody counts.
//!   From below they sum to 1 at most.
//! * `E[e^{−L}]` is the mass that the other law of its pair has on its outcomes. Let g be its profile, and α₀ the α of the
//!   first node. Left of that g is a line from (0, 1), of slope −`E[e^{−L}]`. From above g ≥ 1 − α, so the mean is at most 1;
//!   from below g ≤ 1 − α at α₀, so it is at least 1.
//! * At every node it is on its side of the profile. From above that is all: the profile is below its chords. From below it
//!   is also below the larger line where the lines of two neighbouring nodes meet.
//! * A product has the product of the masses, from above at least, from below at most; and from above at most the product of
//!   the means of e^{−L}, since a splitting keeps that.
//!
//! A law that breaks one of these by more than its stated errors shows a mistake, and is refused. Nothing is proven by the
//! check; it takes one pass over a law, which is less than making it.

use crate::error::{Error, Result};
use crate::pld::mesh::{Mesh, Node, Side};
use crate::special::{real, UNDERFLOW, UNIT_ROUNDOFF};

fn refused(reason: &'static str) -> Result<()> {
    Err(Error::Numerics { reason })
}

/// Returns the rounding of a sum of so many positive terms, relative to it, with a few roundings in each.
pub(super) fn rounding(terms: usize) -> f64 {
    8.0 * UNIT_ROUNDOFF * (real(terms) + 16.0)
}

/// Atoms of finite loss, and a mass of infinite loss.
#[derive(Debug, Clone, Copy)]
pub(super) struct Atoms<'a> {
    pub loss: &'a [f64],
    pub mass: &'a [f64],
    pub at_infinity: f64,
}

impl Atoms<'_> {
    /// Returns the mass of all losses.
    fn total(self) -> f64 {
        self.mass.iter().sum::<f64>() + self.at_infinity
    }

    /// Returns `E[e^{−(L − start)}]` over finite losses.
    fn mean(self, start: f64) -> f64 {
        self.loss.iter().zip(self.mass).map(|(loss, mass)| mass * (start - loss).exp()).sum()
    }

    /// Refuses losses and masses that are none.
    fn masses(self) -> Result<()> {
        let mut last = f64::NEG_INFINITY;
        for (&loss, &mass) in self.loss.iter().zip(self.mass) {
            if !(loss >= last && loss < f64::INFINITY && (0.0..f64::INFINITY).contains(&mass)) {
                return refused("a law has a mass that is not finite, or below 0, or at no loss");
            }
            last = loss;
        }
        if self.loss.len() != self.mass.len() || !(self.at_infinity >= 0.0 && self.at_infinity < f64::INFINITY) {
            return refused("a law has a mass that is not finite, or below 0, or at no loss");
        }
        Ok(())
    }
}

/// The profile of atoms, read from right to left.
struct Evaluator<'a> {
    atoms: Atoms<'a>,
    /// The number of atoms on the left.
    left: usize,
    at: f64,
    /// δ without infinite loss, and the slope.
    delta: f64,
    slope: f64,
}

impl<'a> Evaluator<'a> {
    fn new(atoms: Atoms<'a>) -> Self {
        Self { atoms, left: atoms.loss.len(), at: f64::INFINITY, delta: 0.0, slope: 0.0 }
    }

    fn step(&mut self, place: f64) {
        if self.slope > 0.0 && place < self.at {
            let fall = -(place - self.at).exp_m1();
            self.delta += self.slope * fall;
            self.slope *= 1.0 - fall;
        }
        self.at = place;
    }

    /// Returns δ at a place that is not right of the last one.
    fn to(&mut self, place: f64) -> f64 {
        while self.left > 0 && self.atoms.loss[self.left - 1] > place {
            self.step(self.atoms.loss[self.left - 1]);
            self.slope += self.atoms.mass[self.left - 1];
            self.left -= 1;
        }
        self.step(place);
        self.delta + self.atoms.at_infinity
    }

    /// Returns how far δ at the place moves if the place, and the losses, are rounded: they are the sums of a position on the mesh
    /// and its `offset`.
    fn moved(&self, offset: f64) -> f64 {
        8.0 * UNIT_ROUNDOFF * (offset.abs() + self.at.abs()) * self.slope
    }

    /// Returns the slope on the left of the place.
    fn slope_on_the_left(&self) -> f64 {
        let there = (0..self.left).rev().take_while(|&k| self.atoms.loss[k] >= self.at);
        self.slope + there.map(|k| self.atoms.mass[k]).sum::<f64>()
    }
}

/// Refuses masses on a mesh that are not on their side of the profile there, or that no law has.
pub(super) fn masses(side: Side, atoms: Atoms<'_>, relative_error: f64, mesh: &Mesh) -> Result<()> {
    let error = relative_error + rounding(mesh.nodes.len());
    match side {
        Side::Upper => above(atoms, mesh, error),
        Side::Lower => {
            let slope = below(atoms, mesh, error)?;
            let trivial = (mesh.offset + mesh.nodes[0].epsilon).exp().min(1.0);
            if slope + error < trivial * (1.0 - error) {
                return refused("a law from below is above 1 − e^ε where the profile begins");
            }
            Ok(())
        }
    }
}

/// Refuses a law from above that is not above the profile at the nodes, or that lacks a mass.
fn above(atoms: Atoms, mesh: &Mesh, error: f64) -> Result<()> {
    atoms.masses()?;
    if (atoms.total() - 1.0).abs() > error {
        return refused("the masses of a law from above do not sum to 1");
    }
    let mut evaluator = Evaluator::new(atoms);
    for node in mesh.nodes.iter().rev() {
        let least = node.point.delta - node.point.delta_error;
        let value = evaluator.to(node.epsilon) * (1.0 + error);
        if value + evaluator.moved(mesh.offset) + UNDERFLOW < least {
            return refused("a law from above is below the profile that it was made of");
        }
    }
    let first = &mesh.nodes[0];
    let start = atoms.loss.first().map_or(first.epsilon, |loss| loss.min(first.epsilon));
    evaluator.to(start);
    let most = (mesh.offset + start).exp() * (1.0 + error) + error + first.point.delta_error;
    if evaluator.slope_on_the_left() > most {
        return refused("a law from above has more mass than 1 under the other law of its pair");
    }
    Ok(())
}

/// Refuses a law from below that is not below the profile at the nodes, and between them, or that has too much mass; returns
/// its slope on the left of the first node.
pub(super) fn below(atoms: Atoms, mesh: &Mesh, error: f64) -> Result<f64> {
    atoms.masses()?;
    if atoms.total() > 1.0 + error {
        refused("the masses of a law from below sum to more than 1")?;
    }
    let mut evaluator = Evaluator::new(atoms);
    let mut exceeds = |place: f64, most: f64| {
        let value = evaluator.to(place) * (1.0 - error);
        value > most + evaluator.moved(mesh.offset) + UNDERFLOW
    };
    let mut after: Option<&Node> = None;
    let mut wrong = false;
    for node in mesh.nodes.iter().rev() {
        if let Some((place, most)) = after.and_then(|right| meeting(node, right)) {
            wrong |= exceeds(place, most.max(atoms.at_infinity));
        }
        wrong |= exceeds(node.epsilon, node.point.delta + node.point.delta_error);
        after = Some(node);
    }
    if wrong {
        refused("a law from below is above the profile that it was made of")?;
    }
    Ok(evaluator.slope_on_the_left())
}

/// Returns where the lines of two neighbouring nodes meet, and the upper end of their errors there; `None` where rounding
/// leaves no such place.
fn meeting(left: &Node, right: &Node) -> Option<(f64, f64)> {
    let (one, other) = (&left.point, &right.point);
    let width = right.epsilon - left.epsilon;
    // These are the distances in α from the left node, in units of that node, and from the right one.
    let share = (-width).exp();
    let over = (one.delta - other.delta - other.slope * -(-width).exp_m1()) / (one.slope - other.slope * share);
    let back = 1.0 - (1.0 + over) * share;
    let inside = over > 0.0 && back > 0.0 && over.is_finite();
    let line = |value: f64, error: f64, slope: f64, slope_error: f64, distance: f64| {
        let fall = slope * distance;
        value - fall + error + slope_error * distance.abs() + 16.0 * UNIT_ROUNDOFF * (value + fall.abs())
    };
    let most = line(one.delta, one.delta_error, one.slope, one.slope_error, over).max(line(
        other.delta,
        other.delta_error,
        other.slope,
        other.slope_error,
        -back,
    ));
    inside.then(|| ((left.epsilon + over.ln_1p()).clamp(left.epsilon, right.epsilon), most))
}

/// Refuses a product of two laws that has lost or gained mass. `error` is the relative error of the sums over the product's
/// cells, whose masses and lower ends are `cells`.
pub(super) fn product(
    side: Side,
    factors: [Atoms; 2],
    product: Atoms,
    error: f64,
    cells: impl Iterator<Item = (f64, f64)>,
) -> Result<()> {
    product.masses()?;
    let terms = factors[0].loss.len() + factors[1].loss.len() + product.loss.len();
    let within = rounding(terms) + 8.0 * error;
    let whole = factors[0].total() * factors[1].total();
    let total = product.total();
    if total > whole * (1.0 + within) + 4.0 * UNDERFLOW {
        return refused("a product of laws has more mass than they have");
    }
    if side == Side::Lower {
        return Ok(());
    }
    if total < whole * (1.0 - within) - 4.0 * UNDERFLOW {
        return refused("a product of laws from above has less mass than they have");
    }
    // Means are taken relative to the smallest loss, so that none overflows.
    let [one, other] = factors.map(|law| law.loss.first().copied().unwrap_or(0.0));
    let start = one + other;
    let mean = factors[0].mean(one) * factors[1].mean(other);
    // The mass at a cell's lower end is known to the error of all of its mass.
    let moved: f64 = cells.map(|(mass, end)| mass * (start - end).exp()).sum();
    let position = 8.0 * UNIT_ROUNDOFF * (start.abs() + one.abs() + other.abs());
    if product.mean(start) > (mean + within * moved) * (1.0 + within + position) + 4.0 * UNDERFLOW {
        return refused("a product of laws from above has more mass than they have under the other law");
    }
    Ok(())
}

/// Refuses a composed law whose tilted entries do not sum to 1 or are below 0 by more than their errors: `sum` and
/// `least` are taken before errors are cut off, `error` is that of the sum and `entry_error` that of an entry.
pub(super) fn entries(sum: f64, least: f64, error: f64, entry_error: f64) -> Result<()> {
    let known = (sum - 1.0).abs() <= error && least >= -entry_error;
    if known || (sum.is_finite() && error.is_infinite()) {
        return Ok(());
    }
    refused("the masses of a composed law do not sum to 1, or one of them is below 0")
}

/// Refuses a law of all rounds from above whose finite mass, raised by its error, and mass of infinite loss are not all.
pub(super) fn accounted(finite: f64, at_infinity: f64) -> Result<()> {
    if finite + at_infinity >= 1.0 - 64.0 * UNIT_ROUNDOFF {
        return Ok(());
    }
    refused("a composed law from above lacks a mass, which is not counted as infinite loss")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pair::discrete::DiscretePair;
    use crate::pair::gaussian::GaussianPair;
    use crate::pair::Profile;
    use crate::pld::masses::Masses;
    use crate::pld::mesh::exact_spacing;
    use crate::pld::tangents::tangents;
    use crate::run::Run;

    fn refusal<T>(found: Result<T>) -> String {
        found.map_or_else(|error| error.to_string(), |_| String::new())
    }

    /// Returns a profile's mesh, with cells that are as wide as this allows.
    fn mesh(profile: &dyn Profile, offset: f64) -> Mesh {
        let ends = Mesh::around(profile, exact_spacing(0.01), offset, (-6.0, 6.0));
        ends.refined(profile, 1 << 10, &Run::default(), |_, right, gap| gap <= 0.1 * right.point.delta).unwrap()
    }

    fn profiles() -> Vec<Box<dyn Profile>> {
        let finite = DiscretePair::new(vec![(0.7, 0.1), (0.25, 0.8), (0.05, 0.0), (0.0, 0.1)]).unwrap();
        let reversed = finite.reversed();
        vec![Box::new(finite), Box::new(reversed), Box::new(GaussianPair::new(1.0, 0.7).unwrap())]
    }

    type Mistake = fn(&mut Masses);

    /// Returns the place of the largest mass.
    fn most(law: &Masses) -> usize {
        (0..law.mass.len()).max_by(|&a, &b| law.mass[a].total_cmp(&law.mass[b])).unwrap()
    }

    fn change(law: &mut Masses, by: f64) {
        let most = most(law);
        law.mass[most] += by;
    }

    /// Moves all finite losses to one of them.
    fn gather(law: &mut Masses, at: usize) {
        let sum = law.mass.iter().sum();
        law.mass.fill(0.0);
        law.mass[at] = sum;
    }

    const NONE: &str = "a mass that is not finite, or below 0, or at no loss";
    const ALWAYS: [(Mistake, &str); 6] = [
        (|law| law.mass[1] = f64::NAN, NONE),
        (|law| law.mass[1] = f64::INFINITY, NONE),
        (|law| law.mass[1] = -1e-9, NONE),
        (|law| law.epsilon.swap(0, 1), NONE),
        (|law| law.epsilon[1] = f64::NAN, NONE),
        (|law| law.at_infinity = f64::NAN, NONE),
    ];
    const ABOVE: [(Mistake, &str); 4] = [
        (|law| change(law, -1e-9), "do not sum to 1"),
        (|law| change(law, 1e-9), "do not sum to 1"),
        // What lies beyond the last loss is counted as infinite loss; here it is forgotten, or counted twice.
        (|law| law.at_infinity = if law.at_infinity > 1e-9 { 0.0 } else { 1e-9 }, "do not sum to 1"),
        (|law| gather(law, 0), "below the profile"),
    ];
    const BELOW: [(Mistake, &str); 4] = [
        (|law| change(law, 2e-9), "sum to more than 1"),
        (|law| change(law, 1e-9), "sum to more than 1"),
        (|law| law.at_infinity += 1e-9, "sum to more than 1"),
        (|law| gather(law, law.mass.len() - 1), "above the profile"),
    ];

    #[test]
    fn a_law_that_lacks_a_mass_or_has_one_that_is_none_is_refused() {
        for profile in profiles() {
            for offset in [0.0, -0.015_625] {
                let mesh = mesh(profile.as_ref(), offset);
                for (side, own) in [(Side::Upper, ABOVE), (Side::Lower, BELOW)] {
                    let right = Masses::new(side, profile.as_ref(), &mesh).unwrap();
                    for (mistake, reason) in ALWAYS.into_iter().chain(own) {
                        let mut wrong = right.clone();
                        mistake(&mut wrong);
                        let refusal = refusal(masses(side, wrong.atoms(), wrong.relative_error, &mesh));
                        assert!(refusal.contains(reason), "{side:?} {profile:?} {reason}: {refusal}");
                    }
                }
            }
        }
    }

    #[test]
    fn a_law_from_below_begins_below_the_line_of_all_outcomes() {
        // Nothing but this line is known on the left of the first node.
        let profile = DiscretePair::new(vec![(1.0, 0.9), (0.0, 0.1)]).unwrap();
        let mesh = mesh(&profile, 0.0);
        let right = Masses::new(Side::Lower, &profile, &mesh).unwrap();
        let one = Masses { index: vec![10], epsilon: vec![0.1], mass: vec![1.0], ..right };
        let refusal = refusal(masses(Side::Lower, one.atoms(), one.relative_error, &mesh));
        assert!(refusal.contains("above 1 − e^ε"), "{refusal}");
    }

    #[test]
    fn the_other_law_has_no_more_mass_than_1() {
        // A law far above this profile may lack mass of the other law, but not have more than 1 of it at smaller losses.
        let nothing = DiscretePair::new(vec![(1.0, 1.0)]).unwrap();
        let seen = mesh(&nothing, 0.0);
        let [finite, ..] = &profiles()[..] else { unreachable!() };
        let mut law = Masses::new(Side::Upper, finite.as_ref(), &mesh(finite.as_ref(), 0.0)).unwrap();
        assert!(masses(Side::Upper, law.atoms(), law.relative_error, &seen).is_ok());
        let most = most(&law);
        law.mass[most] -= 1e-4;
        law.mass.insert(0, 1e-4);
        law.epsilon.insert(0, -36.0);
        let refusal = refusal(masses(Side::Upper, law.atoms(), law.relative_error, &seen));
        assert!(refusal.contains("under the other law"), "{refusal}");
    }

    #[test]
    fn a_law_from_below_is_so_between_the_nodes_too() {
        // The chords of a profile are above it, and touch it at the nodes.
        let profile = GaussianPair::new(1.0, 0.7).unwrap();
        let mesh = mesh(&profile, 0.0);
        let chords = Masses::new(Side::Upper, &profile, &mesh).unwrap();
        let refusal = refusal(masses(Side::Lower, chords.atoms(), chords.relative_error, &mesh));
        assert!(refusal.contains("above the profile"), "{refusal}");
        // Without the wrong cells nothing is wrong: the law of the lines.
        let lines = tangents(&mesh, 0.0).unwrap();
        let checked = |mass: &[f64]| {
            let atoms = Atoms { loss: &lines.loss, mass, at_infinity: 0.0 };
            below(atoms, &mesh, rounding(mesh.nodes.len()))
        };
        assert!(checked(&lines.mass).is_ok());
        for at in 0..lines.mass.len() {
            let mut mass = lines.mass.clone();
            mass[at] += 1e-3;
            assert!(checked(&mass).is_err(), "{at}");
        }
    }

    #[test]
    fn a_product_that_loses_or_gains_mass_is_refused() {
        let (loss, mass) = ([-0.5, 1.0], [0.6, 0.3]);
        let one = Atoms { loss: &loss, mass: &mass, at_infinity: 0.1 };
        let sums = [-1.0, 0.5, 2.0];
        let cells = || [(0.36, -1.0), (0.36, 0.5), (0.09, 2.0)].into_iter();
        let of = |side, loss: &[f64], mass: &[f64], at_infinity| {
            refusal(product(side, [one, one], Atoms { loss, mass, at_infinity }, 1e-15, cells()))
        };
        for side in [Side::Upper, Side::Lower] {
            assert_eq!(of(side, &sums, &[0.36, 0.36, 0.09], 0.19), "");
            assert!(of(side, &sums, &[0.36, 0.36, 0.09], 0.19 + 1e-9).contains("more mass than they have"));
            assert!(of(side, &sums, &[0.36, f64::NAN, 0.09], 0.19).contains("not finite"));
        }
        assert_eq!(of(Side::Lower, &sums, &[0.36, 0.36, 0.08], 0.19), "");
        assert!(of(Side::Upper, &sums, &[0.36, 0.36, 0.08], 0.19).contains("less mass than they have"));
        // Larger losses are allowed from above, smaller ones are not.
        assert_eq!(of(Side::Upper, &[-1.0, 0.5, 2.1], &[0.36, 0.36, 0.09], 0.19), "");
        assert!(of(Side::Upper, &[-1.0, 0.5, 1.9], &[0.36, 0.36, 0.09], 0.19).contains("under the other law"));
    }

    #[test]
    fn composed_laws_account_for_all_mass() {
        assert!(entries(1.0 + 1e-12, -1e-17, 1e-11, 1e-16).is_ok() && entries(0.3, 0.0, f64::INFINITY, 1.0).is_ok());
        for (sum, least) in [(0.999, 0.0), (1.001, 0.0), (1.0, -1e-9), (f64::NAN, 0.0)] {
            assert!(entries(sum, least, 1e-6, 1e-12).is_err(), "{sum} {least}");
        }
        assert!(accounted(0.9, 0.1).is_ok() && accounted(1.0 + 1e-9, 0.0).is_ok());
        assert!(accounted(0.9, 0.1 - 1e-9).is_err() && accounted(f64::NAN, 0.1).is_err());
    }
}

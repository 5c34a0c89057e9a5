//! Rational numbers, for facts that are known without rounding.
//!
//! A document says 0.1 and means the decimal, not the double nearest to it. What follows from such numbers by sums, products
//! and quotients is a rational number, and is kept as one: three losses of 0.1 are 3/10. What needs a logarithm is enclosed.

use num_bigint::BigInt;
use num_traits::{One, ToPrimitive, Zero};

/// A rational number of any size.
pub type Rational = num_rational::BigRational;

/// Two rational numbers between which a number lies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Enclosure {
    /// A lower bound on the number.
    pub at_least: Rational,
    /// An upper bound on the number.
    pub at_most: Rational,
}

impl Enclosure {
    /// Returns the enclosure of a number that is known exactly.
    pub fn exactly(value: Rational) -> Self {
        Self { at_least: value.clone(), at_most: value }
    }

    /// Returns the enclosure between two doubles; `None` unless both are finite and in order.
    pub fn between(at_least: f64, at_most: f64) -> Option<Self> {
        (at_least <= at_most).then_some(())?;
        Some(Self { at_least: Rational::from_float(at_least)?, at_most: Rational::from_float(at_most)? })
    }

    /// Returns doubles that enclose the number; infinite ones beyond the doubles.
    pub fn doubles(&self) -> (f64, f64) {
        // The conversions may be rounded either way. Beyond the doubles they are infinite, which only the outer end may be.
        let mut least = self.at_least.to_f64().unwrap_or(f64::NEG_INFINITY).min(f64::MAX);
        let mut most = self.at_most.to_f64().unwrap_or(f64::INFINITY).max(f64::MIN);
        while Rational::from_float(least).is_some_and(|double| double > self.at_least) {
            least = least.next_down();
        }
        while Rational::from_float(most).is_some_and(|double| double < self.at_most) {
            most = most.next_up();
        }
        (least, most)
    }

    /// Returns the enclosure of 0.
    pub fn zero() -> Self {
        Self::exactly(Rational::zero())
    }

    /// Returns the enclosure of the sum of this number and `count` times another one.
    pub fn plus(&self, other: &Self, count: u64) -> Self {
        let count = Rational::from_integer(BigInt::from(count));
        Self { at_least: &self.at_least + &count * &other.at_least, at_most: &self.at_most + &count * &other.at_most }
    }
}

/// Returns the decimal that a finite double is written as: the shortest one to which no other double is nearer.
///
/// # Panics
/// For a number that is not finite.
pub fn decimal(number: f64) -> Rational {
    let written = format!("{number:e}");
    let (digits, exponent) = written.split_once('e').expect("a finite number in scientific notation");
    let exponent: i32 = exponent.parse().expect("an exponent is an integer");
    let (whole, part) = digits.split_once('.').unwrap_or((digits, ""));
    let mantissa: BigInt = format!("{whole}{part}").parse().expect("digits are an integer");
    let places = exponent - i32::try_from(part.len()).expect("at most 17 digits");
    let power = BigInt::from(10).pow(places.unsigned_abs());
    if places < 0 {
        Rational::new(mantissa, power)
    } else {
        Rational::new(mantissa * power, BigInt::one())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_are_what_is_written() {
        let ratio = |p: i64, q: i64| Rational::new(BigInt::from(p), BigInt::from(q));
        for (number, exact) in [
            (0.1, ratio(1, 10)),
            (-2.5e-3, ratio(-1, 400)),
            (0.0, ratio(0, 1)),
            (1e15, ratio(1_000_000_000_000_000, 1)),
            (123.456, ratio(123_456, 1000)),
            (1.0, ratio(1, 1)),
        ] {
            assert_eq!(decimal(number), exact);
        }
        // Both ends of the doubles.
        assert!(decimal(f64::MIN_POSITIVE) > Rational::zero() && decimal(5e-324) * decimal(1e308) < Rational::one());
    }

    #[test]
    fn sums_are_exact_and_enclosures_in_order() {
        let tenth = Enclosure::exactly(decimal(0.1));
        assert_eq!(Enclosure::zero().plus(&tenth, 3), Enclosure::exactly(decimal(0.3)));
        assert!(Enclosure::between(1.0, 0.5).is_none() && Enclosure::between(0.0, f64::INFINITY).is_none());
        assert!(Enclosure::between(f64::NAN, 1.0).is_none());
        assert_eq!(Enclosure::between(0.5, 0.5).unwrap(), Enclosure::exactly(decimal(0.5)));
        let beyond = Enclosure::exactly(decimal(1e308) * decimal(1e308)).doubles();
        assert!(beyond.0 <= f64::MAX && beyond.1.is_infinite());
        for number in [0.1, 1.0, 1e300, 5e-324, 123.456] {
            let (least, most) = Enclosure::exactly(decimal(number)).doubles();
            assert!(least <= number && number <= most && most - least <= 2.0 * f64::EPSILON * number.max(1e-300));
        }
    }
}

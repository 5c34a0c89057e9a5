//! Multisets of m kinds out of b, numbered without gaps.
//!
//! A multiset is written as its kinds in ascending order, a_1 ≤ … ≤ a_m, each in 0..b. Its number is Σ_i C(a_i + i − 1,
//! i), i = 1..m: with c_i = a_i + i − 1 these are strictly increasing numbers, and this is their position in the
//! combinatorial number system (Knuth, The Art of Computer Programming 4A, 7.2.1.3), so that the C(b + m − 1, m)
//! multisets have the numbers from 0 on, in colexicographic order.

use crate::error::{domain, Result};
use crate::special::real;

/// The numbering of all multisets with `size` elements of `kinds` kinds.
#[derive(Debug, Clone)]
pub struct Multisets {
    kinds: usize,
    size: usize,
    /// C(n, i) at `choose[i·(kinds + size) + n]`, for n < kinds + size and i ≤ size.
    choose: Vec<usize>,
}

/// Returns the number of multisets with `size` elements of `kinds` kinds; `None` if that is `2⁶²` or more.
pub fn number_of(kinds: usize, size: usize) -> Option<usize> {
    let mut number: u128 = 1;
    for i in 1..=size as u128 {
        // This is C(kinds + i − 1, i), exactly: a product of i consecutive numbers is divisible by i!.
        number = number * (kinds as u128 + i - 1) / i;
        if number >= 1 << 62 {
            return None;
        }
    }
    usize::try_from(number).ok()
}

impl Multisets {
    /// Creates the numbering.
    ///
    /// # Errors
    /// [`Error::Domain`] for no kinds, no elements, or more multisets than can be numbered.
    pub fn new(kinds: usize, size: usize) -> Result<Self> {
        let reported = real(size);
        if kinds == 0 || size == 0 || number_of(kinds, size).is_none() {
            let allowed = "at least 1, and so few that their multisets can be numbered";
            return domain("replicas", reported, allowed);
        }
        let width = kinds + size;
        let mut choose = vec![0; (size + 1) * width];
        choose[..width].fill(1);
        for i in 1..=size {
            for n in i..width {
                // Entries that are used are no larger than the number of multisets, and computed from such entries;
                // other entries may saturate.
                let (one, other): (usize, usize) = (choose[(i - 1) * width + n - 1], choose[i * width + n - 1]);
                choose[i * width + n] = one.saturating_add(other);
            }
        }
        Ok(Self { kinds, size, choose })
    }

    /// Returns the number of multisets.
    pub fn count(&self) -> usize {
        self.choose[self.choose.len() - 1]
    }

    /// Returns the amount that the element at position `i` (from 1 on) adds to the number if it is of this kind.
    #[inline]
    pub fn term(&self, kind: usize, i: usize) -> usize {
        self.choose[i * (self.kinds + self.size) + kind + i - 1]
    }

    /// Returns the number of a multiset, given in ascending order.
    pub fn number(&self, elements: &[usize]) -> usize {
        elements.iter().zip(1..).map(|(&kind, i)| self.term(kind, i)).sum()
    }

    /// Writes the multiset with this number into `elements`.
    pub fn write(&self, number: usize, elements: &mut [usize]) {
        let mut rest = number;
        for i in (1..=self.size).rev() {
            let below = (0..self.kinds).rev().find(|&kind| self.term(kind, i) <= rest);
            let kind = below.unwrap_or(0);
            elements[i - 1] = kind;
            rest -= self.term(kind, i);
        }
    }

    /// Changes a multiset to the one with the next number; the last one becomes the first.
    pub fn advance(&self, elements: &mut [usize]) {
        for i in 0..self.size {
            let most = elements.get(i + 1).copied().unwrap_or(self.kinds - 1);
            if elements[i] < most {
                elements[i] += 1;
                elements[..i].fill(0);
                return;
            }
        }
        elements.fill(0);
    }
}

#[cfg(test)]
mod tests {
    use super::{number_of, Multisets};

    #[test]
    fn numbers_are_the_places_in_a_listing() {
        for (kinds, size) in [(1, 1), (1, 4), (2, 3), (3, 2), (4, 4), (6, 3)] {
            let all = Multisets::new(kinds, size).expect("valid");
            assert_eq!(Some(all.count()), number_of(kinds, size));
            let (mut elements, mut written) = (vec![0; size], vec![0; size]);
            for number in 0..all.count() {
                assert!(elements.is_sorted() && elements.iter().all(|&kind| kind < kinds));
                assert_eq!(all.number(&elements), number);
                all.write(number, &mut written);
                assert_eq!(written, elements);
                all.advance(&mut elements);
            }
            assert_eq!(elements, vec![0; size], "the last is followed by the first");
        }
    }

    #[test]
    fn too_many_are_refused() {
        assert_eq!(number_of(256, 3), Some(2_829_056));
        assert_eq!(number_of(1 << 20, 10), None);
        assert!(Multisets::new(1 << 20, 10).is_err());
        assert!(Multisets::new(0, 1).is_err());
    }
}

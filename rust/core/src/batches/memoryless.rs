//! Rounds that do not depend on other rounds: each is drawn from its own stream, in O(batch).
//!
//! Records are numbered from 0, and returned in ascending order, each as often as it was drawn.

use crate::special::real;
use std::collections::HashMap;

use crate::batches::gaps::Gaps;
use crate::batches::uniform::{below, distinct};
use crate::batches::{Streams, Use};
use crate::error::{domain, Result};

/// Draws a Poisson sample: each of n records joins each of m draws with probability p, independently.
///
/// The stream is that of `what`: [`Use::Draw`], or [`Use::Start`] for rounds before the first one. Each draw goes
/// through the records by the gaps between those that join, so that it costs O(1 + pn) words.
///
/// # Errors
/// [`crate::Error::Domain`] for a probability outside of (0, 1].
pub fn poisson(
    streams: &Streams,
    what: Use,
    round: u64,
    records: u64,
    probability: f64,
    draws: u32,
) -> Result<Vec<u64>> {
    let (gaps, mut generator) = (Gaps::new(probability)?, streams.of(what, round));
    let mut batch = Vec::new();
    for _ in 0..draws {
        let mut place = gaps.draw(&mut generator, records);
        while place < records {
            batch.push(place);
            place += 1;
            place += gaps.draw(&mut generator, records - place);
        }
    }
    if draws > 1 {
        batch.sort_unstable();
    }
    Ok(batch)
}

/// Checks that a count is at least `least` and at most `most`.
fn check(name: &'static str, count: u64, least: u64, most: u64) -> Result<()> {
    if (least..=most).contains(&count) {
        return Ok(());
    }
    domain(name, real(count), "at least one record, and as many as are different")
}

/// Draws a uniformly random set of `count` ≤ n records.
///
/// # Errors
/// [`Error::Domain`] if `count` exceeds the number of records.
pub fn without_replacement(streams: &Streams, round: u64, records: u64, count: u64) -> Result<Vec<u64>> {
    check("count", count, 0, records)?;
    let mut batch = distinct(&mut streams.of(Use::Draw, round), records, count);
    batch.sort_unstable();
    Ok(batch)
}

/// Draws `count` independent, uniformly random records.
///
/// # Errors
/// [`Error::Domain`] if there are no records.
pub fn with_replacement(streams: &Streams, round: u64, records: u64, count: u64) -> Result<Vec<u64>> {
    check("records", records, 1, u64::MAX)?;
    let mut generator = streams.of(Use::Draw, round);
    let mut batch: Vec<u64> = (0..count).map(|_| below(&mut generator, records)).collect();
    batch.sort_unstable();
    Ok(batch)
}

/// Makes `count` independent, uniform draws from a subset of `subset` places, which hold different records
/// (`different`, at most n) or independent ones.
///
/// The subset is a random sequence, independent of the places that are drawn from it, and its law does not depend on
/// the order in which its places are looked at: it is uniform among sequences of different records, or of independent
/// ones. So only those places that the batch has are assigned records, which makes it O(count).
///
/// # Errors
/// [`Error::Domain`] without records or places, and for more different records than there are.
pub fn two_stages(
    streams: &Streams,
    round: u64,
    records: u64,
    subset: u64,
    count: u64,
    different: bool,
) -> Result<Vec<u64>> {
    check("records", records, 1, u64::MAX)?;
    check("subset", subset, 1, if different { records } else { u64::MAX })?;
    let mut generator = streams.of(Use::Draw, round);
    let places: Vec<u64> = (0..count).map(|_| below(&mut generator, subset)).collect();
    let mut order: HashMap<u64, usize> = HashMap::new();
    let first: Vec<usize> = places
        .iter()
        .map(|place| {
            let next = order.len();
            *order.entry(*place).or_insert(next)
        })
        .collect();
    let distinct_places = order.len() as u64;
    let looked_at: Vec<u64> = if different {
        distinct(&mut generator, records, distinct_places)
    } else {
        (0..distinct_places).map(|_| below(&mut generator, records)).collect()
    };
    let mut batch: Vec<u64> = first.into_iter().map(|place| looked_at[place]).collect();
    batch.sort_unstable();
    Ok(batch)
}

/// Returns the positions of the records that are kept of a batch of `drawn` records: all, or a uniformly random set of
/// `limit`.
///
/// The set of dropped records is drawn instead of the set of kept records: it is equally uniform, and usually smaller.
pub fn kept(streams: &Streams, round: u64, drawn: u64, limit: u64) -> Vec<u64> {
    if drawn <= limit {
        return (0..drawn).collect();
    }
    let mut out = distinct(&mut streams.of(Use::Keep, round), drawn, drawn - limit);
    out.sort_unstable();
    let mut left = out.into_iter().peekable();
    (0..drawn).filter(|place| left.next_if_eq(place).is_none()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::secret::SecretKey;

    fn streams() -> Streams {
        Streams::new(SecretKey::new([3; 32]))
    }

    /// A round does not depend on other rounds: its stream alone determines it.
    #[test]
    fn rounds_have_streams_of_their_own() {
        let first = poisson(&streams(), Use::Draw, 0, 100_000, 0.01, 1).unwrap();
        assert_eq!(first, poisson(&streams(), Use::Draw, 0, 100_000, 0.01, 1).unwrap());
        assert_ne!(first, poisson(&streams(), Use::Draw, 1, 100_000, 0.01, 1).unwrap());
        assert!(first.windows(2).all(|pair| pair[0] < pair[1]));
        // 1000 ± 31 records.
        assert!((850..1150).contains(&first.len()));
        assert_eq!(poisson(&streams(), Use::Draw, 0, 5, 1.0, 2).unwrap(), [0, 0, 1, 1, 2, 2, 3, 3, 4, 4]);
        assert!(poisson(&streams(), Use::Draw, 0, 5, 0.0, 1).is_err());
    }

    #[test]
    fn batches_have_their_size() {
        for round in 0..50 {
            let batch = without_replacement(&streams(), round, 30, 12).unwrap();
            assert!(batch.windows(2).all(|pair| pair[0] < pair[1]) && batch.len() == 12 && batch[11] < 30);
            assert_eq!(with_replacement(&streams(), round, 30, 40).unwrap().len(), 40);
            let mut few = two_stages(&streams(), round, 30, 3, 40, true).unwrap();
            assert_eq!(few.len(), 40);
            few.dedup();
            assert!(few.len() <= 3);
        }
        assert_eq!(without_replacement(&streams(), 7, 4, 4).unwrap(), [0, 1, 2, 3]);
        assert!(without_replacement(&streams(), 7, 4, 5).is_err() && with_replacement(&streams(), 7, 0, 1).is_err());
        assert!(
            two_stages(&streams(), 7, 4, 5, 2, true).is_err() && two_stages(&streams(), 7, 4, 0, 2, false).is_err()
        );
        assert_eq!(two_stages(&streams(), 7, 4, 5, 2, false).unwrap().len(), 2);
    }

    #[test]
    fn who_is_kept_is_uniform() {
        assert_eq!(kept(&streams(), 0, 3, 3), [0, 1, 2]);
        let mut counts = [0_u32; 5];
        for round in 0..20_000 {
            let places = kept(&streams(), round, 5, 2);
            assert!(places.len() == 2 && places[0] < places[1]);
            for place in places {
                counts[usize::try_from(place).unwrap()] += 1;
            }
        }
        // Each is Bin(20000, 2/5): 8000 ± 69.
        assert!(counts.iter().all(|count| (7700..8300).contains(count)), "{counts:?}");
    }
}

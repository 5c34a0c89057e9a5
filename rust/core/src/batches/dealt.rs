//! Records dealt into slots: each record gets k of t slots, uniformly and independently of the other records.
//!
//! Random allocation deals once for every group of rounds; balls in bins and random parts deal once for a run.

use crate::special::real;
use rand_chacha::ChaCha20Rng;

use crate::batches::gaps::Gaps;
use crate::batches::uniform::below;
use crate::batches::{Streams, Use, MOST_LISTED};
use crate::error::{domain, Error, Result};
use crate::run::Run;

/// The number of records between two checks whether to go on.
const BETWEEN: u64 = 1 << 18;

/// The records of every slot, four bytes for each time that a record was dealt.
#[derive(Debug, Clone)]
pub struct Dealt {
    records: Vec<u32>,
    /// The position where each slot begins, and the position where the last one ends.
    starts: Vec<usize>,
}

impl Dealt {
    /// Deals n records into `taken` different slots out of `slots` each, with the stream of a `deal`.
    ///
    /// For each record the first k steps of a shuffle of the slots are made, starting from the order that the record
    /// before left: that order depends on other draws only, so the k slots are a uniformly random set, independently
    /// for each record. The stream is read twice, to count and to write. In O(nk).
    ///
    /// # Errors
    /// [`Error::Domain`] if more than 2³² − 2 numbers would be listed or `taken` exceeds `slots`; the errors of
    /// [`Run::check`].
    pub fn new(streams: &Streams, deal: u64, records: u64, slots: u64, taken: u64, run: &Run) -> Result<Self> {
        if taken == 0 || taken > slots || slots > MOST_LISTED || records.saturating_mul(taken) > MOST_LISTED {
            let allowed = "at most 2^32 - 2 together, and no more taken than slots";
            return domain("records times slots taken", real(records) * real(taken), allowed);
        }
        let count = place(slots);
        let mut starts = vec![0_usize; count + 1];
        Self::deal(streams, deal, records, count, taken, run, |_, slot| starts[slot + 1] += 1)?;
        for slot in 0..count {
            starts[slot + 1] += starts[slot];
        }
        let mut places = starts.clone();
        let mut listed = vec![0_u32; starts[count]];
        Self::deal(streams, deal, records, count, taken, run, |record, slot| {
            listed[places[slot]] = record;
            places[slot] += 1;
        })?;
        Ok(Self { records: listed, starts })
    }

    fn deal(
        streams: &Streams,
        deal: u64,
        records: u64,
        slots: usize,
        taken: u64,
        run: &Run,
        mut each: impl FnMut(u32, usize),
    ) -> Result<()> {
        let mut generator: ChaCha20Rng = streams.of(Use::Deal, deal);
        let mut order: Vec<usize> = if taken == 1 { Vec::new() } else { (0..slots).collect() };
        for record in 0..records {
            if record % BETWEEN == 0 {
                run.check()?;
            }
            let number = u32::try_from(record).expect("within 32 bits");
            if taken == 1 {
                each(number, place(below(&mut generator, slots as u64)));
                continue;
            }
            for step in 0..place(taken) {
                let other = step + place(below(&mut generator, (slots - step) as u64));
                order.swap(step, other);
                each(number, order[step]);
            }
        }
        Ok(())
    }

    /// Returns the records of a slot, ascending.
    ///
    /// # Errors
    /// [`Error::Domain`] for a slot that does not exist.
    pub fn slot(&self, slot: usize) -> Result<&[u32]> {
        let error = Error::Domain { name: "slot", value: real(slot), allowed: "one of those that were dealt into" };
        let ends = self.starts.get(slot..).and_then(|rest| rest.get(..2)).ok_or(error)?;
        Ok(&self.records[ends[0]..ends[1]])
    }

    /// Returns the records of a slot that join a round, each with probability p and independently; in O(batch).
    ///
    /// # Errors
    /// [`Error::Domain`] for a probability outside of (0, 1], and for a slot that does not exist.
    pub fn sampled(&self, streams: &Streams, round: u64, slot: usize, probability: f64) -> Result<Vec<u64>> {
        let (gaps, mut generator) = (Gaps::new(probability)?, streams.of(Use::Draw, round));
        let (mut rest, mut batch) = (self.slot(slot)?, Vec::new());
        loop {
            let gap = place(gaps.draw(&mut generator, rest.len() as u64));
            let Some(&record) = rest.get(gap) else { return Ok(batch) };
            batch.push(u64::from(record));
            rest = &rest[gap + 1..];
        }
    }
}

/// Converts a number below 2³² to an index.
fn place(number: u64) -> usize {
    usize::try_from(number).expect("within 32 bits")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::secret::SecretKey;
    use std::collections::BTreeMap;

    fn streams() -> Streams {
        Streams::new(SecretKey::new([4; 32]))
    }

    #[test]
    fn every_set_of_slots_is_as_likely_for_every_record() {
        let mut counts: BTreeMap<(u32, Vec<usize>), u32> = BTreeMap::new();
        for deal in 0..12_000 {
            let dealt = Dealt::new(&streams(), deal, 2, 4, 2, &Run::default()).unwrap();
            for record in 0..2 {
                let slots = (0..4).filter(|&slot| dealt.slot(slot).unwrap().contains(&record)).collect();
                *counts.entry((record, slots)).or_default() += 1;
            }
        }
        // Each record has one of six sets of two slots: Bin(12000, 1/6) is 2000 ± 41.
        assert_eq!(counts.len(), 12);
        assert!(counts.values().all(|count| (1830..2170).contains(count)), "{counts:?}");
    }

    #[test]
    fn all_records_are_dealt() {
        for taken in [1, 3] {
            let dealt = Dealt::new(&streams(), 0, 1000, 7, taken, &Run::default()).unwrap();
            let mut seen: Vec<u32> = (0..7).flat_map(|slot| dealt.slot(slot).unwrap().to_vec()).collect();
            assert!((0..7).all(|slot| dealt.slot(slot).unwrap().windows(2).all(|pair| pair[0] < pair[1])));
            seen.sort_unstable();
            assert_eq!(seen.len() as u64, 1000 * taken);
            seen.dedup();
            assert_eq!(seen.len(), 1000);
            assert_eq!(dealt.sampled(&streams(), 9, 2, 1.0).unwrap().len(), dealt.slot(2).unwrap().len());
            assert!(dealt.slot(7).is_err() && dealt.slot(usize::MAX).is_err());
        }
        assert!(Dealt::new(&streams(), 0, 10, 3, 4, &Run::default()).is_err());
        assert!(Dealt::new(&streams(), 0, 1 << 32, 3, 1, &Run::default()).is_err());
        let stopped = Run::default();
        stopped.cancel();
        assert_eq!(Dealt::new(&streams(), 0, 10, 3, 1, &stopped).unwrap_err(), Error::Cancelled);
    }
}

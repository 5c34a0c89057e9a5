//! b-min-sep sampling: while available, a record joins a round with probability p; then it sits out b − 1 rounds.
//!
//! A *unit* is what waits together: a single record, or a user with k records, each of which has a coin in every round
//! in which the user is available; all of them sit out once any of them was drawn. The coins of a unit from some round
//! on form a sequence with k coins for each round, so one geometric number determines the next coin that shows heads:
//! its quotient by k is the round, and the remainder is the record. For each round, a calendar has a list of the units
//! whose next draw falls into it. To draw a round, the calendar takes the round's list, continues the coins of each
//! unit to the end of the round, and enters the unit into the list of its next draw after the wait. This takes O(batch)
//! for each round, 4 bytes for each unit and round, and 4 more for each user.
//!
//! Everything is a function of the key: the states before the first round come from one stream, unit by unit, and the
//! draws of a round come from the stream of that round, for the units of its list in ascending order. So a calendar
//! moves only forward, and an earlier round requires a new start.

use crate::special::real;
use std::collections::hash_map::{Entry, HashMap};

use rand_chacha::ChaCha20Rng;

use crate::batches::coin::Coin;
use crate::batches::gaps::Gaps;
use crate::batches::uniform::below;
use crate::batches::{Streams, Use, MOST_LISTED};
use crate::error::{domain, Result};
use crate::run::Run;

/// The number of units between two checks whether to go on.
const BETWEEN: usize = 1 << 18;

/// The units of a calendar: records that wait together.
#[derive(Debug, Clone)]
pub enum Units {
    /// This many records, each of which is a unit.
    Records(u64),
    /// Users: the records of user i are `records[starts[i]..starts[i + 1]]`, ascending; no record has two users.
    Users {
        /// The position where each user's records begin, and the position where the last user's records end.
        starts: Vec<u32>,
        /// The records, user by user.
        records: Vec<u32>,
    },
}

impl Units {
    /// Creates users from the positions where the records of each begin.
    ///
    /// # Errors
    /// [`Error::Domain`] for positions that do not ascend from 0 to the number of records.
    pub fn users(starts: Vec<u32>, records: Vec<u32>) -> Result<Self> {
        let ends = (starts.first(), starts.last().map(|&end| end as usize));
        if ends == (Some(&0), Some(records.len())) && starts.is_sorted() {
            return Ok(Self::Users { starts, records });
        }
        let allowed = "ascending from 0 to the number of records";
        domain("starts", starts.first().copied().map_or(f64::NAN, f64::from), allowed)
    }

    /// Returns the number of units.
    pub fn count(&self) -> u64 {
        match self {
            Self::Records(count) => *count,
            Self::Users { starts, .. } => starts.len().saturating_sub(1) as u64,
        }
    }

    fn size(&self, unit: usize) -> u32 {
        match self {
            Self::Records(_) => 1,
            Self::Users { starts, .. } => starts[unit + 1] - starts[unit],
        }
    }

    fn record(&self, unit: usize, place: u64) -> u64 {
        match self {
            Self::Records(_) => unit as u64,
            Self::Users { starts, records } => u64::from(records[starts[unit] as usize + index(place)]),
        }
    }
}

/// The parameters of the sampler.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rule {
    /// The number of rounds of the run.
    pub rounds: u64,
    /// b: the minimum distance between two rounds of a unit.
    pub separation: u64,
    /// p: the probability that one available record joins one round.
    pub probability: f64,
    /// Whether units begin in their stationary state (true) or all available (false).
    pub warm: bool,
}

/// The batches of one run, round by round.
#[derive(Debug)]
pub struct Calendar {
    streams: Streams,
    units: Units,
    rule: Rule,
    gaps: Gaps,
    state: State,
}

/// The lists, and the round that comes next.
#[derive(Debug, Clone, Default)]
struct State {
    next: u64,
    /// The first unit of each round's list, and the unit after each unit; plus 1, so that 0 ends a list.
    heads: Vec<u32>,
    after: Vec<u32>,
    /// For users: the position of the record that is drawn first in the user's next draw.
    places: Vec<u32>,
    /// The batch of the round before `next`.
    batch: Vec<u64>,
}

impl Calendar {
    /// Creates the calendar as it is before the first round, in O(units).
    ///
    /// # Errors
    /// [`Error::Domain`] for a probability outside of (0, 1], a separation of 0, and more than 2³² − 2 units or rounds;
    /// the errors of [`Run::check`].
    pub fn new(streams: Streams, units: Units, rule: Rule, run: &Run) -> Result<Self> {
        for (name, value, least) in
            [("units", units.count(), 0), ("rounds", rule.rounds, 0), ("separation", rule.separation, 1)]
        {
            if value < least || value > MOST_LISTED {
                return domain(name, real(value), "at most 2^32 - 2, a separation at least 1");
            }
        }
        let gaps = Gaps::new(rule.probability)?;
        let mut calendar = Self { streams, units, rule, gaps, state: State::default() };
        calendar.state = calendar.begun(run)?;
        Ok(calendar)
    }

    /// Returns the state before the first round.
    ///
    /// With a warm start a unit is available with its stationary probability, and otherwise waits for 1 … b − 1 rounds,
    /// each with the same probability.
    fn begun(&self, run: &Run) -> Result<State> {
        let (count, users) = (index(self.units.count()), matches!(self.units, Units::Users { .. }));
        let mut state = State {
            next: 0,
            heads: vec![0; index(self.rule.rounds)],
            after: vec![0; count],
            places: vec![0; if users { count } else { 0 }],
            batch: Vec::new(),
        };
        let (mut coins, mut generator): (HashMap<u32, Coin>, _) = (HashMap::new(), self.streams.of(Use::Start, 0));
        for unit in 0..count {
            if unit % BETWEEN == 0 {
                run.check()?;
            }
            let (mut waits, size) = (0, self.units.size(unit));
            if self.rule.warm && size > 0 {
                let coin = match coins.entry(size) {
                    Entry::Occupied(known) => known.into_mut(),
                    Entry::Vacant(place) => {
                        place.insert(Coin::available(self.rule.probability, size, self.rule.separation)?)
                    }
                };
                if !coin.heads(&mut generator) {
                    waits = 1 + below(&mut generator, self.rule.separation - 1);
                }
            }
            self.enter(&mut state, &mut generator, unit, waits);
        }
        Ok(state)
    }

    /// Enters a unit that is available from a round on into the list of its next draw, if that is within the run.
    fn enter(&self, state: &mut State, generator: &mut ChaCha20Rng, unit: usize, available: u64) {
        let size = u64::from(self.units.size(unit));
        let coins = self.rule.rounds.saturating_sub(available) * size;
        let tails = self.gaps.draw(generator, coins);
        if tails == coins {
            return;
        }
        let head = &mut state.heads[index(available + tails / size)];
        state.after[unit] = std::mem::replace(head, u32::try_from(unit + 1).expect("within 32 bits"));
        if let Some(place) = state.places.get_mut(unit) {
            *place = u32::try_from(tails % size).expect("below a user's records");
        }
    }

    /// Returns the batch of a round: records in ascending order. Every round from the next one up to this one is drawn,
    /// each in O(batch); for an earlier round the calendar starts from the beginning, in O(units).
    ///
    /// # Errors
    /// [`Error::Domain`] for a round that the run does not have; the errors of [`Run::check`], after which the calendar
    /// can still be used.
    pub fn batch(&mut self, round: u64, run: &Run) -> Result<&[u64]> {
        if round >= self.rule.rounds {
            return domain("round", real(round), "one of the run's");
        }
        if round + 1 < self.state.next {
            self.state = self.begun(run)?;
        }
        while self.state.next <= round {
            run.check()?;
            self.advance();
        }
        Ok(&self.state.batch)
    }

    /// Returns whether a round's batch is known or comes next, so that it takes no long work.
    pub const fn near(&self, round: u64) -> bool {
        round == self.state.next || round + 1 == self.state.next
    }

    /// Draws the next round.
    fn advance(&mut self) {
        let mut state = std::mem::take(&mut self.state);
        let mut generator = self.streams.of(Use::Draw, state.next);
        let mut list = Vec::new();
        let mut head = std::mem::take(&mut state.heads[index(state.next)]);
        while head != 0 {
            list.push(head as usize - 1);
            head = state.after[head as usize - 1];
        }
        list.sort_unstable();
        state.batch.clear();
        for unit in list {
            let size = u64::from(self.units.size(unit));
            let mut place = state.places.get(unit).copied().map_or(0, u64::from);
            while place < size {
                state.batch.push(self.units.record(unit, place));
                place += 1;
                place += self.gaps.draw(&mut generator, size - place);
            }
            let available = state.next + self.rule.separation;
            self.enter(&mut state, &mut generator, unit, available);
        }
        if !state.places.is_empty() {
            state.batch.sort_unstable();
        }
        state.next += 1;
        self.state = state;
    }
}

/// Converts a number below 2³² to an index.
fn index(number: u64) -> usize {
    usize::try_from(number).expect("within 32 bits")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Error;
    use crate::secret::SecretKey;
    use std::collections::BTreeMap;

    fn calendar(seed: u8, units: Units, rule: Rule) -> Calendar {
        Calendar::new(Streams::new(SecretKey::new([seed; 32])), units, rule, &Run::default()).unwrap()
    }

    fn all(calendar: &mut Calendar) -> Vec<Vec<u64>> {
        (0..calendar.rule.rounds).map(|round| calendar.batch(round, &Run::default()).unwrap().to_vec()).collect()
    }

    const RULE: Rule = Rule { rounds: 60, separation: 5, probability: 0.2, warm: true };

    #[test]
    fn participations_are_apart_and_any_order_gives_the_same() {
        let mut calendar = calendar(1, Units::Records(500), RULE);
        let batches = all(&mut calendar);
        let mut last: BTreeMap<u64, usize> = BTreeMap::new();
        for (round, batch) in batches.iter().enumerate() {
            assert!(batch.windows(2).all(|pair| pair[0] < pair[1]));
            for record in batch {
                if let Some(before) = last.insert(*record, round) {
                    assert!(round - before >= 5);
                }
            }
        }
        for round in [59, 3, 3, 4, 17, 0] {
            let index = usize::try_from(round).unwrap();
            assert_eq!(calendar.batch(round, &Run::default()).unwrap(), batches[index], "{round}");
        }
        assert!(calendar.batch(60, &Run::default()).is_err());
        // The mean is 500/(4 + 1/0.2) = 55.6 records per round, from the first round on; binomial, so ± 7.
        let mean = |rounds: &[Vec<u64>]| rounds.iter().map(Vec::len).sum::<usize>() / rounds.len();
        assert!((52..60).contains(&mean(&batches)) && (40..72).contains(&batches[0].len()));
    }

    #[test]
    fn all_of_a_users_records_wait() {
        let users = Units::users(vec![0, 2, 2, 5], vec![4, 7, 0, 1, 9]).unwrap();
        assert!(Units::users(vec![0, 3, 2, 5], vec![0; 5]).is_err() && Units::users(vec![0, 4], vec![0; 5]).is_err());
        let whose = |record: u64| u64::from([0, 1, 9].contains(&record));
        let mut sizes = [0; 4];
        for seed in 0..40 {
            let batches = all(&mut calendar(seed, users.clone(), RULE));
            let mut last: BTreeMap<u64, usize> = BTreeMap::new();
            for (round, batch) in batches.iter().enumerate() {
                assert!(batch.windows(2).all(|pair| pair[0] < pair[1]));
                for record in batch {
                    let before = last.insert(whose(*record), round);
                    assert!(before.is_none_or(|before| before == round || round - before >= 5));
                }
                sizes[batch.iter().filter(|&&record| whose(record) == 1).count()] += 1;
            }
        }
        assert!(sizes[1] > 20 && sizes[2] > 5 && sizes[3] > 0, "{sizes:?}");
    }

    #[test]
    fn what_does_not_fit_is_refused_and_interrupted_work_is_whole() {
        let streams = || Streams::new(SecretKey::new([0; 32]));
        for rule in
            [Rule { probability: 0.0, ..RULE }, Rule { separation: 0, ..RULE }, Rule { rounds: 1 << 32, ..RULE }]
        {
            assert!(Calendar::new(streams(), Units::Records(3), rule, &Run::default()).is_err());
        }
        assert!(Calendar::new(streams(), Units::Records(1 << 32), RULE, &Run::default()).is_err());
        let mut calendar = calendar(9, Units::Records(50), RULE);
        let batches = all(&mut calendar);
        let stopped = Run::default();
        stopped.cancel();
        assert_eq!(calendar.batch(4, &stopped).unwrap_err(), Error::Cancelled);
        assert_eq!(calendar.batch(5, &Run::default()).unwrap(), batches[5]);
    }

    /// p = 1 from a warm start is balls in bins: every record joins once in every b rounds.
    #[test]
    fn certain_draws_repeat_themselves() {
        let rule = Rule { probability: 1.0, separation: 3, rounds: 9, warm: true };
        let batches = all(&mut calendar(2, Units::Records(300), rule));
        assert!((0..6).all(|round| batches[round] == batches[round + 3]));
        assert_eq!(batches[..3].iter().map(Vec::len).sum::<usize>(), 300);
        assert!(batches[..3].iter().all(|batch| (60..140).contains(&batch.len())));
    }
}

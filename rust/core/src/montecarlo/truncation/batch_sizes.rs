//! Draws how many records join: binomial numbers by tables, eight samples side by side, and the sizes of whole batches.
//!
//! m is written in digits of base 256, m = Σ_k d_k 256^k, and Bin(m, p) is a sum of independent Bin(d_k 256^k, p). Each
//! has its own table, built when it is first needed and drawn from by Walker's alias method in whole units of 2⁻⁶³
//! (Vose 1991): one random word, one memory access, no search. Drawing adds no error; the error of the tables is
//! [`crate::laws::exact::variation`].

use crate::special::real;
use std::sync::OnceLock;

use crate::error::{domain, Result};
use crate::laws::exact::{check_width, units, variation, Odds, UNITS};
use crate::montecarlo::stream::{Drawing, Stream};
use crate::vector::{splat, BitLanes, Lanes, Vector, LANES};

/// The bits of a digit, and the number of values of a digit.
const DIGIT: u32 = 8;
const BASE: usize = 1 << DIGIT;
/// The longest separation: waiting records are stored by the round in which they are available again.
const LONGEST: usize = 1_000_000;

/// A cell of an alias table: its own value for the first `threshold` units, the alias for the rest.
#[derive(Debug, Clone, Copy)]
struct Cell {
    threshold: u64,
    alias: u64,
}

/// The law of the number for one digit.
#[derive(Debug, Clone)]
struct Table {
    first: u64,
    /// The number of bits of a word that are left when the cell is chosen.
    shift: u32,
    cells: Vec<Cell>,
    /// Where nearly always nobody joins: the units of 0, of at most 1, and so on, searched one by one. Then there are
    /// no cells.
    cumulative: Vec<u64>,
    /// The first of these cumulative units; 0 where there are cells.
    none: u64,
}

/// A value with at least this share of the units is checked first.
const NEARLY_ALWAYS: u64 = UNITS / 4 * 3;

impl Table {
    fn new(trials: u64, odds: &Odds) -> Self {
        // Either there are no records, or all of them join.
        let (first, mut rest) = if trials == 0 { (0, vec![UNITS]) } else { units(trials, odds) };
        if first == 0 && rest[0] >= NEARLY_ALWAYS {
            let mut sum = 0;
            let cumulative: Vec<u64> = rest
                .iter()
                .map(|units| {
                    sum += units;
                    sum
                })
                .collect();
            return Self { first, shift: 63, cells: Vec::new(), none: cumulative[0], cumulative };
        }
        let size = rest.len().next_power_of_two();
        rest.resize(size, 0);
        let shift = 63 - size.trailing_zeros();
        let full = UNITS >> size.trailing_zeros();
        let mut cells: Vec<Cell> = (0..size as u64).map(|k| Cell { threshold: full, alias: k }).collect();
        let (mut small, mut large): (Vec<usize>, Vec<usize>) = (0..size).partition(|&k| rest[k] < full);
        // All units together fill the cells exactly, so while one cell lacks units another one has too many.
        while let (Some(short), Some(&long)) = (small.pop(), large.last()) {
            cells[short] = Cell { threshold: rest[short], alias: long as u64 };
            rest[long] -= full - rest[short];
            if rest[long] < full {
                large.pop();
                small.push(long);
            }
        }
        Self { first, shift, cells, cumulative: Vec::new(), none: 0 }
    }

    #[inline(always)]
    fn draw(&self, word: u64) -> u64 {
        let units = word >> 1;
        if units < self.none {
            return 0;
        }
        if self.none > 0 {
            // All units are below the last sum, which is 2⁶³.
            return self.cumulative.iter().position(|&below| units < below).unwrap_or(0) as u64;
        }
        #[allow(clippy::cast_possible_truncation)] // the number of a cell
        let place = (units >> self.shift) as usize;
        let cell = self.cells[place];
        // The choice between the two cannot be predicted, so a mask replaces a branch.
        let own = u64::from(units & ((1 << self.shift) - 1) < cell.threshold).wrapping_neg();
        self.first + (cell.alias ^ ((cell.alias ^ place as u64) & own))
    }
}

/// Binomial numbers with one probability, for up to `most` trials.
#[derive(Debug)]
struct Binomials {
    odds: Odds,
    most: u64,
    /// The tables by level k and digit d.
    tables: Vec<Vec<OnceLock<Table>>>,
}

/// Returns how many digits a number has.
fn digits(number: u64) -> usize {
    (64 - number.leading_zeros()).div_ceil(DIGIT) as usize
}

impl Binomials {
    fn new(odds: Odds, most: u64) -> Result<Self> {
        check_width(most, &odds)?;
        let tables = (0..digits(most)).map(|_| (0..BASE).map(|_| OnceLock::new()).collect()).collect();
        Ok(Self { odds, most, tables })
    }

    /// Returns a bound on the total variation of one draw: that of each digit, at the largest digit.
    fn variation(&self) -> f64 {
        let largest = |level: usize| ((BASE as u64 - 1) << (DIGIT * u32::try_from(level).unwrap_or(0))).min(self.most);
        (0..self.tables.len()).map(|level| variation(largest(level), &self.odds)).sum()
    }

    #[inline(always)]
    fn table(&self, level: usize, digit: usize) -> &Table {
        self.tables[level][digit % BASE].get().unwrap_or_else(|| self.build(level, digit))
    }

    /// Builds a table, outside of the drawing. Threads that do so at the same time build the same table, and the first
    /// one is kept: a thread that waited for another one would wait for ever if the process was forked while that
    /// thread was building.
    #[cold]
    #[inline(never)]
    fn build(&self, level: usize, digit: usize) -> &Table {
        let table = Table::new((digit as u64) << (DIGIT as usize * level), &self.odds);
        self.tables[level][digit].get_or_init(|| table)
    }

    /// Draws one number for each lane, for that lane's number of trials.
    #[inline(always)]
    fn draw<V: Vector>(&self, trials: &[u64; LANES], drawing: &mut Drawing<V>) -> [u64; LANES] {
        if self.odds.certain() {
            return *trials;
        }
        let mut drawn = [0; LANES];
        let mut words = BitLanes::default();
        let levels = digits(trials.iter().copied().max().unwrap_or(0));
        for level in 0..levels {
            V::store_bits(drawing.bits(), &mut words);
            let place = DIGIT as usize * level;
            for lane in 0..LANES {
                #[allow(clippy::cast_possible_truncation)] // a digit
                let digit = (trials[lane] >> place) as usize % BASE;
                drawn[lane] += self.table(level, digit).draw(words.0[lane]);
            }
        }
        drawn
    }
}

/// Spreads records over cells uniformly and independently, by repeated halving.
#[derive(Debug)]
struct Spread {
    /// The positions where the halves of a run of cells begin, and the binomials that divide them.
    cuts: Vec<(usize, usize, usize)>,
    halves: Vec<Binomials>,
}

impl Spread {
    fn new(cells: usize, most: u64) -> Result<Self> {
        let mut spread = Self { cuts: Vec::new(), halves: Vec::new() };
        let mut known: Vec<(usize, usize)> = Vec::new();
        let mut open = vec![(0, cells)];
        while let Some((start, length)) = open.pop() {
            if length < 2 {
                continue;
            }
            let (left, right) = (length / 2, length - length / 2);
            // Even runs are cut in halves, which all have the same law.
            let key = if left == right { (1, 1) } else { (left, right) };
            let which = if let Some(which) = known.iter().position(|k| *k == key) {
                which
            } else {
                spread.halves.push(Binomials::new(Odds::ratio(real(key.0), 1.0, real(key.1)), most)?);
                known.push(key);
                known.len() - 1
            };
            spread.cuts.push((start, start + left, which));
            open.push((start, left));
            open.push((start + left, right));
        }
        Ok(spread)
    }

    #[inline(always)]
    fn draw<V: Vector>(&self, total: [u64; LANES], drawing: &mut Drawing<V>, cells: &mut [[u64; LANES]]) {
        if let Some(first) = cells.first_mut() {
            *first = total;
        }
        for &(start, middle, which) in &self.cuts {
            let whole = cells[start];
            let left = self.halves[which].draw(&whole, drawing);
            for lane in 0..LANES {
                cells[middle][lane] = whole[lane] - left[lane];
            }
            cells[start] = left;
        }
    }

    fn variation(&self) -> f64 {
        self.cuts.iter().map(|&(_, _, which)| self.halves[which].variation()).sum()
    }
}

/// A batch that is truncated in some of the lanes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Truncation {
    /// The index of the round, or of the bin.
    pub place: usize,
    /// B/(r + 1), the probability to survive; 0 in lanes where nothing is truncated.
    pub share: Lanes,
    /// 1 − B/(r + 1), rounded separately; 1 in lanes where nothing is truncated.
    pub rest: Lanes,
    /// All ones in the lanes where the batch is truncated.
    pub mask: BitLanes,
}

impl Truncation {
    /// Returns the truncation of a batch with r other records, if there is one in any lane: where r ≥ B.
    #[inline(always)]
    pub fn of(place: usize, other_records: &[u64; LANES], limit: u64) -> Option<Self> {
        if other_records.iter().all(|&r| r < limit) {
            return None;
        }
        let mut truncation = Self { place, share: splat(0.0), rest: splat(1.0), mask: BitLanes::default() };
        for lane in 0..LANES {
            let r = other_records[lane];
            if r >= limit {
                // The numbers are below 2⁵³, so the quotients have one rounding.
                let (size, kept, left) = (real(r + 1), real(limit), real(r + 1 - limit));
                truncation.share[lane] = kept / size;
                truncation.rest[lane] = left / size;
                truncation.mask.0[lane] = u64::MAX;
            }
        }
        Some(truncation)
    }
}

/// Buffers of one worker.
#[derive(Debug, Clone, Default)]
pub struct SizeScratch {
    cells: Vec<[u64; LANES]>,
    /// The truncated batches of the last draw, by increasing index.
    pub truncations: Vec<Truncation>,
}

/// The batch sizes of the other records under b-min-sep sampling: r_i ~ Bin(A_i, p), A_{i+1} = A_i − r_i + r_{i−b+1}.
///
/// A record that was drawn waits b − 1 rounds whether or not it survived truncation, so truncation does not change the
/// pool. With a warm start each record is available at first with probability 1/(1 + (b−1)p) and otherwise waits a
/// number of rounds that is uniform on 1…b−1: their number is binomial, and they are spread over the rounds.
#[derive(Debug)]
pub struct RoundSizes {
    other_records: u64,
    rounds: usize,
    separation: usize,
    limit: u64,
    joins: Binomials,
    start: Option<(Binomials, Spread)>,
}

/// The batch sizes of the other records for balls in bins.
#[derive(Debug)]
pub struct BinSizes {
    other_records: u64,
    bins: usize,
    limit: u64,
    spread: Spread,
}

/// Checks that the size of a data set and of the largest batch can be handled.
fn check_size(dataset_size: u64, limit: u64) -> Result<()> {
    const EXACT: u64 = 1 << 52;
    if dataset_size == 0 || dataset_size > EXACT {
        return domain("dataset_size", real(dataset_size), "between 1 and 2^52");
    }
    if limit == 0 {
        return domain("truncate_to", 0.0, "at least 1");
    }
    Ok(())
}

impl RoundSizes {
    /// Creates the process for a data set of this size, which includes the sensitive record.
    ///
    /// # Errors
    /// [`Error::Domain`] for an empty data set, a largest batch of 0, and batches whose size varies too much.
    pub fn new(
        dataset_size: u64,
        limit: u64,
        rounds: usize,
        separation: usize,
        sampling_probability: f64,
        warm: bool,
    ) -> Result<Self> {
        check_size(dataset_size, limit)?;
        let other_records = dataset_size - 1;
        let joins = Binomials::new(Odds::of(sampling_probability), other_records)?;
        if separation > LONGEST {
            let name = "min_separation";
            return domain(name, real(separation), "at most 1,000,000 where batches are truncated");
        }
        let start = if warm && separation > 1 {
            let odds = Odds::ratio(real(separation) - 1.0, sampling_probability, 1.0);
            Some((Binomials::new(odds, other_records)?, Spread::new(separation - 1, other_records)?))
        } else {
            None
        };
        Ok(Self { other_records, rounds, separation, limit, joins, start })
    }

    /// Returns whether any batch can be truncated.
    pub fn can_truncate(&self) -> bool {
        self.other_records >= self.limit
    }

    /// Returns a bound on the total variation between the law of all batch sizes of a sample and the drawn one.
    pub fn variation(&self) -> f64 {
        let draws = real(self.rounds);
        let start = self.start.as_ref().map_or(0.0, |(waiting, spread)| waiting.variation() + spread.variation());
        draws * self.joins.variation() + start
    }

    /// Draws the batch sizes of eight samples, round by round, and passes each to `see`.
    #[inline(always)]
    fn each<V: Vector>(
        &self,
        stream: &mut Stream,
        cells: &mut Vec<[u64; LANES]>,
        mut see: impl FnMut(usize, &[u64; LANES]),
    ) {
        let mut drawing = stream.take::<V>();
        let b = self.separation;
        // The records that become available in round i are at i mod b.
        cells.clear();
        cells.resize(b, [0; LANES]);
        let mut pool = [self.other_records; LANES];
        if let Some((waiting, spread)) = &self.start {
            let waiting = waiting.draw(&pool, &mut drawing);
            for lane in 0..LANES {
                pool[lane] -= waiting[lane];
            }
            spread.draw(waiting, &mut drawing, &mut cells[1..]);
        }
        let mut turn = 0;
        for round in 0..self.rounds {
            let back = &mut cells[turn];
            for lane in 0..LANES {
                pool[lane] += back[lane];
            }
            *back = self.joins.draw(&pool, &mut drawing);
            for lane in 0..LANES {
                pool[lane] -= back[lane];
            }
            see(round, back);
            turn = if turn + 1 == b { 0 } else { turn + 1 };
        }
        stream.put_back(drawing);
    }

    /// Draws the batch sizes of eight samples and keeps the truncated rounds.
    #[inline(always)]
    pub fn draw<V: Vector>(&self, stream: &mut Stream, scratch: &mut SizeScratch) {
        let SizeScratch { cells, truncations } = scratch;
        truncations.clear();
        if self.can_truncate() {
            self.each::<V>(stream, cells, |round, other_records| {
                truncations.extend(Truncation::of(round, other_records, self.limit));
            });
        }
    }

    /// Returns the sizes themselves, lane by lane.
    #[inline(always)]
    pub fn show<V: Vector>(&self, stream: &mut Stream) -> Vec<Vec<u64>> {
        let mut shown = vec![Vec::new(); LANES];
        self.each::<V>(stream, &mut Vec::new(), |_, other_records| {
            shown.iter_mut().zip(other_records).for_each(|(lane, r)| lane.push(*r));
        });
        shown
    }

    /// Returns the truncations that follow from given sizes, lane by lane.
    pub fn given(&self, sizes: &[Vec<u64>]) -> Vec<Truncation> {
        given(sizes, self.rounds, self.limit)
    }
}

impl BinSizes {
    /// Creates the process for a data set of this size, which includes the sensitive record.
    ///
    /// # Errors
    /// As [`RoundSizes::new`].
    pub fn new(dataset_size: u64, limit: u64, bins: usize) -> Result<Self> {
        check_size(dataset_size, limit)?;
        let other_records = dataset_size - 1;
        Ok(Self { other_records, bins, limit, spread: Spread::new(bins, other_records)? })
    }

    /// Returns whether any batch can be truncated.
    pub fn can_truncate(&self) -> bool {
        self.other_records >= self.limit
    }

    /// Returns a bound on the total variation between the law of all batch sizes of a sample and the drawn one.
    pub fn variation(&self) -> f64 {
        self.spread.variation()
    }

    /// Draws the batch sizes of eight samples and keeps the truncated bins.
    #[inline(always)]
    pub fn draw<V: Vector>(&self, stream: &mut Stream, scratch: &mut SizeScratch) {
        scratch.truncations.clear();
        if !self.can_truncate() {
            return;
        }
        self.spread_all::<V>(stream, &mut scratch.cells);
        let sizes = scratch.cells.iter().enumerate();
        scratch
            .truncations
            .extend(sizes.filter_map(|(bin, other_records)| Truncation::of(bin, other_records, self.limit)));
    }

    #[inline(always)]
    fn spread_all<V: Vector>(&self, stream: &mut Stream, cells: &mut Vec<[u64; LANES]>) {
        let mut drawing = stream.take::<V>();
        cells.clear();
        cells.resize(self.bins, [0; LANES]);
        self.spread.draw([self.other_records; LANES], &mut drawing, cells);
        stream.put_back(drawing);
    }

    /// Returns the sizes themselves, lane by lane.
    #[inline(always)]
    pub fn show<V: Vector>(&self, stream: &mut Stream) -> Vec<Vec<u64>> {
        let mut cells = Vec::new();
        self.spread_all::<V>(stream, &mut cells);
        (0..LANES).map(|lane| cells.iter().map(|cell| cell[lane]).collect()).collect()
    }

    /// Returns the truncations that follow from given sizes, lane by lane.
    pub fn given(&self, sizes: &[Vec<u64>]) -> Vec<Truncation> {
        given(sizes, self.bins, self.limit)
    }
}

fn given(sizes: &[Vec<u64>], places: usize, limit: u64) -> Vec<Truncation> {
    let at = |place: usize| std::array::from_fn(|lane| sizes.get(lane).map_or(0, |lane| lane[place]));
    (0..places).filter_map(|place| Truncation::of(place, &at(place), limit)).collect()
}

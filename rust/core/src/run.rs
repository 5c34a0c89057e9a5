//! Interruptible calls, which all long work runs in: cancellation, a deadline, and a pool of the requested size.
//!
//! Work receives a [`Run`] and calls [`Run::check`] between its stages (at least every few hundred milliseconds). The
//! call does not know what the work is; the work does not know which thread waits for it.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::Arc;
use std::time::Instant;

use crate::error::{Error, Result};
use crate::process::PerProcess;

/// The state of one piece of long work, as the work sees it: whether it should continue.
///
/// It also counts work, in cells: an entry of a transform is one, and so is a pair of atoms of a product. The count does not
/// depend on the machine or on the number of threads, so what is decided by it does not either, as long as no other thread
/// works for the same count at that time.
#[derive(Debug, Clone, Default)]
pub struct Run {
    cancelled: Arc<AtomicBool>,
    deadline: Option<Instant>,
    work: Arc<Work>,
}

/// The cells that some work took so far, and the largest number that it should take, if there is one.
#[derive(Debug, Default)]
struct Work {
    cells: AtomicU64,
    most: Option<u64>,
    /// Whether something was left out, or made coarser, because of `most`.
    coarser: AtomicBool,
}

/// The number of cells that the value of a profile counts as: it takes about as long as that many entries of a transform.
pub const EVALUATION: u64 = 32;

impl Run {
    /// Creates a run that ends with [`Error::TimeLimit`] once `deadline` has passed.
    pub fn with_deadline(deadline: Option<Instant>) -> Self {
        Self { deadline, ..Self::default() }
    }

    /// Returns the same run for work that is counted by itself, and should take at most this many cells.
    pub fn counted(&self, most: Option<u64>) -> Self {
        Self { work: Arc::new(Work { most, ..Work::default() }), ..self.clone() }
    }

    /// Counts these cells.
    pub fn count(&self, cells: u64) {
        self.work.cells.fetch_add(cells, Ordering::Relaxed);
    }

    /// Returns the number of cells counted so far.
    pub fn cells(&self) -> u64 {
        self.work.cells.load(Ordering::Relaxed)
    }

    /// Returns the number of cells that are left of what the work should take; `None` if it may take any number.
    pub fn left(&self) -> Option<u64> {
        self.work.most.map(|most| most.saturating_sub(self.cells()))
    }

    /// Records that something was left out, or made coarser, because of the number of cells that are left.
    pub fn record_coarser(&self) {
        self.work.coarser.store(true, Ordering::Relaxed);
    }

    /// Returns whether something was left out, or made coarser, because of the number of cells that were left.
    pub fn coarser(&self) -> bool {
        self.work.coarser.load(Ordering::Relaxed)
    }

    /// Asks the work to stop at its next check. It can be called from any thread.
    pub fn cancel(&self) {
        self.cancelled.store(true, Ordering::Relaxed);
    }

    /// Returns `Ok` if the work should continue, and otherwise the reason to stop.
    ///
    /// # Errors
    /// [`Error::Cancelled`] after [`Run::cancel`], [`Error::TimeLimit`] after the deadline.
    pub fn check(&self) -> Result<()> {
        if self.cancelled.load(Ordering::Relaxed) {
            return Err(Error::Cancelled);
        }
        match self.deadline {
            Some(deadline) if Instant::now() >= deadline => Err(Error::TimeLimit),
            _ => Ok(()),
        }
    }
}

/// Pools by the requested number of workers. Workers do not survive a fork, so every process has its own.
static POOLS: PerProcess<BTreeMap<usize, Arc<rayon::ThreadPool>>> = PerProcess::new();

/// Returns this process's pool with `threads` workers (0: one for each core), which is built at first use and kept.
///
/// # Errors
/// [`Error::Machine`] when the operating system refuses the threads.
pub fn pool(threads: usize) -> Result<Arc<rayon::ThreadPool>> {
    POOLS.with(|pools| {
        if let Some(pool) = pools.get(&threads) {
            return Ok(Arc::clone(pool));
        }
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .thread_name(|i| format!("pyaccount-{i}"))
            .build()
            .map_err(|error| Error::Machine { what: "to start the worker threads", cause: error.to_string() })?;
        let pool = Arc::new(pool);
        pools.insert(threads, Arc::clone(&pool));
        Ok(pool)
    })
}

/// Drops this pool, because its workers are occupied by work that does not end: the next call gets new ones.
pub fn give_up(pool: &Arc<rayon::ThreadPool>) {
    POOLS.with(|pools| pools.retain(|_, kept| !Arc::ptr_eq(kept, pool)));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_is_counted_by_itself_for_each_part() {
        let whole = Run::default();
        let part = whole.counted(Some(100));
        part.count(70);
        part.clone().count(50);
        assert_eq!((part.cells(), part.left(), whole.cells(), whole.left()), (120, Some(0), 0, None));
        part.record_coarser();
        assert!(part.coarser() && !whole.coarser());
        whole.cancel();
        assert!(matches!(part.check(), Err(Error::Cancelled)));
    }
}

//! Interruptible calls, which all long work runs in: cancellation, a deadline, and a pool of the requested size.
//!
//! Work receives a [`Run`] and calls [`Run::check`] between its stages (at least every few hundred milliseconds). The
//! call does not know what the work is; the work does not know which thread waits for it.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::time::Instant;

use crate::error::{Error, Result};
use crate::process::PerProcess;

/// The state of one piece of long work, as the work sees it: whether it should continue.
#[derive(Debug, Clone, Default)]
pub struct Run {
    cancelled: Arc<AtomicBool>,
    deadline: Option<Instant>,
}

impl Run {
    /// Creates a run that ends with [`Error::TimeLimit`] once `deadline` has passed.
    #[must_use]
    pub fn with_deadline(deadline: Option<Instant>) -> Self {
        Self { cancelled: Arc::default(), deadline }
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

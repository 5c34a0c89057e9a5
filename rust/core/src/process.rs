//! What a process keeps for itself, such as the threads of a pool: a process that is forked off begins with nothing.
//!
//! A fork copies memory and one thread, the one that forks. So in the child the workers of every pool are gone, and a lock that
//! another thread held at that moment stays locked for ever. Neither can be seen on the lock or on the pool. Therefore every
//! process has a lock of its own, found by the process's number without waiting for anybody, and what its parent kept is never
//! touched again: not locked, not used, and not dropped either, since dropping would wait for threads or free what they hold.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// How many processes of one line of descent can keep something; those beyond keep nothing, and only take longer.
const LINE: usize = 32;

/// How often this process or its ancestors have said that they are new.
static FORKS: AtomicU32 = AtomicU32::new(0);

/// Say that this process was forked off just now.
///
/// Nothing depends on it but that a child which got the number of an ancestor that has ended is not taken for it. So it does
/// no harm that libraries which fork by themselves do not say so.
pub fn forked() {
    FORKS.fetch_add(1, Ordering::Relaxed);
}

/// What tells this process from those that it comes from. Never 0: no process that runs programs has that number.
#[must_use]
pub fn this_process() -> u64 {
    u64::from(FORKS.load(Ordering::Relaxed)) << 32 | u64::from(std::process::id())
}

/// One value for each process, made at its first use.
#[derive(Debug)]
pub struct PerProcess<T> {
    /// Those of a process's ancestors first. A place that is not claimed has the process 0 and was never locked.
    places: [Place<T>; LINE],
}

#[derive(Debug)]
struct Place<T> {
    process: AtomicU64,
    kept: Mutex<Option<T>>,
}

impl<T: Default> PerProcess<T> {
    /// Nothing is kept yet.
    #[must_use]
    #[allow(clippy::new_without_default)] // it stands in statics alone, which have no use for `default`
    pub const fn new() -> Self {
        Self { places: [const { Place { process: AtomicU64::new(0), kept: Mutex::new(None) } }; LINE] }
    }

    /// Do `work` with what this process keeps, which other threads of it wait for.
    pub fn with<R>(&self, work: impl FnOnce(&mut T) -> R) -> R {
        let own = this_process();
        let claimed = |place: &&Place<T>| {
            let before = place.process.compare_exchange(0, own, Ordering::AcqRel, Ordering::Acquire);
            before.is_ok() || before == Err(own)
        };
        match self.places.iter().find(claimed) {
            // Only threads of this process ever lock it.
            Some(place) => work(place.kept.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert_default()),
            None => work(&mut T::default()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_keeps_one_value_and_leaves_its_parents_alone() {
        let kept: PerProcess<Vec<u64>> = PerProcess::new();
        // Of a parent, one of whose threads was at it when it forked.
        kept.places[0].process.store(this_process() + 1, Ordering::Relaxed);
        let _held = kept.places[0].kept.lock();
        kept.with(|all| all.push(1));
        kept.with(|all| all.push(2));
        assert_eq!(kept.with(|all| all.clone()), [1, 2]);
        assert_eq!(kept.places[1].process.load(Ordering::Relaxed), this_process());
        assert_eq!(kept.places[2].process.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn the_last_of_a_long_line_keeps_nothing() {
        let kept: PerProcess<Vec<u64>> = PerProcess::new();
        for place in &kept.places {
            place.process.store(this_process() + 1, Ordering::Relaxed);
        }
        kept.with(|all| all.push(1));
        assert_eq!(kept.with(|all| all.len()), 0);
    }
}

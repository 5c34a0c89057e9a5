//! Values that each process keeps for itself, such as the threads of a pool: a process that is forked off starts
//! without them.
//!
//! A fork copies memory and one thread, the one that forks. So in the child the workers of every pool are gone, and a
//! lock that another thread held at that moment stays locked for ever. Neither can be detected from the lock or the
//! pool. Therefore every process has its own lock, which is found by the process's number without waiting for another
//! thread, and the child never touches what its parent kept: it does not lock, use or drop it, since dropping would
//! wait for threads or free what they hold.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// The number of processes of one line of descent that can keep a value; further ones keep nothing, and are only
/// slower.
const LINE: usize = 32;

/// The number of times that this process or its ancestors have called [`forked`].
static FORKS: AtomicU32 = AtomicU32::new(0);

/// Records that this process was forked off just now.
///
/// It only ensures that a child which got the number of an ancestor that has ended is not mistaken for it. So libraries
/// that fork without calling it do no harm.
pub fn forked() {
    FORKS.fetch_add(1, Ordering::Relaxed);
}

/// Returns a number that distinguishes this process from its ancestors. It is never 0: no process that runs programs
/// has that number.
pub fn this_process() -> u64 {
    u64::from(FORKS.load(Ordering::Relaxed)) << 32 | u64::from(std::process::id())
}

/// One value for each process, made at its first use.
#[derive(Debug)]
pub struct PerProcess<T> {
    /// The slots, those of a process's ancestors first. A slot that is not claimed has the process 0 and was never
    /// locked.
    places: [Place<T>; LINE],
}

#[derive(Debug)]
struct Place<T> {
    process: AtomicU64,
    kept: Mutex<Option<T>>,
}

impl<T: Default> PerProcess<T> {
    /// Creates the value, empty in every process.
    #[allow(clippy::new_without_default)] // it stands in statics alone, which have no use for `default`
    pub const fn new() -> Self {
        Self { places: [const { Place { process: AtomicU64::new(0), kept: Mutex::new(None) } }; LINE] }
    }

    /// Does `work` with the value of this process, while its other threads wait for the lock.
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
        // This slot belongs to a parent, one of whose threads held the lock when it forked.
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

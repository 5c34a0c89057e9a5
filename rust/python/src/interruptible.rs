//! The interruptible call, which runs all long work: without the interpreter lock, on a pool, while watching for
//! signals.

use std::cell::RefCell;
use std::panic::{catch_unwind, resume_unwind, AssertUnwindSafe};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{sync_channel, RecvTimeoutError};
use std::sync::Arc;
use std::time::{Duration, Instant};

use pyaccount_core::process::this_process;
use pyaccount_core::run::{give_up, pool, Run};
use pyaccount_core::{Error, Result};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::errors::raise;

thread_local! {
    /// The flags by which other threads stop the calls of this thread.
    static CANCELLATION: RefCell<Vec<Arc<AtomicBool>>> = const { RefCell::new(Vec::new()) };
    /// The deadlines of this thread's work; the last one counts.
    static DEADLINE: RefCell<Vec<Option<Instant>>> = const { RefCell::new(Vec::new()) };
}

/// While it is entered, calls of this thread end as soon as another thread has called `cancel`.
#[pyclass(frozen, module = "pyaccount._core")]
#[derive(Debug, Default)]
pub struct Cancellation(Arc<AtomicBool>);

#[pymethods]
impl Cancellation {
    #[new]
    fn new() -> Self {
        Self::default()
    }

    fn cancel(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    #[getter]
    fn cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Raises, as an interruptible call would, if a cancellation that this thread has entered was cancelled.
    #[staticmethod]
    fn check() -> PyResult<()> {
        if cancelled() {
            return Err(raise(Error::Cancelled));
        }
        if remaining() == Some(0.0) {
            return Err(raise(Error::TimeLimit));
        }
        Ok(())
    }

    fn __enter__(&self) {
        CANCELLATION.with_borrow_mut(|all| all.push(Arc::clone(&self.0)));
    }

    #[pyo3(signature = (*_exception))]
    #[allow(clippy::unused_self)] // what a context manager is asked for
    fn __exit__(&self, _exception: &Bound<'_, PyTuple>) {
        CANCELLATION.with_borrow_mut(Vec::pop);
    }
}

/// While it is entered, it limits the time of this thread's work: of calls that are given no time limit, and of loops
/// that `check`.
#[pyclass(frozen, module = "pyaccount._core")]
#[derive(Debug)]
pub struct Deadline(Option<Instant>);

#[pymethods]
impl Deadline {
    #[new]
    fn new(seconds: Option<f64>) -> Self {
        Self(seconds.map(after))
    }

    fn __enter__(&self) {
        DEADLINE.with_borrow_mut(|all| all.push(self.0));
    }

    #[pyo3(signature = (*_exception))]
    #[allow(clippy::unused_self)] // what a context manager is asked for
    fn __exit__(&self, _exception: &Bound<'_, PyTuple>) {
        DEADLINE.with_borrow_mut(Vec::pop);
    }
}

/// Returns the instant this many seconds from now.
fn after(seconds: f64) -> Instant {
    Instant::now() + Duration::from_secs_f64(seconds.clamp(0.0, 1e9))
}

/// Returns the seconds until the deadline that this thread has entered, if there is one.
pub fn remaining() -> Option<f64> {
    let deadline = DEADLINE.with_borrow(|all| all.last().copied().flatten());
    deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()).as_secs_f64())
}

/// Returns whether another thread has cancelled this thread's calls.
fn cancelled() -> bool {
    CANCELLATION.with_borrow(|all| all.iter().any(|one| one.load(Ordering::Relaxed)))
}

/// How long the calling thread sleeps between two checks for pending signals.
const SLICE: Duration = Duration::from_millis(100);

/// How long to wait for work that was cancelled or that is past its time limit. Work checks every few hundred
/// milliseconds; work that checks more rarely, or never, or that cannot be reached any more, delays nobody.
const PATIENCE: Duration = Duration::from_millis(400);

/// Runs `work` on the pool with `threads` workers while this thread waits, and stops it on a signal or at the time
/// limit.
///
/// When a signal handler raises (Ctrl-C), or another thread cancels, the work is cancelled, waited for and dropped, and
/// the exception propagates. That wait is bounded, and so is the wait for work that should have noticed its time limit:
/// work that does not end by then is left behind, together with the pool that it occupies, and ends at its next check.
pub fn call<T, W>(py: Python<'_>, threads: usize, time_limit: Option<f64>, work: W) -> PyResult<T>
where
    T: Send + 'static,
    W: FnOnce(&Run) -> Result<T> + Send + 'static,
{
    let deadline = time_limit.map(after);
    let run = Run::with_deadline(deadline);
    let pool = pool(threads).map_err(raise)?;
    if cancelled() {
        return Err(raise(Error::Cancelled));
    }
    let (sender, mut receiver) = sync_channel(1);
    let (inside, begun) = (run.clone(), Arc::new(AtomicBool::new(false)));
    let begins = Arc::clone(&begun);
    pool.spawn(move || {
        begins.store(true, Ordering::Relaxed);
        // The work may have been cancelled while it waited for a worker.
        let outcome = catch_unwind(AssertUnwindSafe(|| inside.check().and_then(|()| work(&inside))));
        // If the calling thread has given up, the receiver is gone and the outcome is not needed.
        drop(sender.send(outcome));
    });
    let process = this_process();
    loop {
        let (returned, message) = py.detach(move || {
            let message = receiver.recv_timeout(SLICE);
            (receiver, message)
        });
        receiver = returned;
        match message {
            Ok(Ok(outcome)) => return outcome.map_err(raise),
            Ok(Err(panic)) => resume_unwind(panic),
            Err(RecvTimeoutError::Disconnected) => return Err(raise(Error::Cancelled)),
            Err(RecvTimeoutError::Timeout) => {}
        }
        let late = deadline.is_some_and(|deadline| Instant::now() >= deadline + PATIENCE);
        let stop = if cancelled() {
            Err(raise(Error::Cancelled))
        } else if late {
            Err(raise(Error::TimeLimit))
        } else {
            py.check_signals()
        };
        if this_process() != process {
            // A signal handler has forked, and this is the child: it has no workers, and therefore no work to wait for.
            return stop.and(Err(raise(Error::Machine {
                what: "to go on with a call in the middle of which the process was forked",
                cause: "its threads belong to the process that it comes from".into(),
            })));
        }
        if let Err(reason) = stop {
            run.cancel();
            let ended = !late && py.detach(move || receiver.recv_timeout(PATIENCE)).is_ok();
            if !ended && begun.load(Ordering::Relaxed) {
                give_up(&pool);
            }
            return Err(reason);
        }
    }
}

//! The interruptible call, by which all long work is run: off the interpreter lock, on a pool, watching for signals.

use std::cell::RefCell;
use std::panic::{catch_unwind, resume_unwind, AssertUnwindSafe};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{sync_channel, RecvTimeoutError};
use std::sync::Arc;
use std::time::{Duration, Instant};

use pyaccount_core::run::{pool, Run};
use pyaccount_core::{Error, Result};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::errors::raise;

thread_local! {
    /// By which another thread may stop what this one calls.
    static CANCELLATION: RefCell<Vec<Arc<AtomicBool>>> = const { RefCell::new(Vec::new()) };
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

    fn __enter__(&self) {
        CANCELLATION.with_borrow_mut(|all| all.push(Arc::clone(&self.0)));
    }

    #[pyo3(signature = (*_exception))]
    #[allow(clippy::unused_self)] // what a context manager is asked for
    fn __exit__(&self, _exception: &Bound<'_, PyTuple>) {
        CANCELLATION.with_borrow_mut(Vec::pop);
    }
}

/// Whether another thread wants this one's calls to end.
fn cancelled() -> bool {
    CANCELLATION.with_borrow(|all| all.iter().any(|one| one.load(Ordering::Relaxed)))
}

/// How long the calling thread sleeps between two looks at pending signals.
const SLICE: Duration = Duration::from_millis(100);

/// Run `work` on the pool with `threads` workers while this thread waits, and stop it on a signal or at the time limit.
///
/// When a signal handler raises (Ctrl-C), or another thread cancels, the work is cancelled, waited for and dropped, and the
/// exception propagates.
pub fn call<T, W>(py: Python<'_>, threads: usize, time_limit: Option<f64>, work: W) -> PyResult<T>
where
    T: Send + 'static,
    W: FnOnce(&Run) -> Result<T> + Send + 'static,
{
    let deadline = time_limit.map(|seconds| Instant::now() + Duration::from_secs_f64(seconds.clamp(0.0, 1e9)));
    let run = Run::with_deadline(deadline);
    let pool = pool(threads).map_err(raise)?;
    if cancelled() {
        return Err(raise(Error::Cancelled));
    }
    let (sender, mut receiver) = sync_channel(1);
    let inside = run.clone();
    pool.spawn(move || {
        let outcome = catch_unwind(AssertUnwindSafe(|| work(&inside)));
        // The receiver is gone only if the calling thread panicked; there is nobody left to tell.
        drop(sender.send(outcome));
    });
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
            Err(RecvTimeoutError::Timeout) => {
                let stop = if cancelled() { Err(raise(Error::Cancelled)) } else { py.check_signals() };
                if let Err(reason) = stop {
                    run.cancel();
                    py.detach(move || drop(receiver.recv()));
                    return Err(reason);
                }
            }
        }
    }
}

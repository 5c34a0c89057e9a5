//! The interruptible call, by which all long work is run: off the interpreter lock, on a pool, watching for signals.

use std::panic::{catch_unwind, resume_unwind, AssertUnwindSafe};
use std::sync::mpsc::{sync_channel, RecvTimeoutError};
use std::time::{Duration, Instant};

use pyaccount_core::run::{pool, Run};
use pyaccount_core::{Error, Result};
use pyo3::prelude::*;

use crate::errors::raise;

/// How long the calling thread sleeps between two looks at pending signals.
const SLICE: Duration = Duration::from_millis(100);

/// Run `work` on the pool with `threads` workers while this thread waits, and stop it on a signal or at the time limit.
///
/// When a signal handler raises (Ctrl-C), the work is cancelled, waited for and dropped, and the exception propagates.
pub fn call<T, W>(py: Python<'_>, threads: usize, time_limit: Option<f64>, work: W) -> PyResult<T>
where
    T: Send + 'static,
    W: FnOnce(&Run) -> Result<T> + Send + 'static,
{
    let deadline = time_limit.map(|seconds| Instant::now() + Duration::from_secs_f64(seconds.clamp(0.0, 1e9)));
    let run = Run::with_deadline(deadline);
    let pool = pool(threads).map_err(raise)?;
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
                if let Err(signal) = py.check_signals() {
                    run.cancel();
                    py.detach(move || drop(receiver.recv()));
                    return Err(signal);
                }
            }
        }
    }
}

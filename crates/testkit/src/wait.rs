//! Waiting for what must come, with a deadline and never for luck.

use std::time::{Duration, Instant};

/// How long a test waits for what must come: far more than it takes on a loaded machine.
const PATIENCE: Duration = Duration::from_mins(1);

/// Polls `look` until it gives something; panics with `what` after a minute.
pub fn until<T>(what: &str, look: impl FnMut() -> Option<T>) -> T {
    within(PATIENCE, what, look)
}

/// Polls `look` until it gives something; panics with `what` after `limit`.
pub fn within<T>(limit: Duration, what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + limit;
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < deadline, "within {limit:?}: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

//! How long things took, for benches and for people who look: in the engine's log under the target
//! `stead::timing`, which nobody sees unless `STEAD_LOG` asks for it.

use std::time::Instant;

/// Logs the microseconds since `since`: of a `call` from when its request was durable to when its
/// result arrived, of a `spawn` from the request to the answer, of an `append` from when it was
/// handed over to when it was durable.
pub(crate) fn took(what: &str, since: Instant) {
    let micros = u64::try_from(since.elapsed().as_micros()).unwrap_or(u64::MAX);
    tracing::debug!(target: "stead::timing", what, micros);
}

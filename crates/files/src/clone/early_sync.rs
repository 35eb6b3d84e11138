//! Syncs of the copy's file system beside the copying.

use std::os::fd::AsFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::{Builder, Scope, ScopedJoinHandle};

use rustix::fs::syncfs;
use rustix::io;

/// So many bytes are written between two syncs.
const BETWEEN: u64 = 192 << 20;

/// Counts what is written, and says when a sync is due. Dropped, none is any more.
pub(super) struct EarlySync {
    written: AtomicU64,
    /// None when there are to be no such syncs.
    due: Option<SyncSender<()>>,
}

/// The thread that syncs.
pub(super) struct Syncs<'scope>(Option<ScopedJoinHandle<'scope, io::Result<()>>>);

impl EarlySync {
    /// Where no thread can be started nothing is synced early.
    pub(super) fn begin<'scope, 'env>(
        scope: &'scope Scope<'scope, 'env>,
        copy: &'env (impl AsFd + Sync),
        is_wanted: bool,
    ) -> (Self, Syncs<'scope>) {
        let (due, told) = sync_channel(1);
        let syncs = move || told.iter().try_for_each(|()| syncfs(copy));
        let start = || Builder::new().name("stead-sync".to_owned()).spawn_scoped(scope, syncs).ok();
        let thread = if is_wanted { start() } else { None };
        let due = thread.is_some().then_some(due);
        (Self { written: AtomicU64::new(0), due }, Syncs(thread))
    }

    pub(super) fn count(&self, bytes: u64) {
        let before = self.written.fetch_add(bytes, Ordering::Relaxed);
        let is_due = before / BETWEEN != before.saturating_add(bytes) / BETWEEN;
        if let (true, Some(due)) = (is_due, &self.due) {
            // One that is due already will do.
            let _ = due.try_send(());
        }
    }
}

impl Syncs<'_> {
    /// Waits for the last sync, once the counter is dropped. The system tells an error only once,
    /// so it is not passed over.
    pub(super) fn end(self) -> io::Result<()> {
        let joined = self.0.map_or(Ok(Ok(())), ScopedJoinHandle::join);
        joined.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

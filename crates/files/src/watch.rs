//! Looking on while a tree is worked on: how far it is, and telling it to stop.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

/// What is being done to a tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// Names are listed.
    Walk,
    /// Files are read for their digests.
    Digest,
    /// Files are copied.
    Copy,
    /// The tree is removed.
    Remove,
}

/// How far a phase is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// The phase.
    pub phase: Phase,
    /// Files done.
    pub files: u64,
    /// Bytes of them.
    pub bytes: u64,
    /// Files and bytes there will be at the end, where that is known.
    pub of: Option<(u64, u64)>,
}

/// Who looks on. The default is nobody.
#[derive(Clone, Copy, Default)]
pub struct Watch<'a> {
    /// Work stops soon after this becomes true.
    pub cancel: Option<&'a AtomicBool>,
    /// Is told how far it is, from any thread, one at a time, some twenty times a second and once
    /// at the end of each phase.
    pub report: Option<&'a (dyn Fn(Progress) + Sync)>,
}

impl std::fmt::Debug for Watch<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Watch").field("cancel", &self.cancel).finish_non_exhaustive()
    }
}

impl Watch<'_> {
    /// Whether the work was told to stop.
    pub fn is_cancelled(&self) -> bool {
        self.cancel.is_some_and(|flag| flag.load(Ordering::Relaxed))
    }
}

/// Between two reports.
const PAUSE_MILLIS: u64 = 50;

/// Counts one phase.
pub(crate) struct Meter<'a> {
    watch: Watch<'a>,
    phase: Phase,
    of: Option<(u64, u64)>,
    files: AtomicU64,
    bytes: AtomicU64,
    began: Instant,
    /// Milliseconds after `began` at which the next report is due.
    due: AtomicU64,
    telling: AtomicBool,
}

impl<'a> Meter<'a> {
    pub(crate) fn new(watch: Watch<'a>, phase: Phase, of: Option<(u64, u64)>) -> Self {
        Self {
            watch,
            phase,
            of,
            files: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            began: Instant::now(),
            due: AtomicU64::new(0),
            telling: AtomicBool::new(false),
        }
    }

    pub(crate) fn is_cancelled(&self) -> bool {
        self.watch.is_cancelled()
    }

    pub(crate) fn add(&self, files: u64, bytes: u64) {
        self.files.fetch_add(files, Ordering::Relaxed);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        if self.watch.report.is_none() {
            return;
        }
        let now = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX);
        if now >= self.due.load(Ordering::Relaxed) && !self.telling.swap(true, Ordering::Acquire) {
            self.due.store(now.saturating_add(PAUSE_MILLIS), Ordering::Relaxed);
            self.tell();
            self.telling.store(false, Ordering::Release);
        }
    }

    /// The last report of the phase; every worker has ended.
    pub(crate) fn end(&self) {
        self.tell();
    }

    fn tell(&self) {
        if let Some(report) = self.watch.report {
            report(Progress {
                phase: self.phase,
                files: self.files.load(Ordering::Relaxed),
                bytes: self.bytes.load(Ordering::Relaxed),
                of: self.of,
            });
        }
    }
}

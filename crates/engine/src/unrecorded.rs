//! Applies that ended and whose end could not be stored, as on a full disk: kept in memory, and
//! stored by the next command about their session or as soon as it can be.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use stead_core::delegated::ApplyOutcome;
use stead_core::id::{ApplyId, SessionId, SlotName, TaskId};
use stead_core::refusal::{Refusal, RefusalKind};
use stead_core::session::Command;

use crate::session::{Handle, Shared};

/// How long between two tries.
const PAUSE: Duration = Duration::from_secs(1);

/// The end of an apply. Nothing that it wrote is there any more, unless it says so itself.
#[derive(Debug, Clone)]
pub(crate) struct Ended {
    pub(crate) session: SessionId,
    pub(crate) task: TaskId,
    pub(crate) slot: SlotName,
    pub(crate) apply: ApplyId,
    pub(crate) outcome: ApplyOutcome,
}

/// All that wait. An engine that dies forgets them: its successor finds out by the journals.
#[derive(Debug, Default)]
pub(crate) struct Unrecorded(Mutex<Vec<Ended>>);

impl Unrecorded {
    fn put(&self, ended: Ended) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(ended);
    }

    fn take(&self, session: &SessionId) -> Vec<Ended> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.extract_if(.., |ended| ended.session == *session).collect()
    }
}

impl Ended {
    /// Tries once to store it.
    pub(crate) async fn record(&self, handle: &Handle) -> Result<(), Refusal> {
        let Self { task, slot, apply, outcome, .. } = self.clone();
        let command = Command::EndApply { task, slot, apply, outcome };
        handle.run(command, Vec::new(), None, None).await.map(|_| ())
    }

    /// What people are told as long as it is not stored, for which `why` is the reason.
    fn untold(&self, why: &Refusal) -> Refusal {
        let what = match &self.outcome {
            ApplyOutcome::Applied { .. } => "everything is written".to_owned(),
            ApplyOutcome::Refused { reason, .. } => format!("nothing was written: {reason}"),
            ApplyOutcome::RolledBack { cause, .. } => format!("the folder is as before: {cause}"),
            ApplyOutcome::RecoveryNeeded { cause, .. } => format!("it is half-way: {cause}"),
        };
        let Self { task, slot, .. } = self;
        let line = format!(
            "how the apply of task {task} {slot} ended cannot be recorded ({}); {what}",
            why.line
        );
        Refusal::new(RefusalKind::Unknown, line)
            .hint(format!("make room; `stead task show {task}` then says how it ended"))
    }
}

/// Keeps what could not be stored, tries again until it can be, and says what is known of it.
pub(crate) fn keep(shared: &Arc<Shared>, handle: &Handle, ended: Ended, why: &Refusal) -> Refusal {
    let told = ended.untold(why);
    let (shared, handle, session) = (shared.clone(), handle.clone(), ended.session.clone());
    shared.unrecorded.put(ended);
    tokio::spawn(async move {
        while !handle.is_closed() {
            tokio::time::sleep(PAUSE).await;
            if settle(&shared, &handle, &session).await.is_ok() {
                break;
            }
        }
    });
    told
}

/// Stores what waits of a session, before another command of the person's about its copies.
///
/// # Errors
/// It still cannot be stored: kind *unknown*, with what is known.
pub(crate) async fn settle(
    shared: &Shared,
    handle: &Handle,
    session: &SessionId,
) -> Result<(), Refusal> {
    let mut told = Ok(());
    for ended in shared.unrecorded.take(session) {
        match ended.record(handle).await {
            Err(refusal) if refusal.kind == RefusalKind::Storage => {
                told = Err(ended.untold(&refusal));
                shared.unrecorded.put(ended);
            }
            // Stored, or ended otherwise before.
            _ => {}
        }
    }
    told
}

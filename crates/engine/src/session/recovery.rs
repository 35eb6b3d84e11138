//! What a session's new owner settles of what an engine that died left behind. Doing it twice
//! changes nothing.

use stead_core::delegated::ApplyOutcome;
use stead_core::id::{ApplyId, SlotName, TaskId};
use stead_core::refusal::Refusal;
use stead_core::session::{Command, Outcomes};
use stead_store::Body;
use tokio::sync::oneshot;

use super::actor::Actor;
use super::message::Work;
use crate::applies;
use crate::copies::to_trash;

impl Actor {
    /// In the order of the architecture: applies, shells, turns and reservations, then what lies about.
    pub(crate) async fn recover(&mut self) -> Result<(), Refusal> {
        self.recover_applies().await?;
        self.recover_shells().await?;
        let reason = "the engine ended while it ran".to_owned();
        let report = Body::new(format!("[interrupted: {reason}]"));
        let command = Command::Recover { reason, report: report.reference() };
        let stops = self.stops_of_recovery();
        self.settle(command, vec![report], stops).await?;
        self.withdraw_unknown().await;
        self.finish_discards().await;
        Ok(())
    }

    /// Has one command decided and stored before anybody else is heard, together with what
    /// `follows` from it.
    pub(super) async fn settle(
        &mut self,
        command: Command,
        bodies: Vec<Body>,
        follows: Vec<Work>,
    ) -> Result<(), Refusal> {
        let (answer, told) = oneshot::channel();
        let then = Box::new(|_: &mut Self, outcome: Result<Outcomes, Refusal>| {
            let _ = answer.send(outcome);
        });
        let mut work = Work::new(command, then);
        work.bodies = bodies;
        let mut all = vec![work];
        all.extend(follows);
        self.commit(all).await;
        told.await.map_or(Ok(()), |outcome| outcome.map(|_| ()))
    }

    /// Finishes the journals of this session's applies and records how those ended that were under
    /// way. One without a journal has written nothing.
    async fn recover_applies(&mut self) -> Result<(), Refusal> {
        let copies = self.state.world.delegated.values().flat_map(|own| {
            own.copies.iter().map(|(slot, copy)| (own.task, slot.clone(), copy.clone()))
        });
        let under_way: Vec<(TaskId, SlotName, ApplyId)> =
            copies.filter_map(|(task, slot, copy)| Some((task, slot, copy.applying?))).collect();
        let (shared, session, state) =
            (self.shared.clone(), self.session.clone(), self.state.clone());
        let finished = tokio::task::spawn_blocking(move || {
            applies::finish_of(&shared.copies, &state, |header| header.session == session)
        });
        let finished = finished.await.unwrap_or_else(|_| Ok(Vec::new()))?;
        for (task, slot, apply) in under_way {
            let journal = finished.iter().find(|(h, _)| h.task == task && h.slot == slot);
            let outcome = match journal {
                Some((_, Some(outcome))) => outcome.clone(),
                _ => ApplyOutcome::RolledBack {
                    cause: "the engine ended before anything was written".to_owned(),
                    conflict: false,
                    paths: Vec::new(),
                    rescue: None,
                },
            };
            self.settle(Command::EndApply { task, slot, apply, outcome }, Vec::new(), Vec::new())
                .await?;
        }
        let shared = self.shared.clone();
        let cleared = tokio::task::spawn_blocking(move || {
            for (header, _) in &finished {
                applies::done_with(&shared.copies, header);
            }
        });
        let _ = cleared.await;
        Ok(())
    }

    /// Moves to the trash what was given up and is still in its place.
    async fn finish_discards(&self) {
        let (shared, session) = (self.shared.clone(), self.session.clone());
        let gone: Vec<(TaskId, SlotName)> = self
            .state
            .world
            .delegated
            .values()
            .flat_map(|own| own.copies.iter().map(|(slot, copy)| (own.task, slot.clone(), copy)))
            .filter(|(_, _, copy)| copy.discarded)
            .map(|(task, slot, _)| (task, slot))
            .collect();
        let moved = tokio::task::spawn_blocking(move || {
            for (task, slot) in gone {
                let is_there = shared.copies.copy(&session, task, &slot).symlink_metadata().is_ok();
                let done = if is_there {
                    to_trash(&shared, &session, task, &slot).map(|_| ())
                } else {
                    applies::give_up_of(&shared.copies, &session, task, &slot)
                };
                if let Err(refusal) = done {
                    tracing::warn!(%session, %task, %slot, why = %refusal.line, "not discarded yet");
                }
            }
        });
        let _ = moved.await;
    }
}

//! Applies that were cut short: led back or on by whatever command of the person comes first.
//!
//! Without an engine the outcome is not appended: it is left in the journal, and the next engine
//! records it (architecture, *Recovery*).

use stead_copies::{
    Finished, Header, Leftover, Recorded, RecoverError, forget, give_up, kept_journal, leftovers,
    recover,
};
use stead_core::delegated::ApplyOutcome;
use stead_core::id::{ApplyId, RootId, SessionId, SlotName, TaskId};
use stead_core::refusal::{Refusal, RefusalKind};
use stead_core::session::{State, replay};
use stead_store::Store;

use crate::copies::name_of;
use crate::home::Home;
use crate::shown;

/// An apply that was cut short, and what became of it now.
#[derive(Debug)]
pub struct CutShort {
    /// The root's id, by the journal's name.
    pub root: String,
    /// Whose it was; none when its journal cannot be read.
    pub header: Option<Header>,
    /// How it was finished, or why it was not.
    pub finished: Result<Finished, String>,
}

/// Finishes every apply that was cut short, without the engine. One that is under way is left
/// alone, and so is one that was finished before.
///
/// # Errors
/// The journals cannot be listed, or the log cannot be read.
pub fn finish_applies(home: &Home) -> Result<Vec<CutShort>, Refusal> {
    if !home.data().is_dir() {
        // Nothing was ever applied from there; who needs the home says what is wrong with it.
        return Ok(Vec::new());
    }
    let copies = stead_copies::Home::new(home.data());
    let found = leftovers(&copies).map_err(|e| unreadable(&e))?;
    let mut told = Vec::new();
    for Leftover { root, path: _, header } in found {
        let header = match header {
            Ok(header) if header.finished.is_some() => continue,
            Ok(header) => header,
            Err(error) => {
                let finished = Err(error.to_string());
                told.push(CutShort { root: root.to_string(), header: None, finished });
                continue;
            }
        };
        let state = state_of(home, &header)?;
        let finished = match recover(&copies, &root, recorded(&state, &header)) {
            Ok(Some(finished)) => Ok(finished),
            // Somebody is at it, or was quicker.
            Ok(None) | Err(RecoverError::Busy(_)) => continue,
            Err(error) => Err(unfinished(&error, &header)),
        };
        told.push(CutShort { root: root.to_string(), header: Some(header), finished });
    }
    Ok(told)
}

/// Why a journal was not finished, and what a person can do where nothing but they can.
fn unfinished(error: &RecoverError, header: &Header) -> String {
    let Header { task, slot, session, .. } = header;
    match error {
        RecoverError::Destination(_) => format!(
            "{error}; put the folder back, or give the apply up: `stead task discard {task} {slot} \
             --session {session}`"
        ),
        _ => error.to_string(),
    }
}

/// Gives up what is left of an apply whose copy was given up, where its root is gone.
pub(crate) fn give_up_of(
    copies: &stead_copies::Home,
    session: &SessionId,
    task: TaskId,
    slot: &SlotName,
) -> Result<(), Refusal> {
    for Leftover { root, header, .. } in leftovers(copies).map_err(|e| unreadable(&e))? {
        let is_its =
            |header: &Header| (&header.session, header.task, &header.slot) == (session, task, slot);
        if header.as_ref().is_ok_and(is_its)
            && let Some(kept) = give_up(copies, &root).map_err(|e| unreadable(&e))?
        {
            tracing::warn!(%session, %task, %slot, kept = %kept.display(), "an apply is given up");
        }
    }
    Ok(())
}

fn state_of(home: &Home, header: &Header) -> Result<State, Refusal> {
    let reader = Store::open_reader(home.data()).map_err(|e| e.refusal())?;
    let records = reader.read(&header.session, 1, usize::MAX).map_err(|e| e.refusal())?;
    let log: Vec<_> = records.into_iter().map(|record| record.envelope).collect();
    Ok(replay(&log))
}

/// What the log says of the apply of a journal.
pub(crate) fn recorded(state: &State, header: &Header) -> Recorded {
    let own = state.world.delegated.get(&header.task);
    let copy = own.and_then(|own| own.copies.get(&header.slot));
    let is_this =
        |apply: ApplyId| name_of(&header.session, apply).is_ok_and(|name| name == header.apply);
    // While its journal is there no other apply writes that root, so the last one is enough.
    match copy.and_then(|copy| copy.applied) {
        Some(applied) if is_this(applied) => Recorded::Applied,
        _ => Recorded::Nothing,
    }
}

/// Finishes the journal of a root whose apply is recorded as applied, before another apply to it:
/// what was left of it then could not be cleared. Any other journal stays for its own session.
pub(crate) fn finish_recorded(
    home: &Home,
    copies: &stead_copies::Home,
    root: &RootId,
) -> Result<(), Refusal> {
    let found = leftovers(copies).map_err(|e| unreadable(&e))?;
    let Some(Ok(header)) = found.into_iter().find(|left| left.root == *root).map(|l| l.header)
    else {
        return Ok(());
    };
    if recorded(&state_of(home, &header)?, &header) == Recorded::Applied
        && let Ok(Some(_)) = recover(copies, root, Recorded::Applied)
    {
        done_with(copies, &header);
    }
    Ok(())
}

/// Finishes the journals of one session, for the engine that is about to record their outcomes:
/// each with its outcome, if there is one to record.
pub(crate) fn finish_of(
    copies: &stead_copies::Home,
    state: &State,
    is_mine: impl Fn(&Header) -> bool,
) -> Result<Vec<(Header, Option<ApplyOutcome>)>, Refusal> {
    let mut ended = Vec::new();
    for Leftover { root, path, header } in leftovers(copies).map_err(|e| unreadable(&e))? {
        let Ok(header) = header else { continue };
        if !is_mine(&header) {
            continue;
        }
        let journal = path.display().to_string();
        let kept = kept_journal(copies, &header).display().to_string();
        let outcome = match recover(copies, &root, recorded(state, &header)) {
            Ok(Some(finished)) => shown::finished(&finished, &kept),
            Ok(None) => continue,
            Err(error) => {
                let (cause, paths) = (error.to_string(), Vec::new());
                Some(ApplyOutcome::RecoveryNeeded { cause, paths, rescue: journal })
            }
        };
        ended.push((header, outcome));
    }
    Ok(ended)
}

/// Removes the journal of an apply whose outcome is recorded.
pub(crate) fn done_with(copies: &stead_copies::Home, header: &Header) {
    if let Err(error) = forget(copies, &header.root) {
        tracing::warn!(root = %header.root, %error, "the journal of an apply is left");
    }
}

fn unreadable(error: &dyn std::fmt::Display) -> Refusal {
    Refusal::new(RefusalKind::Unreadable, error.to_string())
        .hint("`stead doctor` looks at the home")
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use stead_core::delegated::{Delegated, PrivateCopy};
    use stead_core::id::Digest;
    use stead_core::layout::{AbsoluteDir, RootIdentity};
    use stead_core::path::AgentPath;

    use super::*;

    #[test]
    fn copies_68_a_recorded_apply_is_led_on_whatever_was_tried_after_it() {
        let digest = Digest::from_bytes([7; 32]);
        let directory = AbsoluteDir::new("/w/app").unwrap();
        let (session, slot) = (SessionId::parse("s").unwrap(), SlotName::parse("app").unwrap());
        let (reason, paths) = ("an earlier apply was cut short".to_owned(), Vec::new());
        let refused = ApplyOutcome::Refused { reason, conflict: false, paths, half_way: true };
        let copy = PrivateCopy {
            directory: directory.clone(),
            base: digest,
            reviewed: None,
            applying: None,
            ended: Some((Digest::from_bytes([8; 32]), refused)),
            applied: Some(ApplyId(5)),
            discarded: false,
        };
        let mut state = State::default();
        let own = Delegated {
            task: TaskId(1),
            owner: AgentPath::root(),
            title: String::new(),
            blocked_by: BTreeSet::new(),
            roots: Vec::new(),
            admitted: true,
            copies: BTreeMap::from([(slot.clone(), copy)]),
            notes: Vec::new(),
            settled: None,
        };
        state.world.delegated.insert(TaskId(1), own);
        let header = |apply: u64| Header {
            version: 1,
            apply: name_of(&session, ApplyId(apply)).unwrap(),
            session: session.clone(),
            task: TaskId(1),
            slot: slot.clone(),
            root: RootId::parse("r").unwrap(),
            source: directory.clone(),
            identity: RootIdentity { inode: 1, birth: None },
            snapshot: digest,
            review: digest,
            index: None,
            paths: 0,
            rest: digest,
            finished: None,
        };
        assert_eq!(recorded(&state, &header(5)), Recorded::Applied);
        assert_eq!(recorded(&state, &header(9)), Recorded::Nothing, "it is under way, or was cut");
    }
}

//! Applies that were cut short: led back or on by whatever command of the person comes first.
//!
//! Without an engine the outcome is not appended: it is left in the journal, and the next engine
//! records it (architecture, *Recovery*).

use stead_copies::{Finished, Header, Leftover, Recorded, forget, leftovers, recover};
use stead_core::delegated::ApplyOutcome;
use stead_core::id::ApplyId;
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
            Ok(None) | Err(stead_copies::RecoverError::Busy(_)) => continue,
            Err(error) => Err(error.to_string()),
        };
        told.push(CutShort { root: root.to_string(), header: Some(header), finished });
    }
    Ok(told)
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
    let Some(copy) = own.and_then(|own| own.copies.get(&header.slot)) else {
        return Recorded::Nothing;
    };
    let under_way =
        |apply: ApplyId| name_of(&header.session, apply).is_ok_and(|name| name == header.apply);
    match &copy.ended {
        _ if copy.applying.is_some_and(under_way) => Recorded::Nothing,
        Some((snapshot, ApplyOutcome::Applied { .. })) if *snapshot == header.snapshot => {
            Recorded::Applied
        }
        _ => Recorded::Nothing,
    }
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
        let outcome = match recover(copies, &root, recorded(state, &header)) {
            Ok(Some(finished)) => shown::finished(&finished, &journal),
            Ok(None) => continue,
            Err(error) => {
                Some(ApplyOutcome::RecoveryNeeded { cause: error.to_string(), rescue: journal })
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

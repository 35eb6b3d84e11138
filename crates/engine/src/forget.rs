//! Roots that nothing names any more: of starts that were refused, and of folders that are gone.

use std::collections::BTreeSet;

use stead_core::event::{Event, WorldEvent};
use stead_core::id::{RootId, SessionId};
use stead_core::refusal::{Refusal, RefusalKind};

use crate::engine::was_refused;
use crate::session::Shared;

/// Forgets the roots of a session that never came to be, but for those that something else names.
pub(crate) fn forget_roots_of(shared: &Shared, session: &SessionId) -> Result<(), Refusal> {
    let (mut roots, mut others) = (BTreeSet::new(), named_by_copies(shared)?);
    let reader = shared.store.reader();
    for summary in reader.sessions().map_err(|e| e.refusal())? {
        let Ok(Event::World(WorldEvent::SessionStarted(started))) = summary.first else { continue };
        let named = started.roots.into_iter().map(|root| root.id);
        if summary.id == *session {
            roots.extend(named);
        } else if !was_refused(reader, &summary.id, summary.tip).map_err(|e| e.refusal())? {
            others.extend(named);
        }
    }
    let goes = |id: &RootId| roots.contains(id) && !others.contains(id);
    shared.registry.forget(|root| goes(&root.id)).map(|_| ())
}

/// The roots that layouts and the trash name.
///
/// # Errors
/// A layout cannot be read, so that it may name any.
pub(crate) fn named_by_copies(shared: &Shared) -> Result<BTreeSet<RootId>, Refusal> {
    let unreadable = |error: &dyn std::fmt::Display| {
        Refusal::new(RefusalKind::Unreadable, error.to_string())
            .hint("`stead doctor` looks at the home")
    };
    let mut named = BTreeSet::new();
    for found in stead_copies::tasks(&shared.copies).map_err(|e| unreadable(&e))? {
        let layout = found.layout.map_err(|e| unreadable(&e))?;
        named.extend(layout.slots.into_iter().map(|slot| slot.root));
    }
    for entry in stead_copies::trashed(&shared.copies).map_err(|e| unreadable(&e))? {
        named.extend(entry.record.roots);
    }
    Ok(named)
}

//! What copies rest on: the base that each is compared with, the object files that it borrows, and
//! how its last apply ended.

use std::collections::BTreeMap;

use stead_copies::{Base, FoundTask, Home, Layout, RootKind, Slot};
use stead_core::delegated::{ApplyOutcome, PrivateCopy};
use stead_core::id::SessionId;
use stead_core::session::State;

use super::finding::Finding;
use crate::clean;

/// How many tasks are looked at; each costs a session's log.
const MOST: usize = 200;

/// Every copy that is there and was not discarded, of the sessions that `state_of` knows.
pub(super) fn rests(
    home: &Home,
    tasks: &[FoundTask],
    state_of: impl Fn(&SessionId) -> Option<State>,
) -> Vec<Finding> {
    let mut states: BTreeMap<&SessionId, Option<State>> = BTreeMap::new();
    let mut findings = Vec::new();
    for task in tasks.iter().filter(|task| !task.is_cut_off).take(MOST) {
        let Ok(layout) = &task.layout else { continue };
        let state = states.entry(&task.session).or_insert_with(|| state_of(&task.session));
        let own = state.as_ref().and_then(|state| state.world.delegated.get(&task.task));
        for slot in layout.slots.iter().filter(|slot| !task.missing.contains(&slot.slot)) {
            let copy = own.and_then(|own| own.copies.get(&slot.slot));
            if copy.is_some_and(|copy| copy.discarded) {
                continue;
            }
            findings.extend(borrowed(home, layout, slot));
            findings.extend(base(home, layout, slot, copy));
            findings.extend(copy.and_then(|copy| half_way(layout, slot, copy)));
        }
    }
    findings
}

fn named(layout: &Layout, slot: &Slot) -> String {
    format!("{} of task {} of {}", slot.slot, layout.task, layout.session)
}

fn borrowed(home: &Home, layout: &Layout, slot: &Slot) -> Option<Finding> {
    let depot = home.depot(&slot.root);
    let is_git = matches!(slot.kind, RootKind::Git { .. });
    if !is_git || depot.join("objects").is_dir() {
        return None;
    }
    let line = format!(
        "{} is gone, from which the copy {} borrows its Git objects",
        clean::path(&depot),
        named(layout, slot)
    );
    Some(Finding::fault("depots", line, help(home, layout, slot)))
}

fn base(home: &Home, layout: &Layout, slot: &Slot, copy: Option<&PrivateCopy>) -> Option<Finding> {
    let digest = copy.map_or(slot.base, |copy| copy.base);
    let error = Base::load(home, &digest).err()?;
    let line = format!("what the copy {} was made from is not known: {error}", named(layout, slot));
    Some(Finding::fault("copies", line, help(home, layout, slot)))
}

fn help(home: &Home, layout: &Layout, slot: &Slot) -> String {
    let copy = home.copy(&layout.session, layout.task, &slot.slot);
    format!(
        "bring back what was removed, or take what you want of {} and settle it: \
         `stead task discard {} {} --session {}`",
        clean::path(&copy),
        layout.task,
        slot.slot,
        layout.session
    )
}

fn half_way(layout: &Layout, slot: &Slot, copy: &PrivateCopy) -> Option<Finding> {
    let Some((_, ApplyOutcome::RecoveryNeeded { cause, paths, rescue })) = &copy.ended else {
        return None;
    };
    let at = match paths.as_slice() {
        [] => String::new(),
        paths => format!(" and at {}", clean::brief(&paths.join(", "), 300)),
    };
    Some(Finding::fault(
        "apply",
        format!("the last apply of {} is half-way: {cause}", named(layout, slot)),
        format!(
            "look at {rescue}{at}; a later apply or `stead task discard {} {} \
             --session {}` settles it",
            layout.task, slot.slot, layout.session
        ),
    ))
}

//! Private copies and what belongs to them: applies that were cut short, copies, depots, what was
//! left half made, the trash, the registered roots.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use stead_copies::{Finished, Found, FoundDepot, FoundTask, Leftover, StagedFolder, Trashed};
use stead_core::id::{SessionId, SlotName, TaskId};
use stead_core::session::{State, replay};
use stead_engine::api::RootState;
use stead_engine::{CutShort, Home, registered_roots};
use stead_store::Store;

use super::finding::Finding;
use super::rests::rests;
use crate::clean;
use crate::context::Context;
use crate::render::{counted, cut_short, size};

/// How many findings of one kind are told one by one.
const MOST: usize = 20;
/// How long something stays in the trash until `stead gc` empties it.
const DAYS: i64 = 30;
const DAY: i64 = 24 * 60 * 60 * 1000;

/// Everything about copies.
pub(super) fn copies(context: &Context, now: i64) -> Vec<Finding> {
    let home = stead_copies::Home::new(context.home.data());
    let mut findings: Vec<Finding> = context.cut_short.iter().map(cut).collect();
    match stead_copies::leftovers(&home) {
        Ok(left) => findings.extend(left.iter().filter_map(|left| journal(context, left))),
        Err(error) => findings.push(unusable("applies", &error)),
    }
    match stead_copies::found(&home) {
        Ok(found) => {
            findings.extend(tasks(&context.home, &home, &found));
            findings.extend(rests(&home, &found.tasks, |session| state_of(&context.home, session)));
            findings.extend(depots(&home, &found.depots));
            findings.extend(staging(&found.staging));
            findings.extend(trash(&home, &found.trash, now));
        }
        Err(error) => findings.push(unusable("copies", &error)),
    }
    findings.extend(roots(&context.home));
    findings
}

fn unusable(what: &'static str, error: &dyn std::fmt::Display) -> Finding {
    Finding::fault(what, error.to_string(), "mend what it names, then look again")
}

/// An apply that this very call has led back or on.
fn cut(cut: &CutShort) -> Finding {
    let line = cut_short(cut);
    let again = cut.header.as_ref().map(|header| {
        let (task, slot, session) = (header.task, &header.slot, &header.session);
        format!("`stead task review {task} {slot} --session {session}` shows what it would bring")
    });
    match (&cut.finished, again) {
        (Ok(Finished::Back | Finished::Forward), _) => {
            Finding::warning("apply", line, "nothing has to be done: this command made it whole")
        }
        (Ok(Finished::Neither { .. }), Some(again)) => {
            Finding::warning("apply", line, format!("look at these paths; then {again}"))
        }
        (_, again) => {
            let help = again.map_or_else(String::new, |again| format!("; then {again}"));
            Finding::fault(
                "apply",
                line,
                format!("mend what it names, and the next stead command tries again{help}"),
            )
        }
    }
}

/// A journal that this call did not finish.
fn journal(context: &Context, left: &Leftover) -> Option<Finding> {
    let of_this_call = |cut: &CutShort| cut.root == left.root.to_string();
    if context.cut_short.iter().any(of_this_call) {
        return None;
    }
    let path = clean::path(&left.path);
    let header = match &left.header {
        Ok(header) => header,
        Err(error) => {
            let help = format!("nothing is applied to that folder until {path} is moved away");
            return Some(Finding::fault("apply", error.to_string(), help));
        }
    };
    let (task, slot, session) = (header.task, &header.slot, &header.session);
    let whose = format!(
        "an apply of task {task} {slot} of {session} to {}",
        clean::path(header.source.as_path())
    );
    let help = format!("`stead task show {task} --session {session}` says how it ended");
    Some(match &header.finished {
        Some(_) => Finding::warning(
            "apply",
            format!("{whose} was made whole, and how it ended is not recorded yet"),
            help,
        ),
        None => Finding::warning("apply", format!("{whose} is under way"), help),
    })
}

fn tasks(home: &Home, copies: &stead_copies::Home, found: &Found) -> Vec<Finding> {
    if found.tasks.is_empty() {
        return Vec::new();
    }
    let there = |task: &FoundTask| {
        let layout = task.layout.as_ref();
        layout.map_or(0, |layout| layout.slots.len()).saturating_sub(task.missing.len())
    };
    let line = format!(
        "{} of {} in {}",
        counted(found.tasks.iter().map(there).sum(), "private copy", "private copies"),
        counted(found.tasks.len(), "task", "tasks"),
        clean::path(&copies.copies())
    );
    let mut findings = vec![Finding::ok("copies", line)];
    for task in found.tasks.iter().filter_map(|task| task.layout.as_ref().err()).take(MOST) {
        findings.push(Finding::warning(
            "copies",
            task.to_string(),
            "it may hold work: look into the folder, and remove it when nothing in it is wanted",
        ));
    }
    for task in found.tasks.iter().filter(|task| task.is_cut_off).take(MOST) {
        findings.push(Finding::warning(
            "copies",
            format!(
                "the machine stopped before the disk had the copies of task {} of {}",
                task.task, task.session
            ),
            format!(
                "`stead task discard {} --session {}`; the originals have everything",
                task.task, task.session
            ),
        ));
    }
    let mut states: BTreeMap<&SessionId, Option<State>> = BTreeMap::new();
    for (of, slot) in missing(found).take(MOST) {
        let state = states.entry(&of.session).or_insert_with(|| state_of(home, &of.session));
        if state.as_ref().is_some_and(|state| was_discarded(state, of.task, slot)) {
            continue;
        }
        findings.push(Finding::warning(
            "copies",
            format!("the copy of {slot} of task {} of {} was removed", of.task, of.session),
            format!(
                "nothing is blocked by it: `stead task discard {} {slot} --session {}` settles it",
                of.task, of.session
            ),
        ));
    }
    findings
}

fn missing(found: &Found) -> impl Iterator<Item = (&FoundTask, &SlotName)> {
    found.tasks.iter().flat_map(|task| task.missing.iter().map(move |slot| (task, slot)))
}

fn state_of(home: &Home, session: &SessionId) -> Option<State> {
    let reader = Store::open_reader(home.data()).ok()?;
    let records = reader.read(session, 1, usize::MAX).ok()?;
    let log: Vec<_> = records.into_iter().map(|record| record.envelope).collect();
    Some(replay(&log))
}

fn was_discarded(state: &State, task: TaskId, slot: &SlotName) -> bool {
    let own = state.world.delegated.get(&task);
    own.and_then(|own| own.copies.get(slot)).is_some_and(|copy| copy.discarded)
}

fn depots(home: &stead_copies::Home, depots: &[FoundDepot]) -> Option<Finding> {
    if depots.is_empty() {
        return None;
    }
    let all = depots.iter().fold(0_u64, |sum, depot| sum.saturating_add(depot.bytes));
    let line = format!(
        "object files of {} in {}, {}, {} of it kept by nothing else",
        counted(depots.len(), "repository", "repositories"),
        clean::path(&home.depots()),
        size(all),
        size(own_bytes(&home.depots()))
    );
    let free = depots.iter().filter(|depot| depot.named_by == 0).count();
    Some(if free == 0 {
        Finding::ok("depots", line)
    } else {
        let named = if free == 1 { "one is" } else { "some are" };
        Finding::warning(
            "depots",
            format!("{line}; {named} named by no copy"),
            "`stead gc` removes what nothing needs",
        )
    })
}

/// Bytes on the disk of the files below a folder that have no other name. Follows no links.
fn own_bytes(folder: &Path) -> u64 {
    let mut bytes = 0_u64;
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            let Ok(found) = entry.metadata() else { continue };
            if found.is_dir() {
                folders.push(entry.path());
            } else if found.nlink() == 1 {
                bytes = bytes.saturating_add(found.blocks().saturating_mul(512));
            }
        }
    }
    bytes
}

fn staging(staging: &[StagedFolder]) -> Vec<Finding> {
    let (alive, left): (Vec<_>, Vec<_>) = staging.iter().partition(|folder| folder.is_alive);
    let mut findings = Vec::new();
    if !alive.is_empty() {
        let count = counted(alive.len(), "task", "tasks");
        findings.push(Finding::ok("staging", format!("copies of {count} are being made")));
    }
    if !left.is_empty() {
        let count = counted(left.len(), "folder", "folders");
        findings.push(Finding::warning(
            "staging",
            format!("{count} with copies that were never made whole"),
            "`stead gc` removes them, and so does the next engine",
        ));
    }
    findings
}

fn trash(home: &stead_copies::Home, trash: &[(Trashed, u64)], now: i64) -> Option<Finding> {
    let oldest = trash.iter().map(|(entry, _)| entry.record.at.0).min()?;
    let days = now.saturating_sub(oldest).max(0) / DAY;
    let bytes = trash.iter().fold(0_u64, |sum, (_, bytes)| sum.saturating_add(*bytes));
    let line = format!(
        "{} in {}, {}, the oldest {}",
        counted(trash.len(), "copy", "copies"),
        clean::path(&home.trash()),
        size(bytes),
        match days {
            0 => "of today".to_owned(),
            days => format!("{} old", counted(usize::try_from(days).unwrap_or(0), "day", "days")),
        }
    );
    Some(if days >= DAYS {
        Finding::warning("trash", line, "`stead gc` empties what is older than 30 days")
    } else {
        Finding::ok("trash", line)
    })
}

fn roots(home: &Home) -> Vec<Finding> {
    let roots = match registered_roots(home) {
        Ok(roots) => roots,
        Err(refusal) => {
            let help = "no copies are made until it can be read; move the file away to begin anew";
            return vec![Finding::fault("roots", refusal.line, help)];
        }
    };
    if roots.is_empty() {
        return Vec::new();
    }
    let count = counted(roots.len(), "folder is registered", "folders are registered");
    let mut findings = vec![Finding::ok("roots", count)];
    for root in roots.iter().filter(|root| root.state != RootState::Same).take(MOST) {
        let what = match root.state {
            RootState::Gone => "is gone",
            _ => "is another folder than the one that was registered",
        };
        findings.push(Finding::warning(
            "roots",
            format!("{} {what}", clean::path(root.directory.as_path())),
            format!(
                "if it was moved: `stead roots rebind {} DIR`; else `stead gc` forgets it, when no \
                 copy of it is left",
                root.id
            ),
        ));
    }
    findings
}

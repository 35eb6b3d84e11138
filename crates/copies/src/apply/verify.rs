//! The last look before the first rename, and the first after the last.

use std::collections::HashMap;
use std::path::Path;

use stead_files::{RelPath, Stat, Time};
use stead_git::Index;

use super::check::Apply;
use super::destination::open_admitted;
use super::look::{is_unchanged, observe};
use super::plan::Planned;
use super::stage::Mark;
use super::swap::is_astray;
use super::write::Cause;
use crate::changes::State;

impl Apply {
    /// Nothing changed since the check: the paths, the index, the checkout, the folder (P5, P7, P8).
    pub(super) fn verify(&self) -> Result<(), Cause> {
        let root = &self.destination.root;
        let changed = |_| Cause::DestinationChanged("the folder");
        open_admitted(self.header.source.as_path(), &self.header.identity).map_err(changed)?;
        if self.destination.head_file() != self.head_seen {
            return Err(Cause::DestinationChanged("the checkout"));
        }
        self.verify_index()?;
        let mut edited = Vec::new();
        for planned in &self.plan.planned {
            let now = match root.look(&planned.step.path) {
                Ok(now) => now,
                // As nothing: below a file that is to become a folder there was nothing before.
                Err(error) if is_astray(&error) => None,
                Err(error) => return Err(error.into()),
            };
            let same = match (&planned.seen, &now) {
                (None, None) => true,
                // A folder's times change with what is in it.
                (Some(seen), Some(now))
                    if planned.step.old.as_ref().is_some_and(State::is_folder) =>
                {
                    seen.is_same_file(now) && (seen.kind, seen.mode) == (now.kind, now.mode)
                }
                (Some(seen), Some(now)) => is_unchanged(seen, now),
                _ => false,
            };
            if !same {
                edited.push(planned.step.path.clone());
            }
        }
        if edited.is_empty() { Ok(()) } else { Err(Cause::Edited(edited)) }
    }

    fn verify_index(&self) -> Result<(), Cause> {
        let Some(repository) = &self.destination.repository else { return Ok(()) };
        let now = Stat::of(&repository.index_file).ok();
        let same = match (&self.index_seen, &now) {
            (None, None) => true,
            (Some(seen), Some(now)) => is_unchanged(seen, now),
            _ => false,
        };
        if same {
            return Ok(());
        }
        // Most often a mere `git status`, which writes anew what it found.
        let index = Index::of(repository)?;
        let entries: HashMap<_, _> = index
            .entries
            .iter()
            .map(|entry| (entry.path.as_path(), (entry.kind.mode(), entry.id)))
            .collect();
        let staged = |planned: &&Planned| {
            let path = Path::new(planned.step.path.as_os_str());
            entries.get(path).copied() != planned.indexed
        };
        let edited: Vec<RelPath> =
            self.plan.planned.iter().filter(staged).map(|p| p.step.path.clone()).collect();
        if edited.is_empty() { Ok(()) } else { Err(Cause::Edited(edited)) }
    }

    /// Every path is as the snapshot has it. A file that nobody can have written to since it was
    /// staged is not read again.
    pub(super) fn confirm(&self, marks: &[Option<Mark>], began: Time) -> Result<(), Cause> {
        let root = &self.destination.root;
        let mut edited = Vec::new();
        for (one, mark) in self.plan.planned.iter().zip(marks) {
            let path = &one.step.path;
            let is_known = match mark {
                Some(mark) if !mark.modified.is_racy(began) => {
                    root.look(path).ok().flatten().is_some_and(|stat| mark.is_of(&stat))
                }
                _ => false,
            };
            if is_known {
                continue;
            }
            let found = match observe(root, path) {
                Ok(found) => found.map(|here| here.state),
                Err(error) if is_astray(&error) => None,
                Err(error) => return Err(error.into()),
            };
            if found != one.step.new {
                edited.push(path.clone());
            }
        }
        if edited.is_empty() { Ok(()) } else { Err(Cause::Edited(edited)) }
    }
}

//! Changes that no apply can bring, whatever the original has by then (P10, P11): told by the review,
//! and refused by the apply, by this one rule.

use std::fmt;

use stead_files::{RelPath, Target};

use crate::Base;
use crate::changes::{Change, State};

/// Why a change can never be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bar {
    /// Its name is one of Git's own, in a spelling that some Git or disk takes for `.git`.
    GitName,
    /// It is a pipe, a socket or a device.
    Special,
    /// It was a folder that holds what no review covers, and is to become something else.
    HoldsUncovered,
}

impl fmt::Display for Bar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::GitName => "its name stands for Git's own folder, which is never written",
            Self::Special => "it is a pipe, a socket or a device",
            Self::HoldsUncovered => {
                "it was a folder that holds files no review covers, such as ignored ones, and would \
                 become something else"
            }
        })
    }
}

/// A change that keeps a whole apply from being written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Barred {
    /// Its path; what is below it is not named too.
    pub path: RelPath,
    /// Why.
    pub bar: Bar,
}

/// Of these changes against `base`, those that no apply can bring, in the order of paths.
pub(crate) fn barred(base: &Base, changes: &[Change]) -> Vec<Barred> {
    let beside = base.scope();
    let mut barred: Vec<Barred> = Vec::new();
    for Change { path, before, after } in changes {
        let is = |kind: fn(&State) -> bool| [before, after].into_iter().flatten().any(kind);
        let bar = if Target::new(path.clone()).is_err() {
            Bar::GitName
        } else if is(|state| *state == State::Special) {
            Bar::Special
        } else if after.as_ref().is_some_and(State::is_leaf) && beside.is_below(path) {
            Bar::HoldsUncovered
        } else {
            continue;
        };
        if barred.last().is_none_or(|last| !path.is_within(&last.path)) {
            barred.push(Barred { path: path.clone(), bar });
        }
    }
    barred
}

#[cfg(test)]
mod tests {
    use stead_core::id::Digest;
    use stead_files::{Manifest, Time};

    use super::*;

    #[test]
    fn what_no_apply_can_bring_is_known_before_it_is_tried() {
        let path = |text: &str| RelPath::parse(text).unwrap();
        let base = Base {
            manifest: Manifest::new(Time { secs: 1, nanos: 0 }, Vec::new()).unwrap(),
            index: Vec::new(),
            ignored: vec![path("d/k/s.ign")],
            nested: Vec::new(),
            left_out: Vec::new(),
            commit: None,
            rules: crate::Rules::default(),
        };
        let folder = Some(State::Folder { mode: 0o755 });
        let digest = Digest::from_bytes([1; 32]);
        let file = Some(State::File { mode: 0o644, size: 1, digest });
        let change = |at: &str, before: &Option<State>, after: &Option<State>| Change {
            path: path(at),
            before: before.clone(),
            after: after.clone(),
        };
        let changes = [
            change("a/.GIT", &None, &folder),
            change("a/.GIT/HEAD", &None, &file),
            change("d", &folder, &Some(State::Folder { mode: 0o700 })),
            change("d/k", &folder, &file),
            change("d/x", &file, &None),
            change("p", &None, &Some(State::Special)),
        ];
        let found = barred(&base, &changes);
        let found: Vec<_> = found.iter().map(|one| (one.path.to_string(), one.bar)).collect();
        let expected =
            [("a/.GIT", Bar::GitName), ("d/k", Bar::HoldsUncovered), ("p", Bar::Special)];
        assert_eq!(found, expected.map(|(path, bar)| (path.to_owned(), bar)));
    }
}

//! How an affected path stands against what the person did meanwhile (P8, P9).

use std::fmt;

use serde::{Deserialize, Serialize};
use stead_files::RelPath;

use crate::changes::{Change, State};

/// Why one path keeps a whole apply from being written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Clash {
    /// The person and the task both changed it, or both made it, differently.
    BothChanged,
    /// The person deleted what the task changed.
    DeletedHere,
    /// The person changed what the task deleted.
    DeletedByTask,
    /// It is another kind of thing than it was: a folder for a file, a link for a folder.
    Kind,
    /// A folder on the way is gone or is something else, or the folder that is to become a file
    /// holds something that is not the task's.
    Ancestor,
    /// The file is as it was, but the index holds something that the person staged.
    Staged,
    /// It is again as the copy was made from it: what was applied meanwhile was taken back here.
    TakenBack,
    /// The file system takes its name for that of another file.
    SameName,
}

impl fmt::Display for Clash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::BothChanged => "changed on both sides",
            Self::DeletedHere => "deleted here, changed by the task",
            Self::DeletedByTask => "changed here, deleted by the task",
            Self::Kind => "another kind of file here",
            Self::Ancestor => "a folder on its way, or in its place, is in use for something else",
            Self::Staged => "staged differently in the index",
            Self::TakenBack => "as before the last apply, which was taken back here",
            Self::SameName => "this file system takes its name for another one's",
        })
    }
}

/// A path that keeps an apply from being written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Conflict {
    /// The affected path.
    pub path: RelPath,
    /// Why.
    pub clash: Clash,
}

/// What is to be done at a path, seen against what is there now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stand {
    /// It is as the base had it: the change can be written.
    Ready,
    /// It is already as the snapshot has it; equal results are no conflict.
    Equal,
    /// The person has the last word.
    Clash(Clash),
}

/// How the destination's `now` stands to a change (P8).
pub(crate) fn stand(change: &Change, now: Option<&State>) -> Stand {
    if now == change.after.as_ref() {
        return Stand::Equal;
    }
    if now == change.before.as_ref() {
        return Stand::Ready;
    }
    Stand::Clash(match (now, &change.before, &change.after) {
        (None, _, _) => Clash::DeletedHere,
        (Some(now), Some(before), None) if now.is_kind_of(before) => Clash::DeletedByTask,
        (Some(now), Some(before), _) if !now.is_kind_of(before) => Clash::Kind,
        (Some(now), None, Some(after)) if !now.is_kind_of(after) => Clash::Kind,
        _ => Clash::BothChanged,
    })
}

/// Of conflicts with a base that is an applied snapshot, marks those where the person went back to
/// the first base: `now` is what the original has at a path, `first` what admission found there.
pub(crate) fn mark_taken_back<E>(
    conflicts: &mut [Conflict],
    mut now: impl FnMut(&Conflict) -> Result<Option<State>, E>,
    first: impl Fn(&Conflict) -> Option<State>,
) -> Result<(), E> {
    for conflict in conflicts {
        let is_of_the_file = matches!(
            conflict.clash,
            Clash::BothChanged | Clash::DeletedHere | Clash::DeletedByTask | Clash::Kind
        );
        if is_of_the_file && now(conflict)? == first(conflict) {
            conflict.clash = Clash::TakenBack;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use stead_core::id::Digest;

    use super::*;

    fn states() -> impl Strategy<Value = Option<State>> {
        prop_oneof![
            Just(None),
            (0_u8..2, 0_u16..2).prop_map(|(content, mode)| Some(State::File {
                mode,
                size: 1,
                digest: Digest::from_bytes([content; 32]),
            })),
            (0_u16..2).prop_map(|mode| Some(State::Folder { mode })),
            (0_u8..2).prop_map(|text| Some(State::Link { target: [text].into() })),
        ]
    }

    proptest! {
        /// Three-way merging by whole values, told without the table above.
        #[test]
        fn only_what_neither_side_explains_is_a_clash(
            before in states(),
            after in states(),
            now in states(),
        ) {
            prop_assume!(before != after);
            let path = RelPath::parse("x").unwrap();
            let change = Change { path, before: before.clone(), after: after.clone() };
            match stand(&change, now.as_ref()) {
                Stand::Equal => prop_assert_eq!(now, after),
                Stand::Ready => prop_assert_eq!(now, before),
                Stand::Clash(clash) => {
                    prop_assert!(now != before && now != after);
                    prop_assert_eq!(now.is_none(), clash == Clash::DeletedHere);
                    if clash == Clash::DeletedByTask {
                        prop_assert!(after.is_none());
                    }
                    let kinds = [&before, &after, &now].map(|state| {
                        state.as_ref().map(std::mem::discriminant)
                    });
                    if clash == Clash::BothChanged {
                        prop_assert!(kinds[2] == kinds[0] || kinds[2] == kinds[1]);
                    }
                }
            }
        }
    }
}

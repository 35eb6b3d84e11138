//! What a snapshot changes against its base: pure, in the order of paths.

use serde::{Deserialize, Serialize};
use stead_core::id::Digest;
use stead_files::{Difference, Entry, Node, RelPath, compare};

use crate::{Base, Snapshot};

/// What an eligible path is: everything that review shows, and that apply compares and writes.
/// Times are no part of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum State {
    /// A regular file.
    File {
        /// The permission bits.
        mode: u16,
        /// Bytes of content.
        size: u64,
        /// Of the content.
        digest: Digest,
    },
    /// A folder; what is in it has paths of its own.
    Folder {
        /// The permission bits.
        mode: u16,
    },
    /// A symbolic link.
    Link {
        /// Its literal target, any bytes.
        target: Box<[u8]>,
    },
    /// A pipe, socket or device: shown by review, refused by apply (P11).
    Special,
}

impl State {
    /// The state of an entry; none for a file whose digest is not known, and for what is withheld.
    pub fn of(entry: &Entry) -> Option<Self> {
        let mode = entry.mode;
        match &entry.node {
            Node::File { size, digest } => {
                digest.map(|digest| Self::File { mode, size: *size, digest })
            }
            Node::Folder => Some(Self::Folder { mode }),
            Node::Link(target) => Some(Self::Link { target: target.clone() }),
            Node::Special(_) => Some(Self::Special),
            Node::Withheld { .. } => None,
        }
    }

    /// Whether it is a folder.
    pub fn is_folder(&self) -> bool {
        matches!(self, Self::Folder { .. })
    }

    /// Whether it is a folder in which its own owner may not change names.
    pub(crate) fn is_closed(&self) -> bool {
        matches!(self, Self::Folder { mode } if mode & OPEN != OPEN)
    }

    /// Whether it is a file or a link: what one rename brings or takes away.
    pub fn is_leaf(&self) -> bool {
        matches!(self, Self::File { .. } | Self::Link { .. })
    }

    /// The permission bits; none for what has none, or none that matter.
    pub fn mode(&self) -> Option<u16> {
        match self {
            Self::File { mode, .. } | Self::Folder { mode } => Some(*mode),
            Self::Link { .. } | Self::Special => None,
        }
    }

    /// Whether both are files with the same bytes.
    pub fn has_bytes_of(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::File { digest: one, .. }, Self::File { digest: two, .. }) => one == two,
            _ => false,
        }
    }

    /// Whether both are the same kind of thing.
    pub fn is_kind_of(&self, other: &Self) -> bool {
        std::mem::discriminant(self) == std::mem::discriminant(other)
    }
}

/// The permission bits that stead needs in a folder while it changes what is in it.
pub(crate) const OPEN: u16 = 0o700;

/// One path that a snapshot changes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    /// The path below the root.
    pub path: RelPath,
    /// What the base has there; nothing for what is new.
    pub before: Option<State>,
    /// What the snapshot has there; nothing for what is removed. Never equal to `before`.
    pub after: Option<State>,
}

/// A path whose content nobody knows: the manifest was taken without its digest.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("nobody knows what {0} held: its digest was not taken")]
pub struct Unknown(pub RelPath);

/// The eligible changes between `base` and `snapshot`, in the order of paths (a folder before what
/// is in it).
///
/// What the base ignored, carried as a nested repository or left out is no removal when the
/// snapshot does not have it, and neither is a folder that holds such things; what is withheld on
/// either side is no change at all.
///
/// # Errors
/// An eligible file without a digest.
pub fn changes(base: &Base, snapshot: &Snapshot) -> Result<Vec<Change>, Unknown> {
    let beside = base.scope();
    let mut changes = Vec::new();
    for found in compare(&base.manifest, &snapshot.manifest) {
        let path = found.path;
        let is_beside = beside.holds(path) || beside.is_below(path);
        if found.difference == Difference::Removed && is_beside {
            continue;
        }
        let state = |entry: Option<&Entry>| {
            let known = |entry| State::of(entry).ok_or_else(|| Unknown(found.path.clone()));
            entry.map(known).transpose()
        };
        let (before, after) = (state(found.before)?, state(found.after)?);
        if before != after {
            changes.push(Change { path: found.path.clone(), before, after });
        }
    }
    Ok(changes)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;
    use stead_files::{Manifest, Special, Time};

    use super::*;

    fn path(text: &str) -> RelPath {
        RelPath::parse(text).unwrap()
    }

    fn manifest(entries: Vec<Entry>) -> Manifest {
        Manifest::new(Time { secs: 1, nanos: 0 }, entries).unwrap()
    }

    fn base_of(entries: Vec<Entry>) -> Base {
        Base {
            manifest: manifest(entries),
            index: Vec::new(),
            ignored: Vec::new(),
            nested: Vec::new(),
            left_out: Vec::new(),
            commit: None,
            rules: crate::Rules::default(),
        }
    }

    fn snapshot_of(entries: Vec<Entry>) -> Snapshot {
        let manifest = manifest(entries);
        Snapshot {
            digest: manifest.digest(),
            manifest,
            beside: Vec::new(),
            repositories: Vec::new(),
            commits: None,
        }
    }

    fn entry(at: &str, mode: u16, node: Node) -> Entry {
        Entry { path: path(at), mode, node, seen: None }
    }

    fn file(at: &str, content: u8) -> Entry {
        let digest = Some(Digest::from_bytes([content; 32]));
        entry(at, 0o644, Node::File { size: 1, digest })
    }

    fn folder(at: &str) -> Entry {
        entry(at, 0o755, Node::Folder)
    }

    #[test]
    fn copies_67_what_is_withheld_is_no_deletion() {
        let secret = entry("d/secret", 0o600, Node::Withheld { size: 3 });
        let with = vec![folder("d"), file("d/a", 1), secret.clone()];
        let without = vec![folder("d"), file("d/a", 1)];
        let none: Vec<Change> = Vec::new();
        let say = |base: &[Entry], now: &[Entry]| {
            changes(&base_of(base.to_vec()), &snapshot_of(now.to_vec())).unwrap()
        };
        assert_eq!(say(&with, &without), none);
        assert_eq!(say(&without, &with), none);
        let real = vec![folder("d"), file("d/a", 1), file("d/secret", 7)];
        assert_eq!(say(&real, &with), none, "the content stayed behind, not the file");
    }

    #[test]
    fn what_is_not_eligible_is_no_removal() {
        let mut base = base_of(vec![
            folder("a"),
            file("a/x.log", 1),
            folder("nested"),
            file("nested/f", 1),
            file("plain", 1),
            folder("target"),
            file("target/o", 1),
        ]);
        base.ignored = vec![path("a/x.log"), path("target"), path("target/o")];
        base.nested = vec![path("nested")];
        let said = changes(&base, &snapshot_of(vec![])).unwrap();
        let removed: Vec<_> = said.iter().map(|change| change.path.to_string()).collect();
        assert_eq!(removed, ["plain"], "`a` holds what is not ours to remove");
    }

    #[test]
    fn a_file_without_a_digest_is_said() {
        let unread = entry("x", 0o644, Node::File { size: 1, digest: None });
        let said = changes(&base_of(vec![unread]), &snapshot_of(vec![file("x", 1)]));
        assert_eq!(said, Err(Unknown(path("x"))));
        let pipe = entry("p", 0o644, Node::Special(Special::Pipe));
        let said = changes(&base_of(vec![]), &snapshot_of(vec![pipe])).unwrap();
        assert_eq!(said[0].after, Some(State::Special));
    }

    /// Small trees over few names, so that the same path is often in both.
    fn trees() -> impl Strategy<Value = Vec<Entry>> {
        let node = prop_oneof![
            (0u8..3).prop_map(|content| Node::File {
                size: content.into(),
                digest: Some(Digest::from_bytes([content; 32]))
            }),
            Just(Node::Folder),
            (0u8..2).prop_map(|text| Node::Link(vec![b't', text].into())),
        ];
        let names = prop::sample::subsequence(vec!["a", "b", "a-", "\u{fc}"], 1..=3);
        let paths = names.prop_map(|names| names.join("/"));
        let mode = prop::sample::select(vec![0o644_u16, 0o755]);
        prop::collection::btree_map(paths, (node, mode), 0..8).prop_map(|found| {
            let mut all: BTreeMap<RelPath, (Node, u16)> = BTreeMap::new();
            for (at, (node, mode)) in found {
                let at = path(&at);
                let mut above = at.parent();
                while let Some(folder) = above.filter(|folder| !folder.is_root()) {
                    all.insert(folder.clone(), (Node::Folder, 0o755));
                    above = folder.parent();
                }
                all.entry(at).or_insert((node, mode));
            }
            let kept: Vec<RelPath> = all.keys().cloned().collect();
            for at in kept {
                let mut above = at.parent();
                while let Some(folder) = above.filter(|folder| !folder.is_root()) {
                    all.insert(folder.clone(), (Node::Folder, 0o755));
                    above = folder.parent();
                }
            }
            all.into_iter()
                .map(|(path, (node, mode))| {
                    let mode = if matches!(node, Node::Link(_)) { 0 } else { mode };
                    Entry { path, mode, node, seen: None }
                })
                .collect()
        })
    }

    fn model(entries: &[Entry]) -> BTreeMap<RelPath, State> {
        entries.iter().map(|entry| (entry.path.clone(), State::of(entry).unwrap())).collect()
    }

    proptest! {
        #[test]
        fn the_changes_lead_from_the_base_to_the_snapshot(one in trees(), two in trees()) {
            let (base, snapshot) = (base_of(one), snapshot_of(two));
            let mut tree = model(base.manifest.entries());
            let said = changes(&base, &snapshot).unwrap();
            prop_assert!(said.is_sorted_by(|a, b| a.path < b.path));
            for change in said {
                prop_assert_ne!(&change.before, &change.after);
                prop_assert_eq!(tree.remove(&change.path), change.before);
                if let Some(after) = change.after {
                    tree.insert(change.path, after);
                }
            }
            prop_assert_eq!(tree, model(snapshot.manifest.entries()));
            let same = snapshot_of(base.manifest.entries().to_vec());
            prop_assert!(changes(&base, &same).unwrap().is_empty());
        }
    }
}

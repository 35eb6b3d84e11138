//! A set of folders and files with everything below them.

use stead_files::RelPath;

/// Paths, each with all that is below it; asked for every path of a tree, so it allocates nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Scope(Vec<RelPath>);

impl Scope {
    pub(crate) fn new(paths: impl IntoIterator<Item = RelPath>) -> Self {
        let mut tops: Vec<RelPath> = paths.into_iter().collect();
        tops.sort();
        // What is below a path follows it at once, so only the last top can hold the next path.
        tops.dedup_by(|path, top| path.is_within(top));
        Self(tops)
    }

    /// The same and more.
    pub(crate) fn with(&self, more: impl IntoIterator<Item = RelPath>) -> Self {
        Self::new(self.0.iter().cloned().chain(more))
    }

    /// The topmost paths, in their order.
    pub(crate) fn tops(&self) -> &[RelPath] {
        &self.0
    }

    /// The topmost path of the set that `path` is or is below.
    pub(crate) fn top(&self, path: &RelPath) -> Option<&RelPath> {
        let after = self.0.partition_point(|top| top <= path);
        let top = self.0.get(after.checked_sub(1)?)?;
        path.is_within(top).then_some(top)
    }

    pub(crate) fn holds(&self, path: &RelPath) -> bool {
        self.top(path).is_some()
    }

    /// Whether something of the set is below `path`.
    pub(crate) fn is_below(&self, path: &RelPath) -> bool {
        let after = self.0.partition_point(|top| top <= path);
        self.0.get(after).is_some_and(|top| top.is_within(path))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn path() -> impl Strategy<Value = RelPath> {
        prop::collection::vec(prop::sample::select(vec!["a", "a-", "a.b", "b"]), 1..4)
            .prop_map(|names| RelPath::parse(names.join("/")).unwrap())
    }

    proptest! {
        #[test]
        fn a_scope_holds_what_is_within_one_of_its_paths(
            tops in prop::collection::vec(path(), 0..6),
            asked in path(),
        ) {
            let expected = tops.iter().any(|top| asked.is_within(top));
            let below = tops.iter().any(|top| top.is_within(&asked) && *top != asked);
            let scope = Scope::new(tops);
            prop_assert_eq!(scope.holds(&asked), expected);
            prop_assert_eq!(scope.holds(&asked) || scope.is_below(&asked), expected || below);
        }
    }
}

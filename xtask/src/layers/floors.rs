//! The house as data. `docs/rfc` says why it stands like this.

/// The floors from the ground up. A crate may import only crates of lower floors; a name may be
/// listed before the crate exists.
pub(crate) const FLOORS: &[&[&str]] = &[
    &["stead-core"],
    &["stead-files", "stead-process"],
    &["stead-git", "stead-store"],
    &["stead-copies", "stead-place", "stead-model"],
    &["stead-agent", "stead-gate", "stead-carry"],
    &["stead-engine"],
    &["stead-mcp", "stead-acp", "stead-web"],
    &["stead"],
];

/// Fixtures for tests: only ever a dev-dependency.
pub(crate) const TESTKIT: &str = "stead-testkit";

/// What [`TESTKIT`] stands on.
pub(crate) const TESTKIT_IMPORTS: &[&str] = &["stead-core", "stead-files", "stead-process"];

/// This program: it runs the others and imports none of them.
pub(crate) const XTASK: &str = "xtask";

/// Where a crate stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stand {
    /// On a floor, counted from 0.
    Floor(usize),
    /// Beside the house.
    Testkit,
    /// Beside the house.
    Xtask,
}

/// Looks a crate up; `None` when the table does not know it.
pub(crate) fn stand(name: &str) -> Option<Stand> {
    match name {
        TESTKIT => Some(Stand::Testkit),
        XTASK => Some(Stand::Xtask),
        _ => FLOORS.iter().position(|floor| floor.contains(&name)).map(Stand::Floor),
    }
}

/// The highest floor that [`TESTKIT`] imports: only crates above it may use the kit, as the kit
/// would otherwise pull a crate's equals or betters in below it.
pub(crate) fn testkit_top() -> usize {
    let floors = TESTKIT_IMPORTS.iter().filter_map(|name| match stand(name) {
        Some(Stand::Floor(floor)) => Some(floor),
        _ => None,
    });
    floors.max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_crate_stands_twice() {
        let mut names: Vec<&str> = FLOORS.iter().flat_map(|floor| floor.iter().copied()).collect();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
    }

    #[test]
    fn the_kit_stands_on_the_first_floor() {
        assert_eq!(testkit_top(), 1);
    }
}

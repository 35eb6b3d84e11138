//! Which crate imports which.

use std::path::PathBuf;

use cargo_metadata::{DependencyKind, Metadata};

use super::floors::{self, FLOORS, Stand, TESTKIT, TESTKIT_IMPORTS, XTASK};

/// A crate of the workspace.
#[derive(Debug)]
pub(crate) struct Member {
    /// The package's name.
    pub(crate) name: String,
    /// The folder of its manifest.
    pub(crate) folder: PathBuf,
    /// What it imports, of the workspace and from outside.
    pub(crate) imports: Vec<Import>,
}

/// One dependency of a crate.
#[derive(Debug)]
pub(crate) struct Import {
    /// The package's name, also where it is renamed.
    pub(crate) name: String,
    /// Whether it is one of ours.
    pub(crate) ours: bool,
    /// Whether only tests see it.
    pub(crate) for_tests: bool,
}

/// The workspace's crates, by name.
pub(crate) fn members(metadata: &Metadata) -> Vec<Member> {
    let mut members: Vec<Member> = metadata
        .workspace_packages()
        .into_iter()
        .map(|package| Member {
            name: package.name.to_string(),
            folder: package.manifest_path.parent().map(PathBuf::from).unwrap_or_default(),
            imports: package
                .dependencies
                .iter()
                .map(|dependency| Import {
                    name: dependency.name.clone(),
                    ours: dependency.path.is_some(),
                    for_tests: dependency.kind == DependencyKind::Development,
                })
                .collect(),
        })
        .collect();
    members.sort_by(|a, b| a.name.cmp(&b.name));
    members
}

/// Every import that goes up or sideways, and every crate that the table does not know.
pub(crate) fn violations(members: &[Member]) -> Vec<String> {
    let mut found = Vec::new();
    for member in members {
        let Some(stand) = floors::stand(&member.name) else {
            found.push(format!(
                "{}: not in the table of floors; a new crate needs a floor there and a record in docs/rfc",
                member.name
            ));
            continue;
        };
        for import in member.imports.iter().filter(|import| import.ours) {
            found.extend(wrong(member, stand, import));
        }
    }
    found
}

fn wrong(member: &Member, stand: Stand, import: &Import) -> Option<String> {
    let (from, to) = (&member.name, &import.name);
    let how = if import.for_tests { "imports (for tests)" } else { "imports" };
    let Some(target) = floors::stand(to) else {
        return Some(format!("{from} {how} {to}, which is not in the table of floors"));
    };
    match (stand, target) {
        (Stand::Xtask, _) => {
            Some(format!("{XTASK} {how} {to}: it runs the crates and imports none"))
        }
        (_, Stand::Xtask) => Some(format!("{from} {how} {XTASK}: it stands beside the house")),
        (Stand::Testkit, _) => (!TESTKIT_IMPORTS.contains(&to.as_str())).then(|| {
            format!("{TESTKIT} {how} {to}: it imports {} only", TESTKIT_IMPORTS.join(", "))
        }),
        (Stand::Floor(_), Stand::Testkit) if !import.for_tests => {
            Some(format!("{from} imports {TESTKIT}: it is a dev-dependency or none"))
        }
        (Stand::Floor(floor), Stand::Testkit) => (floor <= floors::testkit_top()).then(|| {
            format!(
                "{from} (floor {floor}) {how} {TESTKIT}, which stands on floor {}",
                floors::testkit_top()
            )
        }),
        (Stand::Floor(own), Stand::Floor(other)) if own == other => {
            let rest = FLOORS.get(own).map(|floor| floor.join(", ")).unwrap_or_default();
            Some(format!("{from} {how} {to}: both stand on floor {own} ({rest})"))
        }
        (Stand::Floor(own), Stand::Floor(other)) => (own < other).then(|| {
            format!("{from} (floor {own}) {how} {to} (floor {other}): imports go down only")
        }),
    }
}

#[cfg(test)]
mod tests {
    use cargo_metadata::MetadataCommand;
    use serde_json::{Value, json};

    use super::*;

    /// Metadata as cargo prints it, of crates given as `name: [(import, kind)]`.
    fn house(crates: &[(&str, &[(&str, Value)])]) -> Vec<String> {
        let id = |name: &str| format!("path+file:///house/{name}#0.1.0");
        let packages: Vec<Value> = crates
            .iter()
            .map(|(name, imports)| {
                let dependencies: Vec<Value> = imports
                    .iter()
                    .map(|(to, kind)| {
                        json!({
                            "name": to, "source": null, "req": "*", "kind": kind, "rename": null,
                            "optional": false, "uses_default_features": true, "features": [],
                            "target": null, "registry": null, "path": format!("/house/{to}")
                        })
                    })
                    .collect();
                json!({
                    "name": name, "version": "0.1.0", "id": id(name), "source": null,
                    "dependencies": dependencies, "targets": [], "features": {},
                    "manifest_path": format!("/house/{name}/Cargo.toml"), "edition": "2024",
                    "authors": [], "categories": [], "keywords": [], "metadata": null
                })
            })
            .collect();
        let ids: Vec<String> = crates.iter().map(|(name, _)| id(name)).collect();
        let text = json!({
            "packages": packages, "workspace_members": ids, "workspace_default_members": ids,
            "resolve": null, "target_directory": "/house/target", "version": 1,
            "workspace_root": "/house", "metadata": null
        });
        violations(&members(&MetadataCommand::parse(text.to_string()).unwrap()))
    }

    fn only(found: &[String]) -> &str {
        assert_eq!(found.len(), 1, "{found:?}");
        &found[0]
    }

    #[test]
    fn imports_that_go_down_are_fine() {
        let found = house(&[
            ("stead-core", &[]),
            ("stead-store", &[("stead-core", Value::Null)]),
            ("stead", &[("stead-store", Value::Null), ("stead-core", json!("build"))]),
        ]);
        assert!(found.is_empty(), "{found:?}");
    }

    #[test]
    fn an_upward_import_is_found() {
        let found = house(&[("stead-files", &[("stead-store", Value::Null)])]);
        assert!(only(&found).contains("floor 2"), "{found:?}");
    }

    #[test]
    fn an_import_on_the_same_floor_is_found() {
        let found = house(&[("stead-agent", &[("stead-gate", Value::Null)])]);
        assert!(only(&found).contains("both stand on floor 4"), "{found:?}");
    }

    #[test]
    fn a_crate_that_is_not_in_the_table_is_found() {
        assert!(only(&house(&[("stead-util", &[])])).starts_with("stead-util:"));
        let found = house(&[("stead", &[("helpers", Value::Null)])]);
        assert!(only(&found).contains("helpers, which is not in the table"), "{found:?}");
    }

    #[test]
    fn dev_dependencies_obey_the_same_floors() {
        let found = house(&[("stead-core", &[("stead-engine", json!("dev"))])]);
        assert!(only(&found).contains("(for tests)"), "{found:?}");
        assert!(!house(&[("stead-store", &[("stead-git", json!("dev"))])]).is_empty());
    }

    #[test]
    fn the_kit_is_for_tests_above_the_first_floor() {
        assert!(house(&[("stead-store", &[("stead-testkit", json!("dev"))])]).is_empty());
        let found = house(&[("stead-store", &[("stead-testkit", Value::Null)])]);
        assert!(only(&found).contains("dev-dependency or none"), "{found:?}");
        for below in ["stead-core", "stead-files"] {
            assert_eq!(house(&[(below, &[("stead-testkit", json!("dev"))])]).len(), 1, "{below}");
        }
    }

    #[test]
    fn the_kit_imports_its_three_crates_only() {
        assert!(house(&[("stead-testkit", &[("stead-process", Value::Null)])]).is_empty());
        assert_eq!(house(&[("stead-testkit", &[("stead-store", Value::Null)])]).len(), 1);
        assert_eq!(house(&[("stead-testkit", &[("stead-store", json!("dev"))])]).len(), 1);
    }

    #[test]
    fn xtask_imports_nobody_and_nobody_imports_it() {
        assert_eq!(house(&[("xtask", &[("stead-core", Value::Null)])]).len(), 1);
        assert_eq!(house(&[("stead", &[("xtask", json!("dev"))])]).len(), 1);
    }
}

//! What the file tools ask leave for, and what they tell before they have it.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that cannot go on says so by panicking"
)]

mod common;

use std::fs;

use serde_json::json;
use stead_core::permission::{Answer, Deed};
use stead_core::rule::{Bucket, Rule};

use common::World;

#[tokio::test]
async fn agents_56_what_lies_outside_is_asked_for_by_its_real_path() {
    let world = World::new();
    let there = world.beside("wt");
    let file = there.join("f");
    fs::write(&file, "one").unwrap();
    std::os::unix::fs::symlink(&file, world.app().join("link")).unwrap();
    let path = file.display().to_string();
    let done = world
        .calls(&[
            ("read", json!({ "path": "link" })),
            ("write", json!({ "path": path, "content": "two" })),
            ("list", json!({ "path": there.display().to_string() })),
        ])
        .await;
    assert!(done.iter().all(|result| !result.failed), "{done:?}");
    assert_eq!(done[0].text, "one");
    assert_eq!(fs::read_to_string(&file).unwrap(), "two");
    let asked: Vec<String> =
        world.state().asked.iter().filter(|a| a.starts_with("permission")).cloned().collect();
    let read = Deed::Read(path.clone());
    let edit = Deed::Edit(path.clone());
    assert_eq!(
        asked[..2],
        [
            format!("permission {read:?} read {path}, outside the working roots"),
            format!("permission {edit:?} write {path}, outside the working roots"),
        ]
    );
    // No folder is made for a file that was allowed.
    let below = there.join("new/f").display().to_string();
    let refused = world.calls(&[("write", json!({ "path": below, "content": "x" }))]).await;
    assert!(refused[0].failed && !there.join("new").exists());
}

#[tokio::test]
async fn a_refusal_does_not_tell_what_is_in_a_file() {
    let world = World::new();
    let there = world.beside("wt");
    fs::write(there.join("f"), "secret").unwrap();
    fs::write(world.app().join("own"), "secret").unwrap();
    let rule: Rule = "inaccessible read:own".parse().unwrap();
    world.state().terms.rules = vec![(Bucket::Session, vec![rule])];
    world.state().answer = Answer::Denied;
    let path = there.join("f").display().to_string();
    let mut texts = Vec::new();
    for path in [path.as_str(), "own"] {
        for old in ["secret", "nothing"] {
            let edit = json!({ "path": path, "old": old, "new": "x" });
            texts.push(world.calls(&[("edit", edit)]).await[0].text.clone());
        }
    }
    assert_eq!(texts[0], texts[1]);
    assert_eq!(texts[2], texts[3]);
    assert!(texts.iter().all(|text| text.starts_with("the person denied it: edit ")), "{texts:?}");
    let found = world.calls(&[("search", json!({ "pattern": "secret" }))]).await;
    assert!(found[0].text.contains("1 files or folders need leave of their own"), "{found:?}");
}

//! The names of tests and the ids in them.

use std::path::Path;

use super::known::{FIELD, SPECS};
use crate::report::Result;
use crate::source::{self, Token};
use crate::workspace;

/// A test function whose name carries ids of cases.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Test {
    /// The file, below the workspace's root.
    pub(crate) file: String,
    /// The function.
    pub(crate) name: String,
    /// The cases it shows.
    pub(crate) ids: Vec<String>,
    /// Parts that start with an id and go on with a number or another id, so that nobody can tell
    /// which cases are meant.
    pub(crate) unreadable: Vec<String>,
}

/// The tests with ids of all crates, sorted by file and place.
pub(crate) fn tests(root: &Path) -> Result<Vec<Test>> {
    let mut tests = Vec::new();
    for folder in ["crates", "xtask"] {
        for path in workspace::rust_files(&root.join(folder))? {
            let text = workspace::read(&path)?;
            tests.extend(of_file(&workspace::shown(root, &path), &text));
        }
    }
    Ok(tests)
}

/// The tests with ids of one file.
pub(crate) fn of_file(file: &str, text: &str) -> Vec<Test> {
    let functions = test_functions(&source::scan(text));
    let tests = functions.into_iter().map(|name| {
        let (ids, unreadable) = ids_in(&name);
        Test { file: file.to_owned(), name, ids, unreadable }
    });
    tests.filter(|test| !test.ids.is_empty() || !test.unreadable.is_empty()).collect()
}

/// Functions under an attribute that ends in `test`, inside `proptest!` and other macros too. What
/// is ignored shows nothing and is left out.
fn test_functions(tokens: &[Token]) -> Vec<String> {
    let mut found = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        let (mut is_test, mut is_ignored) = (false, false);
        while let Some(attribute) = source::attribute_at(tokens, at) {
            is_test |= attribute.is_test();
            is_ignored |= attribute.is_ignore();
            at = attribute.end;
        }
        while tokens.get(at).is_some_and(|token| token.is_word("pub") || token.is_word("async")) {
            at += 1;
        }
        let function = tokens.get(at).is_some_and(|token| token.is_word("fn"));
        if let Some(name) = tokens.get(at + 1).filter(|_| function && is_test && !is_ignored) {
            found.push(name.text.clone());
        }
        at += 1;
    }
    found
}

/// The ids in a name: `agents_1_agents_2_names` has two, then words. A name that does not start
/// with a specification and a digit is a word like any other.
fn ids_in(name: &str) -> (Vec<String>, Vec<String>) {
    let (mut ids, mut left) = (Vec::new(), name);
    while let Some((id, rest)) = id_at_start(left) {
        ids.push(id);
        let Some(behind) = rest.strip_prefix('_') else {
            return if rest.is_empty() { (ids, Vec::new()) } else { unreadable(name) };
        };
        left = behind;
        if left.chars().next().is_none_or(|first| first.is_ascii_digit()) {
            return unreadable(name);
        }
    }
    if !ids.is_empty() && holds_id(left) { unreadable(name) } else { (ids, Vec::new()) }
}

fn unreadable(name: &str) -> (Vec<String>, Vec<String>) {
    (Vec::new(), vec![name.to_owned()])
}

/// Whether an id hides among words that are joined by single underscores.
fn holds_id(words: &str) -> bool {
    let starts = words.match_indices('_').filter_map(|(at, _)| words.get(at + 1..));
    std::iter::once(words).chain(starts).any(|words| id_at_start(words).is_some())
}

/// Splits `agents_41_names` into `agents_41` and `_names`; a single letter may follow the digits.
fn id_at_start(part: &str) -> Option<(String, &str)> {
    let (spec, rest) = part.split_once('_')?;
    let (spec, rest) = if spec == FIELD {
        let (kind, rest) = rest.split_once('_')?;
        (format!("{spec}_{kind}"), rest)
    } else {
        SPECS.iter().find(|known| known.prefix == spec)?;
        (spec.to_owned(), rest)
    };
    let end = rest.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(rest.len());
    let (digits, mut rest) = rest.split_at_checked(end)?;
    if digits.is_empty() {
        return None;
    }
    let mut number = digits.to_owned();
    let mut letters = rest.chars();
    if let Some(letter) = letters.next().filter(char::is_ascii_lowercase) {
        number.push(letter);
        rest = letters.as_str();
    }
    Some((format!("{spec}_{number}"), rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(name: &str) -> Vec<String> {
        ids_in(name).0
    }

    #[test]
    fn an_id_ends_where_its_number_ends() {
        assert_eq!(ids("agents_41"), ["agents_41"]);
        assert_eq!(ids("agents_4_names"), ["agents_4"]);
        assert_eq!(ids("plans_33b_bridge"), ["plans_33b"]);
        assert_eq!(ids("field_apl_02_stash"), ["field_apl_02"]);
        assert_eq!(ids("agents_1_agents_2_names"), ["agents_1", "agents_2"]);
        assert_eq!(ids("agents_1_and_more"), ["agents_1"]);
    }

    #[test]
    fn other_names_carry_no_id() {
        for name in ["agents_are_fine", "plans", "shown_agents_4", "field_x", "field_id_card"] {
            assert_eq!(ids_in(name), (vec![], vec![]), "{name}");
        }
    }

    #[test]
    fn a_number_behind_an_id_is_unreadable() {
        assert_eq!(ids_in("agents_4_2_names"), (vec![], vec!["agents_4_2_names".to_owned()]));
        assert_eq!(ids_in("plans_3bc").1, ["plans_3bc"]);
        assert_eq!(ids_in("agents_4_").1, ["agents_4_"]);
    }

    #[test]
    fn ids_come_first_or_are_unreadable() {
        assert_eq!(ids("agents_1_field_apl_02"), ["agents_1", "field_apl_02"]);
        for name in ["agents_1_and_field_apl_02", "agents_1_so_plans_3"] {
            assert_eq!(ids_in(name), (vec![], vec![name.to_owned()]));
        }
        assert_eq!(ids("agents_1_plans_come_later"), ["agents_1"]);
    }

    #[test]
    fn only_functions_under_a_test_attribute_count() {
        let text = r##"
            fn agents_1() {}
            #[test] fn agents_2() {}
            #[tokio::test(flavor = "current_thread")] async fn agents_3_x() {}
            proptest! { #![proptest_config(c)] #[test] fn agents_4_y(s in "a") {} }
            #[test] #[ignore = "slow"] fn agents_5() {}
            // #[test] fn agents_6() {}
            const TEXT: &str = "#[test] fn agents_7() {}";
            #[cfg(test)] fn agents_8() {}
            #[cfg(unix)] #[test] pub(crate) fn plain() {}
        "##;
        let found = of_file("a.rs", text);
        let names: Vec<&str> = found.iter().map(|test| test.name.as_str()).collect();
        assert_eq!(names, ["agents_2", "agents_3_x", "agents_4_y"]);
    }
}

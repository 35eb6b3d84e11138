//! Attributes, and which lines of a file are compiled for tests only.

use std::path::{Path, PathBuf};

use super::scan::{Kind, Token};

/// An attribute such as `#[cfg(test)]`.
#[derive(Debug)]
pub(crate) struct Attribute<'a> {
    /// The tokens between the brackets.
    pub(crate) inside: &'a [Token],
    /// The index of the token behind the closing bracket.
    pub(crate) end: usize,
}

impl Attribute<'_> {
    /// `#[test]`, `#[tokio::test]`, `#[tokio::test(flavor = "…")]`.
    pub(crate) fn is_test(&self) -> bool {
        let path =
            self.inside.iter().take_while(|token| !token.is_mark("(") && !token.is_mark("="));
        path.last().is_some_and(|token| token.is_word("test"))
    }

    /// `#[ignore]`, with or without a reason.
    pub(crate) fn is_ignore(&self) -> bool {
        self.inside.first().is_some_and(|token| token.is_word("ignore"))
    }

    /// `#[cfg(test)]` and `#[cfg(all(test, …))]`; with `not` or `any` the code may be compiled
    /// without tests too.
    fn is_cfg_test(&self) -> bool {
        let has = |word: &str| self.inside.iter().any(|token| token.is_word(word));
        self.inside.first().is_some_and(|token| token.is_word("cfg"))
            && has("test")
            && !has("not")
            && !has("any")
    }

    /// The file named by `#[path = "…"]`.
    fn path(&self) -> Option<&str> {
        self.inside.first().filter(|token| token.is_word("path"))?;
        self.inside
            .last()
            .filter(|token| token.kind == Kind::Literal)
            .map(|token| token.text.as_str())
    }
}

/// The attribute that starts at `at`, with `#[` or `#![`.
pub(crate) fn attribute_at(tokens: &[Token], at: usize) -> Option<Attribute<'_>> {
    tokens.get(at).filter(|token| token.is_mark("#"))?;
    let inner = tokens.get(at + 1).is_some_and(|token| token.is_mark("!"));
    let open = if inner { at + 2 } else { at + 1 };
    tokens.get(open).filter(|token| token.is_mark("["))?;
    let end = closed(tokens, open);
    Some(Attribute { inside: tokens.get(open + 1..end.saturating_sub(1)).unwrap_or(&[]), end })
}

/// The index behind the bracket that closes the one at `open`.
fn closed(tokens: &[Token], open: usize) -> usize {
    let mut depth = 0_usize;
    for (at, token) in tokens.iter().enumerate().skip(open) {
        if token.kind != Kind::Mark {
            continue;
        }
        match token.text.as_str() {
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 {
            return at + 1;
        }
    }
    tokens.len()
}

/// What of a file is for tests.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct TestLines {
    /// The whole file, by `#![cfg(test)]`.
    whole: bool,
    /// Ranges of lines, both ends included.
    ranges: Vec<(usize, usize)>,
    /// Modules in files of their own: a name, or a path given by an attribute.
    modules: Vec<Module>,
}

/// A test module that lives in another file.
#[derive(Debug, PartialEq, Eq)]
enum Module {
    /// `#[cfg(test)] mod name;`
    Named(String),
    /// The same with `#[path = "…"]`.
    At(String),
}

impl TestLines {
    /// Whether a line is compiled for tests only.
    pub(crate) fn contain(&self, line: usize) -> bool {
        self.whole || self.ranges.iter().any(|(from, to)| (*from..=*to).contains(&line))
    }

    /// Files and folders that hold the test modules declared in `file`.
    pub(crate) fn files(&self, file: &Path) -> Vec<PathBuf> {
        let stem = file.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
        let beside = file.parent().unwrap_or(file);
        // The modules of `a.rs` live in `a/`, those of a crate's or folder's root beside it.
        let below = match stem {
            "lib" | "main" | "mod" => beside.to_owned(),
            _ => beside.join(stem),
        };
        let mut files = Vec::new();
        for module in &self.modules {
            match module {
                Module::At(path) => files.push(beside.join(path)),
                Module::Named(name) => {
                    files.push(below.join(format!("{name}.rs")));
                    files.push(below.join(name));
                }
            }
        }
        files
    }
}

/// Finds the items under `#[cfg(test)]` and `#[test]`.
pub(crate) fn test_lines(tokens: &[Token]) -> TestLines {
    let mut found = TestLines::default();
    let mut at = 0;
    while let Some(token) = tokens.get(at) {
        let start = token.line;
        let Some(first) = attribute_at(tokens, at) else {
            at += 1;
            continue;
        };
        let inner = tokens.get(at + 1).is_some_and(|token| token.is_mark("!"));
        if inner {
            found.whole |= first.is_cfg_test();
            at = first.end;
            continue;
        }
        let mut for_tests = false;
        let mut path = None;
        while let Some(attribute) = attribute_at(tokens, at) {
            for_tests |= attribute.is_cfg_test() || attribute.is_test();
            path = path.or_else(|| attribute.path().map(str::to_owned));
            at = attribute.end;
        }
        if !for_tests {
            continue;
        }
        let end = item_end(tokens, at);
        let last = end.checked_sub(1).and_then(|last| tokens.get(last));
        found.ranges.push((start, last.map_or(start, |token| token.line)));
        let item = tokens.get(at..end).unwrap_or(&[]);
        if item.last().is_some_and(|token| token.is_mark(";")) {
            let name = item.iter().skip_while(|token| !token.is_word("mod")).nth(1);
            match (path, name) {
                (Some(path), Some(_)) => found.modules.push(Module::At(path)),
                (None, Some(name)) => found.modules.push(Module::Named(name.text.clone())),
                (_, None) => {}
            }
        }
        at = end;
    }
    found
}

/// The index behind an item: behind its body, or behind its semicolon.
fn item_end(tokens: &[Token], from: usize) -> usize {
    let mut at = from;
    while let Some(token) = tokens.get(at) {
        if token.is_mark(";") {
            return at + 1;
        }
        if token.is_mark("{") {
            return closed(tokens, at);
        }
        at = if token.is_mark("(") || token.is_mark("[") { closed(tokens, at) } else { at + 1 };
    }
    tokens.len()
}

#[cfg(test)]
mod tests {
    use super::super::scan;
    use super::*;

    #[test]
    fn a_test_module_is_marked_to_its_last_line() {
        let found =
            test_lines(&scan("fn a() {}\n#[cfg(test)]\nmod tests {\n fn b() {}\n}\nfn c() {}"));
        let marked: Vec<usize> = (1..=6).filter(|line| found.contain(*line)).collect();
        assert_eq!(marked, [2, 3, 4, 5]);
    }

    #[test]
    fn code_for_other_builds_is_not_a_test() {
        let found =
            test_lines(&scan("#[cfg(not(test))]\nfn a() {}\n#[cfg(any(test, unix))]\nfn b() {}"));
        assert_eq!(found, TestLines::default());
    }

    #[test]
    fn modules_in_their_own_files_are_named() {
        let text = "#[cfg(test)] mod a;\n#[cfg(test)] #[path = \"b_tests.rs\"] mod tests;";
        let found = test_lines(&scan(text));
        assert_eq!(found.modules, [Module::Named("a".into()), Module::At("b_tests.rs".into())]);
    }

    #[test]
    fn a_whole_file_can_be_for_tests() {
        assert!(test_lines(&scan("#![cfg(test)]\nfn a() {}")).contain(2));
        assert!(!test_lines(&scan("#![allow(test)]\nfn a() {}")).contain(2));
    }

    #[test]
    fn test_attributes_are_known_by_their_last_word() {
        for (text, expected) in [
            ("#[test]", true),
            ("#[tokio::test]", true),
            ("#[tokio::test(flavor = \"current_thread\")]", true),
            ("#[cfg(test)]", false),
            ("#[derive(Debug)]", false),
        ] {
            let tokens = scan(text);
            assert_eq!(attribute_at(&tokens, 0).unwrap().is_test(), expected, "{text}");
        }
    }
}

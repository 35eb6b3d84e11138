//! One door each: the places where a process, the environment, SQL, printing and unsafe code are.
//!
//! A cheap look at the source, not a proof: it finds what somebody writes without thinking of the
//! rule. The lints of the compiler stand beside it.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::floors::{TESTKIT, XTASK};
use super::imports::Member;
use crate::report::Result;
use crate::source::{self, TestLines, Token};
use crate::workspace;

/// A power and who may use it.
struct Door {
    /// What is looked for, and how a report names it.
    finds: Finds,
    /// The crates behind the door.
    crates: &'static [&'static str],
    /// Single files of other crates.
    files: &'static [&'static str],
    /// Whether tests and build scripts may too.
    tests: bool,
    /// What to use instead.
    instead: &'static str,
}

/// How a power looks in source.
enum Finds {
    /// A path, also by its last two segments, but for what goes on with one of the exceptions.
    Path(&'static [&'static str], &'static [&'static str]),
    /// A word.
    Word(&'static str),
    /// Macros by name.
    Macros(&'static [&'static str]),
}

/// What `std::env` holds that reads nothing of the environment; the directory has a door of its own.
const NOT_READ: &[&str] =
    &["consts", "split_paths", "SplitPaths", "join_paths", "JoinPathsError", "set_current_dir"];

const DOORS: &[Door] = &[
    Door {
        finds: Finds::Path(&["std", "process", "Command"], &[]),
        crates: &["stead-process", TESTKIT, XTASK],
        files: &[],
        tests: true,
        instead: "processes are started by stead-process",
    },
    Door {
        finds: Finds::Path(&["tokio", "process"], &[]),
        crates: &["stead-process", TESTKIT, XTASK],
        files: &[],
        tests: true,
        instead: "processes are started by stead-process",
    },
    Door {
        finds: Finds::Word("rusqlite"),
        crates: &["stead-store"],
        files: &[],
        tests: false,
        instead: "SQL lives in stead-store",
    },
    Door {
        finds: Finds::Macros(&["print", "println", "eprint", "eprintln"]),
        crates: &["stead", TESTKIT, XTASK],
        files: &[],
        tests: true,
        instead: "only the program prints; log with tracing or answer a value",
    },
    Door {
        finds: Finds::Path(&["std", "env"], NOT_READ),
        crates: &["stead", TESTKIT, XTASK],
        files: &["crates/core/src/env.rs"],
        tests: true,
        instead: "the program reads the environment and hands values down",
    },
    Door {
        finds: Finds::Word("set_current_dir"),
        crates: &["stead", "stead-process", TESTKIT],
        files: &[],
        tests: false,
        instead: "a process has one directory; only the program and a run's own process choose it",
    },
    Door {
        finds: Finds::Word("unsafe"),
        crates: &["stead-files", "stead-process"],
        files: &[],
        tests: false,
        instead: "unsafe code lives in stead-files and stead-process",
    },
];

/// One source file and whose it is.
pub(crate) struct File {
    krate: String,
    shown: String,
    tokens: Vec<Token>,
    tests: TestLines,
    /// A test, a benchmark, an example or a build script as a whole.
    beside: bool,
}

/// The source files of a crate.
pub(crate) fn files(root: &Path, member: &Member) -> Result<Vec<File>> {
    let mut files = Vec::new();
    let mut test_files: BTreeSet<PathBuf> = BTreeSet::new();
    let paths = workspace::rust_files(&member.folder)?;
    for path in &paths {
        let tokens = source::scan(&workspace::read(path)?);
        let tests = source::test_lines(&tokens);
        test_files.extend(tests.files(path));
        files.push(File {
            krate: member.name.clone(),
            shown: workspace::shown(root, path),
            beside: is_beside(path.strip_prefix(&member.folder).unwrap_or(path)),
            tokens,
            tests,
        });
    }
    // Only now are all modules known that a `#[cfg(test)]` elsewhere declares.
    for (file, path) in files.iter_mut().zip(&paths) {
        file.beside |= test_files.iter().any(|test| path == test || path.starts_with(test));
    }
    Ok(files)
}

/// Cargo's own places for tests, benchmarks, examples and build scripts.
fn is_beside(path: &Path) -> bool {
    path == Path::new("build.rs")
        || ["tests", "benches", "examples"].iter().any(|folder| path.starts_with(folder))
}

/// Every use of a power outside its door.
pub(crate) fn violations(file: &File) -> Vec<String> {
    let paths = source::paths(&file.tokens);
    let mut found = BTreeSet::new();
    for door in DOORS {
        if door.crates.contains(&file.krate.as_str()) || door.files.contains(&file.shown.as_str()) {
            continue;
        }
        for (line, what) in door.finds.within(&file.tokens, &paths) {
            if door.tests && (file.beside || file.tests.contain(line)) {
                continue;
            }
            found.insert((line, format!("{}:{line}: `{what}`: {}", file.shown, door.instead)));
        }
    }
    found.into_iter().map(|(_, text)| text).collect()
}

impl Finds {
    fn within(&self, tokens: &[Token], paths: &[(Vec<String>, usize)]) -> Vec<(usize, String)> {
        match self {
            Self::Word(word) => {
                let hits = tokens.iter().filter(|token| token.is_word(word));
                hits.map(|token| (token.line, (*word).to_owned())).collect()
            }
            Self::Macros(names) => tokens
                .iter()
                .zip(tokens.iter().skip(1))
                .filter(|(name, mark)| names.iter().any(|it| name.is_word(it)) && mark.is_mark("!"))
                .map(|(name, _)| (name.line, format!("{}!", name.text)))
                .collect(),
            Self::Path(wanted, but) => paths
                .iter()
                .filter(|(path, _)| reaches(path, wanted, but))
                .map(|(path, line)| (*line, path.join("::")))
                .collect(),
        }
    }
}

/// Whether a path leads to the wanted one: it starts with it, starts with its last two segments
/// (after an import of the module), or takes it in by a glob or under another name.
fn reaches(path: &[String], wanted: &[&str], but: &[&str]) -> bool {
    let starts = |with: &[&str]| {
        path.len() >= with.len() && path.iter().zip(with).all(|(segment, it)| segment == it)
    };
    let short = wanted.get(wanted.len().saturating_sub(2)..).unwrap_or(wanted);
    for form in [wanted, short] {
        if starts(form) {
            return !path.get(form.len()).is_some_and(|next| but.contains(&next.as_str()));
        }
    }
    let Some((_, module)) = wanted.split_last() else { return false };
    module.len() > 1
        && starts(module)
        && path.get(module.len()).is_some_and(|next| next == "*" || next == "as")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(krate: &str, shown: &str, text: &str) -> File {
        let tokens = source::scan(text);
        let tests = source::test_lines(&tokens);
        File { krate: krate.into(), shown: shown.into(), tokens, tests, beside: false }
    }

    fn found(krate: &str, text: &str) -> usize {
        violations(&file(krate, "crates/x/src/lib.rs", text)).len()
    }

    #[test]
    fn processes_start_behind_one_door() {
        for text in [
            "use std::process::Command;",
            "use std::process::{ExitCode, Command};",
            "use std::{fs, process::Command};",
            "use std::process;\nfn a() { process::Command::new(\"a\"); }",
            "use std::process::*;",
            "use std::process as p;",
            "fn a() { tokio::process::Command::new(\"a\"); }",
        ] {
            assert_eq!(found("stead-agent", text), 1, "{text}");
            assert_eq!(found("stead-process", text), 0, "{text}");
        }
        assert_eq!(found("stead-agent", "use std::process::{ExitCode, id};"), 0);
        assert_eq!(found("stead-agent", "use stead_process::Command;"), 0);
    }

    #[test]
    fn the_environment_is_read_by_the_program() {
        for text in
            ["use std::env;", "fn a() { std::env::var(\"A\"); }", "use std::{env as e, fs};"]
        {
            assert_eq!(found("stead-place", text), 1, "{text}");
            assert_eq!(found("stead", text), 0, "{text}");
            assert!(violations(&file("stead-core", "crates/core/src/env.rs", text)).is_empty());
        }
        assert_eq!(found("stead-place", "let a = std::env::consts::OS; env!(\"A\")"), 0);
        assert_eq!(found("stead-place", "let a = std::env::split_paths(b);"), 0);
    }

    #[test]
    fn the_directory_of_a_process_is_chosen_by_few() {
        let text = "fn a() { std::env::set_current_dir(b); }";
        assert_eq!(found("stead-process", text), 0);
        assert_eq!(found("stead-engine", text), 1);
        assert_eq!(found("stead-engine", &format!("#[cfg(test)] mod tests {{ {text} }}")), 1);
    }

    #[test]
    fn sql_printing_and_unsafe_have_their_crates() {
        assert_eq!(found("stead-gate", "use rusqlite::Connection;"), 1);
        assert_eq!(found("stead-store", "use rusqlite::Connection;"), 0);
        assert_eq!(found("stead-engine", "println!(\"a\"); eprintln!(\"b\");"), 2);
        assert_eq!(found("stead", "println!(\"a\");"), 0);
        assert_eq!(found("stead-engine", "writeln!(out, \"a\");"), 0);
        assert_eq!(found("stead-store", "unsafe { a() }"), 1);
        assert_eq!(found("stead-files", "unsafe { a() }"), 0);
        assert_eq!(found("stead-store", "#![deny(unsafe_code)] // unsafe"), 0);
    }

    #[test]
    fn tests_may_print_and_start_processes_but_not_use_sql_or_unsafe() {
        let module = |body: &str| format!("#[cfg(test)]\nmod tests {{\n{body}\n}}");
        assert_eq!(found("stead-gate", &module("use std::process::Command; use std::env;")), 0);
        assert_eq!(found("stead-gate", &module("fn a() { println!(); }")), 0);
        assert_eq!(found("stead-gate", &module("use rusqlite::Connection;")), 1);
        assert_eq!(found("stead-gate", &module("fn a() { unsafe { b() } }")), 1);
    }

    #[test]
    fn test_modules_in_their_own_files_are_tests() {
        let root = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = root.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        write("src/lib.rs", "#[cfg(test)] mod fixture;\nmod queue;");
        write("src/fixture.rs", "use std::process::Command; mod deep;");
        write("src/fixture/deep.rs", "use std::process::Command;");
        write(
            "src/queue.rs",
            "#[cfg(test)] #[path = \"queue_tests.rs\"] mod tests; #[cfg(test)] mod more;",
        );
        write("src/queue_tests.rs", "use std::process::Command;");
        write("src/queue/more.rs", "use std::process::Command;");
        write("src/queue/real.rs", "use std::process::Command;");
        write("tests/walk.rs", "use std::process::Command;");
        let folder = root.path().to_owned();
        let member = Member { name: "stead-gate".into(), folder, imports: Vec::new() };
        let found: Vec<String> =
            files(root.path(), &member).unwrap().iter().flat_map(violations).collect();
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].starts_with("src/queue/real.rs:1:"), "{found:?}");
    }
}

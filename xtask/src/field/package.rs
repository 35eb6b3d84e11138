//! The sources of a package of more than 5,000 files, fetched from its registry by the usual client.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Instant;

use super::copies::{Untouched, bring_over};
use super::tree::{Files, changed, files, unexpected};
use super::{Done, Field, look_at_session, ok, play};
use crate::report::Result;

const PACKAGE: &str = "date-fns@4.1.0";
const PLAYBOOK: &str = "examples/field/playbook.toml";
const MESSAGE: &str = "Replace substr, which is deprecated.";
/// What the survey writes.
const LIST: &str = "LOCALES.txt";
const FEWEST: usize = 5000;
/// The call that goes, and the one that comes.
const OLD: &str = ".substr(";

/// The files that call it, bundles aside.
const RENAMED: &[&str] = &[
    "locale/bs/_lib/formatDistance.cjs",
    "locale/bs/_lib/formatDistance.js",
    "locale/hr/_lib/formatDistance.cjs",
    "locale/hr/_lib/formatDistance.js",
    "locale/sr-Latn/_lib/formatDistance.cjs",
    "locale/sr-Latn/_lib/formatDistance.js",
    "locale/sr/_lib/formatDistance.cjs",
    "locale/sr/_lib/formatDistance.js",
    "parseISO.cjs",
    "parseISO.js",
];

/// Compares the changed functions with those of the package as it came: `node -e … OLD NEW`.
const COMPARE: &str = r#"
const assert = require("node:assert");
const [old, changed] = process.argv.slice(1);
let count = 0;
for (const locale of ["bs", "hr", "sr", "sr-Latn"]) {
  const [a, b] = [old, changed].map((at) =>
    require(`${at}/locale/${locale}/_lib/formatDistance.cjs`).formatDistance);
  for (const unit of ["lessThanXSeconds", "xSeconds", "xMinutes", "xHours", "xDays", "xYears"])
    for (let number = 0; number <= 1200; number++, count++)
      assert.strictEqual(a(unit, number, {}), b(unit, number, {}));
}
const [a, b] = [old, changed].map((at) => require(`${at}/parseISO.cjs`).parseISO);
for (const text of ["2026-11-30", "2026-11-30T12:30", "2026-11-30T12:30:15.123Z",
  "2026-11-30T12:30:15+05:30", "2026-W49-1", "20261130", "2026-11-30T25", "", "T", "2026-334T01"]) {
  assert.strictEqual(String(a(text).getTime()), String(b(text).getTime()), text);
  count++;
}
console.log(count);
"#;

pub(super) fn run(field: &Field<'_>) -> Result<Done> {
    let began = Instant::now();
    let archive = match fetched(field.folder)? {
        Ok(archive) => archive,
        Err(why) => return Ok(Done::Skipped(why)),
    };
    let fetching = began.elapsed();
    let world = field.world()?;
    for folder in ["pristine", "work"] {
        fs::create_dir(field.folder.join(folder))?;
        ok(&world, &field.folder.join(folder), &["tar", "-xzf", &archive])?;
    }
    let (pristine, work) =
        (field.folder.join("pristine/package"), field.folder.join("work/package"));
    let untouched = Untouched::committed(&world, &work)?;
    let before = files(&work)?;
    let mut violations = Vec::new();
    if before.len() < FEWEST {
        violations.push(format!("{PACKAGE} has {} files only", before.len()));
    }
    if callers(&before) != RENAMED.iter().map(PathBuf::from).collect() {
        violations.push(format!("other files than expected call {OLD}"));
    }

    let read = Some(pristine.as_path());
    let (printed, took) = play(field, &world, &work, PLAYBOOK, MESSAGE, read)?;
    let mut expected = RENAMED.to_vec();
    expected.push(LIST);
    violations.extend(bring_over(&world, &work, &untouched, &expected)?);

    let after = files(&work)?;
    violations.extend(unexpected(&changed(&before, &after), &expected));
    violations.extend(renamed(&before, &after));
    let listed = after.get(Path::new(LIST)).map(|text| String::from_utf8_lossy(text).into_owned());
    let locales = locales(&before);
    if listed.as_deref() != Some(&locales) {
        violations.push(format!("{LIST} is not the list of locales: {listed:?}"));
    }
    if !printed.contains("answers of both forms agree") {
        violations.push(format!("the result does not say that the changed files work:\n{printed}"));
    }
    let text = |path: &Path| path.to_string_lossy().into_owned();
    let compared = ok(&world, &work, &["node", "-e", COMPARE, &text(&pristine), &text(&work)])?;
    violations.extend(look_at_session(&world, &work, 4)?);
    let says = format!(
        "{PACKAGE}: {} files, fetched in {:.1} s. Four agents listed {} locales and replaced the \
         deprecated call in {} files of a private copy in {:.1} s; until the apply every byte of \
         the original and of its .git was as before, after it only those files differ, a second \
         apply brought what was written later, and the changed functions answer {} questions as \
         before.",
        before.len(),
        fetching.as_secs_f64(),
        locales.lines().count(),
        RENAMED.len(),
        took.as_secs_f64(),
        compared.trim()
    );
    Ok(Done::Looked { says, violations })
}

/// The package's archive in `folder`, or why there is none.
fn fetched(folder: &Path) -> Result<std::result::Result<String, String>> {
    let said = |program: &str, arguments: &[&str]| {
        let mut command = Command::new(program);
        command.args(arguments).current_dir(folder).stdin(Stdio::null()).output()
    };
    for program in ["node", "npm", "tar"] {
        if !said(program, &["--version"]).is_ok_and(|output| output.status.success()) {
            return Ok(Err(format!("{program} is not installed")));
        }
    }
    let Output { status, stdout, stderr } = said("npm", &["pack", "--loglevel", "error", PACKAGE])?;
    if !status.success() {
        let errors = String::from_utf8_lossy(&stderr);
        let first = errors.lines().next().unwrap_or("it does not say why").to_owned();
        return Ok(Err(format!("npm cannot fetch {PACKAGE} ({first})")));
    }
    let printed = String::from_utf8_lossy(&stdout);
    let name = printed.lines().last().unwrap_or_default().trim();
    Ok(Ok(folder.join(name).to_string_lossy().into_owned()))
}

/// The files that call what is deprecated. Bundles are built from the others.
fn callers(files: &Files) -> BTreeSet<PathBuf> {
    let has = |content: &[u8]| String::from_utf8_lossy(content).contains(OLD);
    let sources = files.iter().filter(|(path, _)| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        !name.starts_with("cdn.") && (name.ends_with(".js") || name.ends_with(".cjs"))
    });
    sources.filter(|(_, content)| has(content)).map(|(path, _)| path.clone()).collect()
}

/// Files that are not what they were with the call replaced, letter by letter.
fn renamed(before: &Files, after: &Files) -> Vec<String> {
    let text = |files: &Files, path: &str| {
        files.get(Path::new(path)).map(|content| String::from_utf8_lossy(content).into_owned())
    };
    let wrong = |path: &&&str| {
        let expected = text(before, path)
            .map(|text| text.replace(".substr(-2, 1)", ".slice(-2, -1)").replace(OLD, ".slice("));
        expected.is_none() || text(after, path) != expected
    };
    RENAMED.iter().filter(wrong).map(|path| format!("{path} was changed otherwise")).collect()
}

/// The names of the locales, a line each, sorted by bytes.
fn locales(files: &Files) -> String {
    let in_folder = files.keys().filter(|path| path.parent() == Some(Path::new("locale")));
    let names: BTreeSet<String> = in_folder
        .filter(|path| path.extension().is_some_and(|extension| extension == "js"))
        .filter_map(|path| Some(path.file_stem()?.to_string_lossy().into_owned()))
        .filter(|name| !name.starts_with("cdn"))
        .collect();
    names.into_iter().fold(String::new(), |list, name| list + &name + "\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(files: &[(&str, &str)]) -> Files {
        files.iter().map(|(path, text)| (PathBuf::from(path), text.as_bytes().to_vec())).collect()
    }

    #[test]
    fn bundles_and_declarations_call_nothing() {
        let files =
            made(&[("a.js", "x.substr(1)"), ("cdn.js", "x.substr(1)"), ("a.md", ".substr(")]);
        assert_eq!(callers(&files), BTreeSet::from([PathBuf::from("a.js")]));
    }

    #[test]
    fn locales_are_files_of_one_folder() {
        let files = made(&[
            ("locale/en-US.js", ""),
            ("locale/af.js", ""),
            ("locale/af.cjs", ""),
            ("locale/cdn.min.js", ""),
            ("locale/af/cdn.js", ""),
        ]);
        assert_eq!(locales(&files), "af\nen-US\n");
    }

    #[test]
    fn another_change_is_seen() {
        let old: Vec<(&str, &str)> =
            RENAMED.iter().map(|path| (*path, "a.substr(-2, 1)")).collect();
        let mut new: Vec<(&str, &str)> =
            old.iter().map(|(path, _)| (*path, "a.slice(-2, -1)")).collect();
        assert_eq!(renamed(&made(&old), &made(&new)), [""; 0]);
        new[3].1 = "a.slice(-2, 1)";
        assert_eq!(renamed(&made(&old), &made(&new)).len(), 1);
    }
}

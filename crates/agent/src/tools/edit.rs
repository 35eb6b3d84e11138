//! `edit`: exact text replaced in a file; what was not named stays as it is, byte for byte.

use std::fs::Metadata;
use std::io::Read as _;
use std::os::unix::fs::MetadataExt as _;

use serde_json::json;
use stead_core::refusal::{Refusal, RefusalKind};

use super::arguments::EditArguments;
use super::authority::{Authority, Found, failed};
use super::output::Output;
use super::write::{alone, replace, same};

/// The largest file that is edited.
const LARGEST_FILE: u64 = 32 * 1024 * 1024;
const MARK: &[u8] = b"\xef\xbb\xbf";

/// What an edit comes to before it is written.
struct Edited {
    found: Found,
    before: Metadata,
    bytes: Vec<u8>,
    lines: Vec<usize>,
}

/// Judges a call without doing it: the text must stand in the file as often as it should.
pub(crate) fn judge(authority: &Authority, arguments: &EditArguments) -> Result<Found, Refusal> {
    prepare(authority, arguments).map(|edited| edited.found)
}

/// Replaces the text.
pub(crate) fn edit(
    authority: &Authority,
    judged: &Found,
    arguments: &EditArguments,
) -> Result<Output, Refusal> {
    let _alone = alone();
    let Edited { found, before, bytes, lines } = prepare(authority, arguments)?;
    same(judged, &found)?;
    // An editor or a command of the person may have written meanwhile.
    let now =
        found.real.symlink_metadata().map_err(|error| failed("examine", &found.shown, &error))?;
    if stamp(&now) != stamp(&before) {
        return Err(Refusal::new(
            RefusalKind::Conflict,
            format!("{} changed while it was edited; nothing was written", found.shown),
        )
        .hint("read it again"));
    }
    replace(&found, &bytes)?;
    let numbers = numbers(&lines);
    let text = match lines.as_slice() {
        [line] => format!("edited {} at line {line}", found.shown),
        several => format!("edited {} in {} places: lines {numbers}", found.shown, several.len()),
    };
    Ok(Output::new(text, json!({ "path": found.shown, "lines": lines })))
}

fn stamp(file: &Metadata) -> (u64, u64, u64, i64, i64) {
    (file.dev(), file.ino(), file.size(), file.mtime(), file.mtime_nsec())
}

fn prepare(authority: &Authority, arguments: &EditArguments) -> Result<Edited, Refusal> {
    let found = authority.writing(&arguments.path)?;
    let file = found.open()?;
    let failed = |error| failed("read", &found.shown, &error);
    let before = file.metadata().map_err(failed)?;
    if before.len() > LARGEST_FILE {
        return Err(Refusal::new(
            RefusalKind::InvalidArgument,
            format!("{} has {} bytes, too many for edit", found.shown, before.len()),
        )
        .hint("use bash with sed or a script"));
    }
    let mut content = Vec::new();
    file.take(LARGEST_FILE).read_to_end(&mut content).map_err(failed)?;
    let (old, places) = find(&content, &arguments.old);
    let all = arguments.all.unwrap_or(false);
    let lines = line_numbers(&content, &places);
    let conflict = |line| Refusal::new(RefusalKind::Conflict, line);
    match places.as_slice() {
        [] => {
            return Err(conflict(format!("the text does not stand in {}", found.shown)).hint(
                "it must be equal to the last space; read the file and copy the text from there",
            ));
        }
        [_, _, ..] if !all => {
            return Err(conflict(format!(
                "the text stands {} times in {}, at lines {}",
                places.len(),
                found.shown,
                numbers(&lines)
            ))
            .hint("give more of the text around the right one, or set `all`"));
        }
        _ => {}
    }
    let mut bytes = Vec::with_capacity(content.len());
    let mut rest = content.as_slice();
    let mut taken = 0;
    for place in places {
        let (before, from) = rest.split_at_checked(place - taken).unwrap_or((rest, &[]));
        let (matched, after) = from.split_at_checked(old.len()).unwrap_or((from, &[]));
        bytes.extend_from_slice(before);
        if place == 0 && matched.starts_with(MARK) && !arguments.new.as_bytes().starts_with(MARK) {
            bytes.extend_from_slice(MARK);
        }
        if breaks_with_cr(&content, matched, after) {
            bytes.extend(with_cr(&arguments.new).bytes());
        } else {
            bytes.extend_from_slice(arguments.new.as_bytes());
        }
        taken = place + old.len();
        rest = after;
    }
    bytes.extend_from_slice(rest);
    Ok(Edited { found, before, bytes, lines })
}

/// Where `old` stands, as it is or, if it does not and the file has such endings, with CRLF.
fn find(content: &[u8], old: &str) -> (String, Vec<usize>) {
    let exact = places(content, old);
    if exact.is_empty() && old.contains('\n') {
        let old = with_cr(old);
        let places = places(content, &old);
        return (old, places);
    }
    (old.to_owned(), exact)
}

/// The beginnings of the occurrences, none overlapping. What is not UTF-8 in the file can be no
/// part of one.
fn places(content: &[u8], old: &str) -> Vec<usize> {
    let mut from = 0;
    let mut found = Vec::new();
    for chunk in content.utf8_chunks() {
        found.extend(chunk.valid().match_indices(old).map(|(place, _)| from + place));
        from += chunk.valid().len() + chunk.invalid().len();
    }
    found
}

/// Whether lines end with CRLF here: in the matched text, else at its end, else in the file.
fn breaks_with_cr(content: &[u8], matched: &[u8], after: &[u8]) -> bool {
    [matched, after, content].into_iter().find_map(first_break).unwrap_or(false)
}

fn first_break(text: &[u8]) -> Option<bool> {
    let end = text.iter().position(|byte| *byte == b'\n')?;
    Some(end.checked_sub(1).and_then(|before| text.get(before)) == Some(&b'\r'))
}

fn with_cr(text: &str) -> String {
    text.replace("\r\n", "\n").replace('\n', "\r\n")
}

fn line_numbers(content: &[u8], places: &[usize]) -> Vec<usize> {
    let mut line = 1;
    let mut from = 0;
    places
        .iter()
        .map(|place| {
            let between = content.get(from..*place).unwrap_or_default();
            line += between.split(|byte| *byte == b'\n').count().saturating_sub(1);
            from = *place;
            line
        })
        .collect()
}

fn numbers(lines: &[usize]) -> String {
    let first: Vec<String> = lines.iter().take(10).map(ToString::to_string).collect();
    let more = if lines.len() > 10 { ", …" } else { "" };
    format!("{}{more}", first.join(", "))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;

    use proptest::prelude::*;
    use stead_core::layout::Access;

    use super::*;

    fn edited(content: &[u8], old: &str, new: &str, all: bool) -> Result<Vec<u8>, Refusal> {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("f"), content).unwrap();
        let root = std::iter::once((folder.path(), Access::Write));
        let authority = Authority::new(folder.path(), root, None);
        let (old, new) = (old.to_owned(), new.to_owned());
        let arguments = EditArguments { path: "f".into(), old, new, all: Some(all) };
        let result = judge(&authority, &arguments)
            .and_then(|found| edit(&authority, &found, &arguments))
            .map(|_| ());
        let after = fs::read(folder.path().join("f")).unwrap();
        result.map(|()| after)
    }

    #[test]
    fn field_eol_01_only_the_named_lines_change() {
        let content = b"\xef\xbb\xbfa\r\nb\r\nc";
        let one = edited(content, "b", "B\nB2", false).unwrap();
        assert_eq!(one, b"\xef\xbb\xbfa\r\nB\r\nB2\r\nc");
        let several = edited(content, "a\nb\n", "x\n", false).unwrap();
        assert_eq!(several, b"\xef\xbb\xbfx\r\nc");
        let marked = edited(content, "\u{feff}a", "z", false).unwrap();
        assert_eq!(marked, b"\xef\xbb\xbfz\r\nb\r\nc");
        let last = edited(content, "c", "d\ne", false).unwrap();
        assert_eq!(last, b"\xef\xbb\xbfa\r\nb\r\nd\r\ne");
        let mixed = edited(b"a\r\nb\nc\n", "b", "b\nb", false).unwrap();
        assert_eq!(mixed, b"a\r\nb\nb\nc\n");
        assert_eq!(edited(b"a", "a", "b\nc", false).unwrap(), b"b\nc");
        assert_eq!(
            edited(b"\xff\xe9a\xe9", "a", "\u{e9}", false).unwrap(),
            b"\xff\xe9\xc3\xa9\xe9"
        );
    }

    #[test]
    fn the_text_must_stand_once_unless_all_is_meant() {
        let none = edited(b"abc", "x", "y", false).unwrap_err();
        assert_eq!(none.line, "the text does not stand in f");
        let twice = edited(b"a\nb\na\n", "a", "y", false).unwrap_err();
        assert_eq!(twice.line, "the text stands 2 times in f, at lines 1, 3");
        assert_eq!(edited(b"a\nb\na\n", "a", "aa", true).unwrap(), b"aa\nb\naa\n");
        assert_eq!(edited(b"aaaa", "aa", "b", true).unwrap(), b"bb");
    }

    #[test]
    fn field_mode_01_an_edit_keeps_the_mode() {
        let folder = tempfile::tempdir().unwrap();
        let root = std::iter::once((folder.path(), Access::Write));
        let authority = Authority::new(folder.path(), root, None);
        for (name, mode) in [("s.sh", 0o755), ("k", 0o640)] {
            let path = folder.path().join(name);
            fs::write(&path, "echo a").unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            let (old, new) = ("a".to_owned(), "b".to_owned());
            let arguments = EditArguments { path: name.into(), old, new, all: None };
            let found = judge(&authority, &arguments).unwrap();
            let done = edit(&authority, &found, &arguments).unwrap();
            assert_eq!(done.text, format!("edited {name} at line 1"));
            assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, mode);
            assert_eq!(fs::read(&path).unwrap(), b"echo b");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..Default::default() })]
        #[test]
        fn an_edit_is_a_replacement_and_nothing_else(
            parts in prop::collection::vec("[ab\n]{0,5}", 2..6),
            new in "[xy]{0,3}",
        ) {
            let content = parts.join("NEEDLE");
            let after = edited(content.as_bytes(), "NEEDLE", &new, true).unwrap();
            prop_assert_eq!(after, content.replace("NEEDLE", &new).into_bytes());
        }
    }
}

//! A review's changes as text for people: one headline for every path, and a unified diff of each
//! text file.

use std::io::{self, Write};

use imara_diff::sources::byte_lines;
use imara_diff::{Algorithm, Diff, Hunk, InternedInput};
use stead_files::RelPath;

use crate::changes::{Change, State};

/// Which side of a change a content is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// The base's.
    Before,
    /// The snapshot's.
    After,
}

/// Gives a file's bytes; none when they are not to be had.
pub type ReadContent<'a> = dyn FnMut(Side, &RelPath) -> io::Result<Option<Vec<u8>>> + 'a;

/// How a diff is written.
#[derive(Debug, Clone, Copy)]
pub struct DiffOptions<'a> {
    /// Equal lines around each change.
    pub context: u32,
    /// Whether a terminal shows it: then nothing in a file can move its cursor or hide text.
    /// Without it the bytes are as they are, for a file or `patch`.
    pub for_terminal: bool,
    /// The most lines; without one, all.
    pub most_lines: Option<usize>,
    /// The command that shows everything, named where something is left out.
    pub all: &'a str,
}

/// What was written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Diffed {
    /// Lines, without the last one that names the command.
    pub lines: usize,
    /// Paths of which the headline, or the content of a text file, was left out.
    pub left_out: usize,
}

/// The largest file whose lines are compared; a larger one is named with its sizes.
const LARGEST: u64 = 16 << 20;

/// Git takes a file for binary that has a NUL in its first bytes; so do we.
const LOOKED_AT: usize = 8000;

/// Writes all changes, in the order of paths.
///
/// # Errors
/// Of `read` and of `out`.
pub fn diff(
    changes: &[Change],
    read: &mut ReadContent<'_>,
    options: &DiffOptions<'_>,
    out: &mut dyn Write,
) -> io::Result<Diffed> {
    let mut writer = Writer { out: &mut *out, options, done: Diffed::default() };
    for change in changes {
        if writer.is_full() {
            writer.done.left_out += 1;
            continue;
        }
        writer.line(&headline(change))?;
        if has_content(change) {
            writer.content(change, read)?;
        }
    }
    let done = writer.done;
    if done.left_out > 0 {
        let (left_out, of) = (done.left_out, changes.len());
        writeln!(out, "… {left_out} of {of} paths are not wholly shown; {}", options.all)?;
    }
    Ok(done)
}

/// What changes at a path, in one line.
pub fn headline(change: &Change) -> String {
    let path = &change.path;
    match (&change.before, &change.after) {
        (None, Some(after)) => format!("new {}", described(path, after)),
        (Some(before), None) => format!("removed {}", described(path, before)),
        (Some(State::Link { target: before }), Some(State::Link { target: after })) => {
            format!("link {path}: {} becomes {}", shown(before), shown(after))
        }
        (Some(before), Some(after)) if !before.is_kind_of(after) => {
            format!("{} becomes {}", described(path, before), kind(after))
        }
        (Some(before), Some(after)) => {
            let changed =
                if before.has_bytes_of(after) || before.is_folder() { "" } else { "changed " };
            let line = format!("{changed}{} {path}", word(after));
            if let (Some(old), Some(new)) = (before.mode(), after.mode())
                && old != new
            {
                return format!("{line}: mode {old:o} becomes {new:o}");
            }
            line
        }
        (None, None) => path.to_string(),
    }
}

fn described(path: &RelPath, state: &State) -> String {
    match state {
        State::Link { target } => format!("link {path} to {}", shown(target)),
        State::File { mode, .. } | State::Folder { mode } => {
            format!("{} {path} (mode {mode:o})", word(state))
        }
        State::Special => format!("{} {path}", word(state)),
    }
}

fn kind(state: &State) -> String {
    match state {
        State::Link { target } => format!("a link to {}", shown(target)),
        State::File { mode, .. } | State::Folder { mode } => {
            format!("a {} (mode {mode:o})", word(state))
        }
        State::Special => format!("a {}", word(state)),
    }
}

fn word(state: &State) -> &'static str {
    match state {
        State::File { .. } => "file",
        State::Folder { .. } => "folder",
        State::Link { .. } => "link",
        State::Special => "pipe, socket or device",
    }
}

fn shown(bytes: &[u8]) -> String {
    let mut text = Vec::new();
    escape(bytes, &mut text);
    String::from_utf8_lossy(&text).into_owned()
}

/// Whether there are bytes to be compared.
fn has_content(change: &Change) -> bool {
    let is_file = |state: &Option<State>| matches!(state, Some(State::File { .. }));
    let same = match (&change.before, &change.after) {
        (Some(before), Some(after)) => before.has_bytes_of(after),
        _ => false,
    };
    !same && (is_file(&change.before) || is_file(&change.after))
}

fn size(state: Option<&State>) -> Option<u64> {
    match state {
        Some(State::File { size, .. }) => Some(*size),
        _ => None,
    }
}

struct Writer<'a> {
    out: &'a mut dyn Write,
    options: &'a DiffOptions<'a>,
    done: Diffed,
}

impl Writer<'_> {
    fn is_full(&self) -> bool {
        self.options.most_lines.is_some_and(|most| self.done.lines >= most)
    }

    /// A line of our own words; names in them are harmless already.
    fn line(&mut self, text: &str) -> io::Result<()> {
        self.done.lines += 1;
        writeln!(self.out, "{text}")
    }

    fn content(&mut self, change: &Change, read: &mut ReadContent<'_>) -> io::Result<()> {
        let (old, new) = (size(change.before.as_ref()), size(change.after.as_ref()));
        if old.max(new) > Some(LARGEST) {
            return self.line(&format!("  too large to be shown: {}", sizes(old, new)));
        }
        let mut get = |side, size: Option<u64>| match size {
            None => Ok(Some(Vec::new())),
            Some(_) => read(side, &change.path),
        };
        let (Some(before), Some(after)) = (get(Side::Before, old)?, get(Side::After, new)?) else {
            return self.line("  its content is not to be had");
        };
        if is_binary(&before) || is_binary(&after) {
            return self.line(&format!("  binary: {}", sizes(old, new)));
        }
        let name = |size: Option<u64>, side: &str| match size {
            Some(_) => format!("{side}/{}", change.path),
            None => "/dev/null".to_owned(),
        };
        if before.is_empty() && after.is_empty() {
            return Ok(());
        }
        self.line(&format!("--- {}", name(old, "a")))?;
        self.line(&format!("+++ {}", name(new, "b")))?;
        self.hunks(&before, &after)
    }

    fn hunks(&mut self, before: &[u8], after: &[u8]) -> io::Result<()> {
        let input = InternedInput::new(byte_lines(before), byte_lines(after));
        let mut diff = Diff::compute(Algorithm::Histogram, &input);
        diff.postprocess_lines(&input);
        let (old, new): (Vec<&[u8]>, Vec<&[u8]>) = (
            input.before.iter().map(|token| input.interner[*token]).collect(),
            input.after.iter().map(|token| input.interner[*token]).collect(),
        );
        let hunks: Vec<Hunk> = diff.hunks().collect();
        let context = self.options.context;
        // Hunks whose context would touch are one.
        let groups = hunks.chunk_by(|one, two| {
            two.before.start.saturating_sub(one.before.end) <= context.saturating_mul(2)
        });
        for group in groups {
            if self.is_full() {
                self.done.left_out += 1;
                return Ok(());
            }
            self.group(group, &old, &new)?;
        }
        Ok(())
    }

    fn group(&mut self, group: &[Hunk], old: &[&[u8]], new: &[&[u8]]) -> io::Result<()> {
        let (Some(first), Some(last)) = (group.first(), group.last()) else { return Ok(()) };
        let above = self.options.context.min(first.before.start);
        let length = u32::try_from(old.len()).unwrap_or(u32::MAX);
        let below = self.options.context.min(length.saturating_sub(last.before.end));
        let from = (first.before.start - above, last.before.end + below);
        let to = (first.after.start - above, last.after.end + below);
        self.line(&format!("@@ -{} +{} @@", range(from), range(to)))?;
        let mut at = from.0;
        for hunk in group {
            self.lines(b' ', slice(old, at, hunk.before.start))?;
            self.lines(b'-', slice(old, hunk.before.start, hunk.before.end))?;
            self.lines(b'+', slice(new, hunk.after.start, hunk.after.end))?;
            at = hunk.before.end;
        }
        self.lines(b' ', slice(old, at, from.1))
    }

    fn lines(&mut self, mark: u8, lines: &[&[u8]]) -> io::Result<()> {
        let mut text = Vec::new();
        for line in lines {
            text.clear();
            text.push(mark);
            let bare = line.strip_suffix(b"\n");
            if self.options.for_terminal {
                escape(bare.unwrap_or(line), &mut text);
            } else {
                text.extend_from_slice(bare.unwrap_or(line));
            }
            text.push(b'\n');
            self.out.write_all(&text)?;
            self.done.lines += 1;
            if bare.is_none() {
                self.line("\\ No newline at end of file")?;
            }
        }
        Ok(())
    }
}

fn slice<'a>(lines: &'a [&'a [u8]], from: u32, to: u32) -> &'a [&'a [u8]] {
    let at = |number: u32| usize::try_from(number).unwrap_or(usize::MAX);
    lines.get(at(from)..at(to)).unwrap_or_default()
}

/// Lines counted from 1, as `patch` wants them: an empty range is named by the line before it.
fn range((from, to): (u32, u32)) -> String {
    match to.saturating_sub(from) {
        0 => format!("{from},0"),
        1 => format!("{}", from + 1),
        length => format!("{},{length}", from + 1),
    }
}

fn sizes(old: Option<u64>, new: Option<u64>) -> String {
    match (old, new) {
        (Some(old), Some(new)) => format!("{old} bytes become {new}"),
        (Some(size), None) | (None, Some(size)) => format!("{size} bytes"),
        (None, None) => "no file".to_owned(),
    }
}

fn is_binary(bytes: &[u8]) -> bool {
    bytes.iter().take(LOOKED_AT).any(|byte| *byte == 0)
}

/// Bytes as a terminal may have them: no control character but the tabulator, nothing that turns
/// the direction of text, no bytes that are no text.
fn escape(bytes: &[u8], to: &mut Vec<u8>) {
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            let turns = matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}'
                | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
            if c.is_control() && c != '\t' || turns {
                to.extend(c.escape_default().to_string().into_bytes());
            } else {
                to.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
            }
        }
        for byte in chunk.invalid() {
            to.extend_from_slice(format!("\\x{byte:02x}").as_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::process::{Command, Stdio};

    use proptest::prelude::*;
    use stead_core::id::Digest;

    use super::*;

    fn path(text: &str) -> RelPath {
        RelPath::parse(text).unwrap()
    }

    fn file(content: &[u8], mode: u16) -> State {
        let digest = Digest::from_bytes(*blake3::hash(content).as_bytes());
        State::File { mode, size: content.len() as u64, digest }
    }

    /// The text of changes of files whose contents are given.
    fn text(
        changes: &[Change],
        contents: &BTreeMap<(&str, bool), Vec<u8>>,
        options: &DiffOptions<'_>,
    ) -> (String, Diffed) {
        let mut out = Vec::new();
        let mut read = |side, path: &RelPath| {
            Ok(contents.get(&(path.to_string().as_str(), side == Side::After)).cloned())
        };
        let done = diff(changes, &mut read, options, &mut out).unwrap();
        (String::from_utf8(out).unwrap(), done)
    }

    const SHOWN: DiffOptions<'static> =
        DiffOptions { context: 3, for_terminal: true, most_lines: None, all: "all: see" };

    fn one(before: &[u8], after: &[u8], options: &DiffOptions<'_>) -> (String, Diffed) {
        let change = Change {
            path: path("x"),
            before: Some(file(before, 0o644)),
            after: Some(file(after, 0o644)),
        };
        let contents =
            BTreeMap::from([(("x", false), before.to_vec()), (("x", true), after.to_vec())]);
        text(&[change], &contents, options)
    }

    #[test]
    fn copies_65_what_is_no_line_of_a_file_has_a_line_of_its_own() {
        let link = |to: &[u8]| Some(State::Link { target: to.into() });
        let folder = |mode| Some(State::Folder { mode });
        let changes = [
            ("d", folder(0o755), folder(0o700)),
            ("empty", None, folder(0o755)),
            ("gone", folder(0o755), None),
            ("l", link(b"a"), link(b"b\x1b[2J")),
            ("mode", Some(file(b"x", 0o644)), Some(file(b"x", 0o755))),
            ("now-link", Some(file(b"", 0o644)), link(b"t")),
            ("p", None, Some(State::Special)),
        ]
        .map(|(at, before, after)| Change { path: path(at), before, after });
        let contents = BTreeMap::from([(("now-link", false), Vec::new())]);
        let expected = "\
folder d: mode 755 becomes 700
new folder empty (mode 755)
removed folder gone (mode 755)
link l: a becomes b\\u{1b}[2J
file mode: mode 644 becomes 755
file now-link (mode 644) becomes a link to t
new pipe, socket or device p
";
        assert_eq!(text(&changes, &contents, &SHOWN).0, expected);
    }

    #[test]
    fn binaries_are_named_as_such() {
        let (said, _) = one(b"text\n", b"\0\x01", &SHOWN);
        assert_eq!(said, "changed file x\n  binary: 5 bytes become 2\n");
    }

    #[test]
    fn nothing_in_a_file_reaches_the_terminal_as_a_command() {
        let (said, _) = one(b"a\n", b"\x1b]0;owned\x07\r\n\xff\xe2\x80\xaetxt\tx\n", &SHOWN);
        let expected = "\
changed file x
--- a/x
+++ b/x
@@ -1 +1,2 @@
-a
+\\u{1b}]0;owned\\u{7}\\r
+\\xff\\u{202e}txt\tx
";
        assert_eq!(said, expected);
        assert!(!said.chars().any(|c| c.is_control() && c != '\n' && c != '\t'));
    }

    #[test]
    fn a_long_preview_ends_with_the_command_that_shows_all() {
        let long: Vec<u8> =
            (0..1000).flat_map(|n| format!("{n}\n{}\n", n * 7).into_bytes()).collect();
        let other: Vec<u8> = long.iter().map(|b| if *b == b'3' { b'x' } else { *b }).collect();
        let options = DiffOptions { most_lines: Some(40), ..SHOWN };
        let (said, done) = one(&long, &other, &options);
        assert!(said.ends_with("all: see\n"), "{said}");
        assert_eq!(done.left_out, 1);
        assert!((40..200).contains(&done.lines), "{done:?}");
    }

    fn texts() -> impl Strategy<Value = Vec<u8>> {
        let line = prop::sample::select(vec!["a", "b", "c", "", "long line"]);
        (prop::collection::vec(line, 0..30), any::<bool>()).prop_map(|(lines, ends)| {
            let mut text = lines.join("\n");
            if ends && !lines.is_empty() {
                text.push('\n');
            }
            text.into_bytes()
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(60))]
        #[test]
        fn patch_makes_the_new_file_of_the_old_one(before in texts(), after in texts(), context in 0_u32..4) {
            prop_assume!(before != after);
            let folder = tempfile::tempdir().unwrap();
            let options = DiffOptions { context, for_terminal: false, ..SHOWN };
            let (said, done) = one(&before, &after, &options);
            prop_assert_eq!(said.lines().count(), done.lines);
            std::fs::write(folder.path().join("x"), &before).unwrap();
            std::fs::write(folder.path().join("patch"), &said).unwrap();
            // Git's own reader, which takes nothing but what it understands.
            let applied = Command::new("git")
                .args(["apply", "--unidiff-zero", "-p1", "patch"])
                .current_dir(folder.path())
                .stderr(Stdio::piped())
                .output()
                .unwrap();
            prop_assert!(applied.status.success(), "{:?}\n{}", applied, said);
            prop_assert_eq!(std::fs::read(folder.path().join("x")).unwrap(), after);
        }
    }
}

//! `read`: a file's lines as they are.

use std::io::{self, BufRead, BufReader, Read as _, Seek as _};

use serde_json::json;
use stead_core::refusal::{Refusal, RefusalKind};
use tokio_util::sync::CancellationToken;

use super::arguments::ReadArguments;
use super::authority::{Found, failed};
use super::output::{Output, head};

/// Lines that are shown when no limit is given.
const USUAL_LINES: u64 = 2000;
/// The most bytes that one answer shows.
const LARGEST_ANSWER: usize = 256 * 1024;
/// So much of a file is looked at for a NUL, as Git does.
const PROBE: u64 = 8000;

/// Shows the lines with their endings as they are. Bytes that are not UTF-8 are shown as U+FFFD
/// and said to be; a file with a NUL near its beginning is refused with its size.
pub(crate) fn read(
    found: &Found,
    arguments: &ReadArguments,
    cancel: &CancellationToken,
) -> Result<Output, Refusal> {
    let mut file = found.open()?;
    let failed = |error: io::Error| failed("read", &found.shown, &error);
    let size = file.metadata().map_err(failed)?.len();
    let mut probe = Vec::new();
    (&mut file).take(PROBE).read_to_end(&mut probe).map_err(failed)?;
    if probe.contains(&0) {
        return Err(Refusal::new(
            RefusalKind::InvalidArgument,
            format!("{} is a binary file of {size} bytes", found.shown),
        )
        .hint("look at it with bash: file, xxd, strings"));
    }
    file.rewind().map_err(failed)?;

    let first = arguments.offset.unwrap_or(1);
    let limit = arguments.limit.unwrap_or(USUAL_LINES);
    let mut lines = Lines { reader: BufReader::new(file), cancel };
    let mut passed = 0;
    while passed < first.saturating_sub(1) && lines.next(&mut Vec::new(), 0).map_err(failed)? {
        passed += 1;
    }
    let mut shown = Vec::new();
    let mut count = 0;
    while count < limit && shown.len() < LARGEST_ANSWER {
        let room = LARGEST_ANSWER.saturating_sub(shown.len());
        if !lines.next(&mut shown, room).map_err(failed)? {
            break;
        }
        count += 1;
    }
    let full = shown.len() >= LARGEST_ANSWER;
    let more = lines.more().map_err(failed)?;
    if count == 0 && (passed > 0 || first > 1) {
        return Err(Refusal::new(
            RefusalKind::InvalidArgument,
            format!("{} has {passed} lines; there is no line {first}", found.shown),
        ));
    }
    let lossy = std::str::from_utf8(&shown).is_err();
    let text = String::from_utf8_lossy(&shown);
    let mut text = head(&text, LARGEST_ANSWER).to_owned();
    let last = first.saturating_add(count).saturating_sub(1);
    let mut notes = Vec::new();
    if more || full {
        let next = last.saturating_add(1);
        notes.push(format!(
            "lines {first} to {last} of {} ({size} bytes); read on with offset {next}",
            found.shown
        ));
    }
    if full {
        notes.push(format!("cut at {LARGEST_ANSWER} bytes, perhaps within line {last}"));
    }
    if lossy {
        notes.push("bytes that are not UTF-8 are shown as U+FFFD".to_owned());
    }
    if size == 0 {
        notes.push(format!("{} is empty", found.shown));
    }
    if !notes.is_empty() {
        let gap = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
        text = format!("{text}{gap}[stead: {}]", notes.join("; "));
    }
    let structured = json!({
        "path": found.shown, "first": first, "last": last, "more": more, "bytes": size,
    });
    Ok(Output::new(text, structured))
}

struct Lines<'a> {
    reader: BufReader<std::fs::File>,
    cancel: &'a CancellationToken,
}

impl Lines<'_> {
    /// Reads one line and keeps at most `room` bytes of it, however long it is. False at the end.
    fn next(&mut self, kept: &mut Vec<u8>, mut room: usize) -> io::Result<bool> {
        let mut any = false;
        loop {
            if self.cancel.is_cancelled() {
                return Err(io::Error::other("the turn is being interrupted"));
            }
            let buffer = self.reader.fill_buf()?;
            if buffer.is_empty() {
                return Ok(any);
            }
            any = true;
            let end = buffer.iter().position(|byte| *byte == b'\n');
            let length = end.map_or(buffer.len(), |end| end + 1);
            kept.extend(buffer.iter().take(length.min(room)));
            room = room.saturating_sub(length);
            self.reader.consume(length);
            if end.is_some() {
                return Ok(true);
            }
        }
    }

    fn more(&mut self) -> io::Result<bool> {
        self.reader.fill_buf().map(|buffer| !buffer.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use stead_core::layout::Access;

    use super::*;
    use crate::tools::authority::Authority;

    fn shown(content: &[u8], offset: Option<u64>, limit: Option<u64>) -> Result<Output, Refusal> {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("f"), content).unwrap();
        let root = std::iter::once((folder.path(), Access::Read));
        let authority = Authority::new(folder.path(), root, None);
        let arguments = ReadArguments { path: "f".into(), offset, limit };
        read(&authority.reading("f")?, &arguments, &CancellationToken::new())
    }

    #[test]
    fn lines_are_shown_as_they_are() {
        let text = "\u{feff}a\r\nb\r\nlast";
        assert_eq!(shown(text.as_bytes(), None, None).unwrap().text, text);
        let part = shown(text.as_bytes(), Some(2), Some(1)).unwrap();
        assert_eq!(part.text, "b\r\n[stead: lines 2 to 2 of f (13 bytes); read on with offset 3]");
        assert_eq!(part.structured["more"], true);
        assert_eq!(shown(b"", None, None).unwrap().text, "[stead: f is empty]");
        let beyond = shown(b"a\nb\n", Some(9), None).unwrap_err();
        assert_eq!(beyond.line, "f has 2 lines; there is no line 9");
    }

    #[test]
    fn binary_files_are_refused_and_long_ones_cut() {
        let refusal = shown(b"ab\0cd", None, None).unwrap_err();
        assert_eq!(refusal.line, "f is a binary file of 5 bytes");
        assert!(shown(b"caf\xe9\n", None, None).unwrap().text.contains("U+FFFD"));
        let long = shown("内".repeat(200_000).as_bytes(), None, None).unwrap();
        assert!(long.text.len() < LARGEST_ANSWER + 300 && long.text.contains("cut at"));
        let many = shown("x\n".repeat(3000).as_bytes(), None, None).unwrap();
        assert!(many.text.ends_with("read on with offset 2001]"));
    }
}

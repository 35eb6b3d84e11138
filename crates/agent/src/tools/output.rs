//! What a tool says.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use serde_json::Value;
use stead_core::id::CallId;
use stead_core::refusal::Refusal;
use stead_model::ToolResult;
use stead_process::output::bounded;

/// The most bytes of a command's output in one answer.
pub(crate) const LARGEST_OUTPUT: usize = 1024 * 1024;

/// What a tool came to: a text for the model and the same as data.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Output {
    pub(crate) text: String,
    pub(crate) structured: Value,
    pub(crate) failed: bool,
}

impl Output {
    pub(crate) fn new(text: String, structured: Value) -> Self {
        Self { text, structured, failed: false }
    }

    pub(crate) fn into_result(self, id: CallId) -> ToolResult {
        let structured = Some(self.structured).filter(|data| !data.is_null());
        ToolResult { id, text: self.text, structured, failed: self.failed }
    }
}

/// A refusal as the result of a call.
pub(crate) fn refused(id: CallId, refusal: &Refusal) -> ToolResult {
    ToolResult {
        id,
        text: refusal.to_string(),
        structured: serde_json::to_value(refusal).ok(),
        failed: true,
    }
}

/// The longest beginning of `text` of at most `limit` bytes that breaks no character.
pub(crate) fn head(text: &str, limit: usize) -> &str {
    text.get(..text.floor_char_boundary(limit)).unwrap_or_default()
}

/// The part of a log from the byte `from` on.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Piece {
    pub(crate) text: String,
    /// How many bytes the text does not show.
    pub(crate) omitted: u64,
    /// Where the next piece begins.
    pub(crate) next: u64,
}

/// Reads what a log holds from the byte `from` on, head and tail of it if it is longer than `limit`.
///
/// While the command is `running`, a character that is not complete yet is left for the next
/// piece. `unstored` is what the log itself lacks.
pub(crate) fn piece(
    log: &Path,
    from: u64,
    limit: usize,
    running: bool,
    unstored: u64,
) -> io::Result<Piece> {
    let file = File::open(log)?;
    let size = file.metadata()?.len();
    let length = size.saturating_sub(from);
    let whole = usize::try_from(length).ok().filter(|length| *length <= limit);
    let Some(whole) = whole else {
        if from == 0 {
            let found = bounded(log, limit, unstored)?;
            return Ok(Piece { text: found.text, omitted: found.omitted, next: size });
        }
        let half = limit / 2;
        let room = u64::try_from(half).unwrap_or(u64::MAX);
        let omitted = length.saturating_sub(room.saturating_mul(2));
        let head = bytes(&file, from, half)?;
        let tail = bytes(&file, size.saturating_sub(room), half)?;
        let text = format!(
            "{}\n[stead: {omitted} bytes omitted; log: {}]\n{}",
            String::from_utf8_lossy(&head),
            log.display(),
            String::from_utf8_lossy(&tail),
        );
        return Ok(Piece { text, omitted: omitted.saturating_add(unstored), next: size });
    };
    let mut read = bytes(&file, from, whole)?;
    if running {
        let incomplete = read.utf8_chunks().last().map(|chunk| chunk.invalid().to_vec());
        if let Some(tail) = incomplete.filter(|tail| is_begun(tail)) {
            read.truncate(read.len().saturating_sub(tail.len()));
        }
    }
    let next = from.saturating_add(u64::try_from(read.len()).unwrap_or(u64::MAX));
    Ok(Piece { text: String::from_utf8_lossy(&read).into_owned(), omitted: unstored, next })
}

/// Whether these bytes are the beginning of a character that has not come whole yet.
fn is_begun(bytes: &[u8]) -> bool {
    matches!(std::str::from_utf8(bytes), Err(error) if error.error_len().is_none())
}

fn bytes(file: &File, from: u64, length: usize) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; length];
    file.read_exact_at(&mut bytes, from)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_follow_each_other_and_break_no_character() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("log");
        std::fs::write(&log, b"gr\xc3").unwrap();
        let first = piece(&log, 0, 100, true, 0).unwrap();
        assert_eq!(first, Piece { text: "gr".into(), omitted: 0, next: 2 });
        std::fs::write(&log, "grün\n".as_bytes()).unwrap();
        let second = piece(&log, first.next, 100, true, 0).unwrap();
        assert_eq!((second.text.as_str(), second.next), ("ün\n", 6));
        std::fs::write(&log, b"gr\xc3").unwrap();
        assert_eq!(piece(&log, 2, 100, false, 0).unwrap().text, "\u{fffd}");
    }

    #[test]
    fn a_long_piece_is_cut_in_its_middle_and_names_the_log() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("log");
        std::fs::write(&log, format!("{}{}", "a".repeat(600), "b".repeat(600))).unwrap();
        for from in [0, 100] {
            let found = piece(&log, from, 400, true, 0).unwrap();
            assert!(found.text.starts_with('a') && found.text.ends_with('b'));
            assert!(found.text.contains("bytes omitted; log: /"));
            assert!(found.omitted >= 700 && found.next == 1200);
        }
        assert_eq!(head("a👩‍👩‍👧", 4), "a");
        assert_eq!(head("内内", 100), "内内");
    }
}

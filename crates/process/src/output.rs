//! The part of a run's log that fits into an answer.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use crate::log;

/// More bytes than one character of UTF-8 has: read beyond a cut, so that no character there looks
/// broken.
const MARGIN: u64 = 4;

/// What of a log fits into an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bounded {
    /// Head and tail of the log with a marker between them that says how many bytes are omitted and
    /// where the log is, or the whole log. Bytes that are not UTF-8 are U+FFFD; control characters
    /// are left to the face that shows the text.
    pub text: String,
    /// How many of the run's bytes the text does not show.
    pub omitted: u64,
}

/// Reads the log at `path` and cuts its text to at most `limit` bytes. `unstored` is
/// [`Ended::omitted`](crate::Ended::omitted) of its run (0 while it goes on): what the log itself
/// lacks. At most about `limit` bytes are read, however long the log is.
///
/// A `limit` that is shorter than the marker itself gives a cut marker.
///
/// # Errors
/// The system's, from reading the log.
pub fn bounded(path: &Path, limit: usize, unstored: u64) -> io::Result<Bounded> {
    let file = File::open(path)?;
    let size = file.metadata()?.len();
    let wide = |length: usize| u64::try_from(length).unwrap_or(u64::MAX);
    if size <= wide(limit) {
        let bytes = read(&file, 0, size)?;
        let text = String::from_utf8_lossy(&bytes);
        if text.len() <= limit {
            return Ok(Bounded { text: text.into_owned(), omitted: unstored });
        }
    }
    let all = size.saturating_add(unstored);
    let room = limit.saturating_sub(marker(all, path).len());
    let head_room = room / 2;
    let tail_room = room - head_room;

    let bytes = read(&file, 0, size.min(wide(head_room) + MARGIN))?;
    let (head, head_bytes) = take(pieces(&bytes).into_iter(), head_room);
    let tail_start = size.saturating_sub(wide(tail_room) + MARGIN).max(head_bytes);
    let bytes = read(&file, tail_start, size - tail_start)?;
    let (tail, tail_bytes) = take(pieces(&bytes).into_iter().rev(), tail_room);

    let cut = size.saturating_sub(head_bytes).saturating_sub(tail_bytes);
    let mut text: String = head.into_iter().collect();
    let tail: String = tail.into_iter().rev().collect();
    // The log's own marker speaks for what it lacks, if it is within what is shown.
    let own = log::marker(unstored);
    let omitted =
        if text.contains(&own) || tail.contains(&own) { cut } else { cut.saturating_add(unstored) };
    text.push_str(&marker(omitted, path));
    text.push_str(&tail);
    text.truncate(text.floor_char_boundary(limit));
    Ok(Bounded { text, omitted: cut.saturating_add(unstored) })
}

fn marker(omitted: u64, path: &Path) -> String {
    format!("\n[stead: {omitted} bytes omitted; log: {}]\n", path.display())
}

fn read(file: &File, start: u64, length: u64) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; usize::try_from(length).map_err(io::Error::other)?];
    file.read_exact_at(&mut bytes, start)?;
    Ok(bytes)
}

/// The characters of `bytes`, each with the number of bytes it stands for.
fn pieces(bytes: &[u8]) -> Vec<(char, u64)> {
    let mut found = Vec::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        found.extend(chunk.valid().chars().map(|c| {
            let length: u8 = match c.len_utf8() {
                1 => 1,
                2 => 2,
                3 => 3,
                _ => 4,
            };
            (c, u64::from(length))
        }));
        if !chunk.invalid().is_empty() {
            found.push((char::REPLACEMENT_CHARACTER, chunk.invalid().iter().map(|_| 1).sum()));
        }
    }
    found
}

fn take(pieces: impl Iterator<Item = (char, u64)>, room: usize) -> (Vec<char>, u64) {
    let mut taken = Vec::new();
    let (mut length, mut bytes) = (0, 0);
    for (character, weight) in pieces {
        length += character.len_utf8();
        if length > room {
            break;
        }
        bytes += weight;
        taken.push(character);
    }
    (taken, bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn cut(content: &[u8], limit: usize) -> Bounded {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        std::fs::write(&path, content).unwrap();
        bounded(&path, limit, 0).unwrap()
    }

    #[test]
    fn what_fits_is_whole_and_what_does_not_names_the_log() {
        assert_eq!(cut("grün\n".as_bytes(), 100), Bounded { text: "grün\n".into(), omitted: 0 });
        let long = cut("ü".repeat(5000).as_bytes(), 1001);
        assert!(long.text.len() <= 1001);
        assert!(!long.text.contains('\u{fffd}'));
        assert!(long.text.starts_with("üü") && long.text.ends_with("üü"));
        assert!(long.text.contains(&format!("{} bytes omitted; log: /", long.omitted)));
    }

    #[test]
    fn what_the_log_lacks_is_counted_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let content = format!("{}{}{}", "a".repeat(500), log::marker(777), "b".repeat(400));
        std::fs::write(&path, &content).unwrap();
        let hidden = bounded(&path, 300, 777).unwrap();
        let shown = hidden.text.matches(['a', 'b']).count() - hidden.text.matches("bytes").count();
        assert!(hidden.text.contains(&format!("{} bytes omitted", hidden.omitted)), "{hidden:?}");
        assert!(shown > 100);
        let visible = bounded(&path, content.len(), 777).unwrap();
        assert_eq!((visible.text, visible.omitted), (content, 777));
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..Default::default() })]
        #[test]
        fn any_bytes_fit_into_any_limit(
            content in prop::collection::vec(any::<u8>(), 0..3000),
            limit in 0usize..3000,
        ) {
            let found = cut(&content, limit);
            prop_assert!(found.text.len() <= limit);
            if found.omitted == 0 {
                prop_assert_eq!(found.text, String::from_utf8_lossy(&content));
            }
        }

        #[test]
        fn what_is_shown_and_what_is_omitted_is_all(text in "[a-zä-ü€]{0,900}", limit in 200usize..900) {
            let found = cut(text.as_bytes(), limit);
            let shown = found.text.split("\n[stead").next().unwrap().len()
                + found.text.split("]\n").nth(1).map_or(0, str::len);
            prop_assert_eq!(shown as u64 + found.omitted, text.len() as u64);
        }
    }
}

//! Text from agents, programs and file names, made harmless for a terminal (field report OUT-06).
//!
//! Whatever does not come from this program's own source passes here before it is printed.

use std::fmt::Write as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use anstream::adapter::strip_str;
use serde::Serialize;

/// One line: escape sequences removed, white space and control characters folded into spaces.
pub(crate) fn line(text: &str) -> String {
    let text = strip_str(text).to_string();
    stead_core::line::one_line(&text).chars().filter(|c| !turns_text(*c)).collect()
}

/// One line of at most `longest` characters.
pub(crate) fn brief(text: &str, longest: usize) -> String {
    stead_core::line::cut(&line(text), longest)
}

/// Several lines: escape sequences removed; of control characters only line feeds and tabs stay.
pub(crate) fn block(text: &str) -> String {
    let text = strip_str(text).to_string().replace("\r\n", "\n").replace('\r', "\n");
    text.chars()
        .filter(|c| matches!(c, '\n' | '\t') || !(c.is_control() || turns_text(*c)))
        .collect()
}

/// A path for people, on one line: nothing is left out of it, what cannot be shown is written as
/// the number that it is.
pub(crate) fn path(path: &Path) -> String {
    let mut shown = String::new();
    for chunk in path.as_os_str().as_bytes().utf8_chunks() {
        for character in chunk.valid().chars() {
            if character.is_control() || turns_text(character) {
                shown.extend(character.escape_default());
            } else {
                shown.push(character);
            }
        }
        for byte in chunk.invalid() {
            // Writing to a string does not fail.
            let _ = write!(shown, "\\x{byte:02x}");
        }
    }
    shown
}

/// JSON on one line, in which a terminal finds nothing to obey: JSON itself escapes only the
/// control characters below the space.
pub(crate) fn json(value: &impl Serialize) -> String {
    let text = serde_json::to_string(value).unwrap_or_else(|_| "null".to_owned());
    let mut safe = String::with_capacity(text.len());
    for character in text.chars() {
        // Such characters stand only inside strings.
        if character.is_control() || turns_text(character) {
            // Writing to a string does not fail.
            let _ = write!(safe, "\\u{:04x}", u32::from(character));
        } else {
            safe.push(character);
        }
    }
    safe
}

/// Characters that change the direction in which a terminal shows what follows.
fn turns_text(character: char) -> bool {
    matches!(character, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// How many columns a terminal gives a character. The wide ranges are those of East Asian scripts
/// and pictures; a character that is judged wrongly only cuts a line early or late.
pub(crate) fn columns(character: char) -> usize {
    match u32::from(character) {
        0x0300..=0x036f | 0x200b..=0x200d | 0x20d0..=0x20ff | 0xfe00..=0xfe0f => 0,
        0x1100..=0x115f
        | 0x2e80..=0xa4cf
        | 0xac00..=0xd7a3
        | 0xf900..=0xfaff
        | 0xfe30..=0xfe6f
        | 0xff00..=0xff60
        | 0xffe0..=0xffe6
        | 0x1f300..=0x1faff
        | 0x20000..=0x3fffd => 2,
        _ => 1,
    }
}

/// The text cut to at most `width` columns, with an ellipsis where something was left out.
pub(crate) fn fit(text: &str, width: usize) -> String {
    if text.chars().map(columns).sum::<usize>() <= width {
        return text.to_owned();
    }
    let mut kept = String::new();
    let mut used = 1;
    for character in text.chars() {
        used += columns(character);
        if used > width {
            break;
        }
        kept.push(character);
    }
    if width > 0 {
        kept.push('…');
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOSTILE: &str =
        "\u{1b}]0;x\u{7}\u{1b}[2Ja\u{9b}31mb\r\n\u{202e}c\0\u{1b}[1m bold\u{1b}[0m";

    #[test]
    fn field_out_06_nothing_reaches_the_terminal_that_moves_it() {
        assert_eq!(line(HOSTILE), "a 31mb c bold");
        assert_eq!(block(HOSTILE), "a31mb\nc bold");
        let quoted = json(&HOSTILE);
        assert!(quoted.chars().all(|c| !c.is_control() && !turns_text(c)), "{quoted}");
        assert_eq!(serde_json::from_str::<String>(&quoted).unwrap(), HOSTILE);
    }

    #[test]
    fn a_name_is_shown_whole() {
        use std::ffi::OsStr;
        let hostile = OsStr::from_bytes(b"a\xe2\x80\xaeb\n\x1b[2J\xff");
        assert_eq!(path(Path::new(hostile)), "a\\u{202e}b\\n\\u{1b}[2J\\xff");
    }

    #[test]
    fn lines_fit_a_terminal() {
        assert_eq!(fit("abc", 3), "abc");
        assert_eq!(fit("abcd", 3), "ab…");
        assert_eq!(fit("日本語", 5), "日本…");
        assert_eq!(fit("日本語", 4), "日…");
        assert_eq!(fit("abc", 0), "");
    }
}

//! The extension that names the trees which parts of an index make.

use crate::object::ObjectFormat;

/// No path has more folders than this, so no sound extension nests deeper. Git reads it by
/// recursion, and a made-up one could exhaust its stack.
const DEEPEST: usize = 2048;

/// Whether the extension can be read to its end and counts no more than `entries`. Each tree is a
/// name with a zero byte, the number of its entries (below 0 when it is not known which tree they
/// make), a blank, the number of trees in it, a line feed, and its object if it is known; then the
/// trees in it.
pub(super) fn is_sound(bytes: &[u8], format: ObjectFormat, entries: usize) -> bool {
    read(bytes, format, entries) == Some(())
}

fn read(mut rest: &[u8], format: ObjectFormat, entries: usize) -> Option<()> {
    // For each tree that is begun, how many trees in it are still to come.
    let mut open = vec![1_usize];
    while let Some(left) = open.last_mut() {
        let Some(fewer) = left.checked_sub(1) else {
            open.pop();
            continue;
        };
        *left = fewer;
        let name = until(&mut rest, 0)?;
        if name.is_empty() != (open.len() == 1) || open.len() > DEEPEST {
            return None;
        }
        let count: i64 = number(until(&mut rest, b' ')?)?;
        let inner: usize = number(until(&mut rest, b'\n')?)?;
        if let Ok(count) = usize::try_from(count) {
            rest = rest.get(format.length()..)?;
            if count > entries {
                return None;
            }
        }
        open.push(inner);
    }
    rest.is_empty().then_some(())
}

fn until<'a>(rest: &mut &'a [u8], end: u8) -> Option<&'a [u8]> {
    let at = rest.iter().position(|byte| *byte == end)?;
    let (taken, behind) = rest.split_at_checked(at)?;
    *rest = behind.get(1..)?;
    Some(taken)
}

fn number<T: std::str::FromStr>(text: &[u8]) -> Option<T> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sound(text: &str) -> bool {
        let bytes: Vec<u8> = text.replace('#', &"x".repeat(20)).into_bytes();
        is_sound(&bytes, ObjectFormat::Sha1, 3)
    }

    #[test]
    fn only_whole_trees_are_sound() {
        assert!(sound("\x003 0\n#"));
        assert!(sound("\x00-1 2\na\x001 1\n#b\x001 0\n#c\x00-1 0\n"));
        for bad in ["", "\x003 0\n", "\x003 1\n#", "\x004 0\n#", "\x003 0\n##", "a\x003 0\n#"] {
            assert!(!sound(bad), "{bad:?}");
        }
        assert!(!sound(&format!("\x00-1 1\n{}", "a\x00-1 1\n".repeat(100_000))));
    }
}

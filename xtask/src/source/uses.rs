//! The paths a file names, `use` trees spread out.

use super::scan::{Kind, Token};

/// A path as its segments and the line it ends on.
///
/// A glob ends with the segment `*`; a renamed import has the further segment `as`, because under
/// a new name the path could no longer be followed.
pub(crate) type Path = (Vec<String>, usize);

/// Every path of two and more segments, and every path imported by `use`.
pub(crate) fn paths(tokens: &[Token]) -> Vec<Path> {
    let mut found = Vec::new();
    let mut rest = tokens;
    while let Some((first, behind)) = rest.split_first() {
        if first.is_word("use") {
            rest = tree(behind, &[], &mut found);
        } else if first.kind == Kind::Word {
            let (path, behind) = plain(rest);
            if path.len() > 1 {
                found.push((path, first.line));
            }
            rest = behind;
        } else {
            rest = behind;
        }
    }
    found
}

/// `a::b::c`, as far as it is words; the rest starts behind it.
fn plain(tokens: &[Token]) -> (Vec<String>, &[Token]) {
    let mut path = Vec::new();
    let mut rest = tokens;
    while let Some((word, behind)) = rest.split_first().filter(|(word, _)| word.kind == Kind::Word)
    {
        path.push(word.text.clone());
        rest = behind;
        let goes_on =
            matches!(rest, [mark, next, ..] if mark.is_mark("::") && next.kind == Kind::Word);
        if !goes_on {
            break;
        }
        rest = rest.split_first().map_or(rest, |(_, behind)| behind);
    }
    (path, rest)
}

/// One branch of a `use` tree; the rest starts behind it.
fn tree<'a>(tokens: &'a [Token], above: &[String], found: &mut Vec<Path>) -> &'a [Token] {
    let mut path = above.to_vec();
    let mut rest = tokens;
    while let Some((token, behind)) = rest.split_first() {
        if token.is_mark("{") {
            rest = behind;
            while rest.first().is_some_and(|token| !token.is_mark("}")) {
                let after = tree(rest, &path, found);
                let comma = after.split_first().filter(|(mark, _)| mark.is_mark(","));
                let next = comma.map_or(after, |(_, behind)| behind);
                if next.len() == rest.len() {
                    return rest; // not a tree after all: source that does not compile
                }
                rest = next;
            }
            return rest.split_first().map_or(rest, |(_, behind)| behind);
        }
        if token.is_mark("::") {
            rest = behind;
        } else if token.is_mark("*") {
            path.push("*".into());
            found.push((path, token.line));
            return behind;
        } else if token.is_word("as") {
            path.push("as".into());
            found.push((path, token.line));
            return behind.split_first().map_or(behind, |(_, behind)| behind);
        } else if token.kind == Kind::Word {
            if token.text != "self" || path.is_empty() {
                path.push(token.text.clone());
            }
            rest = behind;
            let goes_on = rest.first().is_some_and(|next| next.is_mark("::") || next.is_word("as"));
            if !goes_on {
                found.push((path, token.line));
                return rest;
            }
        } else {
            return rest;
        }
    }
    rest
}

#[cfg(test)]
mod tests {
    use super::super::scan;
    use super::*;

    fn all(text: &str) -> Vec<String> {
        paths(&scan(text)).into_iter().map(|(path, _)| path.join("::")).collect()
    }

    #[test]
    fn use_trees_are_spread_out() {
        let text =
            "use std::{env, process::{self, Command as C}, io::*}; use a; pub(crate) use ::b::c;";
        let expected =
            ["std::env", "std::process", "std::process::Command::as", "std::io::*", "a", "b::c"];
        assert_eq!(all(text), expected);
    }

    #[test]
    fn paths_in_code_are_found() {
        assert_eq!(all("let x = std::env::var(\"A\"); Vec::<u8>::new(); y.z()"), ["std::env::var"]);
    }

    #[test]
    fn a_broken_tree_ends() {
        assert_eq!(all("use a::{b, ; use c::d;"), ["a::b", "c::d"]);
        assert_eq!(all("use a::{"), Vec::<String>::new());
    }
}

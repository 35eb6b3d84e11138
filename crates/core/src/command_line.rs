//! How much a command line gives away about what it does: for rules, never for running it.
//!
//! A rule is not a sandbox: a shell can spell one command in many ways. So what allows is narrow,
//! it reads only lines without anything a shell would expand; and what denies is wide, it looks for
//! its words anywhere in the line (A13.3).

/// Commands that change nothing whatever their arguments are.
const HARMLESS: [&str; 14] = [
    "cat", "df", "du", "false", "file", "grep", "head", "id", "ls", "pwd", "stat", "tail", "true",
    "wc",
];
/// The same, with their first argument.
const HARMLESS_GIT: [&str; 2] = ["rev-parse", "status"];

/// The words of a line that a shell passes on as they are: one command, without variables,
/// substitutions, patterns, redirections or assignments. None for every other line.
pub(crate) fn simple(line: &str) -> Option<Vec<String>> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut characters = line.trim().chars();
    while let Some(c) = characters.next() {
        match c {
            ' ' | '\t' => words.extend(word.take()),
            '\'' | '"' => {
                let text = word.get_or_insert_default();
                loop {
                    match characters.next()? {
                        end if end == c => break,
                        '\n' => return None,
                        '$' | '`' | '\\' | '!' if c == '"' => return None,
                        other => text.push(other),
                    }
                }
            }
            _ if c.is_control() || "\\;|&<>$`(){}*?[]~!#^".contains(c) => return None,
            _ => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    let first: &String = words.first()?;
    (!first.contains('=')).then_some(words)
}

/// Whether the line is one simple command that is known to change nothing.
pub(crate) fn known_safe(line: &str) -> bool {
    let Some(words) = simple(line) else { return false };
    let mut words = words.iter().map(String::as_str);
    match words.next() {
        Some("git") => words.next().is_some_and(|verb| HARMLESS_GIT.contains(&verb)),
        Some(first) => HARMLESS.contains(&first),
        None => false,
    }
}

/// Whether the line is a simple command that begins with these words.
pub(crate) fn begins_with(line: &str, words: &[String]) -> bool {
    simple(line).is_some_and(|line| line.starts_with(words))
}

/// Whether these words stand next to each other anywhere in the line, whatever stands around them:
/// behind `;` and in `$(…)`, in quotes, behind `sudo`, and as the end of a path.
pub(crate) fn contains(line: &str, words: &[String]) -> bool {
    let parts: Vec<&str> = line
        .split(|c: char| c.is_whitespace() || c.is_control() || "\"'`\\;|&<>$(){}=".contains(c))
        .filter(|part| !part.is_empty())
        .collect();
    let is = |part: &str, word: &str| part == word || part.rsplit('/').next() == Some(word);
    let len = words.len();
    len == 0
        || parts
            .windows(len)
            .any(|window| window.iter().zip(words).all(|(part, word)| is(part, word)))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn words(text: &str) -> Vec<String> {
        text.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn only_what_a_shell_passes_on_is_simple() {
        assert_eq!(simple("git commit -m 'a; b' \"c d\"").unwrap().len(), 5);
        for bad in [
            "a; b", "a | b", "a && b", "a & b", "$(a)", "`a`", "a > f", "a $X", "a\nb", "X=1 a",
            "a *", "a ~", "a \\b", "a 'b", "a \"$X\"", "", "  ", "a # b", "{ a; }", "a\u{0}b",
        ] {
            assert_eq!(simple(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn agents_63_only_commands_that_change_nothing_are_known_safe() {
        for safe in ["ls -la", "git status --short", "cat 'a b'"] {
            assert!(known_safe(safe), "{safe}");
        }
        for other in ["rm -rf build", "ls; rm x", "git push", "git", "ls > x", "/tmp/ls", "lsx"] {
            assert!(!known_safe(other), "{other}");
        }
    }

    #[test]
    fn what_denies_is_found_anywhere() {
        for line in [
            "git push",
            "cd x; git push -f",
            "sudo git push",
            "$(git push)",
            "bash -c 'git push'",
            "/usr/bin/git push",
            "true&&git push",
            "X=1 git\tpush",
        ] {
            assert!(contains(line, &words("git push")), "{line}");
        }
        assert!(!contains("git status", &words("git push")));
        assert!(contains("anything", &[]));
    }

    proptest! {
        #[test]
        fn what_begins_with_words_contains_them(line in "[a-c/ ;'\"$-]{0,24}", word in "[a-c]{1,2}") {
            let words = vec![word];
            prop_assert!(!begins_with(&line, &words) || contains(&line, &words));
        }
    }
}

//! Lines for people: whatever text comes in, one line of a bounded length goes out.

/// The most characters of a reason or of a question that an event holds.
pub const LONGEST_LINE: usize = 1000;

/// The text on one line: runs of white space and control characters are one space each, none at
/// the ends. What comes from a model or a program cannot move a terminal's cursor by it.
pub fn one_line(text: &str) -> String {
    text.split(|c: char| c.is_whitespace() || c.is_control())
        .filter(|word| !word.is_empty())
        .collect::<Vec<_>>()
        .join(" ")
}

/// At most `longest` characters of the text; an ellipsis stands for what was left out.
pub fn cut(text: &str, longest: usize) -> String {
    if text.chars().nth(longest).is_none() {
        return text.to_owned();
    }
    let mut kept: String = text.chars().take(longest.saturating_sub(1)).collect();
    if longest > 0 {
        kept.push('…');
    }
    kept
}

/// One line of at most [`LONGEST_LINE`] characters.
pub fn brief(text: &str) -> String {
    cut(&one_line(text), LONGEST_LINE)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn lines_are_folded_and_cut() {
        assert_eq!(one_line("  a\n\tb \u{1b}[2Jc\u{0} "), "a b [2Jc");
        assert_eq!(cut("日本語です", 3), "日本…");
        assert_eq!(cut("abc", 3), "abc");
        assert_eq!(cut("abc", 0), "");
    }

    proptest! {
        #[test]
        fn any_text_is_cut_at_any_length(text in any::<String>(), longest in 0_usize..40) {
            let kept = cut(&one_line(&text), longest);
            prop_assert!(kept.chars().count() <= longest);
            prop_assert!(!kept.chars().any(char::is_control));
        }
    }
}

//! `stead` alone: five lines for somebody who has just got it.

use crate::exit::{Done, Exit};
use crate::output::{answer, style, styled};

const LINES: [(&str, &str); 5] = [
    ("demo", "stead demo, the whole story on a small project, in a minute"),
    ("run", "stead run --agent playbook:FILE \"MESSAGE\", then stead task review 1"),
    ("doctor", "stead doctor, for what is held, what is wrong and what helps"),
    ("guide", "README.md and docs/guide.md, beside stead's source"),
    ("help", "stead help, and `stead help run` for one command"),
];

/// Says how to begin.
pub(crate) fn welcome() -> Done {
    answer(text())?;
    Ok(Exit::DONE)
}

fn text() -> String {
    let mut text = String::new();
    for (name, what) in LINES {
        let name = styled(style::BOLD, format_args!("{name:<7}"));
        text.push_str(&format!("{name} {what}\n"));
    }
    text
}

#[cfg(test)]
mod tests {
    use anstream::adapter::strip_str;

    #[test]
    fn stead_alone_prints_five_lines() {
        let text = strip_str(&super::text()).to_string();
        assert_eq!(text.lines().count(), 5);
        assert!(text.lines().all(|line| line.len() < 80));
        insta::assert_snapshot!(text);
    }
}

//! `stead` alone: five lines for somebody who has just got it.

use crate::exit::{Done, Exit};
use crate::output::{answer, style, styled};

const LINES: [(&str, &str, &str); 4] = [
    (
        "run",
        "stead run --in-place --agent playbook:FILE \"MESSAGE\"",
        "a team works in this folder",
    ),
    ("doctor", "stead doctor", "what is held, what is wrong, what helps"),
    ("guide", "README.md, docs/playbook.md", "beside stead's source"),
    ("help", "stead help", "all commands; `stead help run` tells of one"),
];

/// Says how to begin.
pub(crate) fn welcome() -> Done {
    answer(text())?;
    Ok(Exit::DONE)
}

fn text() -> String {
    let mut text = "stead runs a team of coding agents on your own machine.\n".to_owned();
    for (name, command, what) in LINES {
        let name = styled(style::BOLD, format_args!("{name:<7}"));
        let what = styled(style::DIM, what);
        text.push_str(&format!("  {name} {command:<53} {what}\n"));
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
        insta::assert_snapshot!(text);
    }
}

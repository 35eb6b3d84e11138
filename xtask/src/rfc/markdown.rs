//! As much Markdown as the checks need.

use std::path::Path;

/// The lines outside fenced blocks, with their numbers from 1.
///
/// A fence is a line that starts with three backticks in its first column; indented fences and
/// fences of tildes are prose. Lines end at `\n` only, so a carriage return stays part of its line.
pub(crate) fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut fenced = false;
    text.split('\n').enumerate().filter_map(move |(at, line)| {
        if line.starts_with("```") {
            fenced = !fenced;
            return None;
        }
        (!fenced).then_some((at + 1, line))
    })
}

/// The second-level headings, trailing blanks trimmed.
pub(crate) fn sections(text: &str) -> Vec<&str> {
    prose(text).filter_map(|(_, line)| line.strip_prefix("## ")).map(str::trim_end).collect()
}

/// Links of a record that are not relative, or lead to no file.
pub(crate) fn broken_links(folder: &Path, record: &str, text: &str) -> Vec<String> {
    let beside = folder.join(record);
    let beside = beside.parent().unwrap_or(folder);
    let mut found = Vec::new();
    for (line, content) in prose(text) {
        for target in targets(content) {
            let file = target.split_once('#').map_or(target, |(file, _)| file);
            if file.contains("://") || file.starts_with("mailto:") || file.is_empty() {
                continue;
            }
            if file.starts_with('/') {
                found.push(format!("line {line}: the link to `{target}` is not relative"));
            } else if !beside.join(file).exists() {
                found.push(format!("line {line}: the link to `{target}` leads nowhere"));
            }
        }
    }
    found
}

/// The targets of inline links; code spans are left out.
fn targets(line: &str) -> Vec<&str> {
    let mut found = Vec::new();
    for text in line.split('`').step_by(2) {
        for after in text.split("](").skip(1) {
            if let Some((target, _)) = after.split_once(')') {
                let target = target.split_whitespace().next().unwrap_or_default();
                found.push(target.trim_start_matches('<').trim_end_matches('>'));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_backticks_in_the_first_column_fence() {
        let text = "## A\n```md\n## B\n```\n ```\n## C\n~~~\n## D  \n~~~\n```\n## E";
        assert_eq!(sections(text), ["A", "C", "D"]);
    }

    #[test]
    fn links_are_relative_and_lead_somewhere() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(folder.path().join("proposed/process")).unwrap();
        std::fs::write(folder.path().join("README.md"), "").unwrap();
        let text = "[a](../../README.md#format) [b](gone.md) `[c](gone.md)` [d](/README.md)\n\
                    [e](https://example.org/x.md) [f](#here)";
        let found = broken_links(folder.path(), "proposed/process/x.md", text);
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found[0].contains("`gone.md`") && found[1].contains("not relative"), "{found:?}");
    }
}

//! `docs/benchmarks.md`: a section a bench, written by the bench that was run last.

use std::fs;
use std::path::Path;

use super::row::markdown;
use super::{BENCHES, Bench, Outcome, machine};
use crate::report::Result;
use crate::workspace;

/// The page.
const PAGE: &str = "docs/benchmarks.md";

const HEAD: &str = "\
# Benchmarks

`cargo xtask bench --write` measures and writes this page; `cargo xtask bench NAME` measures one
thing. Nothing here is compared across runs or machines: each ratio is between two things that took
turns in one run (A B A B …), and is the median of the rounds' ratios. A load that comes and goes
weighs on both sides; how busy the machine was is told below each table. The times beside the ratios
are medians too, and mean little elsewhere.

A goal is part of the program: `cargo xtask bench` fails when one is missed.
";

/// Writes the bench's section, and keeps what others have found.
pub(super) fn write(
    root: &Path,
    bench: &Bench,
    outcome: &Outcome,
    load: &str,
    disk: &str,
) -> Result<()> {
    let path = root.join(PAGE);
    let old = fs::read_to_string(&path).unwrap_or_default();
    let rows = markdown(&outcome.rows);
    let about = [machine::describe() + ".", disk.to_owned(), load.to_owned()].join(" ");
    let paragraphs: Vec<String> = [bench.method.to_owned(), rows.trim_end().to_owned()]
        .into_iter()
        .chain(outcome.notes.iter().cloned())
        .chain([about])
        .map(|paragraph| wrapped(&paragraph))
        .collect();
    let text = format!("{}\n\n{}\n", heading(bench), paragraphs.join("\n\n"));
    workspace::write_if_changed(&path, &merged(&old, &heading(bench), &text))?;
    Ok(())
}

fn heading(bench: &Bench) -> String {
    let mut letters = bench.heading.chars();
    let first = letters.next().map(|letter| letter.to_uppercase().to_string()).unwrap_or_default();
    format!("## {first}{}", letters.as_str())
}

/// The page with one section replaced: the head, then the sections of all benches in their order.
fn merged(old: &str, heading: &str, text: &str) -> String {
    let mut page = HEAD.to_owned();
    for bench in BENCHES {
        let wanted = self::heading(bench);
        let section = if wanted == heading { Some(text.to_owned()) } else { section(old, &wanted) };
        if let Some(section) = section {
            page.push('\n');
            page.push_str(section.trim_end());
            page.push('\n');
        }
    }
    page
}

/// A section of a page with its heading.
fn section(page: &str, heading: &str) -> Option<String> {
    let mut lines = page.lines().skip_while(|line| *line != heading);
    let first = lines.next()?;
    let rest = lines.take_while(|line| !line.starts_with("## "));
    Some(std::iter::once(first).chain(rest).fold(String::new(), |text, line| text + line + "\n"))
}

/// A paragraph in lines of at most 100 characters; tables stay as they are.
fn wrapped(paragraph: &str) -> String {
    if paragraph.starts_with('|') {
        return paragraph.to_owned();
    }
    let mut lines: Vec<String> = Vec::new();
    for word in paragraph.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= 100 => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_section_is_replaced_and_the_others_stay_in_order() {
        let (first, second) = (&BENCHES[0], &BENCHES[1]);
        let one = heading(first);
        let two = heading(second);
        let page = merged("", &two, &format!("{two}\n\nnew\n"));
        assert!(page.starts_with(HEAD) && page.ends_with("\n\nnew\n"));
        let page = merged(&page, &one, &format!("{one}\n\nbefore it\n"));
        assert!(page.find("before it").unwrap() < page.find("new").unwrap());
        let page = merged(&page, &two, &format!("{two}\n\nnewer\n"));
        assert!(page.contains("before it") && page.ends_with("newer\n"));
        assert!(!page.contains("new\n"));
    }

    #[test]
    fn paragraphs_are_wrapped_and_tables_are_not() {
        let long = "word ".repeat(60);
        assert!(wrapped(&long).lines().all(|line| line.len() <= 100));
        assert_eq!(wrapped(&long).split_whitespace().count(), 60);
        let table = "| a |\n|---|\n| b |";
        assert_eq!(wrapped(table), table);
    }
}

//! What is wrong with a playbook, where, and what to do about it.

use std::fmt;

/// The first thing in a file that keeps it from being a playbook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlaybookError {
    /// The line, counted from 1.
    pub line: usize,
    /// Where in the script, such as `agent 1, turn 2, step 3`; empty outside of every agent.
    pub place: String,
    /// What is wrong, on one line.
    pub problem: String,
    /// What to do about it, on one line.
    pub hint: String,
}

impl fmt::Display for PlaybookError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}", self.line)?;
        if !self.place.is_empty() {
            write!(f, ", {}", self.place)?;
        }
        write!(f, ": {}\nhint: {}", self.problem, self.hint)
    }
}

impl std::error::Error for PlaybookError {}

/// The known name that `wrong` was probably meant to be: at most a third of it differs.
pub(super) fn nearest<'a>(wrong: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    known
        .map(|name| (strsim::damerau_levenshtein(wrong, name), name))
        .filter(|(distance, name)| *distance <= 1.max(name.chars().count().div_ceil(3)))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name)
}

/// `a`, `b` and `c`, each in backquotes.
pub(super) fn listed(names: &[&str]) -> String {
    let quoted: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    match quoted.split_last() {
        None => "nothing".to_owned(),
        Some((last, [])) => last.clone(),
        Some((last, others)) => format!("{} and {last}", others.join(", ")),
    }
}

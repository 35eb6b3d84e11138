//! What a command found.

/// The result of a command that may be unable to do its work at all.
pub(crate) type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// All violations of one command, or the sentence that says what was looked at.
#[derive(Debug, Default)]
pub(crate) struct Report {
    /// One line each, naming the place first.
    pub(crate) violations: Vec<String>,
    /// What to say when there are none; it carries a count so that "nothing checked" shows.
    pub(crate) clean: String,
    /// What must be seen even when all is well, as the tests that were skipped.
    pub(crate) notes: Vec<String>,
}

impl Report {
    /// A report whose violations are still to come.
    pub(crate) fn new(clean: impl Into<String>) -> Self {
        Self { clean: clean.into(), ..Self::default() }
    }

    /// Adds a violation.
    pub(crate) fn fail(&mut self, violation: impl Into<String>) {
        self.violations.push(violation.into());
    }

    /// Takes over what another part of the same command found.
    pub(crate) fn extend(&mut self, violations: impl IntoIterator<Item = String>) {
        self.violations.extend(violations);
    }

    /// Whether nothing was found.
    pub(crate) fn is_clean(&self) -> bool {
        self.violations.is_empty()
    }

    /// Prints the outcome: violations to standard error, the clean sentence to standard output.
    pub(crate) fn print(&self, name: &str) {
        if self.is_clean() {
            println!("{name}: {}", self.clean);
            return;
        }
        for violation in &self.violations {
            eprintln!("{name}: {violation}");
        }
        eprintln!("{name}: {}", counted(self.violations.len(), "violation", "violations"));
    }
}

/// `1 case`, `2 cases`.
pub(crate) fn counted(count: usize, one: &str, many: &str) -> String {
    if count == 1 { format!("1 {one}") } else { format!("{count} {many}") }
}

//! What was measured, as lines of a table.

use std::fmt::Write as _;

/// What is demanded of a figure.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Goal {
    AtMost(f64),
    AtLeast(f64),
}

impl Goal {
    fn is_met(self, figure: f64) -> bool {
        match self {
            Self::AtMost(most) => figure <= most,
            Self::AtLeast(least) => figure >= least,
        }
    }

    fn says(self, unit: &str) -> String {
        match self {
            Self::AtMost(most) => format!("at most {most}{unit}"),
            Self::AtLeast(least) => format!("at least {least}{unit}"),
        }
    }
}

/// One line of a bench's table.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Row {
    what: String,
    value: String,
    ratio: String,
    goal: String,
    met: Option<bool>,
}

impl Row {
    /// A figure on its own.
    pub(super) fn new(what: impl Into<String>, value: impl Into<String>) -> Self {
        Self {
            what: what.into(),
            value: value.into(),
            ratio: String::new(),
            goal: String::new(),
            met: None,
        }
    }

    /// How it compares with `to`, and nothing demanded.
    pub(super) fn ratio(mut self, ratio: f64, to: &str) -> Self {
        self.ratio = format!("{ratio:.2} × {to}");
        self
    }

    /// How it compares with `to`, and how it should.
    pub(super) fn held_to(self, ratio: f64, to: &str, goal: Goal) -> Self {
        let mut row = self.ratio(ratio, to);
        row.goal = goal.says(" ×");
        row.met = Some(goal.is_met(ratio));
        row
    }

    /// A figure that is itself held to something.
    pub(super) fn within(mut self, figure: f64, goal: Goal, unit: &str) -> Self {
        self.goal = goal.says(unit);
        self.met = Some(goal.is_met(figure));
        self
    }

    /// Whether it should have been better.
    pub(super) fn missed(&self) -> bool {
        self.met == Some(false)
    }

    /// The row in one line.
    pub(super) fn line(&self) -> String {
        let Self { what, value, ratio, goal, .. } = self;
        let ratio = if ratio.is_empty() { String::new() } else { format!(", {ratio}") };
        format!("{what}: {value}{ratio}; demanded: {goal}")
    }

    fn cells(&self) -> [&str; 5] {
        let met = match self.met {
            None => "",
            Some(true) => "met",
            Some(false) => "MISSED",
        };
        [&self.what, &self.value, &self.ratio, &self.goal, met]
    }
}

const HEAD: [&str; 5] = ["What", "Median", "Ratio", "Demanded", ""];

/// The rows for a terminal.
pub(super) fn table(rows: &[Row]) -> String {
    let lines: Vec<[&str; 5]> = std::iter::once(HEAD).chain(rows.iter().map(Row::cells)).collect();
    let mut text = String::new();
    for line in &lines {
        text.push_str("  ");
        for (column, cell) in line.iter().enumerate() {
            let widest = lines.iter().filter_map(|line| line.get(column));
            let width = widest.map(|cell| cell.chars().count()).max().unwrap_or(0);
            let _ = write!(text, "{cell:<width$}  ");
        }
        text.truncate(text.trim_end().len());
        text.push('\n');
    }
    text
}

/// The rows for a page.
pub(super) fn markdown(rows: &[Row]) -> String {
    let mut text = format!("| {} |\n|---|---|---|---|---|\n", HEAD.join(" | "));
    for row in rows {
        let _ = writeln!(text, "| {} |", row.cells().join(" | "));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn goals_have_a_direction() {
        assert!(Row::new("a", "1").held_to(2.9, "b", Goal::AtMost(3.0)).met == Some(true));
        assert!(Row::new("a", "1").held_to(3.1, "b", Goal::AtMost(3.0)).missed());
        assert!(Row::new("a", "1").held_to(4.9, "b", Goal::AtLeast(5.0)).missed());
        assert!(!Row::new("a", "21 MB").within(19.0, Goal::AtMost(20.0), " MB").missed());
        assert!(!Row::new("a", "1").ratio(9.0, "b").missed());
    }

    #[test]
    fn columns_stand_below_each_other() {
        let rows = [
            Row::new("start", "2 ms").held_to(1.5, "git", Goal::AtMost(3.0)),
            Row::new("s", "3 ms"),
        ];
        assert_eq!(
            table(&rows),
            "  What   Median  Ratio       Demanded\n\
             \x20 start  2 ms    1.50 × git  at most 3 ×  met\n\
             \x20 s      3 ms\n"
        );
        assert!(markdown(&rows).ends_with("| s | 3 ms |  |  |  |\n"));
    }
}

//! One thing that was looked at.

use clap::builder::styling::Style;
use serde::Serialize;

use crate::clean;
use crate::output::{style, styled};

/// How it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum State {
    /// As it should be.
    Ok,
    /// Worth knowing.
    Warning,
    /// Wrong.
    Fault,
}

/// What was found.
#[derive(Debug, Serialize)]
pub(super) struct Finding {
    /// What was looked at.
    pub(super) what: &'static str,
    /// How it is.
    pub(super) state: State,
    /// What was found, in one line.
    pub(super) line: String,
    /// What helps, naming the command.
    pub(super) help: Option<String>,
}

impl Finding {
    /// It is as it should be.
    pub(super) fn ok(what: &'static str, line: impl Into<String>) -> Self {
        Self { what, state: State::Ok, line: line.into(), help: None }
    }

    /// It is worth knowing.
    pub(super) fn warning(
        what: &'static str,
        line: impl Into<String>,
        help: impl Into<String>,
    ) -> Self {
        Self { what, state: State::Warning, line: line.into(), help: Some(help.into()) }
    }

    /// It is wrong.
    pub(super) fn fault(
        what: &'static str,
        line: impl Into<String>,
        help: impl Into<String>,
    ) -> Self {
        Self { what, state: State::Fault, line: line.into(), help: Some(help.into()) }
    }

    /// As people read it.
    pub(super) fn text(&self, widest: usize) -> String {
        let (sign, shade): (_, Style) = match self.state {
            State::Ok => ("✓", style::GOOD),
            State::Warning => ("!", style::ASK),
            State::Fault => ("✗", style::BAD),
        };
        let mut text = format!(
            "{} {:<widest$}  {}\n",
            styled(shade, sign),
            self.what,
            clean::line(&self.line)
        );
        if let Some(help) = &self.help {
            text.push_str(&format!("  {:<widest$}  → {}\n", "", clean::line(help)));
        }
        text
    }
}

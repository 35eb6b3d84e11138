//! Answers go to standard output, narration to standard error.
//!
//! Both strip this program's own colours where there is no terminal or `NO_COLOR` is set. A write
//! to standard output can fail, and then the command ends; nobody is told when narration cannot be
//! written.

use std::fmt;
use std::io::{self, IsTerminal as _, Write as _};

use clap::builder::styling::{AnsiColor, Style};
use serde::Serialize;
use stead_core::refusal::Refusal;

use crate::clean;
use crate::exit::Failure;

/// Writes a text to standard output as it is.
pub(crate) fn answer(text: impl fmt::Display) -> Result<(), Failure> {
    let mut out = anstream::stdout().lock();
    write!(out, "{text}")?;
    out.flush()?;
    Ok(())
}

/// Writes a line to standard output.
pub(crate) fn answer_line(text: impl fmt::Display) -> Result<(), Failure> {
    answer(format_args!("{text}\n"))
}

/// Writes one JSON object on a line of its own to standard output.
pub(crate) fn answer_json(value: &impl Serialize) -> Result<(), Failure> {
    answer_line(clean::json(value))
}

/// Writes a document: `{"version":1,…}` with the fields of `value` beside it.
pub(crate) fn document(value: &impl Serialize) -> Result<(), Failure> {
    answer_json(&Document { version: 1, value })
}

#[derive(Serialize)]
struct Document<'a, T> {
    version: u32,
    #[serde(flatten)]
    value: &'a T,
}

/// Tells the person something that is no answer.
pub(crate) fn say(text: impl fmt::Display) {
    let mut out = anstream::stderr().lock();
    // Nobody is left to tell that this failed.
    let _ = writeln!(out, "{text}");
}

/// Tells the person why something was not done.
pub(crate) fn say_refusal(refusal: &Refusal) {
    let red = AnsiColor::Red.on_default().bold();
    say(format_args!("{red}stead:{red:#} {}", clean::line(&refusal.line)));
    if let Some(hint) = &refusal.hint {
        say(format_args!("hint: {}", clean::line(hint)));
    }
}

/// Whether a person can watch narration and press keys, on a terminal that can be redrawn.
pub(crate) fn is_interactive() -> bool {
    let dumb = std::env::var_os("TERM").is_none_or(|term| term.is_empty() || term == "dumb");
    !dumb && io::stdin().is_terminal() && io::stderr().is_terminal()
}

/// Whether standard error may be coloured.
pub(crate) fn is_coloured() -> bool {
    use anstream::ColorChoice;
    !matches!(anstream::AutoStream::choice(&io::stderr()), ColorChoice::Never)
}

/// The few styles of this program.
pub(crate) mod style {
    use super::{AnsiColor, Style};

    /// What matters in a line.
    pub(crate) const BOLD: Style = Style::new().bold();
    /// What may be passed over.
    pub(crate) const DIM: Style = Style::new().dimmed();
    /// It is well.
    pub(crate) const GOOD: Style = AnsiColor::Green.on_default();
    /// It is being worked on.
    pub(crate) const BUSY: Style = AnsiColor::Cyan.on_default();
    /// Somebody should look.
    pub(crate) const ASK: Style = AnsiColor::Yellow.on_default();
    /// It is not well.
    pub(crate) const BAD: Style = AnsiColor::Red.on_default();
}

/// A text in a style.
pub(crate) fn styled(style: Style, text: impl fmt::Display) -> String {
    format!("{style}{text}{style:#}")
}

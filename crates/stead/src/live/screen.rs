//! The part of a terminal below its last line, redrawn in place.

use std::io::{self, Write};

use crossterm::cursor::{Hide, MoveToColumn, MoveUp, Show};
use crossterm::queue;
use crossterm::terminal::{
    BeginSynchronizedUpdate, Clear, ClearType, EndSynchronizedUpdate, disable_raw_mode,
    enable_raw_mode,
};

use super::view::Row;
use crate::clean;

/// A region at the end of what a terminal shows. Dropping it leaves the terminal as it was, with
/// the region gone.
pub(super) struct Screen {
    /// The widths of the lines that are drawn.
    drawn: Vec<usize>,
    coloured: bool,
}

impl Screen {
    /// Takes the terminal: keys come one by one, the cursor is hidden.
    pub(super) fn new(coloured: bool) -> io::Result<Self> {
        enable_raw_mode()?;
        let screen = Self { drawn: Vec::new(), coloured };
        queue!(io::stderr(), Hide)?;
        io::stderr().flush()?;
        Ok(screen)
    }

    /// How wide and high the terminal is.
    pub(super) fn size() -> (usize, usize) {
        let (width, height) = crossterm::terminal::size().unwrap_or((80, 24));
        (usize::from(width.max(10)), usize::from(height.max(2)))
    }

    /// Replaces the region by these rows, and puts `above` on lines of their own before it.
    pub(super) fn draw(&mut self, above: &[String], rows: &[Row]) -> io::Result<()> {
        let mut out = Vec::new();
        queue!(out, BeginSynchronizedUpdate)?;
        self.erase(&mut out)?;
        for line in above {
            write!(out, "{line}\r\n")?;
        }
        self.drawn.clear();
        for (number, row) in rows.iter().enumerate() {
            if number > 0 {
                out.extend(b"\r\n");
            }
            self.drawn.push(self.row(&mut out, row)?);
        }
        queue!(out, EndSynchronizedUpdate)?;
        let mut stderr = io::stderr().lock();
        stderr.write_all(&out)?;
        stderr.flush()
    }

    fn row(&self, out: &mut Vec<u8>, row: &Row) -> io::Result<usize> {
        let mut width = 0;
        for (style, text) in row {
            width += text.chars().map(clean::columns).sum::<usize>();
            if self.coloured {
                write!(out, "{style}{text}{style:#}")?;
            } else {
                write!(out, "{text}")?;
            }
        }
        Ok(width)
    }

    /// Moves to the beginning of the region and clears from there. A terminal that became narrower
    /// has wrapped the lines.
    fn erase(&self, out: &mut Vec<u8>) -> io::Result<()> {
        let (width, _) = Self::size();
        let lines: usize = self.drawn.iter().map(|drawn| drawn.div_ceil(width).max(1)).sum();
        let up = u16::try_from(lines.saturating_sub(1)).unwrap_or(u16::MAX);
        queue!(out, MoveToColumn(0))?;
        if up > 0 {
            queue!(out, MoveUp(up))?;
        }
        queue!(out, Clear(ClearType::FromCursorDown))
    }

    fn suspend(&mut self) {
        let mut out = Vec::new();
        // A terminal that is gone needs nothing given back.
        let _ = self.erase(&mut out).and_then(|()| queue!(out, Show));
        let _ = io::stderr().write_all(&out);
        let _ = io::stderr().flush();
        self.drawn.clear();
        let _ = disable_raw_mode();
    }

    /// Gives the terminal back while `meanwhile` lasts.
    pub(super) fn without(&mut self, meanwhile: impl FnOnce()) {
        self.suspend();
        meanwhile();
        // A terminal that is gone cannot be taken again; the next drawing tells.
        let _ = enable_raw_mode();
        let _ = queue!(io::stderr(), Hide);
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        self.suspend();
    }
}

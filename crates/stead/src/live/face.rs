//! How a session that is followed shows: a live tree, a plain log, or JSON.

use std::io;
use std::time::{SystemTime, UNIX_EPOCH};

use stead_core::id::Timestamp;
use stead_engine::api::{EventNotification, Notification};

use super::fold::Fold;
use super::screen::Screen;
use super::view::{Frame, view};
use crate::clean;
use crate::exit::Failure;
use crate::output::{answer_json, is_coloured, say, style, styled};
use crate::render::{Said, Teller};

/// What stays above the live tree when it has happened.
const LASTING: [&str; 5] =
    ["agent-published", "agent-refused", "turn-settled", "permission-settled", "mode-set"];

/// One way to show a session.
pub(crate) struct Face {
    way: Way,
    teller: Teller,
    began: Timestamp,
}

enum Way {
    Live { screen: Screen, above: Vec<String>, dirty: bool, drawn: i64, notice: Option<String> },
    Plain,
    Brief,
    Json,
}

impl Face {
    /// A line an event, to standard error.
    pub(crate) fn plain() -> Self {
        Self::new(Way::Plain)
    }

    /// A line for each event that a live tree would leave above itself, to standard error.
    pub(crate) fn brief() -> Self {
        Self::new(Way::Brief)
    }

    /// A JSON object an event, to standard output.
    pub(crate) fn json() -> Self {
        Self::new(Way::Json)
    }

    /// A tree that is redrawn in place; the terminal is taken.
    pub(crate) fn live() -> io::Result<Self> {
        let screen = Screen::new(is_coloured())?;
        let above = Vec::new();
        Ok(Self::new(Way::Live { screen, above, dirty: true, drawn: 0, notice: None }))
    }

    fn new(way: Way) -> Self {
        let teller = match way {
            Way::Live { .. } | Way::Brief => Teller::terse(),
            Way::Plain | Way::Json => Teller::default(),
        };
        Self { way, teller, began: now() }
    }

    /// Whether it takes keys.
    pub(super) fn is_live(&self) -> bool {
        matches!(self.way, Way::Live { .. })
    }

    /// Whether programs read it.
    pub(super) fn is_json(&self) -> bool {
        matches!(self.way, Way::Json)
    }

    /// Shows an event.
    pub(super) fn event(&mut self, event: Box<EventNotification>) -> Result<(), Failure> {
        match &mut self.way {
            Way::Json => answer_json(&Notification::Event(event)),
            Way::Plain => {
                if let Some(said) = self.teller.tell(&event) {
                    say(said.line());
                }
                Ok(())
            }
            Way::Brief => {
                if let Some(said) = lasting(&mut self.teller, &event) {
                    say(said.line());
                }
                Ok(())
            }
            Way::Live { above, dirty, .. } => {
                *dirty = true;
                if let Some(said) = lasting(&mut self.teller, &event) {
                    above.push(clipped(&said.line(), &said.plain()));
                }
                Ok(())
            }
        }
    }

    /// Tells the person something on a line that stays.
    pub(super) fn tell(&mut self, text: &str) {
        match &mut self.way {
            Way::Live { above, dirty, .. } => {
                above.push(styled(style::ASK, clean::line(text)));
                *dirty = true;
            }
            Way::Plain | Way::Brief | Way::Json => say(clean::line(text)),
        }
    }

    /// Tells the person something for the moment.
    pub(super) fn notice(&mut self, text: Option<&str>) {
        match (&mut self.way, text) {
            (Way::Live { notice, dirty, .. }, text) => {
                *notice = text.map(str::to_owned);
                *dirty = true;
            }
            (Way::Plain | Way::Brief | Way::Json, Some(text)) => say(clean::line(text)),
            (Way::Plain | Way::Brief | Way::Json, None) => {}
        }
    }

    /// Something of the session changed.
    pub(super) fn changed(&mut self) {
        if let Way::Live { dirty, .. } = &mut self.way {
            *dirty = true;
        }
    }

    /// Draws what changed, and the clock once a second. `outlives`: whether the agents go on when
    /// the person leaves.
    pub(super) fn draw(&mut self, fold: &Fold, outlives: bool) -> Result<(), Failure> {
        let began = self.began;
        let Way::Live { screen, above, dirty, drawn, notice } = &mut self.way else {
            return Ok(());
        };
        let now = now();
        if !*dirty && now.0 / 1000 == *drawn {
            return Ok(());
        }
        let (width, height) = Screen::size();
        // The last column is left free: some terminals wrap as soon as it is written.
        let frame = Frame {
            width: width - 1,
            height: height - 1,
            now,
            began,
            notice: notice.as_deref(),
            outlives,
        };
        screen.draw(above, &view(fold, &frame))?;
        above.clear();
        (*dirty, *drawn) = (false, now.0 / 1000);
        Ok(())
    }

    /// Stops this process as Ctrl-Z does, with the terminal given back meanwhile.
    pub(super) fn suspend(&mut self) {
        if let Way::Live { screen, dirty, .. } = &mut self.way {
            // The shell that started this process takes over until it is continued.
            screen.without(|| {
                let _ = rustix::process::kill_current_process_group(rustix::process::Signal::TSTP);
            });
            *dirty = true;
        }
    }

    /// Puts what is left to tell above, and gives the terminal back.
    pub(super) fn close(mut self) {
        if let Way::Live { screen, above, .. } = &mut self.way {
            // A terminal that is gone has nothing to be given back.
            let _ = screen.draw(above, &[]);
        }
    }
}

/// What an event is told as, if it stays when it has happened. What /root says at last is the
/// answer, and comes whole at the end.
fn lasting(teller: &mut Teller, event: &EventNotification) -> Option<Said> {
    let said = teller.tell(event)?;
    let is_answer = event.kind == "turn-settled" && said.who == "/root";
    (LASTING.contains(&event.kind.as_str()) && !is_answer).then_some(said)
}

/// A line that stays is cut to the terminal too, with its colours only if it fits.
fn clipped(coloured: &str, plain: &str) -> String {
    let (width, _) = Screen::size();
    let fits = plain.chars().map(clean::columns).sum::<usize>() < width;
    if fits && is_coloured() { coloured.to_owned() } else { clean::fit(plain, width - 1) }
}

pub(super) fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}

//! One key as the answer to one question.

use std::io::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crossterm::event::{Event, KeyCode, KeyEventKind, KeyModifiers, poll, read};
use crossterm::terminal::{disable_raw_mode, enable_raw_mode};

use crate::exit::Failure;
use crate::output::{say, style, styled};

/// How long the thread waits for a key before it looks whether it is still wanted.
const LOOK: Duration = Duration::from_millis(50);

/// What the person answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Key {
    Yes,
    No,
    Interrupt,
}

/// Keys come one by one until it is dropped.
struct Raw {
    wanted: Arc<AtomicBool>,
}

impl Drop for Raw {
    fn drop(&mut self) {
        self.wanted.store(false, Ordering::Relaxed);
        let _ = disable_raw_mode();
    }
}

/// Asks a question that is answered by one key, and waits for it.
pub(super) async fn ask(question: &str) -> Result<Key, Failure> {
    let prompt = styled(style::ASK.bold(), format_args!("{question} [y/n] "));
    let mut out = anstream::stderr().lock();
    write!(out, "{prompt}").and_then(|()| out.flush())?;
    drop(out);
    enable_raw_mode()?;
    let raw = Raw { wanted: Arc::new(AtomicBool::new(true)) };
    let wanted = raw.wanted.clone();
    let answered = tokio::task::spawn_blocking(move || answer(&wanted)).await;
    drop(raw);
    let key = answered.map_err(std::io::Error::other)??;
    say(match key {
        Key::Yes => "yes",
        Key::No => "no",
        Key::Interrupt => "",
    });
    Ok(key)
}

fn answer(wanted: &AtomicBool) -> std::io::Result<Key> {
    // Who typed something before has not read what is asked.
    while poll(Duration::ZERO)? {
        read()?;
    }
    while wanted.load(Ordering::Relaxed) {
        if poll(LOOK)?
            && let Some(key) = meaning(&read()?)
        {
            return Ok(key);
        }
    }
    Ok(Key::Interrupt)
}

fn meaning(event: &Event) -> Option<Key> {
    let Event::Key(key) = event else { return None };
    if key.kind == KeyEventKind::Release {
        return None;
    }
    match (key.code, key.modifiers.contains(KeyModifiers::CONTROL)) {
        (KeyCode::Char('c'), true) => Some(Key::Interrupt),
        (KeyCode::Char('y' | 'Y'), false) => Some(Key::Yes),
        (KeyCode::Char('n' | 'N') | KeyCode::Esc, false) => Some(Key::No),
        _ => None,
    }
}

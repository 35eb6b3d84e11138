//! Keys, read on a thread of their own.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crossterm::event::{Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers, poll, read};
use stead_core::permission::Answer;
use tokio::sync::mpsc;

/// How long the thread waits for a key before it looks whether it is still wanted.
const LOOK: Duration = Duration::from_millis(50);

/// What a key means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Key {
    /// Answer the oldest permission request.
    Answer(Answer),
    /// Ctrl-C.
    Interrupt,
    /// Ctrl-Z.
    Suspend,
    /// The terminal has another size.
    Resized,
}

/// The keys of the terminal, until it is dropped.
pub(super) struct Keys {
    wanted: Arc<AtomicBool>,
    keys: mpsc::Receiver<Key>,
}

impl Keys {
    /// Begins to read.
    pub(super) fn new() -> Self {
        let wanted = Arc::new(AtomicBool::new(true));
        let (sender, keys) = mpsc::channel(16);
        let still = wanted.clone();
        std::thread::spawn(move || {
            while still.load(Ordering::Relaxed) {
                match poll(LOOK) {
                    Ok(false) => continue,
                    Ok(true) => {}
                    // The terminal is gone; signals tell the rest.
                    Err(_) => return,
                }
                let Ok(event) = read() else { return };
                if let Some(key) = meaning(&event)
                    && sender.blocking_send(key).is_err()
                {
                    return;
                }
            }
        });
        Self { wanted, keys }
    }

    /// The next key.
    pub(super) async fn next(&mut self) -> Key {
        match self.keys.recv().await {
            Some(key) => key,
            None => std::future::pending().await,
        }
    }
}

impl Drop for Keys {
    fn drop(&mut self) {
        self.wanted.store(false, Ordering::Relaxed);
    }
}

fn meaning(event: &Event) -> Option<Key> {
    let KeyEvent { code, modifiers, kind, .. } = match event {
        Event::Key(key) => *key,
        Event::Resize(..) => return Some(Key::Resized),
        _ => return None,
    };
    if kind == KeyEventKind::Release {
        return None;
    }
    match (code, modifiers.contains(KeyModifiers::CONTROL)) {
        (KeyCode::Char('c'), true) => Some(Key::Interrupt),
        (KeyCode::Char('z'), true) => Some(Key::Suspend),
        (KeyCode::Char('a'), false) => Some(Key::Answer(Answer::Once)),
        (KeyCode::Char('s'), false) => Some(Key::Answer(Answer::Session)),
        (KeyCode::Char('d'), false) => Some(Key::Answer(Answer::Denied)),
        _ => None,
    }
}

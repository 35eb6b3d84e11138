//! A session's events as a stream of lines: what is stored first, then what comes.

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::Value;
use stead_core::event::{BranchEvent, Envelope, Event, Sender, Stream};
use stead_core::id::{BodyRef, Position, SessionId};
use stead_core::path::AgentPath;
use stead_model::{Reply, ToolCall, ToolResult};
use stead_store::Reader;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::mpsc;

use crate::api::{CallView, EventNotification, EventsParams, Notification};
use crate::engine::Engine;
use crate::session::{Handle, Message, Published};

/// How many stored events are read at once.
const PAGE: usize = 512;
/// The most characters of a text that go with an event.
const LONGEST_TEXT: usize = 4096;
/// The most characters of a text in a call's arguments.
const LONGEST_ARGUMENT: usize = 1024;

/// Sends lines until the client goes, the session's owner ends, or what is stored has been sent
/// and nothing more is wanted.
pub(crate) async fn stream(
    engine: Arc<Engine>,
    handle: Handle,
    session: SessionId,
    params: EventsParams,
    lines: mpsc::Sender<Vec<u8>>,
) {
    // Subscribed before the log is read, so that nothing falls between the two.
    let mut published = handle.published.subscribe();
    let attached = if params.attached { Some(Attached::new(&handle).await) } else { None };
    let mut sender =
        Lines { engine, session, client: lines, after: params.after, paths: HashMap::new() };
    let outcome = async {
        sender.learn_paths(&handle).await?;
        sender.stored().await?;
        sender.send(&Notification::CaughtUp { tip: sender.after }).await?;
        if !params.follow {
            return Ok(());
        }
        loop {
            tokio::select! {
                () = sender.client.closed() => return Err(Gone),
                next = published.recv() => match next {
                    Ok(Published::Event(envelope, agent)) => sender.event(&envelope, agent).await?,
                    Ok(Published::Activity(path, activity)) => {
                        sender.send(&Notification::Activity { path, activity }).await?;
                    }
                    Ok(Published::Copying(path, progress)) => {
                        let stead_files::Progress { files, bytes, of, phase } = progress;
                        if phase == stead_files::Phase::Copy {
                            let copying = Notification::Copying { path, files, bytes, of };
                            sender.send(&copying).await?;
                        }
                    }
                    // Too slow to be kept up to date: the log has what was missed.
                    Err(RecvError::Lagged(_)) => sender.stored().await?,
                    Err(RecvError::Closed) => return Ok(()),
                }
            }
        }
    };
    let _: Result<(), Gone> = outcome.await;
    drop(attached);
}

/// The client went, or what it wants cannot be read; the reason was sent.
struct Gone;

struct Lines {
    engine: Arc<Engine>,
    session: SessionId,
    client: mpsc::Sender<Vec<u8>>,
    after: Position,
    paths: HashMap<SessionId, AgentPath>,
}

impl Lines {
    async fn learn_paths(&mut self, handle: &Handle) -> Result<(), Gone> {
        let tree = handle.ask(Message::Tree).await.map_err(|_| Gone)?;
        self.paths.extend(tree.agents.into_iter().map(|a| (a.agent, a.path)));
        Ok(())
    }

    /// Sends what is stored after what was sent.
    async fn stored(&mut self) -> Result<(), Gone> {
        loop {
            let (session, from) = (self.session.clone(), self.after + 1);
            let read = self
                .engine
                .shared
                .read(move |reader| {
                    let records = reader.read(&session, from, PAGE)?;
                    Ok(records
                        .into_iter()
                        .map(|record| {
                            let told = told(reader, &record.envelope.event);
                            (record.envelope, told)
                        })
                        .collect::<Vec<_>>())
                })
                .await;
            let records = match read {
                Ok(records) => records,
                Err(refusal) => {
                    self.send(&Notification::Failed { line: refusal.to_string() }).await?;
                    return Err(Gone);
                }
            };
            let full = records.len() == PAGE;
            for (envelope, told) in records {
                self.notify(&envelope, told).await?;
            }
            if !full {
                return Ok(());
            }
        }
    }

    async fn event(&mut self, envelope: &Envelope, agent: Option<AgentPath>) -> Result<(), Gone> {
        if envelope.position <= self.after {
            return Ok(());
        }
        if let (Stream::Conversation(id), Some(path)) = (&envelope.stream, agent) {
            self.paths.insert(id.clone(), path);
        }
        let event = envelope.event.clone();
        let told = self.engine.shared.read(move |reader| Ok(told(reader, &event))).await;
        self.notify(envelope, told.unwrap_or_default()).await
    }

    async fn notify(&mut self, envelope: &Envelope, told: Told) -> Result<(), Gone> {
        if let Event::Branch(BranchEvent::AgentReserved { agent, path, .. }) = &envelope.event {
            self.paths.insert(agent.clone(), path.clone());
        }
        let conversation = match &envelope.stream {
            Stream::Control => None,
            Stream::Conversation(id) => self.paths.get(id).cloned(),
        };
        let Ok(stored) = envelope.event.encode() else { return Ok(()) };
        let notification = EventNotification {
            position: envelope.position,
            at: envelope.at,
            conversation,
            kind: stored.kind,
            body: serde_json::from_str(&stored.body).unwrap_or_default(),
            text: told.text,
            calls: told.calls,
            failed: told.failed,
            by: author(&envelope.event),
        };
        self.after = envelope.position;
        self.send(&Notification::Event(Box::new(notification))).await
    }

    async fn send(&self, notification: &Notification) -> Result<(), Gone> {
        let Ok(mut line) = serde_json::to_vec(notification) else { return Ok(()) };
        line.push(b'\n');
        self.client.send(line).await.map_err(|_| Gone)
    }
}

/// What an event refers to, cut for a line.
#[derive(Default)]
struct Told {
    text: Option<String>,
    calls: Vec<CallView>,
    failed: bool,
}

fn told(reader: &Reader, event: &Event) -> Told {
    let Event::Branch(event) = event else { return Told::default() };
    let body: BodyRef = match event {
        BranchEvent::AgentReserved { message: Some(message), .. } => *message,
        BranchEvent::HookNoted { context: body, .. }
        | BranchEvent::Compacted { summary: body, .. }
        | BranchEvent::MailStored { body, .. }
        | BranchEvent::Heard { body, .. }
        | BranchEvent::Said { body, .. }
        | BranchEvent::Answered { body, .. }
        | BranchEvent::TurnSettled { result: Some(body), .. } => *body,
        _ => return Told::default(),
    };
    let Ok(stored) = crate::session::body_text(reader, body) else { return Told::default() };
    let text = |text: &str| Some(text.chars().take(LONGEST_TEXT).collect());
    match event {
        BranchEvent::Said { .. } => {
            let reply: Reply = serde_json::from_str(&stored).unwrap_or_default();
            let view = |call: ToolCall| CallView {
                id: call.id,
                tool: call.tool,
                arguments: cut(call.arguments),
            };
            let calls = reply.calls.into_iter().map(view).collect();
            Told { text: text(&reply.text), calls, failed: false }
        }
        BranchEvent::Answered { .. } => match serde_json::from_str::<ToolResult>(&stored) {
            Ok(result) => {
                Told { text: text(&result.text), calls: Vec::new(), failed: result.failed }
            }
            Err(_) => Told::default(),
        },
        _ => Told { text: text(&stored), ..Told::default() },
    }
}

/// The same value with every text in it cut.
fn cut(value: Value) -> Value {
    match value {
        Value::String(text) => Value::String(text.chars().take(LONGEST_ARGUMENT).collect()),
        Value::Array(values) => values.into_iter().map(cut).collect(),
        Value::Object(fields) => fields.into_iter().map(|(k, v)| (k, cut(v))).collect(),
        other => other,
    }
}

fn author(event: &Event) -> Option<Sender> {
    let Event::Branch(event) = event else { return None };
    match event {
        BranchEvent::MailStored { from, .. } | BranchEvent::Heard { from, .. } => {
            Some(from.clone())
        }
        BranchEvent::TasksWritten { by, .. } => Some(by.clone()),
        _ => None,
    }
}

/// A subscriber that can answer permission requests, for as long as it is there.
struct Attached(Handle);

impl Attached {
    async fn new(handle: &Handle) -> Self {
        let _ = handle.sender.send(Message::Attached).await;
        Self(handle.clone())
    }
}

impl Drop for Attached {
    fn drop(&mut self) {
        let sender = self.0.sender.clone();
        tokio::spawn(async move {
            let _ = sender.send(Message::Detached).await;
        });
    }
}

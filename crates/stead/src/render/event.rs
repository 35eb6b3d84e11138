//! One event, one line: who, and what happened, for a plain log.

use std::collections::HashMap;

use stead_core::delegated::ApplyOutcome;
use stead_core::event::{
    BranchEvent, CallFate, Event, MailKind, Outcome, Sender, StoredEvent, WorldEvent,
};
use stead_core::id::{CallId, PermissionId};
use stead_core::permission::Answer;
use stead_core::task::Task;
use stead_engine::api::{CallView, EventNotification};

use super::{about, answer, applied, clock, ended, mode, placement, status};
use crate::clean;
use crate::output::{style, styled};

/// The most characters of an agent's text in a line.
const LONGEST: usize = 300;

/// How much a line matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Weight {
    /// A step on the way.
    Step,
    /// Something began, ended or was said.
    Mark,
    /// Somebody should look.
    Alarm,
}

/// What an event says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Said {
    /// When, by the clock of this machine.
    pub(crate) at: String,
    /// Who.
    pub(crate) who: String,
    /// What happened; clean, on one line.
    pub(crate) what: String,
    /// How much it matters.
    pub(crate) weight: Weight,
}

impl Said {
    /// The line as it is printed.
    pub(crate) fn line(&self) -> String {
        let at = styled(style::DIM, &self.at);
        let who = styled(style::BOLD, &self.who);
        match self.weight {
            Weight::Step => format!("{at} {who} {}", styled(style::DIM, &self.what)),
            Weight::Mark => format!("{at} {who} {}", self.what),
            Weight::Alarm => format!("{at} {who} {}", styled(style::ASK, &self.what)),
        }
    }
}

impl Said {
    /// The line without styles.
    pub(crate) fn plain(&self) -> String {
        format!("{} {} {}", self.at, self.who, self.what)
    }
}

/// Turns events into lines. It remembers what later events only name: tools of calls, first
/// messages of agents.
#[derive(Debug, Default)]
pub(crate) struct Teller {
    /// The tool of a call, by whose it is and its id.
    tools: HashMap<(String, String), String>,
    /// What a reserved agent was given.
    assignments: HashMap<String, String>,
    /// What an agent said last.
    spoken: HashMap<String, String>,
    /// What was asked, by the request's number.
    asked: HashMap<PermissionId, (String, String)>,
    /// Whether what an agent says is not shown, so that its last words belong to the turn's end.
    terse: bool,
}

/// The event of a notification; none when it is of a kind that a newer engine has.
pub(crate) fn decoded(event: &EventNotification) -> Option<Event> {
    ["branch", "world"].into_iter().find_map(|scope| {
        Event::decode(&StoredEvent {
            scope: scope.to_owned(),
            kind: event.kind.clone(),
            version: stead_core::event::EVENT_VERSION,
            body: event.body.to_string(),
        })
        .ok()
    })
}

impl Teller {
    /// A teller for who does not show what agents say on the way.
    pub(crate) fn terse() -> Self {
        Self { terse: true, ..Self::default() }
    }

    /// The line of an event; none for one that tells people nothing new.
    pub(crate) fn tell(&mut self, event: &EventNotification) -> Option<Said> {
        let text = event.text.as_deref().unwrap_or_default();
        let (who, what, weight) = match decoded(event) {
            Some(Event::World(world)) => {
                let (what, weight) = told_world(&world)?;
                ("stead".to_owned(), what, weight)
            }
            Some(Event::Branch(branch)) => self.branch(&branch, event, text)?,
            None => {
                ("stead".to_owned(), format!("event {}", clean::line(&event.kind)), Weight::Step)
            }
        };
        Some(Said { at: clock(event.at), who, what, weight })
    }

    fn branch(
        &mut self,
        event: &BranchEvent,
        notification: &EventNotification,
        text: &str,
    ) -> Option<(String, String, Weight)> {
        let here = || {
            notification
                .conversation
                .as_ref()
                .map_or_else(|| "stead".to_owned(), ToString::to_string)
        };
        let brief = |text: &str| clean::brief(text, LONGEST);
        Some(match event {
            BranchEvent::AgentReserved { path, .. } => {
                self.assignments.insert(path.to_string(), brief(text));
                return None;
            }
            BranchEvent::AgentPublished { path, .. } => {
                let what = match self.assignments.remove(path.as_str()) {
                    Some(message) => format!("was given: {message}"),
                    None => "is there".to_owned(),
                };
                (path.to_string(), what, Weight::Mark)
            }
            BranchEvent::AgentRefused { path, reason } => {
                (path.to_string(), format!("cannot be started: {}", brief(reason)), Weight::Alarm)
            }
            BranchEvent::TurnStarted { path, .. } => {
                (path.to_string(), "began a turn".to_owned(), Weight::Step)
            }
            BranchEvent::TurnSettled { path, outcome: how, reason, .. } => {
                let result = brief(text);
                // A line above has told it, unless what was told is not shown.
                let said = self.spoken.remove(path.as_str());
                let told = !self.terse && said.is_some_and(|last| last == result);
                let result = if told { "" } else { &result };
                (path.to_string(), settled(*how, reason.as_deref(), result), weight_of(*how))
            }
            BranchEvent::MailStored { kind, from, to, .. } => {
                // The turn's end has told this.
                if *kind == MailKind::Result {
                    return None;
                }
                (sender(from), format!("to {to}: {}", brief(text)), Weight::Mark)
            }
            BranchEvent::MailDelivered { to, mail } => {
                let mail = super::counted(mail.len(), "message", "messages");
                (to.to_string(), format!("read {mail}"), Weight::Step)
            }
            BranchEvent::TasksWritten { by, tasks } => (sender(by), written(tasks), Weight::Mark),
            BranchEvent::NoteSet { owner, note } => {
                let note = note.as_deref().map_or_else(
                    || "cleared its note".to_owned(),
                    |note| format!("notes: {}", brief(note)),
                );
                (clean::line(&String::from(owner.clone())), note, Weight::Mark)
            }
            BranchEvent::PermissionAsked { path, subject, .. } => {
                let id = PermissionId(notification.position);
                let subject = brief(subject);
                self.asked.insert(id, (path.to_string(), subject.clone()));
                (path.to_string(), format!("asks ({id}): {subject}"), Weight::Alarm)
            }
            BranchEvent::PermissionSettled { id, answer: how } => {
                let (who, subject) = self.asked.remove(id).unwrap_or_default();
                let who = if who.is_empty() { "stead".to_owned() } else { who };
                let weight = match how {
                    Answer::Headless => Weight::Alarm,
                    _ => Weight::Mark,
                };
                (who, format!("request {id} is {}: {subject}", answer(*how)), weight)
            }
            BranchEvent::HookNoted { path, .. } => {
                (path.to_string(), format!("hears from a hook: {}", brief(text)), Weight::Step)
            }
            BranchEvent::ShellStarted { path, shell, command, .. } => {
                let what = format!("runs in the background ({shell}): {}", brief(command));
                (path.to_string(), what, Weight::Mark)
            }
            BranchEvent::ShellEnded { path, shell, fate } => {
                (path.to_string(), format!("background command {shell} {fate}"), Weight::Mark)
            }
            BranchEvent::FileChanged { path, file, .. } => {
                let what = format!("changed {}", clean::path(file.as_path()));
                (path.to_string(), what, Weight::Mark)
            }
            BranchEvent::Reminded { tasks } => {
                let tasks = super::counted(tasks.len(), "open task", "open tasks");
                ("/root".to_owned(), format!("is reminded of {tasks}"), Weight::Step)
            }
            BranchEvent::Compacted { .. } => {
                (here(), format!("goes on from a summary: {}", brief(text)), Weight::Mark)
            }
            // Of no use to people; or the delivery, or the assignment, has told it.
            BranchEvent::StopNoted { .. }
            | BranchEvent::DriverNoted { .. }
            | BranchEvent::Heard { .. } => return None,
            BranchEvent::Said { .. } => {
                let who = here();
                let what = self.spoken(&who, text, &notification.calls)?;
                (who, what, Weight::Mark)
            }
            BranchEvent::Answered { call, .. } => {
                let tool = self.tool(here(), call);
                let what = format!("{tool} → {}", brief(text));
                let weight = if notification.failed { Weight::Alarm } else { Weight::Step };
                (here(), what, weight)
            }
            BranchEvent::Unanswered { call, fate, .. } => {
                let tool = self.tool(here(), call);
                let fate = match fate {
                    CallFate::NotStarted => "was not started",
                    CallFate::Unknown => "was perhaps started; what it did is not known",
                };
                (here(), format!("{tool} {fate}"), Weight::Alarm)
            }
        })
    }

    fn tool(&mut self, who: String, call: &CallId) -> String {
        let known = self.tools.remove(&(who, call.to_string()));
        known.unwrap_or_else(|| "a call".to_owned())
    }

    fn spoken(&mut self, who: &str, text: &str, calls: &[CallView]) -> Option<String> {
        let mut parts = Vec::new();
        let text = clean::brief(text, LONGEST);
        if !text.is_empty() {
            parts.push(format!("says: {text}"));
            self.spoken.insert(who.to_owned(), text);
        }
        for call in calls {
            let tool = clean::brief(&call.tool, 40);
            let about = clean::brief(&about(&call.arguments), 120);
            parts.push(format!("calls {tool} {about}").trim_end().to_owned());
            self.tools.insert((who.to_owned(), call.id.to_string()), tool);
        }
        (!parts.is_empty()).then(|| parts.join("; "))
    }
}

fn told_world(event: &WorldEvent) -> Option<(String, Weight)> {
    Some(match event {
        WorldEvent::SessionStarted(started) => {
            let roots: Vec<_> =
                started.roots.iter().map(|root| clean::path(root.directory.as_path())).collect();
            let what = format!(
                "session {} began {} in {}, mode {}",
                started.session,
                placement(started.placement),
                roots.join(", "),
                mode(started.mode)
            );
            (what, Weight::Step)
        }
        WorldEvent::ModeSet { mode: set, plan_ceiling } => {
            let plan = if *plan_ceiling { ", planning only" } else { "" };
            (format!("mode {}{plan}", mode(*set)), Weight::Mark)
        }
        WorldEvent::Granted { .. } => ("the same is allowed from now on".to_owned(), Weight::Step),
        // Its agent's being there, or its turn's beginning, tells this.
        WorldEvent::TasksNumbered { .. }
        | WorldEvent::Captured { .. }
        | WorldEvent::TaskReserved { .. }
        | WorldEvent::TaskRefused { .. }
        | WorldEvent::TaskSettled { .. } => return None,
        WorldEvent::TaskAdmitted { copies, .. } if copies.is_empty() => return None,
        WorldEvent::TaskAdmitted { task, copies, notes } => {
            let slots: Vec<_> = copies.iter().map(|copy| copy.slot.as_str()).collect();
            let mut what = format!("task {task} has its private copies: {}", slots.join(", "));
            for note in notes {
                what.push_str(&format!("; {}", clean::brief(note, LONGEST)));
            }
            (what, Weight::Step)
        }
        WorldEvent::CopyReviewed { task, slot, .. } => {
            (format!("{slot} of task {task} was reviewed"), Weight::Mark)
        }
        WorldEvent::ApplyBegun { task, slot, .. } => {
            (format!("{slot} of task {task} is being applied"), Weight::Step)
        }
        WorldEvent::ApplyEnded { task, slot, outcome, .. } => {
            let weight = match outcome {
                ApplyOutcome::Applied { .. } => Weight::Mark,
                _ => Weight::Alarm,
            };
            (format!("{slot} of task {task}: {}", applied(outcome)), weight)
        }
        WorldEvent::CopyDiscarded { task, slot } => {
            (format!("the copy {slot} of task {task} is in the trash"), Weight::Mark)
        }
        WorldEvent::GrantRevoked { .. } => {
            ("what was allowed is asked again".to_owned(), Weight::Mark)
        }
        WorldEvent::RulesSet { rules, .. } => {
            (super::counted(rules.len(), "rule is in force", "rules are in force"), Weight::Mark)
        }
        WorldEvent::SessionRenamed { label } => {
            let what = label
                .as_ref()
                .map_or_else(|| "has no label any more".to_owned(), |l| format!("is called {l}"));
            (format!("the session {what}"), Weight::Mark)
        }
        WorldEvent::Restored { task, slot, .. } => {
            (format!("{slot} of task {task} is as it was before"), Weight::Mark)
        }
        WorldEvent::Rewound { to } => (format!("went back to {to}"), Weight::Mark),
    })
}

fn settled(how: Outcome, reason: Option<&str>, result: &str) -> String {
    let told = match (how, reason) {
        (Outcome::Completed, _) | (_, None) => result,
        (_, Some(reason)) => reason,
    };
    ended(how, Some(told), LONGEST)
}

fn weight_of(outcome: Outcome) -> Weight {
    match outcome {
        Outcome::Completed => Weight::Mark,
        Outcome::Errored | Outcome::Interrupted => Weight::Alarm,
    }
}

fn sender(sender: &Sender) -> String {
    match sender {
        Sender::Person => "you".to_owned(),
        Sender::Agent(path) => path.to_string(),
        Sender::Stead => "stead".to_owned(),
    }
}

fn written(tasks: &[Task]) -> String {
    let told: Vec<_> = tasks
        .iter()
        .map(|task| {
            let (word, _) = status(task.status);
            format!("{}. {} [{word}]", task.id, clean::brief(&task.subject, 80))
        })
        .collect();
    clean::brief(&format!("tasks: {}", told.join("; ")), LONGEST)
}

#[cfg(test)]
mod tests;

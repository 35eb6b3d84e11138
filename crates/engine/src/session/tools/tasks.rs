//! The tools `task_write` and `task_list`.

use serde_json::json;
use stead_agent::port::Told;
use stead_core::path::AgentPath;
use stead_core::refusal::{Refusal, RefusalKind};
use stead_core::session::{Command, Outcomes};
use stead_core::task::{Owner, TaskChange};

use crate::session::actor::Actor;
use crate::session::asks::Reply;
use crate::session::message::Work;

impl Actor {
    /// Every task and note.
    pub(super) fn list_tasks(&self) -> Told {
        let tasks = self.tasks();
        let text = crate::text::tasks(&tasks);
        let structured = serde_json::to_value(&tasks).unwrap_or_default();
        Told::Done { text, structured }
    }
}

/// Writes tasks and notes of `by`, all or none.
pub(super) fn write(
    by: AgentPath,
    changes: Vec<TaskChange>,
    notes: Vec<(Option<String>, String)>,
    answer: Reply,
    work: &mut Vec<Work>,
) {
    let notes: Result<Vec<_>, String> = notes
        .into_iter()
        .map(|(owner, text)| Ok((owner.map(Owner::try_from).transpose()?, text)))
        .collect();
    let notes = match notes {
        Ok(notes) => notes,
        Err(line) => {
            let refusal = Refusal::new(RefusalKind::InvalidArgument, line);
            return drop(answer.send(Err(refusal)));
        }
    };
    let command = Command::WriteTasks { by: Some(by), changes, notes };
    let then = Box::new(move |_: &mut Actor, outcome: Result<Outcomes, Refusal>| {
        let _ = answer.send(outcome.map(|outcome| match outcome {
            Outcomes::Written { tasks, notes_dropped } => {
                let numbers: Vec<String> = tasks.iter().map(ToString::to_string).collect();
                let mut lines = vec![format!("written: {}", numbers.join(", "))];
                for owner in &notes_dropped {
                    let owner = String::from(owner.clone());
                    lines.push(format!("the note of {owner} was not kept: no task is open"));
                }
                Told::Done { text: lines.join("\n"), structured: json!({ "tasks": tasks }) }
            }
            _ => Told::Recorded,
        }));
    });
    work.push(Work::new(command, then));
}

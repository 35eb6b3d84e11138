//! The story, and the looks that prove each part of it.

use std::sync::Arc;

use stead_core::delegated::ApplyOutcome;
use stead_core::event::Outcome;
use stead_core::id::{SessionId, TaskId};
use stead_core::layout::{AbsoluteDir, Access, Placement};
use stead_core::permission::Mode;
use stead_core::refusal::{Refusal, RefusalKind};
use stead_core::task::Status;
use stead_engine::Client;
use stead_engine::api::{
    ApplyParams, Attendance, DelegatedView, DriverParams, ReviewParams, RootParams, StartParams,
    TasksResponse, TreeResponse,
};
use stead_files::{Manifest, compare};

use super::checks::{Tests, Tools, asked, failed, look};
use super::key::{Key, ask};
use super::project::{PLAYBOOK, REPAIRED, write};
use super::stage::Stage;
use crate::clean;
use crate::context::new_request;
use crate::exit::{Done, Exit, Failure};
use crate::live::{Face, Followed, Left, Start, Until, follow};
use crate::output::{answer, is_interactive, say, style, styled};
use crate::render;

/// What the person says to /root.
const MESSAGE: &str = "The tests are red: repair the library and the service.";

/// How many tests the project has, and how many of them fail at first.
const TESTS: usize = 8;
const RED: usize = 7;

/// The agents: /root, two who repair, one who reviews.
const AGENTS: usize = 4;

/// The task of /root itself, and those of the two who repair, with what their servers are asked
/// and must answer.
const MERGED: TaskId = TaskId(1);
const SERVERS: [(TaskId, &str, &[&str], &[&str]); 2] = [
    (TaskId(2), "the library is repaired", &["sum 1h30m 45m"], &["200 2h15m"]),
    (
        TaskId(3),
        "the service is repaired",
        &["sum 45m", "sum x"],
        &["200 45m", "400 x: `x` is out of place"],
    ),
];

/// Tells it. The exit status is that of a signal when the person left.
pub(super) async fn tell(stage: Arc<Stage>, tools: Tools, yes: bool) -> Done {
    let project = stage.project();
    let stage = Scene { stage, tools };
    heading("A small project");
    say(format_args!("  {}: a library, a service, tests", clean::path(&project)));
    write(&project)?;
    stage.commit().await?;
    stage.test("before", Tests { passed: TESTS - RED, failed: RED }).await?;
    let before = stage.look().await?;

    heading("The agents work, each in a private copy");
    say(styled(style::DIM, format_args!("  you say: {MESSAGE}")));
    let (client, session) = match stage.play().await? {
        (Left::Settled, client, session) => (client, session),
        (Left::Leaving(exit), ..) => return Ok(exit),
        (Left::Stopped, ..) => return Ok(Exit::INTERRUPTED),
    };
    let (tree, tasks) = (client.tree(&session).await?, client.tasks(&session).await?);
    settled(&tree, &tasks)?;
    stage.servers(&tasks).await?;

    heading("What you would apply, merged by /root and tested by /root/review");
    let slot = slot(&tasks, MERGED)?;
    let params = ReviewParams { slot: slot.clone(), most_lines: None };
    let review = client.review(&session, MERGED, &params).await?;
    answer(render::review(&review))?;
    let paths: Vec<String> = review.changes.iter().map(|change| change.path.to_string()).collect();
    if paths != REPAIRED {
        return Err(failed(format!("the review shows {paths:?}, not {REPAIRED:?}")).into());
    }
    // One of each who repaired, and the merge of both.
    if review.commits != Some(3) {
        return Err(
            failed(format!("{:?} commits in the copy of /root, not 3", review.commits)).into()
        );
    }
    unchanged(&before, &stage.look().await?)?;
    say("  your project is untouched until now, byte for byte, its .git too");
    if !yes {
        match ask("Apply exactly this to your project?").await? {
            Key::Yes => {}
            Key::No => {
                say("nothing was applied");
                return Ok(Exit::ERRORED);
            }
            Key::Interrupt => return Ok(Exit::INTERRUPTED),
        }
    }

    heading("Applied");
    let applied = client.apply(&session, MERGED, &ApplyParams { slot }).await?;
    match &applied.outcome {
        ApplyOutcome::Applied { paths: 3, .. } => {}
        other => {
            return Err(failed(format!("the apply ended so: {}", render::applied(other))).into());
        }
    }
    repaired(&before, &stage.look().await?)?;
    say(format_args!("  {} files written, nothing else touched", REPAIRED.len()));
    stage.test("after", Tests { passed: TESTS, failed: 0 }).await?;
    Ok(Exit::DONE)
}

fn heading(text: &str) {
    say(styled(style::BOLD, format_args!("\n{text}")));
}

struct Scene {
    stage: Arc<Stage>,
    tools: Tools,
}

impl Scene {
    async fn commit(&self) -> Result<(), Refusal> {
        let (stage, tools) = (self.stage.clone(), self.tools.clone());
        beside(move || tools.commit(&stage)).await
    }

    /// Runs the tests of the original, which must come out as expected.
    async fn test(&self, when: &str, expected: Tests) -> Result<(), Refusal> {
        let (stage, tools) = (self.stage.clone(), self.tools.clone());
        let tests = beside(move || tools.test(&stage)).await?;
        let Tests { passed, failed: red } = tests;
        let total = passed + red;
        let (shade, line) = match red {
            0 => (style::GOOD, format!("all {total} pass")),
            red => (style::BAD, format!("{red} of {total} fail")),
        };
        say(format_args!("  its tests, {when}: {}", styled(shade, line)));
        if tests == expected {
            return Ok(());
        }
        let Tests { passed, failed: red } = expected;
        Err(failed(format!("{red} should fail and {passed} should pass")))
    }

    async fn look(&self) -> Result<Manifest, Refusal> {
        let project = self.stage.project();
        beside(move || look(&project)).await
    }

    /// Starts the session and shows it until nobody is at work.
    async fn play(&self) -> Result<(Left, Client, SessionId), Failure> {
        let context = &self.stage.context;
        let client = context.connect().await?;
        let directory = AbsoluteDir::new(self.stage.project());
        let directory = directory.map_err(|error| failed(error.to_string()))?;
        let params = StartParams {
            request: new_request()?,
            roots: vec![RootParams { directory, slot: None, access: Access::Write }],
            placement: Placement::PrivateCopies,
            mode: Mode::FullAuto,
            plan_ceiling: false,
            label: None,
            driver: DriverParams::Playbook { name: "demo".to_owned(), text: PLAYBOOK.to_owned() },
            message: MESSAGE.to_owned(),
            attendance: Attendance::Headless,
            environment: context.for_commands(),
        };
        let session = client.start(&params).await?.session;
        let face = if is_interactive() { Face::live()? } else { Face::brief() };
        let (after, outlives) = (0, false);
        let (named, until) = (session.clone(), Until::Settled);
        let start = Start { context, client, session, after, face, outlives, until };
        let Followed { left, client, .. } = follow(start).await?;
        Ok((left, client, named))
    }

    /// The servers that the agents left must run side by side, each on the port of its own copy,
    /// and answer as the copy of each is repaired.
    async fn servers(&self, tasks: &TasksResponse) -> Result<(), Refusal> {
        let host = self.stage.context.home.places();
        let listed = beside(move || host.list().map_err(|error| failed(error.to_string()))).await?;
        let mut ports = Vec::new();
        for (task, what, requests, expected) in SERVERS {
            let copy = delegated(tasks, task)?.slots.iter().find_map(|slot| slot.copy.as_ref());
            let place =
                listed.iter().find(|one| copy.is_some_and(|copy| copy.as_path() == one.place));
            let place =
                place.ok_or_else(|| failed(format!("the copy of task {task} has no ports")))?;
            let port = place.ports.first();
            let answers = beside(move || {
                asked(port, requests)
                    .map_err(|error| failed(format!("nobody answers on port {port}: {error}")))
            })
            .await?;
            if answers != expected {
                return Err(failed(format!("port {port} answers {answers:?}, not {expected:?}")));
            }
            let last = |words: &[&str]| words.last().copied().unwrap_or_default().to_owned();
            say(format_args!(
                "  port {port}, {what}: `{}` is answered with `{}`",
                last(requests),
                last(expected)
            ));
            ports.push(port);
        }
        if ports.first() == ports.last() {
            return Err(failed(format!("both servers are on port {ports:?}")));
        }
        Ok(())
    }
}

/// All agents have completed, and all tasks but that of /root, which the person closes.
fn settled(tree: &TreeResponse, tasks: &TasksResponse) -> Result<(), Refusal> {
    for agent in &tree.agents {
        match agent.outcome {
            Some(Outcome::Completed) => {}
            Some(how) => {
                let told = render::ended(how, agent.reason.as_deref(), 2000);
                return Err(failed(format!("{} {told}", agent.path)));
            }
            None => return Err(failed(format!("{} never came to an end", agent.path))),
        }
    }
    if tree.agents.len() != AGENTS {
        return Err(failed(format!("{} agents worked, not {AGENTS}", tree.agents.len())));
    }
    let open =
        |task: &&stead_core::task::Task| task.id != MERGED && task.status != Status::Completed;
    match tasks.tasks.iter().find(open) {
        Some(task) => Err(failed(format!("task {} is not completed: {}", task.id, task.subject))),
        None => Ok(()),
    }
}

fn delegated(tasks: &TasksResponse, task: TaskId) -> Result<&DelegatedView, Refusal> {
    let found = tasks.delegated.iter().find(|own| own.task == task);
    found.ok_or_else(|| failed(format!("task {task} has no copies")))
}

fn slot(tasks: &TasksResponse, task: TaskId) -> Result<stead_core::id::SlotName, Refusal> {
    let slot = delegated(tasks, task)?.slots.first().map(|slot| slot.slot.clone());
    slot.ok_or_else(|| failed(format!("task {task} has no slot")))
}

fn unchanged(before: &Manifest, now: &Manifest) -> Result<(), Refusal> {
    if before.digest() == now.digest() {
        return Ok(());
    }
    let paths: Vec<String> =
        compare(before, now).iter().map(|change| change.path.to_string()).collect();
    Err(failed(format!("the original was changed before the apply: {}", paths.join(", "))))
}

/// Exactly the reviewed files differ, and nothing in `.git`.
fn repaired(before: &Manifest, now: &Manifest) -> Result<(), Refusal> {
    let paths: Vec<String> =
        compare(before, now).iter().map(|change| change.path.to_string()).collect();
    if paths == REPAIRED {
        return Ok(());
    }
    Err(failed(format!("the apply changed {}, not {}", paths.join(", "), REPAIRED.join(", "))))
}

/// Runs blocking work beside the runtime.
async fn beside<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Refusal> + Send + 'static,
) -> Result<T, Refusal> {
    tokio::task::spawn_blocking(work)
        .await
        .map_err(|error| Refusal::new(RefusalKind::Failed, error.to_string()))?
}

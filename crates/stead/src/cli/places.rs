//! `stead places`: every hold on this host.

use clap::Args;
use serde::Serialize;
use stead_place::{BLOCK, LastRun, Listed, Presence};
use stead_process::How;

use super::exec::{host_refusal, span};
use super::program::Json;
use crate::clean;
use crate::context::Context;
use crate::exit::{Done, Exit};
use crate::output::{answer, document, say, say_refusal, style, styled};

/// List every place that holds something on this host: ports, scratch, runs and what they left
///
/// A place holds its ports from its first `stead exec` to its `stead release`, whatever becomes of
/// its folder; nothing else frees them.
#[derive(Debug, Args)]
pub(crate) struct PlacesArguments {
    #[command(flatten)]
    json: Json,
}

#[derive(Serialize)]
struct Document {
    places: Vec<One>,
}

#[derive(Serialize)]
struct One {
    id: String,
    place: String,
    presence: Presence,
    first_port: u16,
    port_count: u16,
    scratch: String,
    age_seconds: u64,
    abandoned: bool,
    releasing: bool,
    held_back: Option<String>,
    runs: Vec<OneRun>,
    left: Vec<Left>,
    last_run: Option<OneRun>,
}

#[derive(Serialize)]
struct OneRun {
    run: String,
    command: String,
    age_seconds: u64,
    pid: Option<u32>,
    ended: Option<String>,
}

#[derive(Serialize)]
struct Left {
    pid: u32,
    name: String,
}

/// Lists; changes nothing.
pub(crate) fn places(arguments: &PlacesArguments) -> Done {
    let context = Context::new()?;
    let places = match context.home.places().list() {
        Ok(places) => places,
        Err(error) => {
            say_refusal(&host_refusal(&error));
            return Ok(Exit(77));
        }
    };
    if arguments.json.json {
        document(&Document { places: places.into_iter().map(one).collect() })?;
    } else if places.is_empty() {
        say("no place holds anything; `stead exec -- CMD` makes this folder one");
    } else {
        answer(places.iter().map(text).collect::<String>())?;
    }
    Ok(Exit::DONE)
}

fn text(listed: &Listed) -> String {
    let state = match (listed.presence, listed.is_releasing, listed.live.len()) {
        (_, true, _) => styled(style::ASK, "being released"),
        (Presence::Gone, ..) => styled(style::ASK, "gone"),
        (Presence::Replaced, ..) => styled(style::ASK, "replaced by another folder"),
        (_, _, 0) if listed.is_abandoned => styled(style::ASK, "abandoned"),
        (_, _, 0) => styled(style::DIM, "idle"),
        (_, _, runs) => styled(style::BUSY, crate::render::counted(runs, "run", "runs")),
    };
    let mut text = format!(
        "{:<5}{}-{}  {}  {state}\n",
        listed.id,
        listed.ports.first(),
        listed.ports.last(),
        styled(style::BOLD, clean::path(&listed.place)),
    );
    for run in &listed.live {
        text.push_str(&format!("     runs {}\n", run_text(run)));
    }
    match &listed.last {
        Some(run) if run.pid.is_none() => {
            text.push_str(&format!("     last {}\n", run_text(run)));
        }
        Some(_) => {}
        None => text.push_str(&format!("     no run in {}\n", span(listed.age))),
    }
    if !listed.left.is_empty() {
        let names: Vec<String> =
            listed.left.iter().map(|(pid, name)| format!("{} {pid}", clean::line(name))).collect();
        text.push_str(&format!("     left {}\n", clean::brief(&names.join(", "), 300)));
    }
    if let Some(why) = &listed.held_back {
        text.push_str(&format!("     held back: {}\n", clean::line(why)));
    }
    if listed.is_abandoned || listed.held_back.is_some() {
        let hint = format!("`stead release --place {}` ends and frees it", listed.id);
        text.push_str(&format!("     {}\n", styled(style::DIM, hint)));
    }
    text
}

fn run_text(run: &LastRun) -> String {
    let ended = match (&run.how, run.pid) {
        (_, Some(pid)) => format!("process {pid}, for {}", span(run.age)),
        (how, None) => format!("{}, {} ago", ended(how.as_ref()), span(run.age)),
    };
    format!("{}  {}", clean::line(&run.command), styled(style::DIM, ended))
}

fn ended(how: Option<&How>) -> String {
    match how {
        Some(How::Exited(0)) => "passed".to_owned(),
        Some(How::Exited(code)) => format!("failed with {code}"),
        Some(How::Signalled(signal)) => format!("ended by signal {signal}"),
        Some(How::TimedOut) => "timed out".to_owned(),
        Some(How::Stopped) => "interrupted".to_owned(),
        Some(How::Lost) | None => "lost".to_owned(),
    }
}

fn one(listed: Listed) -> One {
    let run = |run: LastRun| OneRun {
        ended: run.pid.is_none().then(|| ended(run.how.as_ref())),
        run: run.run,
        command: run.command,
        age_seconds: run.age.as_secs(),
        pid: run.pid,
    };
    One {
        id: listed.id,
        place: listed.place.to_string_lossy().into_owned(),
        presence: listed.presence,
        first_port: listed.ports.first(),
        port_count: BLOCK,
        scratch: listed.scratch.to_string_lossy().into_owned(),
        age_seconds: listed.age.as_secs(),
        abandoned: listed.is_abandoned,
        releasing: listed.is_releasing,
        held_back: listed.held_back,
        runs: listed.live.into_iter().map(run).collect(),
        left: listed.left.into_iter().map(|(pid, name)| Left { pid, name }).collect(),
        last_run: listed.last.map(run),
    }
}

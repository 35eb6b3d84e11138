//! `stead exec`: a command in this worktree as a place.

mod words;

use std::ffi::OsString;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use stead_core::bound::Bound;
use stead_engine::{bound_here, read_settings};
use stead_place::{
    Ask, Entered, ExecError, GRACE, Hold, LONGEST_WAIT, NoPlace, Notice, Patience, Request, Room,
    Run, TIME_LIMIT, top_of,
};
use stead_process::{Finish, How, KeepError, Signals, Stream, serve_keeper};

use crate::clean;
use crate::context::{Context, current_dir};
use crate::exit::{Done, Exit};
use crate::output::{say, say_refusal};
use words::duration;
pub(in crate::cli) use words::{host as host_refusal, span};

/// Run a command in this worktree as a place: bounded, with ports and a scratch folder of its own
///
/// At most as many runs as the host's bound allows go on at once; others wait in the order in which
/// they came. The place keeps its ports (STEAD_PORT, STEAD_PORT_0 …) and its scratch folder
/// (STEAD_SCRATCH, TMPDIR) from run to run, and what a command leaves running stays up for the
/// next, until `stead release`. The command's standard input is empty: name a file for it, as in
/// `stead exec -- sh -c 'cmd < file'`. Exits with the command's own status; 72 when there is no room and
/// --no-wait, 73 after waiting in vain, 74 without free ports, 75 while the place is being released,
/// 77 when the host's facts cannot be used, 124 at the time limit, 126 and 127 when the command cannot
/// be executed.
#[derive(Debug, Args)]
pub(crate) struct ExecArguments {
    /// The worktree or folder; left out, that of the current folder
    #[arg(long, value_name = "DIR")]
    worktree: Option<PathBuf>,
    /// Refuse at once when there is no room
    #[arg(long)]
    no_wait: bool,
    /// How long to wait for room, as in 90s, 45m, 1h [default: 45m]
    #[arg(long, value_name = "DURATION", value_parser = duration, conflicts_with = "no_wait")]
    wait_limit: Option<Duration>,
    /// How long the command may take [default: 30m]
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    time_limit: Option<Duration>,
    /// The command and its arguments
    #[arg(last = true, required = true, value_name = "CMD")]
    command: Vec<OsString>,
}

/// Keep a run of the engine; it is started with its errand on standard input
#[derive(Debug, Args)]
pub(crate) struct KeepArguments {}

/// Serves as the keeper of one run.
pub(crate) fn keep(_arguments: &KeepArguments) -> Exit {
    // It answers to its starter over the socket; nobody reads its status.
    let _ = serve_keeper();
    Exit::DONE
}

/// Runs the command and passes on what it says and how it ends.
pub(crate) fn exec(arguments: &ExecArguments) -> Done {
    let context = Context::new()?;
    let settings = match read_settings(&context.home) {
        Ok(settings) => settings,
        Err(refusal) => {
            say_refusal(&refusal);
            return Ok(Exit(77));
        }
    };
    let bound = bound_here(&settings);
    let directory = match &arguments.worktree {
        Some(directory) => directory.clone(),
        None => match current_dir() {
            Ok(directory) => directory,
            Err(refusal) => {
                say_refusal(&refusal);
                return Ok(Exit(71));
            }
        },
    };
    let entered = enter(&context, arguments, directory, bound);
    Ok(entered.unwrap_or_else(|error| refuse(&error)))
}

fn enter(
    context: &Context,
    arguments: &ExecArguments,
    directory: PathBuf,
    bound: Bound,
) -> Result<Exit, ExecError> {
    let top = top_of(&directory)?;
    let host = context.home.places();
    let command: Vec<_> = arguments.command.iter().map(|word| word.to_string_lossy()).collect();
    let ask = Ask {
        bound,
        patience: if arguments.no_wait {
            Patience::Refuse
        } else {
            Patience::Wait(arguments.wait_limit.unwrap_or(LONGEST_WAIT))
        },
        command: &clean::brief(&command.join(" "), 200),
        session: None,
        cancel: None,
    };
    let work = directory.canonicalize().map_err(|_| gone(&directory))?;
    match host.enter(&top, &ask, &mut tell)? {
        Entered::Enclosed { hold, run } => replace(context, arguments, &work, &hold, &run),
        Entered::Room(room) => {
            for stranger in host.strangers(&room.hold)? {
                say(format_args!(
                    "stead: {} is not of this place, whose port it is",
                    clean::line(&stranger.to_string())
                ));
            }
            run(context, arguments, work, *room)
        }
    }
}

fn gone(directory: &Path) -> NoPlace {
    NoPlace::Directory { path: directory.to_owned(), source: std::io::ErrorKind::NotFound.into() }
}

fn run(
    context: &Context,
    arguments: &ExecArguments,
    directory: PathBuf,
    room: Room,
) -> Result<Exit, ExecError> {
    let mut words = arguments.command.iter().cloned();
    let limit = arguments.time_limit.unwrap_or(TIME_LIMIT);
    // Before the start: from then on a signal is the run's.
    let program = || PathBuf::from(arguments.command.first().unwrap_or(&EMPTY));
    let signals =
        Signals::of_the_end().map_err(|source| KeepError::System { program: program(), source })?;
    let started = room.start_here(Request {
        program: words.next().unwrap_or_default(),
        arguments: words.collect(),
        client: &context.variables,
        identity: None,
        directory,
        time_limit: limit,
        grace: GRACE,
    })?;
    let relayed = started.kept.relay(&signals, pass);
    Ok(match relayed {
        Ok(finish) => ending(&finish, limit),
        Err(error) => {
            say(format_args!("stead: cannot follow the run, which is ended: {error}"));
            Exit(66)
        }
    })
}

/// This process is part of a run of the place: the command takes its part.
fn replace(
    context: &Context,
    arguments: &ExecArguments,
    directory: &Path,
    hold: &Hold,
    run: &Run,
) -> Result<Exit, ExecError> {
    let environment = hold.environment(run, &context.variables, None);
    let (program, rest) = arguments.command.split_first().unwrap_or((&EMPTY, &[]));
    match stead_process::become_command(program, rest, &environment, directory) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            Err(KeepError::NotFound(program.into()).into())
        }
        Err(source) => Err(KeepError::Program { program: program.into(), source }.into()),
    }
}

static EMPTY: OsString = OsString::new();

fn pass(stream: Stream, bytes: &[u8]) -> std::io::Result<()> {
    match stream {
        Stream::Output => {
            let mut out = std::io::stdout().lock();
            out.write_all(bytes).and_then(|()| out.flush())
        }
        // Nobody can be told that narration cannot be written; the command's is no exception.
        Stream::Error => {
            let _ = std::io::stderr().lock().write_all(bytes);
            Ok(())
        }
    }
}

fn ending(finish: &Finish, limit: Duration) -> Exit {
    if finish.broken.is_some() {
        return Exit::PIPE;
    }
    match finish.how {
        How::Exited(code) => Exit(u8::try_from(code).unwrap_or(u8::MAX)),
        How::Signalled(signal) => of_signal(signal),
        How::TimedOut => {
            say(format_args!("stead: ended after {}", words::span(limit)));
            Exit(124)
        }
        How::Stopped => {
            if let Some(signal) = finish.signal {
                return of_signal(signal.as_raw());
            }
            say("stead: the run was ended by a release");
            Exit::TERMINATED
        }
        How::Lost => {
            say("stead: the run's supervisor was killed, and its processes with it");
            Exit(66)
        }
    }
}

fn of_signal(signal: i32) -> Exit {
    Exit(u8::try_from(signal).map_or(u8::MAX, |signal| signal.saturating_add(128)))
}

/// Narrates what may interest a person.
fn tell(notice: Notice<'_>) {
    match notice {
        Notice::Stale(hold) => say(format_args!(
            "stead: another folder was at this path and still holds ports {}-{}; \
             `stead release --place {}` frees them",
            hold.ports.first(),
            hold.ports.last(),
            hold.id
        )),
        Notice::Waiting { holders, ahead, waited } => {
            let before = match ahead {
                0 => String::new(),
                1 => ", 1 waits before this one".to_owned(),
                many => format!(", {many} wait before this one"),
            };
            let waited = match waited.as_secs() {
                0 => String::new(),
                _ => format!(" for {}", words::span(waited)),
            };
            say(format_args!("stead: waiting for room{waited}{before}"));
            for holder in holders {
                say(format_args!("  held by {}", clean::line(&holder.to_string())));
            }
        }
        Notice::SetAside(path) => say(format_args!(
            "stead: the record of a run that does not live could not be read; it is in {}",
            clean::path(path)
        )),
    }
}

/// Says why not, and gives the status of `spec/places.md` 4.14.
fn refuse(error: &ExecError) -> Exit {
    let (exit, refusal) = words::refusal(error);
    say_refusal(&refusal);
    exit
}

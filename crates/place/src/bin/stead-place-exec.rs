//! A run in a place, for the tests of this package: what to run comes as one JSON value on standard
//! input, because a program with threads, as tests are, cannot fork a keeper.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt::Display;
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use serde::Deserialize;
use stead_core::bound::Bound;
use stead_place::{Ask, Entered, ExecError, Host, Notice, Patience, PortRange, Request, top_of};
use stead_process::{How, KeepError, Signals, Stream};

#[derive(Deserialize)]
struct Order {
    host: PathBuf,
    ports: (u16, u16),
    bound: (u32, u32),
    /// Milliseconds; none is no wait.
    patience: Option<u64>,
    directory: PathBuf,
    command: Vec<String>,
    client: BTreeMap<String, String>,
    time_limit: u64,
    grace: u64,
    /// When it is here, the run's output goes to its log and it outlives this program.
    keeper: Option<PathBuf>,
}

fn main() -> ExitCode {
    let Ok(order) = serde_json::from_reader(io::stdin().lock()) else { return 2.into() };
    match run(order) {
        Ok(code) => code.into(),
        Err(error) => {
            tell(&error);
            ExitCode::from(match error {
                ExecError::NoPlace(_) => 71,
                ExecError::NoRoom(_) | ExecError::OwnRoom(_) => 72,
                ExecError::GaveUp { .. } | ExecError::Cancelled => 73,
                ExecError::NoPorts(_) => 74,
                ExecError::Releasing { .. } => 75,
                ExecError::AllReserved { .. } | ExecError::Host(_) => 77,
                ExecError::Start(_) => 127,
            })
        }
    }
}

fn tell(text: &impl Display) {
    let _ = writeln!(io::stderr(), "{text}");
}

fn run(order: Order) -> Result<u8, ExecError> {
    let ports = PortRange::new(order.ports.0, order.ports.1).unwrap_or_default();
    let host = Host::new(&order.host, &order.host.join("short"), 0, ports);
    let client: BTreeMap<OsString, OsString> =
        order.client.into_iter().map(|(name, value)| (name.into(), value.into())).collect();
    let mut words = order.command.iter().map(OsString::from);
    let program = words.next().unwrap_or_default();
    let arguments: Vec<OsString> = words.collect();
    let ask = Ask {
        bound: Bound { runs: order.bound.0, reserved: order.bound.1 },
        patience: order
            .patience
            .map_or(Patience::Refuse, |limit| Patience::Wait(Duration::from_millis(limit))),
        command: &order.command.join(" "),
        session: None,
        cancel: None,
    };
    let entered = host.enter(&top_of(&order.directory)?, &ask, &mut |notice| match notice {
        Notice::Stale(hold) => tell(&format_args!("stale {}", hold.id)),
        Notice::Waiting { holders, ahead, .. } => {
            tell(&format_args!("waiting {ahead}"));
            for holder in holders {
                tell(&format_args!("  {holder}"));
            }
        }
        Notice::SetAside(path) => tell(&format_args!("aside {}", path.display())),
    })?;
    let room = match entered {
        Entered::Room(room) => room,
        Entered::Enclosed { hold, run } => {
            let environment = hold.environment(&run, &client, None);
            let Err(_) =
                stead_process::become_command(&program, &arguments, &environment, &order.directory);
            return Ok(127);
        }
    };
    for stranger in host.strangers(&room.hold)? {
        tell(&format_args!("stranger {stranger}"));
    }
    let request = Request {
        program,
        arguments,
        client: &client,
        identity: None,
        directory: order.directory,
        time_limit: Duration::from_millis(order.time_limit),
        grace: Duration::from_millis(order.grace),
    };
    if let Some(keeper) = order.keeper {
        room.start_by(&keeper, &[], request, 1 << 20)?;
        return Ok(0);
    }
    let failed = |source| KeepError::System { program: "the run".into(), source };
    let signals = Signals::of_the_end().map_err(failed)?;
    let started = room.start_here(request)?;
    let finish = started.kept.relay(&signals, write).map_err(failed)?;
    let number = |code: i32| u8::try_from(code).unwrap_or(u8::MAX);
    Ok(match finish.how {
        How::Exited(code) => number(code),
        How::Signalled(signal) => number(signal + 128),
        How::TimedOut => 124,
        How::Stopped => finish.signal.map_or(143, |signal| number(signal.as_raw() + 128)),
        How::Lost => 66,
    })
}

fn write(stream: Stream, bytes: &[u8]) -> io::Result<()> {
    match stream {
        Stream::Output => io::stdout().write_all(bytes).and_then(|()| io::stdout().flush()),
        Stream::Error => io::stderr().write_all(bytes),
    }
}

//! Prints the median time from asking for `sh -c true` (or `true`) to knowing that it has ended, by
//! `std::process::Command` and by the spawner. `--touch MIB` fills that much memory first, to show
//! that the spawner's time does not depend on it; `--rounds N` sets the number of rounds.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout)] // not part of the program

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::process::Stdio;
use std::time::{Duration, Instant};

use stead_process::{Command, How, Pipes, Spawner};

fn main() -> std::process::ExitCode {
    let arguments: Vec<String> = std::env::args().collect();
    if arguments.get(1).is_some_and(|first| first == "spawner") {
        return stead_process::serve_spawner();
    }
    let number = |name: &str| {
        let at = arguments.iter().position(|argument| argument == name)?;
        arguments.get(at + 1)?.parse::<usize>().ok()
    };
    let rounds = number("--rounds").unwrap_or(300);
    let spawner =
        Spawner::start(&std::env::current_exe().unwrap(), &[OsStr::new("spawner")]).unwrap();
    let touched = vec![1u8; number("--touch").unwrap_or(0) << 20];
    let log = std::env::temp_dir().join(format!("stead-latency-{}", std::process::id()));
    for (program, arguments) in [("true", &[][..]), ("sh", &["-c", "true"][..])] {
        let command = Command {
            program: program.into(),
            arguments: arguments.iter().map(Into::into).collect(),
            environment: BTreeMap::from([("PATH".into(), std::env::var_os("PATH").unwrap())]),
            directory: "/".into(),
            time_limit: Duration::from_secs(10),
            grace: Duration::from_secs(1),
            pipes: Pipes::None,
            log: log.clone(),
            log_limit: 1 << 20,
            held: None,
        };
        let spawned = median(rounds, || {
            let mut run = spawner.run(&command).unwrap();
            let ended = run.wait(None).unwrap().unwrap();
            assert_eq!(ended.how, How::Exited(0));
        });
        let direct = median(rounds, || {
            let mut command = std::process::Command::new(program);
            let status = command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null());
            assert!(status.status().unwrap().success());
        });
        println!(
            "{program:>4}: std {direct:?}, spawner {spawned:?}, more by {:?}",
            spawned.saturating_sub(direct)
        );
    }
    let _ = std::fs::remove_file(log);
    println!("touched {} MiB", std::hint::black_box(touched).len() >> 20);
    std::process::ExitCode::SUCCESS
}

fn median(rounds: usize, mut act: impl FnMut()) -> Duration {
    let mut times: Vec<Duration> = (0..rounds)
        .map(|_| {
            let began = Instant::now();
            act();
            began.elapsed()
        })
        .collect();
    times.sort();
    times.get(rounds / 2).copied().unwrap_or_default()
}

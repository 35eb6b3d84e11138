//! How a command starts: what it gets, what it does not get, and every way in which it cannot start.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod support;

use std::ffi::OsString;
use std::os::fd::AsFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;
use std::time::Duration;

use rustix::fs::FlockOperation;
use stead_process::{How, SpawnError, Spawner, session};
use support::{Bench, ended, is_clean, outcome, start_spawner, until};

#[test]
fn field_hng_01() {
    // The engine's own input is an open, silent pipe; the command's is empty all the same.
    let (bench, spawner) = (Bench::new(), start_spawner());
    let run = outcome(&spawner, &bench.bash("cat; echo ok; readlink /proc/self/fd/0"));
    assert!(is_clean(&run, 0));
    assert_eq!(bench.read_log(), "ok\n/dev/null\n");
}

#[test]
fn field_hng_02() {
    let (bench, spawner) = (Bench::new(), start_spawner());
    let mut asks = bench.bash(
        "read -r x; echo got:$x; (read -r y </dev/tty) 2>/dev/null || echo no terminal; \
         git ls-remote https://127.0.0.1:1/x; echo git:$?",
    );
    stead_process::environment::silence(&mut asks.environment);
    let run = outcome(&spawner, &asks);
    assert!(is_clean(&run, 0), "{run:?}");
    let said = bench.read_log();
    assert!(said.contains("got:\n") && said.contains("no terminal\n"), "{said}");
    assert!(said.contains("git:128"), "{said}");
}

#[test]
fn bytes_that_are_no_text_pass_everywhere() {
    let (bench, spawner) = (Bench::new(), start_spawner());
    let odd = OsString::from_vec(b"a\xff\xfe b".to_vec());
    let directory = bench.folder.path().join(&odd);
    std::fs::create_dir(&directory).unwrap();
    let mut command = bench.bash("printf '%s|%s|%s' \"$1\" \"$V\" \"$PWD\"");
    command.arguments.extend(["name".into(), odd.clone()]);
    command.environment.insert("V".into(), odd.clone());
    command.directory = directory.clone();
    command.log = directory.join(&odd);
    assert!(is_clean(&outcome(&spawner, &command), 0));
    let expected = [odd.as_bytes(), b"|", odd.as_bytes(), b"|", directory.as_os_str().as_bytes()];
    assert_eq!(std::fs::read(&command.log).unwrap(), expected.concat());
}

#[test]
fn an_environment_larger_than_a_packet_passes() {
    let (bench, spawner) = (Bench::new(), start_spawner());
    let mut command = bench.bash("echo $((${#B0} + ${#B1} + ${#B2} + ${#B3} + ${#B4}))");
    for number in 0..5 {
        command.environment.insert(format!("B{number}").into(), "x".repeat(100_000).into());
    }
    assert!(is_clean(&outcome(&spawner, &command), 0));
    assert_eq!(bench.read_log(), "500000\n");
}

#[test]
fn a_command_inherits_nothing() {
    let bench = Bench::new();
    let leaked = std::fs::File::open("/dev/null").unwrap();
    rustix::io::fcntl_setfd(&leaked, rustix::io::FdFlags::empty()).unwrap();
    let spawner = start_spawner();
    let mut command = bench.bash("env | cut -d= -f1 | sort | tr '\\n' ' '; exec sleep 300");
    let held = std::fs::File::open("/dev/zero").unwrap();
    command.held = Some(held.into());
    let run = spawner.run(&command).unwrap();
    until("it sleeps", || bench.alive().iter().any(|(_, name)| name == "sleep"));
    let fds = std::fs::read_dir(format!("/proc/{}/fd", run.leader.pid)).unwrap();
    let mut fds: Vec<_> = fds.map(|fd| fd.unwrap().file_name()).collect();
    fds.sort();
    assert_eq!(fds, ["0", "1", "2"]);
    let names = bench.read_log();
    assert_eq!(names.trim(), "PATH PWD SHLVL STEAD_TEST_MARK _");
}

#[test]
fn a_command_leads_its_own_session_and_signals_are_as_by_default() {
    let (bench, spawner) = (Bench::new(), start_spawner());
    let mut run = spawner.run(&bench.bash("grep Sig /proc/self/status; sleep 30")).unwrap();
    assert_eq!(session(run.leader.pid).unwrap(), run.leader.pid);
    until("the command has spoken", || bench.read_log().lines().count() >= 5);
    let said = bench.read_log();
    assert!(said.contains("SigBlk:\t0000000000000000"), "{said}");
    // The two that are glibc's own are ignored by every posix_spawn; programs see 34 and up.
    assert!(
        said.contains("SigIgn:\t0000000000000000") || said.contains("SigIgn:\t0000000180000000"),
        "{said}"
    );
    run.stop().unwrap();
    assert_eq!(ended(&mut run).how, How::Stopped);
}

#[test]
fn every_failure_to_start_is_an_error_of_its_own() {
    let (bench, spawner) = (Bench::new(), start_spawner());
    let base = bench.folder.path();
    let run = |change: &dyn Fn(&mut stead_process::Command)| {
        let mut command = bench.bash("exit 0");
        change(&mut command);
        spawner.run(&command).err()
    };
    assert!(matches!(
        run(&|c| c.program = "no-such-program".into()),
        Some(SpawnError::NotFound(_))
    ));
    assert!(matches!(run(&|c| c.program = "./nothing".into()), Some(SpawnError::NotFound(_))));
    std::fs::write(base.join("plain"), b"text").unwrap();
    assert!(matches!(run(&|c| c.program = "./plain".into()), Some(SpawnError::Program { .. })));
    std::fs::write(base.join("script"), b"#!/no/such/interpreter\n").unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(base.join("script"), mode).unwrap();
    assert!(matches!(run(&|c| c.program = "./script".into()), Some(SpawnError::Program { .. })));
    let huge: OsString = "x".repeat(200_000).into();
    assert!(matches!(
        run(&|c| c.arguments.push(huge.clone())),
        Some(SpawnError::Program { source, .. }) if source.raw_os_error() == Some(libc::E2BIG)
    ));
    assert!(matches!(
        run(&|c| c.directory = base.join("gone")),
        Some(SpawnError::Directory { .. })
    ));
    assert!(matches!(run(&|c| c.log = base.join("gone/log")), Some(SpawnError::Log { .. })));
    std::os::unix::fs::symlink("elsewhere", base.join("link")).unwrap();
    assert!(matches!(run(&|c| c.log = base.join("link")), Some(SpawnError::Log { .. })));
    assert!(matches!(run(&|c| c.directory = "here".into()), Some(SpawnError::Relative(_))));
    assert!(matches!(
        run(&|c| c.arguments.push(OsString::from_vec(vec![b'a', 0]))),
        Some(SpawnError::Unpassable("arguments"))
    ));
    assert!(matches!(
        run(&|c| drop(c.environment.insert("A=B".into(), "".into()))),
        Some(SpawnError::Unpassable("environment"))
    ));
    let mut last = spawner.run(&bench.bash("exit 0")).unwrap();
    assert_eq!(ended(&mut last).how, How::Exited(0));
    bench.assert_none_left();
}

#[test]
fn what_is_no_spawner_is_an_error() {
    for program in ["/no/such/spawner", "/bin/true"] {
        assert!(matches!(Spawner::start(Path::new(program), &[]), Err(SpawnError::Spawner { .. })));
    }
}

#[test]
fn a_spawner_started_with_ignored_signals_still_sees_ends() {
    let bench = Bench::new();
    let program = std::ffi::OsStr::new(env!("CARGO_BIN_EXE_stead-spawner"));
    let ignoring = ["--ignore-signal=CHLD", "--block-signal=CHLD,TERM"].map(std::ffi::OsStr::new);
    let arguments = [ignoring[0], ignoring[1], program];
    let spawner = Spawner::start(Path::new("/usr/bin/env"), &arguments).unwrap();
    assert!(is_clean(&outcome(&spawner, &bench.bash("(exit 3); exit $?")), 3));
    let mut run = spawner.run(&bench.bash("sleep 300 & sleep 300")).unwrap();
    run.stop().unwrap();
    assert_eq!(ended(&mut run).how, How::Stopped);
    bench.assert_none_left();
}

#[test]
fn a_lock_is_held_as_long_as_the_run_and_no_longer() {
    let (bench, spawner) = (Bench::new(), start_spawner());
    let path = bench.folder.path().join("lock");
    let is_free = || {
        let file = std::fs::OpenOptions::new().create(true).append(true).open(&path).unwrap();
        rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok()
    };
    for kills_supervisor in [false, true] {
        let file = std::fs::OpenOptions::new().create(true).append(true).open(&path).unwrap();
        rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive).unwrap();
        let mut command = bench.bash("sleep 300 & sleep 300");
        command.held = Some(file.into());
        let mut run = spawner.run(&command).unwrap();
        drop(command);
        assert!(!is_free());
        if kills_supervisor {
            support::kill(support::supervisor(&run).pid, "-KILL");
        } else {
            run.stop().unwrap();
        }
        ended(&mut run);
        assert!(is_free());
        bench.assert_none_left();
    }
}

#[test]
fn waiting_looks_waits_and_remembers() {
    let (bench, spawner) = (Bench::new(), start_spawner());
    let mut run = spawner.run(&bench.bash("sleep 0.2; exit 7")).unwrap();
    assert_eq!(run.wait(Some(Duration::ZERO)).unwrap(), None);
    let mut fds = [rustix::event::PollFd::new(&run, rustix::event::PollFlags::IN)];
    let limit = rustix::event::Timespec { tv_sec: 10, tv_nsec: 0 };
    assert_eq!(rustix::event::poll(&mut fds, Some(&limit)).unwrap(), 1);
    let first = run.wait(Some(Duration::ZERO)).unwrap().unwrap();
    assert_eq!(first.how, How::Exited(7));
    assert_eq!(run.wait(None).unwrap(), Some(first));
    run.stop().unwrap();
    let mut run = spawner.run(&bench.bash("kill -SEGV $$")).unwrap();
    assert_eq!(ended(&mut run).how, How::Signalled(libc::SIGSEGV));
    assert!(!spawner.is_gone());
    assert!(spawner.as_fd().try_clone_to_owned().is_ok());
}

#[test]
fn two_hundred_runs_at_once() {
    let (bench, spawner) = (Bench::new(), start_spawner());
    let folder = bench.folder.path();
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let (bench, spawner) = (&bench, &spawner);
            scope.spawn(move || {
                let mut runs: Vec<_> = (0..50)
                    .map(|number| {
                        // All wait for one file, so all are there at once.
                        let script = format!(
                            "until [ -e go ]; do sleep 0.2; done; echo {number}; exit {number}"
                        );
                        let mut command = bench.command("sh", &["-c", &script]);
                        command.log = folder.join(format!("log-{thread}-{number}"));
                        (number, command.log.clone(), spawner.run(&command).unwrap())
                    })
                    .collect();
                if thread == 0 {
                    bench.wait_for_processes(200);
                    std::fs::write(folder.join("go"), b"").unwrap();
                }
                for (number, log, run) in &mut runs {
                    assert!(is_clean(&ended(run), *number));
                    assert_eq!(std::fs::read_to_string(log).unwrap(), format!("{number}\n"));
                }
            });
        }
    });
    bench.assert_none_left();
}

//! Children that are talked to: what one does with its pipes never holds up who started it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod support;

use std::time::{Duration, Instant};

use stead_process::{Command, How, PipeError, Pipes, Run, Stdin, Stdout};
use support::{Bench, PATIENCE, ended, is_clean, start_spawner, until};

/// Long enough for a child to do what it must not, short enough for a test.
const MOMENT: Duration = Duration::from_millis(300);

/// What a pipe holds.
const PIPE: usize = 64 * 1024;

fn piped(command: Command) -> Command {
    Command { pipes: Pipes::StdinAndStdout, ..command }
}

fn take(run: &mut Run) -> (Stdin, Stdout) {
    (run.stdin.take().unwrap(), run.stdout.take().unwrap())
}

/// The next `length` bytes as text.
fn next(stdout: &mut Stdout, length: usize) -> String {
    let mut bytes = vec![0; length];
    let mut filled = 0;
    while filled < length {
        match stdout.read(&mut bytes[filled..], PATIENCE).unwrap() {
            Some(0) => panic!("the output ended after {filled} bytes"),
            Some(read) => filled += read,
            None => panic!("nothing came"),
        }
    }
    String::from_utf8(bytes).unwrap()
}

#[track_caller]
fn assert_at_end(stdout: &mut Stdout) {
    assert_eq!(stdout.read(&mut [0; 16], PATIENCE).unwrap(), Some(0));
}

#[test]
fn a_child_answers_until_its_input_ends() {
    let (bench, spawner) = (Bench::new(), start_spawner());
    let script = "while read -r line; do echo \"heard $line\"; echo noise >&2; done; echo bye";
    let mut run = spawner.run(&piped(bench.bash(script))).unwrap();
    let (mut stdin, mut stdout) = take(&mut run);
    for word in ["one", "two"] {
        stdin.write(format!("{word}\n").as_bytes(), PATIENCE).unwrap();
        assert_eq!(next(&mut stdout, 10), format!("heard {word}\n"));
    }
    assert_eq!(stdout.read(&mut [0; 16], Duration::ZERO).unwrap(), None);
    drop(stdin);
    assert_eq!(next(&mut stdout, 4), "bye\n");
    assert_at_end(&mut stdout);
    let end = ended(&mut run);
    assert!(is_clean(&end, 0), "{end:?}");
    assert_eq!((bench.read_log().as_str(), end.bytes), ("noise\nnoise\n", 12));
}

#[test]
fn a_child_with_only_its_input_piped_writes_to_the_log() {
    let (bench, spawner) = (Bench::new(), start_spawner());
    let command =
        Command { pipes: Pipes::Stdin, ..bench.bash("read -r a; echo \"<$a>\"; cat >&2") };
    let mut run = spawner.run(&command).unwrap();
    assert!(run.stdout.is_none());
    let mut stdin = run.stdin.take().unwrap();
    stdin.write(b"first\n", PATIENCE).unwrap();
    until("it has answered", || bench.read_log() == "<first>\n");
    stdin.write(b"rest", PATIENCE).unwrap();
    drop(stdin);
    assert!(is_clean(&ended(&mut run), 0));
    assert_eq!(bench.read_log(), "<first>\nrest");
}

#[test]
fn a_child_without_pipes_has_none() {
    let (bench, spawner) = (Bench::new(), start_spawner());
    let mut run = spawner.run(&bench.bash("cat; echo end")).unwrap();
    assert!(run.stdin.is_none() && run.stdout.is_none());
    assert!(is_clean(&ended(&mut run), 0));
    assert_eq!(bench.read_log(), "end\n");
}

#[test]
fn what_a_dead_child_said_is_read_and_writing_to_it_is_an_error() {
    let (bench, spawner) = (Bench::new(), start_spawner());
    let mut run = spawner.run(&piped(bench.bash("echo last; exit 3"))).unwrap();
    let (mut stdin, mut stdout) = take(&mut run);
    assert_eq!(ended(&mut run).how, How::Exited(3));
    assert!(matches!(stdin.write(b"x", PATIENCE), Err(PipeError::Closed)));
    assert_eq!(next(&mut stdout, 5), "last\n");
    assert_at_end(&mut stdout);

    // One that is killed while it is talked to.
    let mut run = spawner.run(&piped(bench.command("cat", &[]))).unwrap();
    let (mut stdin, mut stdout) = take(&mut run);
    support::kill(run.leader.pid, "-KILL");
    assert_at_end(&mut stdout);
    assert_eq!(ended(&mut run).how, How::Signalled(9));
    assert!(matches!(stdin.write(b"x", PATIENCE), Err(PipeError::Closed)));
}

#[test]
fn a_child_that_reads_no_more_is_told_from_one_that_is_slow() {
    let (bench, spawner) = (Bench::new(), start_spawner());
    let mut run = spawner.run(&piped(bench.bash("exec <&-; echo closed; exec sleep 300"))).unwrap();
    let (mut stdin, mut stdout) = take(&mut run);
    assert_eq!(next(&mut stdout, 7), "closed\n");
    assert!(matches!(stdin.write(b"x", PATIENCE), Err(PipeError::Closed)));
    assert_eq!(run.wait(Some(Duration::ZERO)).unwrap(), None);
}

#[test]
fn a_flood_that_nobody_reads_waits_in_the_pipe_and_ends_with_the_run() {
    let (bench, spawner) = (Bench::new(), start_spawner());
    let script = "yes a line for nobody >&2 & exec yes an answer without end";
    let mut command = piped(bench.bash(script));
    command.log_limit = 64 * 1024;
    let mut run = spawner.run(&command).unwrap();
    assert_eq!(next(run.stdout.as_mut().unwrap(), 22), "an answer without end\n");
    until("the log is full", || {
        std::fs::metadata(bench.log()).is_ok_and(|log| log.len() >= 24 * 1024)
    });
    // Reading goes on for as long as one likes, and stops when one likes.
    assert_eq!(next(run.stdout.as_mut().unwrap(), 22 * 10_000).len(), 220_000);
    run.stop().unwrap();
    assert_eq!(ended(&mut run).how, How::Stopped);
    bench.assert_none_left();
    assert!(std::fs::metadata(bench.log()).unwrap().len() <= command.log_limit);
    // Not more is left than a pipe holds.
    let (mut left, mut buffer) = (0, vec![0; PIPE]);
    while let Some(length @ 1..) = run.stdout.as_mut().unwrap().read(&mut buffer, PATIENCE).unwrap()
    {
        left += length;
    }
    assert!(left <= PIPE, "{left} bytes were kept somewhere");
}

#[test]
fn a_flood_ends_when_its_reader_goes() {
    let (bench, spawner) = (Bench::new(), start_spawner());
    let mut run = spawner.run(&piped(bench.command("yes", &[]))).unwrap();
    drop(run.stdout.take());
    assert_eq!(ended(&mut run).how, How::Signalled(13));
}

#[test]
fn a_child_that_ignores_the_end_of_its_input_is_ended_with_all_it_started() {
    let (bench, spawner) = (Bench::new(), start_spawner());
    let script = "trap '' TERM; cat; echo eof; (setsid sleep 300 &) ; while :; do sleep 300; done";
    let mut command = piped(bench.bash(script));
    command.time_limit = Duration::MAX;
    for is_dropped in [false, true] {
        let mut run = spawner.run(&command).unwrap();
        let (stdin, mut stdout) = take(&mut run);
        drop(stdin);
        assert_eq!(next(&mut stdout, 4), "eof\n");
        assert_eq!(run.wait(Some(MOMENT)).unwrap(), None);
        bench.wait_for_processes(3);
        if is_dropped {
            drop(run);
            until("all have ended", || bench.alive().is_empty());
        } else {
            run.stop().unwrap();
            assert_eq!(ended(&mut run).how, How::Stopped);
            bench.assert_none_left();
        }
        assert_at_end(&mut stdout);
    }
    // Or by its time.
    command.time_limit = MOMENT;
    let mut run = spawner.run(&command).unwrap();
    drop(run.stdin.take());
    assert_eq!(ended(&mut run).how, How::TimedOut);
    bench.assert_none_left();
}

#[test]
fn a_writer_waits_for_a_slow_child_but_not_for_ever() {
    let (bench, spawner) = (Bench::new(), start_spawner());
    let script = "until [ -e go ]; do sleep 0.01; done; exec head -c 200000";
    let mut run = spawner.run(&piped(bench.bash(script))).unwrap();
    let (mut stdin, mut stdout) = take(&mut run);
    let bytes = vec![b'x'; 200_000];
    let began = Instant::now();
    let written = match stdin.write(&bytes, MOMENT) {
        Err(PipeError::TimedOut { limit, written }) => {
            assert_eq!(limit, MOMENT);
            written
        }
        other => panic!("{other:?}"),
    };
    assert!(began.elapsed() >= MOMENT && began.elapsed() < PATIENCE);
    // Of a user with very many pipes each holds less.
    assert!(written > 0 && written <= PIPE, "{written}");
    std::fs::write(bench.folder.path().join("go"), b"").unwrap();
    // Nothing was lost by that: the rest can follow, while somebody reads.
    let rest = bytes[written..].to_vec();
    let writer = std::thread::spawn(move || stdin.write(&rest, PATIENCE).map(|()| stdin));
    assert_eq!(next(&mut stdout, bytes.len()).len(), bytes.len());
    drop(writer.join().unwrap().unwrap());
    assert_at_end(&mut stdout);
    assert!(is_clean(&ended(&mut run), 0));
}

#[test]
fn a_piped_child_has_three_descriptors_and_nobody_else_has_its_pipes() {
    let (bench, spawner) = (Bench::new(), start_spawner());
    let held = std::fs::File::open("/dev/zero").unwrap();
    let mut command = piped(bench.command("cat", &[]));
    // An order longer than a packet brings the most descriptors that there are.
    command.environment.insert("LONG".into(), "x".repeat(100_000).into());
    command.held = Some(held.into());
    let mut first = spawner.run(&command).unwrap();
    let (mut stdin, mut stdout) = take(&mut first);
    // Once it answers it has loaded all that it loads.
    stdin.write(b"here", PATIENCE).unwrap();
    assert_eq!(next(&mut stdout, 4), "here");
    let mut fds: Vec<_> = std::fs::read_dir(format!("/proc/{}/fd", first.leader.pid))
        .unwrap()
        .map(|fd| fd.unwrap().file_name())
        .collect();
    fds.sort();
    assert_eq!(fds, ["0", "1", "2"]);
    // Everything that is started meanwhile would keep the input open, had it got the other end.
    let mut others: Vec<Run> =
        (0..3).map(|_| spawner.run(&piped(bench.bash("cat; exec sleep 300"))).unwrap()).collect();
    let mut own = std::process::Command::new("sleep").arg("300").spawn().unwrap();
    drop(stdin);
    assert_at_end(&mut stdout);
    assert!(is_clean(&ended(&mut first), 0));
    // What the log has is what the child said to it: nothing.
    assert_eq!(bench.read_log(), "");
    for run in &mut others {
        assert_eq!(run.wait(Some(Duration::ZERO)).unwrap(), None);
        run.stop().unwrap();
        ended(run);
    }
    own.kill().unwrap();
    own.wait().unwrap();
    bench.assert_none_left();
}

#[test]
fn the_death_of_supervisor_or_spawner_ends_a_piped_child() {
    for kills_spawner in [false, true] {
        let (bench, spawner) = (Bench::new(), start_spawner());
        let mut run = spawner.run(&piped(bench.bash("cat; exec sleep 300"))).unwrap();
        let (_stdin, mut stdout) = take(&mut run);
        let victim = if kills_spawner { spawner.identity() } else { support::supervisor(&run) };
        support::kill(victim.pid, "-KILL");
        assert_at_end(&mut stdout);
        assert_eq!(ended(&mut run).how, How::Lost);
        until("none is left", || bench.alive().is_empty());
    }
}

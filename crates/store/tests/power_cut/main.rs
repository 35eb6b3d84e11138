//! A walk over the moments at which the power may go.
//!
//! The store writes to an ext4 file system with a journal whose disk is a file served by this
//! test, which so sees every write and every flush that reaches the disk, in order. For many
//! moments the disk is built as a cut of the power would leave it: with all that was written by
//! then, or with some of what was written since the last flush missing, as a disk with a cache may
//! have it. Each is mounted, the store is opened, and what was acknowledged must be there.
//!
//! Everything is mounted in a mount namespace that ends with the test, however it ends.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "helpers of tests, which clippy does not know as such"
)]

mod device;
#[path = "../kit/mod.rs"]
mod kit;

use std::ffi::OsStr;
use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use device::{Act, Device};
use kit::{append, child, given_folder, home, in_own_mounts, is_child, random, run, session};
use stead_core::event::{BranchEvent, Event, MailKind, Sender, Stream};
use stead_core::id::TurnId;
use stead_store::{Append, Body, Store};

/// The disk's length in bytes.
const DISK: usize = 24 * 1024 * 1024;

/// How many appends the writer makes.
const APPENDS: u64 = 25;

/// How many moments are looked at, at most, and how long.
const MOMENTS: usize = 110;
const TIME: Duration = Duration::from_secs(25);

#[test]
fn every_acknowledged_append_survives_a_power_cut() {
    let folder = home();
    in_own_mounts("walks_over_the_moments_of_a_power_cut", folder.path(), true);
}

/// The append after position `tip`: two events, the second with a body, now and then a long one.
fn batch(tip: u64) -> Append {
    let number = tip / 2;
    let mut batch = append(&session("s"), tip, &[("", number + 1), ("s", number + 1)]);
    let length = if number % 5 == 3 { 70_000 + tip } else { 200 };
    let body = Body::new(vec![u8::try_from(tip).unwrap(); usize::try_from(length).unwrap()]);
    batch.events[1].event = Event::Branch(BranchEvent::Heard {
        turn: TurnId(tip),
        from: Sender::Person,
        mail: None,
        sort: MailKind::User,
        body: body.reference(),
    });
    batch.bodies = vec![body];
    batch
}

#[test]
#[ignore = "a child of every_acknowledged_append_survives_a_power_cut"]
fn appends_to_the_watched_disk() {
    if !is_child() {
        return;
    }
    let mut permission = String::new();
    let mut tip = 0;
    // Opened anew now and then: closing empties the write-ahead log into the database.
    while tip < APPENDS * 2 {
        let store = Store::open(&given_folder().join("home")).unwrap();
        for _ in 0..9 {
            tip = store.append(batch(tip)).unwrap().last;
            std::io::stdout().write_all(format!("\nACK {tip}\n").as_bytes()).unwrap();
            std::io::stdin().read_line(&mut permission).unwrap();
        }
    }
}

/// Lets a child write to the disk; gives how much was acknowledged at which act.
fn record(device: &Device, folder: &Path) -> Vec<(usize, u64)> {
    let mut writer = child("appends_to_the_watched_disk")
        .env("STEAD_STORE_TEST_FOLDER", folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut permission = writer.stdin.take().unwrap();
    let mut acknowledged = Vec::new();
    for line in BufReader::new(writer.stdout.take().unwrap()).lines() {
        if let Some(tip) = line.unwrap().strip_prefix("ACK ") {
            acknowledged.push((device.acts(), tip.parse().unwrap()));
            permission.write_all(b"\n").unwrap();
        }
    }
    assert!(writer.wait().unwrap().success());
    acknowledged
}

#[test]
#[ignore = "a child of every_acknowledged_append_survives_a_power_cut"]
fn walks_over_the_moments_of_a_power_cut() {
    if !is_child() {
        return;
    }
    let folder = given_folder();
    run(
        "mount",
        &["-t", "tmpfs", "none"]
            .map(OsStr::new)
            .into_iter()
            .chain([folder.as_os_str()])
            .collect::<Vec<_>>(),
    );
    let (disk, place, image) = (folder.join("disk"), folder.join("place"), folder.join("image"));
    fs::write(&disk, "").unwrap();
    fs::create_dir(&place).unwrap();
    let device = match Device::serve(&disk, DISK) {
        Ok(device) => device,
        // The parent sees that something of this test ran; this part says that it did not.
        Err(error) => return kit::skip(&format!("no watched disk here: {error}")),
    };
    let options = ["-q", "-F", "-b", "4096", "-m", "0", "-J", "size=4"];
    let options = options.map(OsStr::new);
    run("mkfs.ext4", &[&options[..], &[disk.as_os_str()]].concat());
    let looped = run(
        "losetup",
        &["--find", "--show"]
            .map(OsStr::new)
            .into_iter()
            .chain([disk.as_os_str()])
            .collect::<Vec<_>>(),
    );
    let looped = OsStr::new(&looped);
    let mounted = std::panic::catch_unwind(|| run("mount", &[looped, place.as_os_str()]));
    // From now on the loop device goes with its last mount.
    run("losetup", &[OsStr::new("--detach"), looped]);
    mounted.unwrap();
    let first = device.acts();
    let acknowledged = record(&device, &place);
    assert_eq!(acknowledged.last().unwrap().1, 54);
    let last = device.acts();
    run("umount", &[place.as_os_str()]);

    let acts = device.log();
    let writes = acts[first..last].iter().filter(|act| matches!(act, Act::Write { .. })).count();
    println!("{} acts, {writes} writes, {} flushes", last - first, last - first - writes);
    let began = Instant::now();
    let (mut looked, mut stored) = (0, 0);
    // Spread over the whole time, so that a slow machine sees all of it too, only less densely.
    let count = MOMENTS.min(last - first);
    for turn in 0..count {
        // A stride that meets every residue once, in an order that is no order.
        let moment = first + (turn * 61 % count) * (last - first) / count + 1;
        if began.elapsed() > TIME {
            break;
        }
        let known = acknowledged.iter().filter(|(at, _)| *at <= moment).map(|(_, tip)| *tip).max();
        for loses in [false, true] {
            fs::write(&image, device::after(&acts[..moment], DISK, |_| loses && random(2) == 0))
                .unwrap();
            let options = [OsStr::new("-o"), OsStr::new("loop")];
            run("mount", &[&options[..], &[image.as_os_str(), place.as_os_str()]].concat());
            stored += look(&place, known.unwrap_or(0), moment);
            run("umount", &[place.as_os_str()]);
            looked += 1;
        }
    }
    println!("{looked} cuts, {stored} events found, {:?}", began.elapsed());
    assert!(looked >= 20, "too slow to say anything: {looked} cuts");
}

/// Opens the store that a cut left and checks it; gives the number of its events.
fn look(place: &Path, known: u64, moment: usize) -> u64 {
    let home = place.join("home");
    if known == 0 && !home.exists() {
        return 0;
    }
    let s = session("s");
    let store = Store::open(&home).unwrap();
    let tip = store.reader().tip(&s).unwrap().unwrap_or(0);
    assert!(tip >= known, "act {moment}: {known} was acknowledged, {tip} is stored");
    assert!(tip.is_multiple_of(2), "act {moment}: half a batch");
    if tip > 0 {
        let records = store.reader().read(&s, 1, usize::MAX).unwrap();
        assert_eq!(records.len() as u64, tip);
        for number in 0..tip / 2 {
            let whole = batch(number * 2);
            let at = usize::try_from(number * 2).unwrap();
            assert_eq!(records[at].envelope, whole.events[0]);
            assert_eq!(records[at + 1].envelope, whole.events[1]);
            let body = store.reader().body(&whole.bodies[0].digest()).unwrap();
            assert_eq!(body.as_deref(), Some(whole.bodies[0].bytes()), "act {moment}");
        }
        let talk = store.reader().read_stream(&s, &Stream::Conversation(s.clone()), 1, 100);
        assert_eq!(talk.unwrap().len() as u64, tip / 2);
    }
    let report = store.reader().check(Duration::from_hours(1), |_| false).unwrap();
    assert!(report.is_sound(), "act {moment}: {report:?}");
    assert_eq!(store.append(batch(tip)).unwrap().first, tip + 1);
    tip
}

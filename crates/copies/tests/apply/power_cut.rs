//! A walk over the moments at which the power may go while an apply writes and is cleared.
//!
//! Root and home are on an ext4 file system whose disk is a file served by this test, which so sees
//! every write and every flush that reaches the disk, in order. For many moments the disk is built
//! as a cut of the power would leave it: with all that was written by then, or with some of what was
//! written since the last flush missing. Each is mounted and recovered: the root is wholly the old
//! tree or, once the outcome was recorded, wholly the new one.

#[path = "../../../store/tests/power_cut/device.rs"]
mod device;

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use device::Device;
use stead_copies::{Finished, Home, Outcome, Recorded, leftovers, recover};

use crate::crash::{build, task};
use crate::kit::{World, content, root_id, write};

const DISK: usize = 24 * 1024 * 1024;
const MOMENTS: usize = 70;
const TIME: Duration = Duration::from_secs(25);
const FOLDER: &str = "STEAD_COPIES_TEST_FOLDER";
const NAME: &str = "copies_68_a_power_cut_leaves_the_old_tree_or_the_recorded_new_one";

fn given() -> Option<PathBuf> {
    std::env::var_os(FOLDER).map(PathBuf::from)
}

fn child(prefix: &[&str], name: &str, folder: &Path) -> Command {
    let mut words: Vec<&str> = prefix.to_vec();
    let program = std::env::current_exe().unwrap();
    words.push(program.to_str().unwrap());
    let mut command = Command::new(words[0]);
    command
        .args(&words[1..])
        .args(["--exact", name, "--ignored", "--nocapture", "--test-threads=1"])
        .env(FOLDER, folder)
        .stdin(Stdio::null());
    command
}

fn run(program: &str, words: &[&str]) -> String {
    let output = Command::new(program).args(words).output().unwrap();
    assert!(output.status.success(), "{program} {words:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

#[test]
fn copies_68_a_power_cut_leaves_the_old_tree_or_the_recorded_new_one() {
    let folder = crate::kit::quick_folder();
    let way = ["unshare", "-m"];
    let at = folder.path().to_str().unwrap();
    let tried = Command::new("unshare")
        .args(["-m", "sh", "-c", "mount -t tmpfs none \"$0\" && umount \"$0\"", at])
        .output();
    if !tried.is_ok_and(|tried| tried.status.success()) {
        return stead_testkit::skip(NAME, "nothing can be mounted here");
    }
    let walk = "power_cut::walks_over_the_moments_of_a_power_cut";
    let output = child(&way, walk, folder.path()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    println!("{said}");
    assert!(output.status.success() && said.contains("1 passed"), "{said}{errors}");
}

/// Says a word to the parent and waits until it has noted it.
fn say(word: &str) {
    std::io::stdout().write_all(format!("\nACK {word}\n").as_bytes()).unwrap();
    std::io::stdin().read_line(&mut String::new()).unwrap();
}

fn many(root: &Path, text: &str) {
    for number in 0..40 {
        write(root, format!("many/{number}"), format!("{text} {number}\n").repeat(200));
    }
}

#[test]
#[ignore = "a child of copies_68"]
fn applies_on_the_watched_disk() {
    let Some(place) = given() else { return };
    let made = tempfile::Builder::new().prefix("w").disable_cleanup(true).tempdir_in(&place);
    let mut world = World::new(made.unwrap(), true, |root| {
        build(root);
        many(root, "old");
    });
    task(&world.copy);
    many(&world.copy, "new");
    let apply = world.ready().unwrap();
    rustix::fs::syncfs(fs::File::open(&place).unwrap()).unwrap();
    say("ready");
    let Outcome::Written(written) = apply.write() else { panic!("not written") };
    // The engine's append.
    stead_files::replace(&place.join("recorded"), b"applied", None).unwrap();
    say("recorded");
    written.clear().unwrap();
    say("cleared");
}

/// Lets a child apply on the watched disk; gives at which act it had said what.
fn record(device: &Device, place: &Path) -> Vec<(usize, String)> {
    let mut writer = child(&["env"], "power_cut::applies_on_the_watched_disk", place)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut permission = writer.stdin.take().unwrap();
    let mut said = Vec::new();
    for line in BufReader::new(writer.stdout.take().unwrap()).lines() {
        if let Some(word) = line.unwrap().strip_prefix("ACK ") {
            said.push((device.acts(), word.to_owned()));
            permission.write_all(b"\n").unwrap();
        }
    }
    assert!(writer.wait().unwrap().success());
    said
}

#[test]
#[ignore = "a child of copies_68, in a mount namespace of its own"]
fn walks_over_the_moments_of_a_power_cut() {
    let Some(folder) = given() else { return };
    let at = |name: &str| folder.join(name).to_str().unwrap().to_owned();
    run("mount", &["-t", "tmpfs", "none", folder.to_str().unwrap()]);
    let (disk, place, image) = (at("disk"), at("place"), at("image"));
    fs::write(&disk, "").unwrap();
    for made in ["place", "old", "new"] {
        fs::create_dir(folder.join(made)).unwrap();
    }
    for made in ["old", "new"] {
        build(&folder.join(made));
        many(&folder.join(made), made);
    }
    task(&folder.join("new"));
    let (old, new) = (content(&folder.join("old")), content(&folder.join("new")));
    let device = match Device::serve(Path::new(&disk), DISK) {
        Ok(device) => device,
        Err(error) => return stead_testkit::skip(NAME, &format!("no watched disk: {error}")),
    };
    run("mkfs.ext4", &["-q", "-F", "-b", "4096", "-m", "0", "-J", "size=4", &disk]);
    let looped = run("losetup", &["--find", "--show", &disk]);
    let mounted = std::panic::catch_unwind(|| run("mount", &[&looped, &place]));
    // From now on the loop device goes with its last mount.
    run("losetup", &["--detach", &looped]);
    mounted.unwrap();
    let said = record(&device, Path::new(&place));
    let act = |word: &str| said.iter().find(|(_, said)| said == word).unwrap().0;
    let (first, recorded, last) = (act("ready"), act("recorded"), act("cleared"));
    run("umount", &[&place]);

    let acts = device.log();
    println!("{} acts, recorded at {}", last - first, recorded - first);
    let began = Instant::now();
    let (mut looked, mut back, mut forward) = (0, 0, 0);
    let count = MOMENTS.min(last - first);
    for turn in 0..count {
        if began.elapsed() > TIME {
            break;
        }
        // Spread over the whole time, in an order that is no order.
        let moment = first + (turn * 61 % count) * (last - first) / count + 1;
        for loses in [false, true] {
            let mut number = 0_usize;
            let lost = |_| {
                number += 1;
                loses && number.wrapping_mul(2_654_435_761 + turn).is_multiple_of(3)
            };
            fs::write(&image, device::after(&acts[..moment], DISK, lost)).unwrap();
            run("mount", &["-o", "loop", &image, &place]);
            let case = format!("act {} of {}, loses: {loses}", moment - first, last - first);
            let is_new = look(Path::new(&place), moment >= recorded, &old, &new, &case);
            run("umount", &[&place]);
            looked += 1;
            back += usize::from(!is_new);
            forward += usize::from(is_new);
        }
    }
    println!("{looked} cuts: {back} old, {forward} new, {:?}", began.elapsed());
    assert!(looked >= 10, "too slow to say anything: {looked} cuts");
    assert!(back > 0, "no cut before the outcome was recorded");
}

/// Recovers what a cut left; whether it is the new tree.
fn look(place: &Path, promised: bool, old: &[String], new: &[String], case: &str) -> bool {
    let entries = fs::read_dir(place).unwrap().map(|entry| entry.unwrap());
    let world = entries
        .filter(|entry| entry.file_name().to_string_lossy().starts_with('w'))
        .map(|entry| entry.path())
        .next()
        .unwrap();
    let home = Home::new(world.join("home"));
    let is_recorded = place.join("recorded").exists();
    assert!(is_recorded || !promised, "{case}: the record was lost");
    let recorded = if is_recorded { Recorded::Applied } else { Recorded::Nothing };
    let left = leftovers(&home).unwrap();
    let finished = recover(&home, &root_id(), recorded).unwrap_or_else(|e| panic!("{case}: {e}"));
    match (&finished, is_recorded) {
        (None, _) => assert!(left.is_empty(), "{case}"),
        (Some(Finished::Back), false) | (Some(Finished::Forward), true) => {}
        other => panic!("{case}: {other:?}"),
    }
    let now = content(&world.join("root"));
    let expected = if is_recorded { new } else { old };
    for line in expected {
        assert!(now.contains(line), "{case}: missing {line}");
    }
    assert_eq!(now.len(), expected.len(), "{case}: {now:?}");
    assert!(!world.join("root/.git/index.lock").exists(), "{case}");
    is_recorded
}

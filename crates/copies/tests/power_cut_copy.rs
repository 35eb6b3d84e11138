//! A walk over the moments at which the power may go while copies are made and one is frozen.
//!
//! Originals and home are on an ext4 file system whose disk is a file served by this test, which so
//! sees every write and every flush that reaches the disk, in order. For many moments the disk is
//! built as a cut of the power would leave it, also with some of what was written since the last
//! flush missing. Each is mounted: the originals are as they were, what was flushed is whole, what
//! was admitted is whole or known to be cut off, what was reviewed can be read, and what was none of
//! these leaves nothing.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod common;
#[path = "../../store/tests/power_cut/device.rs"]
#[allow(dead_code, reason = "its image is built whole elsewhere")]
mod device;

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use common::{Kit, request_for, session, slot, write};
use device::{Act, Device};
use stead_copies::{
    Base, Contents, CopyError, Layout, Snapshot, clear_staging, discard, flush_all, freeze, staged,
    withdraw,
};
use stead_core::id::{Digest, TaskId, Timestamp};
use stead_core::layout::Access;
use stead_files::{Node, Watch};

/// Admission wants 2 GiB to stay free. What is not written is never held in memory.
const DISK: usize = 2600 * 1024 * 1024;
const MOMENTS: usize = 50;
const TIME: Duration = Duration::from_secs(20);
const FOLDER: &str = "STEAD_COPIES_TEST_FOLDER";
const NAME: &str = "a_power_cut_leaves_whole_copies_or_none";

fn given() -> Option<PathBuf> {
    std::env::var_os(FOLDER).map(PathBuf::from)
}

fn child(prefix: &[&str], name: &str, folder: &Path) -> Command {
    let program = std::env::current_exe().unwrap();
    let words: Vec<&str> = prefix.iter().copied().chain([program.to_str().unwrap()]).collect();
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
fn a_power_cut_leaves_whole_copies_or_none() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path().to_str().unwrap();
    let tried = Command::new("unshare")
        .args(["-m", "sh", "-c", "mount -t tmpfs none \"$0\" && umount \"$0\"", at])
        .output();
    if !tried.is_ok_and(|tried| tried.status.success()) {
        return stead_testkit::skip(NAME, "nothing can be mounted here");
    }
    let walk = "walks_over_the_moments_of_a_power_cut";
    let output = child(&["unshare", "-m"], walk, folder.path()).output().unwrap();
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

/// A repository with clean, changed and new files, and a plain folder.
fn originals(kit: &Kit) -> (PathBuf, PathBuf) {
    let app = kit.repository("app");
    for number in 0..20 {
        write(&app.join(format!("many/{number}")), format!("file {number}\n").repeat(100));
    }
    kit.commit_all(&app, "many");
    write(&app.join("a.txt"), "changed\n");
    write(&app.join("new"), "untracked\n");
    let plain = kit.at("plain");
    fs::create_dir_all(plain.join("empty")).unwrap();
    write(&plain.join("notes"), "notes\n");
    (app, plain)
}

/// Every file of a folder but Git's, with its bytes and mode, sorted.
fn content(folder: &Path) -> Vec<String> {
    let listed = Command::new("find")
        .arg(".")
        .args(["-name", ".git", "-prune", "-o", "-printf", "%p %y %m\n"])
        .args(["-type", "f", "-exec", "sha256sum", "{}", ";"])
        .current_dir(folder)
        .output()
        .unwrap();
    assert!(listed.status.success(), "{listed:?}");
    let mut lines: Vec<String> =
        String::from_utf8_lossy(&listed.stdout).lines().map(str::to_owned).collect();
    lines.sort();
    lines
}

#[test]
#[ignore = "a child of a_power_cut_leaves_whole_copies_or_none"]
fn copies_on_the_watched_disk() {
    let Some(place) = given() else { return };
    let kit = Kit::at_folder(&place);
    fs::create_dir_all(kit.at("user")).unwrap();
    let (app, plain) = originals(&kit);
    rustix::fs::syncfs(fs::File::open(&place).unwrap()).unwrap();
    say("ready");
    let roots = [("app", app.as_path(), Access::Write), ("plain", plain.as_path(), Access::Write)];
    let admitted = kit.try_admit(&request_for(1, &roots)).unwrap();
    // The engine's append.
    stead_files::replace(&kit.at("admitted"), b"1", None).unwrap();
    say("admitted");
    stead_copies::flush(&kit.home, &session(), TaskId(1)).unwrap();
    say("flushed");
    let copy = kit.home.copy(&session(), TaskId(1), &slot("app"));
    write(&copy.join("a.txt"), "by an agent\n");
    write(&copy.join("many/0"), "by an agent\n");
    let base = admitted.layout.slots[0].base;
    let frozen =
        freeze(&kit.home, &kit.git, &admitted.layout, &slot("app"), &base, Watch::default());
    let digest = frozen.unwrap().digest.to_string();
    stead_files::replace(&kit.at("reviewed"), digest.as_bytes(), None).unwrap();
    say("reviewed");
}

/// Lets a child copy on the watched disk; gives at which act it had said what.
fn record(device: &Device, place: &Path) -> Vec<(usize, String)> {
    let mut writer = child(&["env"], "copies_on_the_watched_disk", place)
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
#[ignore = "a child of a_power_cut_leaves_whole_copies_or_none, in a mount namespace of its own"]
fn walks_over_the_moments_of_a_power_cut() {
    let Some(folder) = given() else { return };
    let at = |name: &str| folder.join(name).to_str().unwrap().to_owned();
    run("mount", &["-t", "tmpfs", "none", folder.to_str().unwrap()]);
    let (disk, place, image) = (at("disk"), at("place"), at("image"));
    fs::write(&disk, "").unwrap();
    fs::create_dir(&place).unwrap();
    let device = match Device::serve(Path::new(&disk), DISK) {
        Ok(device) => device,
        Err(error) => return stead_testkit::skip(NAME, &format!("no watched disk: {error}")),
    };
    let lazy = "lazy_itable_init=1,lazy_journal_init=1,nodiscard";
    run("mkfs.ext4", &["-q", "-F", "-b", "4096", "-m", "0", "-J", "size=4", "-E", lazy, &disk]);
    let looped = run("losetup", &["--find", "--show", &disk]);
    let mounted = std::panic::catch_unwind(|| run("mount", &[&looped, &place]));
    // From now on the loop device goes with its last mount.
    run("losetup", &["--detach", &looped]);
    mounted.unwrap();
    let said = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        record(&device, Path::new(&place))
    }));
    let said = said.unwrap_or_else(|why| {
        // A mount that is left would wait for a disk that nobody serves any more.
        run("umount", &[&place]);
        std::panic::resume_unwind(why)
    });
    let (app, plain) = (folder.join("place/app"), folder.join("place/plain"));
    let originals = [content(&app), content(&plain)];
    let act = |word: &str| said.iter().find(|(_, said)| said == word).unwrap().0;
    let (first, admitted, last) = (act("ready"), act("admitted"), act("reviewed"));
    let flushed = act("flushed");
    run("umount", &[&place]);

    let acts = device.log();
    let (at_admitted, at_flushed) = (admitted - first, flushed - first);
    println!("{} acts, admitted at {at_admitted}, flushed at {at_flushed}", last - first);
    let began = Instant::now();
    let (mut looked, mut whole) = (0, 0);
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
            build_image(Path::new(&image), &acts[..moment], lost);
            run("mount", &["-o", "loop", &image, &place]);
            let case = format!("act {} of {}, loses: {loses}", moment - first, last - first);
            let promised = Promised {
                admitted: moment >= admitted,
                flushed: moment >= flushed,
                reviewed: moment >= last,
            };
            let found = std::panic::catch_unwind(|| {
                look(&Kit::at_folder(Path::new(&place)), promised, &originals, &case)
            });
            run("umount", &[&place]);
            whole += usize::from(found.unwrap());
            looked += 1;
        }
    }
    println!("{looked} cuts, {whole} with whole copies, {:?}", began.elapsed());
    assert!(looked >= 10, "too slow to say anything: {looked} cuts");
    assert!(whole > 0 && whole < looked, "{whole} of {looked} cuts had copies");
}

/// The disk after these acts and a cut of the power, as a file with holes: of the writes since the
/// last flush, those for which `lost` says so are missing.
fn build_image(path: &Path, acts: &[Act], mut lost: impl FnMut(usize) -> bool) {
    let safe = acts.iter().rposition(|act| matches!(act, Act::Flush)).unwrap_or(0);
    let file = fs::File::create(path).unwrap();
    file.set_len(DISK.try_into().unwrap()).unwrap();
    for (number, act) in acts.iter().enumerate() {
        if let Act::Write { offset, bytes } = act
            && (number < safe || !lost(number))
        {
            file.write_all_at(bytes, (*offset).try_into().unwrap()).unwrap();
        }
    }
}

/// What was said before the cut.
#[derive(Clone, Copy)]
struct Promised {
    admitted: bool,
    flushed: bool,
    reviewed: bool,
}

/// The machine has started anew since: no mark is of this boot.
fn reboot(kit: &Kit) {
    let mark = kit.home.task(&session(), TaskId(1)).join(".unflushed");
    if mark.exists() {
        fs::write(mark, "another boot").unwrap();
    }
}

/// What a cut left, and what the next engine makes of it; whether there are whole copies.
fn look(kit: &Kit, promised: Promised, originals: &[Vec<String>; 2], case: &str) -> bool {
    reboot(kit);
    let now = [content(&kit.at("app")), content(&kit.at("plain"))];
    assert_eq!(&now, originals, "{case}: an original changed");
    assert_eq!(kit.ok(&kit.at("app"), &["fsck", "--strict"]), "", "{case}");
    clear_staging(&kit.home).unwrap();
    assert!(staged(&kit.home).unwrap().is_empty(), "{case}");
    if !kit.at("admitted").exists() {
        assert!(!promised.admitted, "{case}: the record was lost");
        withdraw(&kit.home, &session(), TaskId(1)).unwrap();
        assert!(!kit.home.task(&session(), TaskId(1)).exists(), "{case}");
        return false;
    }
    let layout = match Layout::load(&kit.home, &session(), TaskId(1)) {
        Ok(Some(layout)) => layout,
        Ok(None) => {
            assert!(!promised.flushed, "{case}: the copies are gone");
            return false;
        }
        Err(CopyError::CutOff { .. }) => {
            assert!(!promised.flushed, "{case}: the copies are cut off");
            flush_all(&kit.home).unwrap();
            let (home, at) = (&kit.home, Timestamp(1));
            assert!(discard(home, &session(), TaskId(1), None, at).unwrap().is_some(), "{case}");
            assert!(!kit.home.task(&session(), TaskId(1)).exists(), "{case}");
            return false;
        }
        Err(error) => panic!("{case}: {error}"),
    };
    for (found, expected) in layout.slots.iter().zip(originals) {
        let copy = kit.home.copy(&session(), TaskId(1), &found.slot);
        let base = Base::load(&kit.home, &found.base).unwrap();
        let contents = Contents::of(&kit.home, &kit.git, &found.root, &base).unwrap();
        let eligible = base.eligible();
        let files: Vec<_> = eligible
            .entries()
            .iter()
            .filter(|entry| matches!(entry.node, Node::File { .. }))
            .collect();
        contents.read_all(&files).unwrap_or_else(|e| panic!("{case}: {e}"));
        // What an agent wrote since is its own to lose.
        let written = |line: &&String| line.contains("a.txt") || line.contains("many/0");
        let now = content(&copy);
        let lost: Vec<_> =
            expected.iter().filter(|line| !now.contains(line) && !written(line)).collect();
        assert!(lost.is_empty(), "{case}: {lost:?}");
    }
    let reviewed = fs::read_to_string(kit.at("reviewed")).ok();
    assert!(reviewed.is_some() || !promised.reviewed, "{case}: the review was lost");
    if let Some(name) = reviewed {
        let snapshot = Snapshot::load(&kit.home, &Digest::parse(&name).unwrap()).unwrap();
        for path in ["a.txt", "many/0"] {
            let entry = snapshot.manifest.get(&stead_files::RelPath::parse(path).unwrap()).unwrap();
            let Node::File { digest: Some(digest), .. } = entry.node else { panic!("{entry:?}") };
            let bytes = kit.home.blobs().get(&digest).unwrap();
            assert_eq!(bytes.as_deref(), Some(b"by an agent\n".as_slice()), "{case}");
        }
    }
    true
}

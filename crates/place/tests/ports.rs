//! Places: adoption, ports, scratch.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)]

mod support;

use std::collections::BTreeSet;
use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::PathBuf;

use stead_place::Presence;
use support::{Bench, Exec, snapshot, wait};

const SAY: &str = "echo $STEAD_PORT $STEAD_PORT_COUNT $STEAD_PORT_15 $STEAD_SCRATCH $TMPDIR";

#[test]
fn places_1_the_first_run_gives_ports_and_scratch_and_changes_nothing() {
    let bench = Bench::new(21_000);
    let place = bench.place("a");
    fs::write(place.join("file"), "mine").unwrap();
    let before = snapshot(&place);
    let said = bench.ok(&place, SAY);
    let words: Vec<&str> = said.split_whitespace().collect();
    let first: u16 = words[0].parse().unwrap();
    assert_eq!((words[1], words[2]), ("16", (first + 15).to_string().as_str()));
    assert_eq!(words[3], words[4]);
    let scratch = PathBuf::from(words[3]);
    assert_eq!(scratch.metadata().unwrap().permissions().mode() & 0o777, 0o700);
    assert_eq!(snapshot(&place), before);
    assert!(!scratch.starts_with(&place));
    assert!(words[3].len() <= 64);
}

#[test]
fn places_2_the_next_run_has_the_same_ports_and_scratch() {
    let bench = Bench::new(21_320);
    let place = bench.place("a");
    let first = bench.ok(&place, &format!("touch $TMPDIR/marker; {SAY}"));
    let second = bench.ok(&place, &format!("[ -e $TMPDIR/marker ] && {SAY}"));
    assert_eq!(first, second);
}

#[test]
fn places_3_blocks_of_places_that_start_at_once_are_disjoint() {
    let mut bench = Bench::new(21_640);
    bench.bound = (64, 0);
    let places: Vec<PathBuf> = (0..16).map(|n| bench.place(&format!("w{n}"))).collect();
    let children: Vec<_> = places.iter().map(|place| bench.start(&Exec::new(place, SAY))).collect();
    let ports: BTreeSet<u16> = children
        .into_iter()
        .map(|child| wait(child).out.split_whitespace().next().unwrap().parse().unwrap())
        .collect();
    assert_eq!(ports.len(), 16);
    let mut sorted: Vec<u16> = ports.into_iter().collect();
    sorted.sort_unstable();
    assert!(sorted.windows(2).all(|pair| pair[1] - pair[0] >= 16));
}

#[test]
fn sixty_four_places_hold_sixty_four_disjoint_blocks() {
    let mut bench = Bench::new(21_960);
    bench.ports = (21_960, 21_960 + 16 * 70 - 1);
    let host = bench.host();
    let mut ports = BTreeSet::new();
    for number in 0..64 {
        let place = bench.place(&format!("w{number}"));
        let adopted = host.adopt(&stead_place::top_of(&place).unwrap()).unwrap();
        assert!(adopted.is_new);
        ports.extend(adopted.hold.ports.ports());
    }
    assert_eq!(ports.len(), 64 * 16);
}

#[test]
fn places_4_a_released_block_may_go_to_another_place() {
    let mut bench = Bench::new(23_080);
    bench.ports = (23_080, 23_080 + 31);
    let (a, b, c) = (bench.place("a"), bench.place("b"), bench.place("c"));
    let of_a = bench.ok(&a, SAY);
    bench.ok(&b, SAY);
    bench.release(&a);
    let of_c = bench.ok(&c, SAY);
    assert_eq!(of_a.split(' ').next(), of_c.split(' ').next());
    let done = bench.exec(&Exec::new(&a, SAY));
    assert_eq!(done.code, 74, "{}", done.errors);
    bench.release(&b);
    assert_ne!(bench.ok(&a, SAY).split(' ').next(), of_c.split(' ').next());
}

#[test]
fn places_6_a_block_with_a_port_in_use_is_skipped_and_none_left_lists_the_holders() {
    let mut bench = Bench::new(23_112);
    bench.ports = (23_112, 23_112 + 31);
    let _stranger = TcpListener::bind(("127.0.0.1", 23_115)).unwrap();
    let (a, b) = (bench.place("a"), bench.place("b"));
    assert!(bench.ok(&a, SAY).starts_with("23128 "));
    let done = bench.exec(&Exec::new(&b, SAY));
    assert_eq!(done.code, 74);
    assert!(done.errors.contains(a.to_str().unwrap()), "{}", done.errors);
    fs::remove_dir_all(&a).unwrap();
    let done = bench.exec(&Exec::new(&b, SAY));
    assert!(done.errors.contains("(gone)"), "{}", done.errors);
}

#[test]
fn field_prt_01_a_block_in_use_is_not_given_out_and_the_one_that_was_stays() {
    let mut bench = Bench::new(29_800);
    bench.ports = (29_800, 29_800 + 16 * 8 - 1);
    let stranger = TcpListener::bind(("127.0.0.1", 29_804)).unwrap();
    let place = bench.place("a");
    let said = bench.ok(&place, SAY);
    let first: u16 = said.split(' ').next().unwrap().parse().unwrap();
    assert_ne!(first, 29_800);
    // What is listed names it, to a process that was not there when it was given.
    let listed = bench.host().list().unwrap();
    assert_eq!((listed[0].ports.first(), listed[0].ports.last()), (first, first + 15));
    // The stranger goes; the block stays where it is.
    drop(stranger);
    assert_eq!(bench.ok(&place, SAY), said);
}

#[test]
fn field_prt_02_every_process_at_any_depth_has_its_places_ports_and_servers_answer_there() {
    let mut bench = Bench::new(29_860);
    bench.ports = (29_860, 29_860 + 63);
    let (a, b) = (bench.place("a"), bench.place("b"));
    let deep = "sh -c 'sh -c \"setsid sh -c \\\"echo \\\\\\$STEAD_PORT\\\"\"'";
    let ports = [&a, &b].map(|place| {
        let said = bench.ok(place, &format!("echo $STEAD_PORT; {deep}"));
        let words: Vec<&str> = said.split_whitespace().collect();
        assert_eq!(words[0], words[1], "a grandchild in a session of its own sees it too");
        words[0].parse::<u16>().unwrap()
    });
    assert_ne!(ports[0], ports[1]);
    for place in [&a, &b] {
        bench.ok(place, &listen("$STEAD_PORT"));
    }
    for port in ports {
        std::net::TcpStream::connect(("127.0.0.1", port)).unwrap();
    }
    bench.release(&a);
    assert!(std::net::TcpStream::connect(("127.0.0.1", ports[0])).is_err());
    std::net::TcpStream::connect(("127.0.0.1", ports[1])).unwrap();
    bench.release(&b);
}

#[test]
fn field_prt_04_fifty_places_are_disjoint_and_a_block_is_given_again_only_when_silent() {
    let mut bench = Bench::new(30_100);
    // A few more than are needed: another test may try a port at the same moment.
    bench.ports = (30_100, 30_100 + 16 * 54 - 1);
    let host = bench.host();
    let mut ports = BTreeSet::new();
    for number in 0..50 {
        let place = bench.place(&format!("w{number}"));
        let adopted = host.adopt(&stead_place::top_of(&place).unwrap()).unwrap();
        ports.extend(adopted.hold.ports.ports());
    }
    assert_eq!(ports.len(), 50 * 16);

    let mut bench = Bench::new(30_968);
    bench.ports = (30_968, 30_968 + 15);
    let (one, other) = (bench.place("one"), bench.place("other"));
    let given = |place: &PathBuf, command: &str| {
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(20);
        loop {
            let done = bench.exec(&Exec::new(place, command));
            if done.code == 0 {
                return done.out;
            }
            // Another test may be trying one of these ports just now.
            assert!(std::time::Instant::now() < deadline, "{}", done.errors);
        }
    };
    let first = given(&one, &format!("echo $STEAD_PORT; {}", listen("$STEAD_PORT")));
    let port: u16 = first.trim().parse().unwrap();
    assert_eq!(bench.exec(&Exec::new(&other, SAY)).code, 74, "it is held");
    bench.release(&one);
    assert!(std::net::TcpStream::connect(("127.0.0.1", port)).is_err(), "nothing listens now");
    assert!(given(&other, SAY).starts_with(&format!("{port} ")));
}

#[test]
fn places_7_a_stranger_on_a_port_is_named_and_moves_nothing() {
    let bench = Bench::new(23_144);
    let place = bench.place("a");
    let first = bench.ok(&place, SAY);
    let port: u16 = first.split(' ').next().unwrap().parse().unwrap();
    let stranger = TcpListener::bind(("0.0.0.0", port + 3)).unwrap();
    let done = bench.exec(&Exec::new(&place, SAY));
    assert_eq!(done.out, first);
    let me = format!("(process {}) on port {}", std::process::id(), port + 3);
    assert!(done.errors.contains(&me), "{}", done.errors);
    drop(stranger);
    // The place's own server is no stranger.
    bench.ok(&place, &listen("$STEAD_PORT"));
    let done = bench.exec(&Exec::new(&place, SAY));
    assert_eq!((done.errors.as_str(), done.out), ("", first));
}

/// Leaves a server on a port behind, ready.
fn listen(port: &str) -> String {
    format!(
        "python3 -c 'import socket,sys,time; s=socket.socket(); \
         s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1); \
         s.bind((\"127.0.0.1\", int(sys.argv[1]))); s.listen(); \
         open(sys.argv[2], \"w\"); time.sleep(600)' {port} $TMPDIR/up & \
         while [ ! -e $TMPDIR/up ]; do sleep 0.01; done"
    )
}

#[test]
fn places_8_equal_names_in_two_repositories_get_different_blocks() {
    let bench = Bench::new(23_464);
    let (one, two) = (bench.place("one/feature"), bench.place("two/feature"));
    assert_ne!(bench.ok(&one, SAY), bench.ok(&two, SAY));
}

#[test]
fn places_9_a_worktree_has_one_place_by_whatever_path() {
    let bench = Bench::new(23_784);
    let place = bench.place("a");
    fs::create_dir(place.join("sub")).unwrap();
    let link = bench.root().join("link");
    symlink(&place, &link).unwrap();
    let said = bench.ok(&place, SAY);
    assert_eq!(bench.ok(&link, SAY), said);
    assert_eq!(bench.ok(&link.join("sub"), SAY), said);
    assert_eq!(bench.host().list().unwrap().len(), 1);
}

#[test]
fn places_10_a_new_worktree_at_a_removed_path_is_another_place() {
    let bench = Bench::new(24_104);
    let place = bench.place("a");
    let old = bench.ok(&place, SAY);
    fs::remove_dir_all(&place).unwrap();
    let place = bench.place("a");
    let done = bench.exec(&Exec::new(&place, SAY));
    assert_ne!(done.out, old);
    assert!(done.errors.contains("stale p1"), "{}", done.errors);
    let listed = bench.host().list().unwrap();
    let states: Vec<Presence> = listed.iter().map(|one| one.presence).collect();
    assert_eq!(states, [Presence::Replaced, Presence::There]);
    // A release of the path means the folder that is there.
    assert_eq!(bench.release(&place)[0].hold.id, "p2");
    assert_eq!(bench.release(&place)[0].hold.id, "p1");
    assert!(bench.release(&place).is_empty());
}

#[test]
fn places_11_facts_that_cannot_be_written_refuse_before_anything_starts() {
    let bench = Bench::new(24_424);
    let place = bench.place("a");
    let flag = bench.flag("run", "began");
    // A file where the folder should be: rights alone would not stop root.
    fs::write(bench.host_folder(), "").unwrap();
    let done = bench.exec(&Exec::new(&place, &format!("touch {}", flag.display())));
    assert_eq!(done.code, 77, "{}", done.errors);
    assert!(!flag.exists());
    fs::remove_file(bench.host_folder()).unwrap();
    fs::create_dir(bench.host_folder()).unwrap();
    fs::set_permissions(bench.host_folder(), fs::Permissions::from_mode(0o777)).unwrap();
    let done = bench.exec(&Exec::new(&place, "true"));
    assert_eq!(done.code, 77, "{}", done.errors);
    fs::set_permissions(bench.host_folder(), fs::Permissions::from_mode(0o700)).unwrap();
    fs::write(bench.host_folder().join("places.json"), r#"{"version":2}"#).unwrap();
    let done = bench.exec(&Exec::new(&place, &format!("touch {}", flag.display())));
    assert_eq!(done.code, 77);
    assert!(done.errors.contains("version 2"), "{}", done.errors);
    fs::write(bench.host_folder().join("places.json"), "{").unwrap();
    assert_eq!(bench.exec(&Exec::new(&place, "true")).code, 77);
    assert!(!flag.exists());
    fs::remove_file(bench.host_folder().join("places.json")).unwrap();
}

/// Against the plainest model: whatever is adopted and released in whatever order, a place keeps
/// its ports while it holds them, no two share one, and a name is never given again.
#[test]
fn a_registry_of_random_acts_is_as_its_model() {
    let mut bench = Bench::new(25_000);
    // Room for three of five.
    bench.ports = (25_000, 25_047);
    let host = bench.host();
    let places: Vec<_> = (0..5)
        .map(|number| stead_place::top_of(&bench.place(&format!("w{number}"))).unwrap())
        .collect();
    let mut model: Vec<Option<(String, u16)>> = vec![None; places.len()];
    let mut names = BTreeSet::new();
    let mut random: u32 = 1;
    for _ in 0..150 {
        random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let at = (random >> 16) as usize % places.len();
        if random >> 28 < 6 {
            let which = stead_place::Which::At(places[at].as_path().to_owned());
            assert_eq!(host.release(&which).unwrap().len(), usize::from(model[at].is_some()));
            model[at] = None;
        } else {
            let held = model.iter().flatten().count();
            match host.adopt(&places[at]) {
                Ok(adopted) => {
                    let found = (adopted.hold.id.clone(), adopted.hold.ports.first());
                    match &model[at] {
                        Some(before) => assert_eq!(*before, found),
                        None => assert!(names.insert(adopted.hold.id), "given again"),
                    }
                    model[at] = Some(found);
                }
                Err(error) => {
                    assert!(matches!(error, stead_place::ExecError::NoPorts(_)), "{error}");
                    assert!(model[at].is_none() && held == 3);
                }
            }
        }
        let ports: Vec<u16> = model.iter().flatten().map(|(_, port)| *port).collect();
        assert_eq!(ports.len(), ports.iter().collect::<BTreeSet<_>>().len());
        assert_eq!(host.list().unwrap().len(), ports.len());
    }
}

#[test]
fn places_70_any_path_can_be_a_place_and_scratch_stays_short() {
    use std::ffi::OsString;
    use std::os::unix::ffi::OsStringExt as _;
    let mut bench = Bench::new(24_744);
    let deep = "d".repeat(200);
    for name in ["with blank", "with\nnewline", deep.as_str()] {
        let place = bench.place(name);
        let scratch = bench.ok(&place, "pwd >&2; echo $STEAD_SCRATCH");
        assert!(scratch.trim().len() <= 64);
        assert_eq!(bench.release(&place).len(), 1, "{name:?}");
    }
    let raw = bench.root().join(OsString::from_vec(b"raw \xff\xfe".to_vec()));
    fs::create_dir(&raw).unwrap();
    let adopted = bench.host().adopt(&stead_place::top_of(&raw).unwrap()).unwrap();
    assert_eq!(bench.host().list().unwrap()[0].place, raw);
    assert!(!bench.host().adopt(&adopted.hold.directory).unwrap().is_new);
    assert!(bench.release(&raw)[0].left.is_empty());
    // A long state folder.
    let host = stead_place::Host::new(
        &bench.root().join(&deep),
        &bench.root().join("s"),
        0,
        stead_place::PortRange::new(24_744, 24_760).unwrap(),
    );
    let adopted = host.adopt(&stead_place::top_of(&raw).unwrap()).unwrap();
    assert!(adopted.hold.scratch.as_path().starts_with(bench.root().join("s")));
    assert!(adopted.hold.scratch.as_path().as_os_str().len() <= 64);
    host.release(&stead_place::Which::Named(adopted.hold.id)).unwrap();
    bench.client.clear();
}

//! temporary
use crate::kit::{World, write, written};
use std::time::Instant;
#[test]
#[ignore = "by hand"]
fn speed() {
    for (count, is_git) in [(20, true), (20, false), (3000, false), (3000, true)] {
        for base in ["/tmp", "/dev/shm"] {
            for _ in 0..3 {
                let folder = tempfile::tempdir_in(base).unwrap();
                let mut world = World::new(folder, is_git, |root| {
                    for n in 0..count {
                        write(root, format!("d{}/f{n}", n % 50), format!("base {n}\n").repeat(100));
                    }
                });
                for n in 0..count {
                    write(
                        &world.copy,
                        format!("d{}/f{n}", n % 50),
                        format!("task {n}\n").repeat(100),
                    );
                }
                let snapshot = world.freeze();
                let review = world.review(&snapshot);
                rustix::fs::sync();
                let a = Instant::now();
                let apply = world.check(&snapshot, &review).unwrap();
                let b = Instant::now();
                let w = written(apply.write());
                let c = Instant::now();
                w.clear().unwrap();
                let d = Instant::now();
                println!(
                    "{count} git={is_git} {base}: check {:?} write {:?} clear {:?}",
                    b - a,
                    c - b,
                    d - c
                );
                let f = world.folder.path().join("fs");
                std::fs::create_dir(&f).unwrap();
                let a = Instant::now();
                for n in 0..count.min(300) {
                    use std::io::Write;
                    let mut x = std::fs::File::create(f.join(format!("{n}"))).unwrap();
                    x.write_all(&[0; 900]).unwrap();
                    x.sync_all().unwrap();
                }
                println!("   fsync each: {:?} a file", a.elapsed() / count.min(300) as u32);
            }
        }
    }
}

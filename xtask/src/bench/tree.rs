//! A repository of the shape that people have: many small sources, very many small dependencies,
//! few large products. The same bytes on every run.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::report::Result;

/// How many files of each sort.
pub(super) struct Shape {
    tracked: u32,
    modules: u32,
    products: u32,
}

impl Shape {
    /// 50,000 files, about 0.9 GB.
    pub(super) fn whole() -> Self {
        Self { tracked: 15_000, modules: 30_000, products: 5_000 }
    }

    /// For a trial.
    pub(super) fn small() -> Self {
        Self { tracked: 300, modules: 600, products: 100 }
    }
}

/// Numbers that look like chance and are not (xorshift).
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// One below `most`, which is not 0.
    fn below(&mut self, most: u32) -> u32 {
        u32::try_from(self.next() % u64::from(most.max(1))).unwrap_or(0)
    }

    /// A size around `usual`: most are smaller, few are many times as large.
    fn size(&mut self, usual: u32) -> usize {
        let times = 1_u32 << self.below(4).min(self.below(4));
        let size = usual / 2 + self.below(usual) * times;
        usize::try_from(size).unwrap_or(usize::MAX)
    }

    /// Text of words, which compresses as sources do.
    fn text(&mut self, size: usize) -> Vec<u8> {
        const WORDS: [&str; 8] =
            ["let ", "value", " = ", "self", ".field", "(name)", ";\n", "    // why\n"];
        let mut text = format!("// {:016x}\n", self.next()).into_bytes();
        while text.len() < size {
            let word = usize::try_from(self.next() % 8).unwrap_or(0);
            text.extend_from_slice(WORDS.get(word).unwrap_or(&"\n").as_bytes());
        }
        text.truncate(size.max(20));
        text
    }
}

/// Makes the repository at `root`; how many files that are, without Git's.
pub(super) fn make(root: &Path, shape: &Shape) -> Result<usize> {
    let mut numbers = Numbers(0x9e37_79b9_7f4a_7c15);
    let mut count = 0;
    for number in 0..shape.tracked {
        // About 1,100 folders, some of them deep.
        let group = number / 14;
        let below = format!("src/m{}/p{}/q{}", group % 37, group % 11, group);
        let name = format!("f{number}.rs");
        let size = numbers.size(3500);
        write(&root.join(below), &name, &numbers.text(size))?;
        count += 1;
    }
    write(root, ".gitignore", b"node_modules/\ntarget/\n")?;
    for arguments in [
        &["init", "--quiet", "--initial-branch=main"][..],
        // No commit starts another in the background.
        &["config", "gc.auto", "0"],
        &["add", "--all"],
        &["commit", "--quiet", "--message=first"],
        &["gc", "--quiet"],
    ] {
        git(root, arguments)?;
    }
    for number in 0..shape.modules {
        // Every package has a few folders.
        let (package, part) = (number / 25, number % 25 / 4);
        let below = format!("node_modules/p{package}/lib{part}");
        let name = format!("x{number}.js");
        let size = numbers.size(4500);
        write(&root.join(below), &name, &numbers.text(size))?;
        count += 1;
    }
    for number in 0..shape.products {
        let (below, size) = match number % 16 {
            0 => ("target/debug/deps".to_owned(), numbers.size(1_000_000)),
            1..=8 => (format!("target/debug/.fingerprint/c{}", number / 20), numbers.size(400)),
            _ => (format!("target/debug/incremental/i{}", number / 200), numbers.size(20_000)),
        };
        write(&root.join(below), &format!("t{number}"), &numbers.text(size))?;
        count += 1;
    }
    Ok(count + 1)
}

/// Makes the folders of `source` and, empty, its files at `to`.
pub(super) fn empty(source: &Path, to: &Path) -> Result<()> {
    fs::create_dir(to)?;
    for entry in fs::read_dir(source)? {
        let entry = entry?;
        let to = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            empty(&entry.path(), &to)?;
        } else {
            fs::File::create_new(&to)?;
        }
    }
    Ok(())
}

fn write(folder: &Path, name: &str, bytes: &[u8]) -> Result<()> {
    fs::create_dir_all(folder)?;
    Ok(fs::write(folder.join(name), bytes)?)
}

fn git(root: &Path, arguments: &[&str]) -> Result<()> {
    let mut command = Command::new("git");
    command.args(["-c", "user.name=bench", "-c", "user.email=bench@example.org"]);
    let status = command.args(arguments).current_dir(root).status()?;
    if status.success() { Ok(()) } else { Err(format!("git ended with {status}").into()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_trees_have_the_same_bytes() {
        let folder = tempfile::tempdir().unwrap();
        let shape = Shape { tracked: 20, modules: 30, products: 20 };
        let (one, two) = (folder.path().join("one"), folder.path().join("two"));
        for root in [&one, &two] {
            fs::create_dir(root).unwrap();
            assert_eq!(make(root, &shape).unwrap(), 71);
        }
        for path in ["src/m0/p0/q0/f3.rs", "node_modules/p1/lib0/x26.js", "target/debug/deps/t16"] {
            assert_eq!(fs::read(one.join(path)).unwrap(), fs::read(two.join(path)).unwrap());
        }
    }
}

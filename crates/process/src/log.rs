//! The bounded log of one run: its head in the file as it comes, its tail in a ring of memory until
//! the end.

use std::collections::VecDeque;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rustix::fs::OFlags;

/// The most of the tail that is kept, and so the most memory one log takes.
const LONGEST_TAIL: u64 = 256 * 1024;

/// Room for [`marker`] with the largest number.
const MARKER_ROOM: u64 = 64;

/// Below this a split into head and tail would keep next to nothing of both.
const SMALLEST_SPLIT: u64 = 1024;

/// The line that stands in a log where bytes are missing.
pub(crate) fn marker(omitted: u64) -> String {
    format!("\n[stead: {omitted} bytes omitted]\n")
}

pub(crate) struct Log {
    file: File,
    head_room: u64,
    tail_room: usize,
    tail: VecDeque<u8>,
    total: u64,
    stored: u64,
}

impl Log {
    pub(crate) fn create(path: &Path, limit: u64) -> io::Result<Self> {
        let file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            // Without NONBLOCK a pipe at the path would hold the start up for ever.
            .custom_flags((OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed())
            .open(path)?;
        let (head_room, tail) = if limit < SMALLEST_SPLIT {
            (limit, 0)
        } else {
            let tail = (limit / 2).min(LONGEST_TAIL);
            (limit.saturating_sub(tail).saturating_sub(MARKER_ROOM), tail)
        };
        let tail_room = usize::try_from(tail).unwrap_or(0);
        Ok(Self { file, head_room, tail_room, tail: VecDeque::new(), total: 0, stored: 0 })
    }

    /// Takes what came. A full disk does not end the run: what cannot be written counts as omitted.
    pub(crate) fn take(&mut self, bytes: &[u8]) {
        self.total = self.total.saturating_add(count(bytes.len()));
        let fits =
            usize::try_from(self.head_room).map_or(bytes.len(), |room| room.min(bytes.len()));
        let (head, rest) = bytes.split_at(fits);
        if !head.is_empty() {
            self.head_room = self.head_room.saturating_sub(count(head.len()));
            if self.write(head).is_err() {
                self.head_room = 0;
            }
        }
        let skipped = rest.len().saturating_sub(self.tail_room);
        let kept = rest.get(skipped..).unwrap_or_default();
        let excess = (self.tail.len() + kept.len()).saturating_sub(self.tail_room);
        self.tail.drain(..excess.min(self.tail.len()));
        self.tail.extend(kept);
    }

    /// Appends the tail. Gives all bytes that came, and how many of them are not in the file.
    pub(crate) fn finish(mut self) -> (u64, u64) {
        let tail = std::mem::take(&mut self.tail);
        let missing = self.total.saturating_sub(self.stored).saturating_sub(count(tail.len()));
        let marked = missing == 0 || self.tail_room == 0 || {
            let text = marker(missing);
            self.file.write_all(text.as_bytes()).is_ok()
        };
        if marked {
            let (front, back) = tail.as_slices();
            // What the disk has no room for is counted by `write`, or rather not counted.
            let _ = self.write(front).and_then(|()| self.write(back));
        }
        (self.total, self.total.saturating_sub(self.stored))
    }

    fn write(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            match self.file.write(bytes) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(written) => {
                    self.stored = self.stored.saturating_add(count(written));
                    bytes = bytes.get(written..).unwrap_or_default();
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

fn count(length: usize) -> u64 {
    u64::try_from(length).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..Default::default() })]
        #[test]
        fn head_and_tail_survive_within_the_limit(
            pieces in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..900), 0..12),
            limit in 0u64..6000,
        ) {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("log");
            let mut log = Log::create(&path, limit).unwrap();
            for piece in &pieces {
                log.take(piece);
            }
            let (total, omitted) = log.finish();
            let all = pieces.concat();
            let kept = std::fs::read(&path).unwrap();
            prop_assert_eq!(total, all.len() as u64);
            prop_assert!(kept.len() as u64 <= limit);
            if omitted == 0 {
                prop_assert_eq!(kept, all);
            } else if limit < SMALLEST_SPLIT {
                prop_assert_eq!(&kept[..], &all[..kept.len()]);
                prop_assert_eq!(omitted, (all.len() - kept.len()) as u64);
            } else {
                let marker = marker(omitted);
                let head = usize::try_from(limit - limit / 2 - MARKER_ROOM).unwrap();
                prop_assert_eq!(&kept[..head], &all[..head]);
                prop_assert_eq!(&kept[head..head + marker.len()], marker.as_bytes());
                let tail = &kept[head + marker.len()..];
                prop_assert!(all.ends_with(tail));
                prop_assert_eq!(omitted, (all.len() - head - tail.len()) as u64);
            }
        }
    }
}

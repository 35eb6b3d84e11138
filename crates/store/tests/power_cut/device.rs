//! A file that remembers every write and every flush, served to the kernel over FUSE.
//!
//! It is the only file of its file system, and the root of it. Only what a loop device asks for is
//! answered. The kernel's format is that of `linux/fuse.h`.

use std::ffi::CString;
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::AsRawFd as _;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::thread;

use rustix::mount::{MountFlags, mount};

/// What reached the disk.
#[derive(Debug, Clone)]
pub(crate) enum Act {
    Write {
        offset: usize,
        bytes: Vec<u8>,
    },
    /// Everything before it is safe now.
    Flush,
}

/// The disk's bytes and how they came.
#[derive(Default)]
struct Disk {
    bytes: Vec<u8>,
    acts: Vec<Act>,
}

/// The served file. Nothing of this process may wait for the file system on it: if the process is
/// killed, its end of FUSE must close.
pub(crate) struct Device {
    disk: Arc<Mutex<Disk>>,
}

const LARGEST_WRITE: u32 = 1024 * 1024;

impl Device {
    /// Serves an empty disk of `length` bytes at the existing file `place`.
    pub(crate) fn serve(place: &Path, length: usize) -> io::Result<Self> {
        let kernel = File::options().read(true).write(true).open("/dev/fuse")?;
        let options = format!("fd={},rootmode=100000,user_id=0,group_id=0", kernel.as_raw_fd());
        let options = CString::new(options)?;
        mount("stead-test", place, "fuse", MountFlags::empty(), options.as_c_str())?;
        let disk = Arc::new(Mutex::new(Disk { bytes: vec![0; length], acts: Vec::new() }));
        let served = Arc::clone(&disk);
        thread::spawn(move || while answer(&kernel, &served).is_ok() {});
        Ok(Self { disk })
    }

    /// How many acts there were so far.
    pub(crate) fn acts(&self) -> usize {
        self.disk.lock().unwrap().acts.len()
    }

    /// All acts, in order.
    pub(crate) fn log(&self) -> Vec<Act> {
        self.disk.lock().unwrap().acts.clone()
    }
}

/// The disk after these acts and a cut of the power: of the writes since the last flush, those for
/// which `lost` says so are missing.
pub(crate) fn after(acts: &[Act], length: usize, mut lost: impl FnMut(usize) -> bool) -> Vec<u8> {
    let safe = acts.iter().rposition(|act| matches!(act, Act::Flush)).unwrap_or(0);
    let mut disk = vec![0; length];
    for (number, act) in acts.iter().enumerate() {
        if let Act::Write { offset, bytes } = act
            && (number < safe || !lost(number))
        {
            disk[*offset..offset + bytes.len()].copy_from_slice(bytes);
        }
    }
    disk
}

/// Little fields of the kernel's messages.
fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_ne_bytes(bytes[at..at + 4].try_into().unwrap())
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_ne_bytes(bytes[at..at + 8].try_into().unwrap())
}

/// Answers one request.
fn answer(mut kernel: &File, disk: &Mutex<Disk>) -> io::Result<()> {
    let mut request = vec![0; usize::try_from(LARGEST_WRITE).unwrap() + 65536];
    let length = match kernel.read(&mut request) {
        Ok(length) => length,
        // The request was withdrawn before it was read.
        Err(error) if error.raw_os_error() == Some(2) => return Ok(()),
        Err(error) if error.kind() == io::ErrorKind::Interrupted => return Ok(()),
        Err(error) => return Err(error),
    };
    let (head, body) = request[..length].split_at(40);
    let mut disk = disk.lock().unwrap();
    let reply = match u32_at(head, 4) {
        // FORGET, INTERRUPT, BATCH_FORGET want no answer.
        2 | 36 | 42 => return Ok(()),
        // GETATTR, SETATTR
        3 | 4 => Ok(attributes(disk.bytes.len())),
        // OPEN: nothing is cached between the loop device and here.
        14 => Ok([&0_u64.to_ne_bytes()[..], &1_u32.to_ne_bytes(), &[0; 4]].concat()),
        // READ
        15 => {
            let from = usize::try_from(u64_at(body, 8)).unwrap().min(disk.bytes.len());
            let to = (from + usize::try_from(u32_at(body, 16)).unwrap()).min(disk.bytes.len());
            Ok(disk.bytes[from..to].to_vec())
        }
        // WRITE
        16 => {
            let offset = usize::try_from(u64_at(body, 8)).unwrap();
            let bytes = body[40..40 + usize::try_from(u32_at(body, 16)).unwrap()].to_vec();
            disk.bytes[offset..offset + bytes.len()].copy_from_slice(&bytes);
            disk.acts.push(Act::Write { offset, bytes });
            Ok([body[16..20].to_vec(), vec![0; 4]].concat())
        }
        // RELEASE, FLUSH (a close, not a disk's flush)
        18 | 25 => Ok(Vec::new()),
        // FSYNC
        20 => {
            disk.acts.push(Act::Flush);
            Ok(Vec::new())
        }
        // INIT
        26 => Ok(greeting(body)),
        // FALLOCATE, by which the loop device discards: not supported. Else: not implemented.
        43 => Err(95_i32),
        _ => Err(38_i32),
    };
    drop(disk);
    let (error, data) = reply.map_or_else(|error| (-error, Vec::new()), |data| (0, data));
    let whole = u32::try_from(16 + data.len()).unwrap();
    let message = [&whole.to_ne_bytes()[..], &error.to_ne_bytes(), &head[8..16], &data].concat();
    kernel.write_all(&message)
}

/// `fuse_init_out`: big writes and as many pages as they need.
fn greeting(asked: &[u8]) -> Vec<u8> {
    let flags: u32 = (1 << 5) | (1 << 22);
    let mut reply = Vec::new();
    for word in [7_u32, u32_at(asked, 4).min(31), 0, flags, 0, LARGEST_WRITE, 1, 256] {
        reply.extend(word.to_ne_bytes());
    }
    reply.resize(64, 0);
    reply
}

/// `fuse_attr_out` of a regular file, valid for an hour.
fn attributes(length: usize) -> Vec<u8> {
    let mut reply = Vec::new();
    for word in [3600, 0, 1, u64::try_from(length).unwrap(), 0, 0, 0, 0] {
        reply.extend(word.to_ne_bytes());
    }
    for word in [0_u32, 0, 0, 0o100_600, 1, 0, 0, 0, 4096, 0] {
        reply.extend(word.to_ne_bytes());
    }
    reply
}

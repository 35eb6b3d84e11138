//! A crew of threads that works off items which may bring more items.
//!
//! It begins with as many threads as the machine has cores. Each time an item had to wait for the
//! disk, one more joins, up to a limit: a warm tree gains nothing from more threads than cores, a
//! cold one is faster the more reads are under way.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, Scope};
use std::time::{Duration, Instant};

/// How many threads work on a tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Threads {
    /// To begin with.
    pub first: usize,
    /// When reads have to wait for the disk.
    pub most: usize,
}

impl Default for Threads {
    /// One for each core, and 32 when reads wait.
    fn default() -> Self {
        let cores = std::thread::available_parallelism().map_or(2, std::num::NonZero::get);
        Self { first: cores.min(16), most: 32 }
    }
}

/// An item that takes less has not waited for a disk; asking the kernel costs a few microseconds.
const SLOW: Duration = Duration::from_micros(400);

/// How the work of a crew ended.
pub(crate) enum Ended<L, E> {
    /// Every item was done; what each thread gathered.
    Done(Vec<L>),
    /// Somebody said stop.
    Cancelled,
    /// Items failed. At least one error, in no order.
    Failed(Vec<E>),
    /// No thread could be started.
    NoThread(std::io::Error),
}

/// The door to the queue, for work that finds more work.
pub(crate) struct Queue<T> {
    items: Mutex<Vec<T>>,
    changed: Condvar,
    /// Threads that wait for `changed`, which is only told when there are some: telling is a call
    /// of the system, and there are as many pushes as folders.
    waiting: AtomicUsize,
    /// Items queued or under way.
    open: AtomicUsize,
    stop: AtomicBool,
}

impl<T> Queue<T> {
    fn locked(&self) -> MutexGuard<'_, Vec<T>> {
        self.items.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds items; the last one is taken first.
    pub(crate) fn push(&self, items: impl IntoIterator<Item = T>) {
        let mut queue = self.locked();
        let before = queue.len();
        queue.extend(items);
        let added = queue.len() - before;
        self.open.fetch_add(added, Ordering::Relaxed);
        let waiting = self.waiting.load(Ordering::Relaxed);
        drop(queue);
        match added.min(waiting) {
            0 => {}
            1 => self.changed.notify_one(),
            _ => self.changed.notify_all(),
        }
    }

    fn take(&self) -> Option<T> {
        let mut queue = self.locked();
        loop {
            if self.stop.load(Ordering::Relaxed) {
                return None;
            }
            if let Some(item) = queue.pop() {
                return Some(item);
            }
            if self.open.load(Ordering::Relaxed) == 0 {
                return None;
            }
            self.waiting.fetch_add(1, Ordering::Relaxed);
            queue = self.changed.wait(queue).unwrap_or_else(PoisonError::into_inner);
            self.waiting.fetch_sub(1, Ordering::Relaxed);
        }
    }

    fn done(&self) {
        // Under the lock, or a thread between its look at `open` and its wait would sleep for ever.
        let queue = self.locked();
        if self.open.fetch_sub(1, Ordering::Relaxed) == 1 {
            drop(queue);
            self.changed.notify_all();
        }
    }

    fn halt(&self) {
        let queue = self.locked();
        self.stop.store(true, Ordering::Relaxed);
        drop(queue);
        self.changed.notify_all();
    }
}

/// Lets the others go home when a thread panics; the scope then passes the panic on.
struct Alarm<'a, T>(&'a Queue<T>);

impl<T> Drop for Alarm<'_, T> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.halt();
        }
    }
}

/// Does one item, perhaps queues others, and notes in what its thread keeps.
pub(crate) type Work<'a, T, L, E> = dyn Fn(T, &Queue<T>, &mut L) -> Result<(), E> + Sync + 'a;

struct Shared<'a, T, L, E> {
    queue: Queue<T>,
    begin: &'a (dyn Fn() -> L + Sync),
    work: &'a Work<'a, T, L, E>,
    cancelled: &'a (dyn Fn() -> bool + Sync),
    gathered: Mutex<(Vec<L>, Vec<E>)>,
    threads: AtomicUsize,
    most: usize,
    was_cancelled: AtomicBool,
}

/// Works off `items`. `begin` runs once on each thread and makes what it keeps and gathers.
pub(crate) fn run<T: Send, L: Send, E: Send>(
    threads: Threads,
    items: Vec<T>,
    cancelled: &(dyn Fn() -> bool + Sync),
    begin: &(dyn Fn() -> L + Sync),
    work: &Work<'_, T, L, E>,
) -> Ended<L, E> {
    let shared = Shared {
        queue: Queue {
            open: AtomicUsize::new(items.len()),
            items: Mutex::new(items),
            changed: Condvar::new(),
            stop: AtomicBool::new(false),
            waiting: AtomicUsize::new(0),
        },
        begin,
        work,
        cancelled,
        gathered: Mutex::new((Vec::new(), Vec::new())),
        threads: AtomicUsize::new(0),
        most: threads.most.max(1),
        was_cancelled: AtomicBool::new(false),
    };
    let started = std::thread::scope(|scope| {
        let mut started = Ok(());
        for number in 0..threads.first.clamp(1, shared.most) {
            if let Err(error) = join(scope, &shared) {
                // Fewer threads do the same work; none cannot.
                if number == 0 {
                    started = Err(error);
                }
                break;
            }
        }
        started
    });
    if let Err(error) = started {
        return Ended::NoThread(error);
    }
    let (locals, errors) = shared.gathered.into_inner().unwrap_or_else(PoisonError::into_inner);
    if !errors.is_empty() {
        Ended::Failed(errors)
    } else if shared.was_cancelled.into_inner() {
        Ended::Cancelled
    } else {
        Ended::Done(locals)
    }
}

fn join<'scope, T: Send, L: Send, E: Send>(
    scope: &'scope Scope<'scope, '_>,
    shared: &'scope Shared<'scope, T, L, E>,
) -> std::io::Result<()> {
    if shared.threads.fetch_add(1, Ordering::Relaxed) >= shared.most {
        shared.threads.fetch_sub(1, Ordering::Relaxed);
        return Ok(());
    }
    let name = "stead-tree".to_owned();
    let started = Builder::new().name(name).spawn_scoped(scope, move || serve(scope, shared));
    if started.is_err() {
        shared.threads.fetch_sub(1, Ordering::Relaxed);
    }
    started.map(drop)
}

fn serve<'scope, T: Send, L: Send, E: Send>(
    scope: &'scope Scope<'scope, '_>,
    shared: &'scope Shared<'scope, T, L, E>,
) {
    let alarm = Alarm(&shared.queue);
    let mut local = (shared.begin)();
    let mut disk = DiskReads::begin();
    let mut failure = None;
    while let Some(item) = shared.queue.take() {
        if (shared.cancelled)() {
            shared.was_cancelled.store(true, Ordering::Relaxed);
            shared.queue.halt();
            break;
        }
        let began = Instant::now();
        if let Err(error) = (shared.work)(item, &shared.queue, &mut local) {
            failure = Some(error);
            shared.queue.halt();
            break;
        }
        shared.queue.done();
        if began.elapsed() >= SLOW
            && disk.grew()
            && shared.threads.load(Ordering::Relaxed) < shared.most
        {
            // Without the thread the work takes longer, no more.
            let _ = join(scope, shared);
        }
    }
    let mut gathered = shared.gathered.lock().unwrap_or_else(PoisonError::into_inner);
    gathered.0.push(local);
    gathered.1.extend(failure);
    drop(alarm);
}

/// What this thread has read from disks, as the kernel counts it.
struct DiskReads {
    counts: Option<File>,
    last: u64,
}

impl DiskReads {
    fn begin() -> Self {
        let mut reads = Self { counts: File::open("/proc/thread-self/io").ok(), last: 0 };
        reads.grew();
        reads
    }

    fn grew(&mut self) -> bool {
        let Some(now) = self.read() else { return false };
        let grew = now > self.last;
        self.last = now;
        grew
    }

    fn read(&self) -> Option<u64> {
        let mut buffer = [0; 256];
        let length = self.counts.as_ref()?.read_at(&mut buffer, 0).ok()?;
        let text = std::str::from_utf8(buffer.get(..length)?).ok()?;
        text.lines().find_map(|line| line.strip_prefix("read_bytes: "))?.parse().ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_that_bring_items_are_all_done_once() {
        let threads = Threads { first: 4, most: 4 };
        let work = |item: u32, queue: &Queue<u32>, sum: &mut u32| {
            *sum += item;
            queue.push((0..item).filter(|n| item < 6 && *n > 0));
            Ok::<_, ()>(())
        };
        let Ended::Done(sums) = run(threads, vec![5, 5, 100], &|| false, &|| 0, &work) else {
            panic!("not done")
        };
        // A 5 brings 1 to 4, a 4 brings 1 to 3, and so on.
        let below = |n: u32| -> u32 { (1..n).map(|k| k * (1 << (n - 1 - k))).sum::<u32>() + n };
        assert_eq!(sums.iter().sum::<u32>(), 2 * below(5) + 100);
    }

    #[test]
    fn failure_and_cancel_end_everything() {
        let threads = Threads { first: 3, most: 3 };
        let endless = |item: u32, queue: &Queue<u32>, (): &mut ()| {
            queue.push([item + 1]);
            if item > 1000 { Err(item) } else { Ok(()) }
        };
        let ended = run(threads, vec![1, 2, 3], &|| false, &|| (), &endless);
        assert!(matches!(ended, Ended::Failed(errors) if !errors.is_empty()));
        let ended = run(threads, vec![1], &|| true, &|| (), &endless);
        assert!(matches!(ended, Ended::Cancelled));
    }

    #[test]
    fn a_panic_reaches_the_caller() {
        let work = |item: u32, queue: &Queue<u32>, (): &mut ()| {
            queue.push([1]);
            assert!(item != 7, "seven");
            Ok::<(), ()>(())
        };
        let ended = std::panic::catch_unwind(|| {
            let _ = run(Threads { first: 3, most: 3 }, vec![7, 1], &|| false, &|| (), &work);
        });
        assert!(ended.is_err());
    }
}

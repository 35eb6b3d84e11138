//! The one thread that writes, and its group commit.
//!
//! Whatever waits when the thread is free is committed in one transaction: there is no timer, the
//! flush of one group is the window in which the next one gathers. An append that is refused is
//! rolled back alone, to its savepoint; a commit that fails fails its whole group, because the
//! refusals and positions of the group rest on each other.

use std::path::PathBuf;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::{self, JoinHandle};

use rusqlite::{Connection, TransactionBehavior};
use stead_core::step::{self, Moment};

use crate::append::{Append, Appended, Encoded};
use crate::blob::Blobs;
use crate::error::StoreError;
use crate::sql::failed;
use crate::tip::Tips;

/// About how many bytes one transaction takes at most, so that no append waits for too many others.
const LARGEST_GROUP: usize = 4 * 1024 * 1024;

const COMMIT: &str = "commit to the log";

type Done = Box<dyn FnOnce(Result<Appended, StoreError>) + Send>;

/// What else the thread does with its connection, between two groups.
type Task = Box<dyn FnOnce(&mut Connection, &Blobs) + Send>;

enum Job {
    Append(Encoded, Done),
    Task(Task),
}

/// The handle of the writer thread. Dropping it lets the thread finish what waits, and waits for
/// that.
pub(crate) struct Writer {
    jobs: Option<Sender<Job>>,
    thread: Option<JoinHandle<()>>,
}

impl Writer {
    /// Starts the thread on a migrated connection.
    pub(crate) fn start(connection: Connection, blobs: Blobs) -> Result<Self, StoreError> {
        let (sender, receiver) = mpsc::channel();
        let thread = thread::Builder::new()
            .name("stead-store".to_owned())
            .spawn(move || run(connection, &blobs, &receiver))
            .map_err(|e| StoreError::system("start", PathBuf::from("the writer thread"), e))?;
        Ok(Self { jobs: Some(sender), thread: Some(thread) })
    }

    /// Hands an append to the thread, which calls `done` after the commit.
    pub(crate) fn submit(&self, append: &Append, done: Done) {
        match Encoded::new(append) {
            Err(error) => done(Err(error)),
            Ok(encoded) => {
                if let Some(Job::Append(_, done)) = self.send(Job::Append(encoded, done)) {
                    done(Err(StoreError::Closed));
                }
            }
        }
    }

    /// Has the thread do `task` between two groups and waits for its outcome.
    pub(crate) fn call<T: Send + 'static>(
        &self,
        task: impl FnOnce(&mut Connection, &Blobs) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let (answer, outcome) = mpsc::sync_channel(1);
        self.send(Job::Task(Box::new(move |connection, blobs| {
            // A caller that is gone needs no answer.
            let _ = answer.send(task(connection, blobs));
        })));
        outcome.recv().unwrap_or(Err(StoreError::Closed))
    }

    /// Gives the job back when the thread has ended.
    fn send(&self, job: Job) -> Option<Job> {
        match &self.jobs {
            Some(jobs) => jobs.send(job).err().map(|refused| refused.0),
            None => Some(job),
        }
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.jobs = None;
        if let Some(thread) = self.thread.take()
            // The last owner may have been a completion, which runs on that thread.
            && thread.thread().id() != thread::current().id()
        {
            let _ = thread.join();
        }
    }
}

fn run(mut connection: Connection, blobs: &Blobs, jobs: &Receiver<Job>) {
    let mut tips = Tips::default();
    while let Ok(job) = jobs.recv() {
        let mut next = Some(job);
        let mut group = Vec::new();
        let mut weight = 0;
        let mut task = None;
        while let Some(job) = next.take() {
            match job {
                Job::Append(append, done) => {
                    weight += append.weight();
                    group.push((append, done));
                }
                Job::Task(waiting) => {
                    task = Some(waiting);
                    break;
                }
            }
            if weight < LARGEST_GROUP {
                next = jobs.try_recv().ok();
            }
        }
        commit(&mut connection, blobs, &mut tips, group);
        if let Some(task) = task {
            task(&mut connection, blobs);
        }
    }
}

fn commit(
    connection: &mut Connection,
    blobs: &Blobs,
    tips: &mut Tips,
    group: Vec<(Encoded, Done)>,
) {
    if group.is_empty() {
        return;
    }
    step::pass("store.append", Moment::Before);
    // Long bodies must be there before the events that refer to them. One that cannot be written
    // costs only its own append.
    let mut ready = Vec::with_capacity(group.len());
    for (append, done) in group {
        let mut files = append.bodies.iter().filter(|body| !body.is_inline());
        match files.try_for_each(|body| blobs.put(body)) {
            Ok(()) => ready.push((append, done)),
            Err(error) => done(Err(error)),
        }
    }
    match store(connection, tips, &ready) {
        Ok(outcomes) => {
            step::pass("store.append", Moment::After);
            for ((_, done), outcome) in ready.into_iter().zip(outcomes) {
                done(outcome);
            }
        }
        Err(error) => {
            tips.forget();
            for (_, done) in ready {
                done(Err(error.clone()));
            }
        }
    }
}

/// Stores the appends in one transaction: each outcome, or the one error that all of them share.
fn store(
    connection: &mut Connection,
    tips: &mut Tips,
    group: &[(Encoded, Done)],
) -> Result<Vec<Result<Appended, StoreError>>, StoreError> {
    let act = failed(COMMIT);
    let mut transaction =
        connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(&act)?;
    if let [(alone, _)] = group {
        // It needs no savepoint: dropping the transaction rolls back what it leaves behind.
        let stored = alone.write(&transaction, tips)?;
        transaction.commit().map_err(&act)?;
        return Ok(vec![Ok(stored)]);
    }
    let mut outcomes = Vec::with_capacity(group.len());
    for (append, _) in group {
        let savepoint = transaction.savepoint().map_err(&act)?;
        let outcome = append.write(&savepoint, tips);
        match &outcome {
            Ok(_) => savepoint.commit().map_err(&act)?,
            // Dropping the savepoint rolls back to it.
            Err(error) if error.is_refusal() => drop(savepoint),
            Err(error) => return Err(error.clone()),
        }
        outcomes.push(outcome);
    }
    transaction.commit().map_err(&act)?;
    Ok(outcomes)
}

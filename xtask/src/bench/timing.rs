//! What the engine's log says about how long things took.

use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use crate::report::Result;

/// The filter of the engine's log that shows them, for `STEAD_LOG`.
pub(super) const FILTER: &str = "warn,stead::timing=debug";

/// How long a line may take to be there.
const PATIENCE: Duration = Duration::from_secs(20);

/// Times in microseconds, in the order of the log.
#[derive(Debug, Default, Clone, PartialEq)]
pub(super) struct Timings {
    /// From when a call was durable to when its result arrived.
    pub(super) calls: Vec<f64>,
    /// From the request for an agent to the answer.
    pub(super) spawns: Vec<f64>,
    /// From when an append was handed over to when it was durable.
    pub(super) appends: Vec<f64>,
}

/// Reads what the log says; lines of other kinds are passed over.
pub(super) fn parse(text: &str) -> Timings {
    let mut timings = Timings::default();
    for line in text.lines().filter(|line| line.contains("stead::timing")) {
        let micros = field(line, "micros").and_then(|micros| micros.parse::<f64>().ok());
        let Some(micros) = micros else { continue };
        match field(line, "what").as_deref() {
            Some("call") => timings.calls.push(micros),
            Some("spawn") => timings.spawns.push(micros),
            Some("append") => timings.appends.push(micros),
            _ => {}
        }
    }
    timings
}

/// The value of `name=value` in a line, without its quotes.
fn field(line: &str, name: &str) -> Option<String> {
    let values = line.split_whitespace().filter_map(|word| word.split_once('='));
    let (_, value) = values.into_iter().find(|(key, _)| *key == name)?;
    Some(value.trim_matches('"').to_owned())
}

/// A log that grows.
pub(super) struct Log {
    path: PathBuf,
    from: u64,
}

impl Log {
    pub(super) fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), from: 0 }
    }

    /// What was logged since the last look, once `enough` of it is there. The engine writes a line
    /// when the thing has happened, which may be after we have seen its effect.
    pub(super) fn next(&mut self, enough: impl Fn(&Timings) -> bool) -> Result<Timings> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let text = read_from(&self.path, self.from)?;
            let whole = text.rfind('\n').map_or(0, |end| end + 1);
            let timings = parse(text.get(..whole).unwrap_or_default());
            if enough(&timings) {
                self.from += u64::try_from(whole)?;
                return Ok(timings);
            }
            if Instant::now() > deadline {
                let path = self.path.display();
                return Err(format!("{path} does not say how long things took: {timings:?}").into());
            }
            thread::sleep(Duration::from_millis(5));
        }
    }
}

fn read_from(path: &Path, from: u64) -> Result<String> {
    let Ok(mut file) = File::open(path) else { return Ok(String::new()) };
    if file.metadata()?.len() < from {
        return Err(format!("{} was begun anew; the bench writes too much", path.display()).into());
    }
    file.seek(SeekFrom::Start(from))?;
    let mut text = String::new();
    file.read_to_string(&mut text)?;
    Ok(text)
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    const LINES: &str = "\
2026-11-30T12:00:00.000001Z DEBUG stead::timing: what=\"append\" micros=212
2026-11-30T12:00:00.000002Z  INFO stead_engine::serve: serving socket=/run/what=call pid=7
2026-11-30T12:00:00.000003Z DEBUG stead::timing: what=\"call\" micros=1804
2026-11-30T12:00:00.000004Z DEBUG stead::timing: micros=700 what=spawn
2026-11-30T12:00:00.000005Z DEBUG stead::timing: what=\"append\" micros=x
";

    #[test]
    fn times_are_read_by_kind() {
        let timings = parse(LINES);
        assert_eq!(timings.appends, [212.0]);
        assert_eq!(timings.calls, [1804.0]);
        assert_eq!(timings.spawns, [700.0]);
    }

    #[test]
    fn a_line_counts_once_and_only_when_it_is_whole() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        let mut log = Log::new(file.path());
        let line = "DEBUG stead::timing: what=\"call\" micros=";
        write!(file, "{line}1\n{line}2").unwrap();
        assert_eq!(log.next(|seen| seen.calls.len() == 1).unwrap().calls, [1.0]);
        writeln!(file, "3").unwrap();
        assert_eq!(log.next(|seen| seen.calls.len() == 1).unwrap().calls, [23.0]);
    }
}

//! Refusals of runs in words, with their statuses; durations as they are given.

use std::time::Duration;

use stead_core::refusal::{Refusal, RefusalKind};
use stead_place::{ExecError, HostError, NoPlace};
use stead_process::KeepError;

use crate::exit::Exit;

/// The refusal and the status of a run that was not started.
pub(super) fn refusal(error: &ExecError) -> (Exit, Refusal) {
    let (status, kind, hint) = match error {
        ExecError::NoPlace(NoPlace::GitDirectory(_)) => {
            (71, RefusalKind::InvalidArgument, "`--worktree DIR` names a worktree or folder")
        }
        ExecError::NoPlace(_) => {
            (71, RefusalKind::InvalidArgument, "`--worktree DIR` names a folder that exists")
        }
        ExecError::NoRoom(_) => (
            72,
            RefusalKind::NoRoom,
            "without `--no-wait` it waits its turn; `stead places` shows all",
        ),
        ExecError::OwnRoom(_) => (
            72,
            RefusalKind::NoRoom,
            "run it in the place of the outer run, or after it: waiting would be for ever",
        ),
        ExecError::GaveUp { .. } | ExecError::Cancelled => (
            73,
            RefusalKind::NoRoom,
            "`--wait-limit DURATION` waits longer; `stead places` shows all",
        ),
        ExecError::NoPorts(_) => (
            74,
            RefusalKind::NoRoom,
            "`stead places` shows all, `stead release --place ID` frees one",
        ),
        ExecError::Releasing { .. } => {
            (75, RefusalKind::WrongState, "try again when `stead release` is through")
        }
        ExecError::AllReserved { .. } => {
            (77, RefusalKind::InvalidArgument, "make `[runs] reserved` smaller than `[runs] bound`")
        }
        ExecError::Host(error) => return (Exit(77), host(error)),
        ExecError::Start(error) => return start(error),
    };
    (Exit(status), Refusal::new(kind, error.to_string()).hint(hint))
}

/// The refusal of facts of the host that cannot be used.
pub(in crate::cli) fn host(error: &HostError) -> Refusal {
    let hint = match error {
        HostError::Unreadable { .. } => "move the file away: then every place is adopted anew",
        HostError::Network(_) => "set XDG_STATE_HOME to a folder on a disk of this machine",
        HostError::Stuck { .. } => "`stead doctor` shows what is held; end that process",
        HostError::ForeignScratch(_) => "move that folder away, then `stead release` again",
        _ => "make it a folder of your own that nobody else may write, or set XDG_STATE_HOME",
    };
    Refusal::new(RefusalKind::Storage, error.to_string()).hint(hint)
}

/// A command that cannot be executed has the statuses that shells give it.
fn start(error: &KeepError) -> (Exit, Refusal) {
    let (status, hint) = match error {
        KeepError::NotFound(_) => (127, "the command stands behind `--`: stead exec -- make test"),
        KeepError::Program { .. } | KeepError::Directory { .. } | KeepError::Unpassable(_) => {
            (126, "the command stands behind `--`: stead exec -- make test")
        }
        KeepError::Log(_) | KeepError::System { .. } => (77, "try again; `stead doctor` looks"),
    };
    (Exit(status), Refusal::new(RefusalKind::Failed, error.to_string()).hint(hint))
}

/// `90s`, `45m`, `1h`, `500ms`; a number alone is seconds.
pub(in crate::cli) fn duration(text: &str) -> Result<Duration, String> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at_checked(end).unwrap_or((text, ""));
    let number: u64 =
        number.parse().map_err(|_| "it is no duration, as 90s, 45m, 1h".to_owned())?;
    let seconds = |factor: u64| number.checked_mul(factor).map(Duration::from_secs);
    match unit {
        "ms" => Some(Duration::from_millis(number)),
        "" | "s" => seconds(1),
        "m" => seconds(60),
        "h" => seconds(3600),
        _ => return Err("the unit is none of ms, s, m, h".to_owned()),
    }
    .ok_or_else(|| "it is too long".to_owned())
}

/// A span in its largest whole unit.
pub(in crate::cli) fn span(span: Duration) -> String {
    match span.as_secs() {
        0 => format!("{} ms", span.as_millis()),
        seconds @ 1..60 => format!("{seconds} s"),
        seconds @ 60..3600 => format!("{} min", seconds / 60),
        seconds @ 3600..86_400 => format!("{} h", seconds / 3600),
        seconds => format!("{} d", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_a_unit() {
        assert_eq!(duration("90"), Ok(Duration::from_secs(90)));
        assert_eq!(duration("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(duration("45m"), Ok(Duration::from_mins(45)));
        assert_eq!(duration("2h"), Ok(Duration::from_hours(2)));
        for bad in ["", "m", "1d", "-1s", "99999999999999999999s", "18446744073709551615h"] {
            assert!(duration(bad).is_err(), "{bad}");
        }
        assert_eq!(span(Duration::from_secs(7300)), "2 h");
    }
}

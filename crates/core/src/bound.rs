//! The bound: how many runs of this user there may be on this host at once. Pure.

/// What sort of run asks for room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A run in an agent's place.
    Exec,
    /// The checks of a submission.
    Candidate,
}

/// The most runs at once, and how many of them are kept for submissions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bound {
    /// `[runs] bound`.
    pub runs: u32,
    /// `[runs] reserved`.
    pub reserved: u32,
}

/// How many runs live now.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Live {
    /// Runs in agents' places.
    pub execs: u32,
    /// Checks of submissions.
    pub candidates: u32,
}

/// What becomes of a run that asks for room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Admission {
    /// There is room.
    Start,
    /// There is none now.
    Wait,
    /// There never is any, because all of the bound is reserved, or it is zero.
    Never,
}

impl Bound {
    /// The default for a machine with this many cores: a quarter of them, at least 2; nothing is
    /// reserved.
    pub fn of_cores(cores: usize) -> Self {
        let quarter = u32::try_from(cores / 4).unwrap_or(u32::MAX);
        Self { runs: quarter.max(2), reserved: 0 }
    }

    /// Whether a run may start beside those that live. An exec leaves the reserved runs alone, but
    /// for those that candidates use already.
    pub fn admit(self, kind: Kind, live: Live) -> Admission {
        let (taken, free) = match kind {
            Kind::Exec => (
                live.execs.saturating_add(live.candidates.max(self.reserved)),
                self.runs.saturating_sub(self.reserved),
            ),
            Kind::Candidate => (live.execs.saturating_add(live.candidates), self.runs),
        };
        match (free, taken < self.runs) {
            (0, _) => Admission::Never,
            (_, true) => Admission::Start,
            (_, false) => Admission::Wait,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn admit(runs: u32, reserved: u32, kind: Kind, execs: u32, candidates: u32) -> Admission {
        Bound { runs, reserved }.admit(kind, Live { execs, candidates })
    }

    #[test]
    fn the_worked_table() {
        use Admission::{Never, Start, Wait};
        assert_eq!(admit(4, 1, Kind::Exec, 3, 0), Wait);
        assert_eq!(admit(4, 1, Kind::Candidate, 3, 0), Start);
        assert_eq!(admit(4, 1, Kind::Exec, 2, 1), Start);
        assert_eq!(admit(4, 1, Kind::Exec, 2, 2), Wait);
        assert_eq!(admit(4, 1, Kind::Exec, 0, 4), Wait);
        assert_eq!(admit(4, 4, Kind::Exec, 0, 0), Never);
        assert_eq!(admit(4, 4, Kind::Candidate, 0, 0), Start);
        assert_eq!(Bound::of_cores(2), Bound { runs: 2, reserved: 0 });
        assert_eq!(Bound::of_cores(64).runs, 16);
    }

    /// Every small case, against the two sentences of the specification.
    #[test]
    fn every_small_case_is_as_the_sentences_have_it() {
        for runs in 0..6 {
            for reserved in 0..7 {
                for execs in 0..7 {
                    for candidates in 0..7 {
                        let may = execs + candidates.max(reserved) < runs;
                        let ever = reserved < runs;
                        let expected = match (ever, may) {
                            (false, _) => Admission::Never,
                            (true, true) => Admission::Start,
                            (true, false) => Admission::Wait,
                        };
                        assert_eq!(admit(runs, reserved, Kind::Exec, execs, candidates), expected);
                        let starts = admit(runs, reserved, Kind::Candidate, execs, candidates)
                            == Admission::Start;
                        assert_eq!(starts, execs + candidates < runs);
                    }
                }
            }
        }
    }

    proptest! {
        /// Whatever starts and ends in whatever order: the bound is never passed, and execs never
        /// take a reserved run.
        #[test]
        fn the_bound_is_never_passed(
            runs in 1u32..9,
            reserved in 0u32..9,
            acts in proptest::collection::vec((any::<bool>(), any::<bool>()), 0..200),
        ) {
            let bound = Bound { runs, reserved };
            let mut live = Live::default();
            for (is_start, is_exec) in acts {
                let kind = if is_exec { Kind::Exec } else { Kind::Candidate };
                let count = if is_exec { &mut live.execs } else { &mut live.candidates };
                if !is_start {
                    *count = count.saturating_sub(1);
                } else if bound.admit(kind, live) == Admission::Start {
                    let count = if is_exec { &mut live.execs } else { &mut live.candidates };
                    *count += 1;
                }
                prop_assert!(live.execs + live.candidates <= runs);
                prop_assert!(live.execs <= runs.saturating_sub(reserved));
            }
        }
    }
}

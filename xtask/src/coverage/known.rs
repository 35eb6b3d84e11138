//! Which cases there are: the complete lists, so that one left out of the file is found.

use std::ops::RangeInclusive;

/// A specification whose cases are numbered.
pub(crate) struct Spec {
    /// How its ids start.
    pub(crate) prefix: &'static str,
    /// Its heading on the page.
    pub(crate) title: &'static str,
    numbers: RangeInclusive<u16>,
    /// Numbers outside the range, as they are written.
    more: &'static [&'static str],
}

/// How the ids of field reports start; the kind follows.
pub(crate) const FIELD: &str = "field";

/// The numbered specifications, in the order of the page.
pub(crate) const SPECS: &[Spec] = &[
    Spec { prefix: "agents", title: "Agents, addresses and identity", numbers: 1..=86, more: &[] },
    Spec { prefix: "plans", title: "Plans and ticks", numbers: 1..=33, more: &["33b"] },
    Spec {
        prefix: "copies",
        title: "Private copies, review and apply",
        numbers: 34..=77,
        more: &["91"],
    },
    Spec {
        prefix: "transfer",
        title: "Moving a chat between machines",
        numbers: 78..=90,
        more: &[],
    },
    Spec { prefix: "places", title: "Places, runs and the gate", numbers: 1..=70, more: &[] },
    Spec { prefix: "rfc", title: "Decision records", numbers: 87..=95, more: &[] },
];

/// The reports from the field, by kind. Numbers that are missing were never given out.
const FIELD_REPORTS: &[(&str, &[u8])] = &[
    ("id", &[1, 2, 3, 4, 6]),
    ("cwd", &[1, 2, 4, 5, 6, 7]),
    ("msg", &[1, 2, 4, 5, 8, 9]),
    ("ses", &[1, 2, 4, 6, 7, 8, 10, 11]),
    ("rew", &[1, 2, 4, 5, 7, 9]),
    ("plan", &[1, 2, 4, 5, 6, 7, 10]),
    ("wt", &[1, 2, 4, 6, 8, 9, 10, 12, 13, 14, 15, 17, 19, 20, 21, 22, 23, 25, 26, 27, 28, 31]),
    ("cpy", &[1, 2, 3, 5, 6, 7, 9]),
    ("apl", &[1, 2, 4, 5, 6, 7, 8, 11, 12, 15]),
    ("cln", &[1, 2, 3, 5, 6, 8, 9, 11]),
    ("nam", &[1, 2, 4, 5, 6, 8]),
    ("eol", &[1, 2, 5]),
    ("mode", &[1, 3]),
    ("lck", &[1, 2, 4]),
    ("prt", &[1, 2, 4, 6]),
    ("prc", &[1, 2, 3, 5, 6, 7, 8, 10]),
    ("hng", &[1, 2, 5]),
    ("out", &[1, 3, 5, 6]),
    ("dsk", &[1, 2, 5, 6]),
    ("hug", &[1]),
    ("sbx", &[1, 2, 3, 4, 6, 7, 8]),
    ("gcx", &[1, 2, 5]),
    ("sec", &[1, 2, 3, 5, 7]),
    ("pro", &[1, 2, 3, 4, 5, 6, 7, 8, 10, 13, 14]),
    ("pth", &[1, 2, 4]),
    ("xfr", &[1, 2, 5]),
];

/// Every id, in the order of the page.
pub(crate) fn ids() -> Vec<String> {
    let mut ids = Vec::new();
    for spec in SPECS {
        let numbers = spec.numbers.clone().map(|number| number.to_string());
        let more = spec.more.iter().map(|number| (*number).to_owned());
        ids.extend(numbers.chain(more).map(|number| format!("{}_{number}", spec.prefix)));
    }
    for (kind, numbers) in FIELD_REPORTS {
        ids.extend(numbers.iter().map(|number| format!("{FIELD}_{kind}_{number:02}")));
    }
    ids
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn the_lists_are_complete() {
        let ids = ids();
        let unique: BTreeSet<&String> = ids.iter().collect();
        assert_eq!(ids.len(), unique.len());
        let count = |prefix: &str| ids.iter().filter(|id| id.starts_with(prefix)).count();
        assert_eq!(count("agents_"), 86);
        assert_eq!(count("plans_"), 34);
        assert_eq!(count("copies_"), 45);
        assert_eq!(count("transfer_"), 13);
        assert_eq!(count("places_"), 70);
        assert_eq!(count("rfc_"), 9);
        assert_eq!(count("field_"), 155);
    }

    #[test]
    fn field_numbers_have_two_digits() {
        assert!(ids().contains(&"field_apl_02".to_owned()));
    }
}

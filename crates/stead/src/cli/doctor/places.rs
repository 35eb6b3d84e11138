//! What places hold on this host: ports, scratch folders, runs and what they left.

use stead_engine::Home;
use stead_place::{HostError, Listed};

use super::super::exec::host_refusal;
use super::finding::Finding;
use crate::clean;
use crate::render::counted;

const WHAT: &str = "places";
/// How many places are told one by one.
const MOST: usize = 20;

/// Every hold, and each that nobody seems to need any more.
pub(super) fn places(home: &Home) -> Vec<Finding> {
    let listed = match home.places().list() {
        Ok(listed) => listed,
        Err(error) => return vec![unusable(&error)],
    };
    if listed.is_empty() {
        return Vec::new();
    }
    let runs = listed.iter().map(|place| place.live.len()).sum();
    let left = listed.iter().map(|place| place.left.len()).sum();
    let line = format!(
        "{} ports, {} and {} in them",
        counted(listed.len(), "place holds", "places hold"),
        counted(runs, "run", "runs"),
        counted(left, "process that a run left", "processes that runs left"),
    );
    let mut findings = vec![Finding::ok(WHAT, format!("{line}; `stead places` lists them"))];
    let unneeded = |place: &&Listed| place.is_abandoned || place.held_back.is_some();
    findings.extend(listed.iter().filter(unneeded).take(MOST).map(abandoned));
    findings
}

fn abandoned(place: &Listed) -> Finding {
    let ports = format!("ports {}-{}", place.ports.first(), place.ports.last());
    let why = match &place.held_back {
        Some(why) => format!("held back: {why}"),
        None if place.is_there() => "no run for a day".to_owned(),
        None => "its folder is gone".to_owned(),
    };
    Finding::warning(
        WHAT,
        format!("{} holds {ports}; {why}", clean::path(&place.place)),
        format!("`stead release --place {}` ends what it left and frees it", place.id),
    )
}

fn unusable(error: &HostError) -> Finding {
    let refusal = host_refusal(error);
    Finding::fault(WHAT, refusal.line, refusal.hint.unwrap_or_default())
}

//! `--agent`: what runs the agents of a new session.

use std::io::Read as _;

use stead_core::mail::LONGEST_BODY;
use stead_core::refusal::Refusal;
use stead_engine::api::DriverParams;

use crate::context::{Context, on_path};
use crate::exit::usage;
use crate::output::say;

/// Programs that are agents and may be installed; a later version drives them.
const KNOWN_AGENTS: [&str; 5] = ["codex", "claude", "opencode", "pi", "gemini"];

/// What runs the agents. Without one it says what it looked for and what works.
pub(super) fn driver(context: &Context, agent: Option<&str>) -> Result<DriverParams, Refusal> {
    let works = "a playbook works now: stead run --agent playbook:FILE \"MESSAGE\" \
                 (`stead help run` shows a small one, docs/playbook.md tells more), and `stead demo` \
                 needs none";
    if let Some(file) = agent.and_then(|agent| agent.strip_prefix("playbook:")) {
        return playbook(file);
    }
    if let Some(agent) = agent {
        let agent = crate::clean::brief(agent, 80);
        return Err(
            usage(format!("this version of stead cannot run the agent {agent:?} yet")).hint(works)
        );
    }
    say("no agent was named, so stead looked for one:");
    let settings = crate::clean::path(&context.home.settings());
    say(format_args!("  configured agents  none: {settings} cannot name any in this version"));
    let path = context.variables.get(std::ffi::OsStr::new("PATH"));
    let (found, missing): (Vec<&str>, Vec<&str>) = KNOWN_AGENTS
        .into_iter()
        .partition(|name| path.is_some_and(|path| on_path(path, name).is_some()));
    for name in found {
        say(format_args!("  {name:<17}  installed, but not supported yet by this version"));
    }
    if !missing.is_empty() {
        say(format_args!("  not installed      {}", missing.join(", ")));
    }
    Err(usage("no agent to run").hint(works))
}

fn playbook(file: &str) -> Result<DriverParams, Refusal> {
    let refused = |why: &dyn std::fmt::Display| {
        usage(format!("the playbook {file} cannot be read: {why}"))
            .hint("`stead help run` shows a small playbook, docs/playbook.md tells more")
    };
    // A device or a pipe may never end; one byte more than is taken tells that it is too long.
    let most = u64::try_from(LONGEST_BODY).unwrap_or(u64::MAX);
    let mut text = String::new();
    let read = std::fs::File::open(file)
        .and_then(|file| file.take(most.saturating_add(1)).read_to_string(&mut text));
    read.map_err(|error| refused(&error))?;
    if text.len() > LONGEST_BODY {
        return Err(refused(&format_args!("it has more than {LONGEST_BODY} bytes")));
    }
    let name = std::path::Path::new(file)
        .file_name()
        .map_or_else(|| file.to_owned(), |name| name.to_string_lossy().into_owned());
    Ok(DriverParams::Playbook { name, text })
}

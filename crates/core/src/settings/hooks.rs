//! `[hooks]`: programs that are told of agents' lives.

use serde::Deserialize;

use super::SettingsError;
use crate::hook::Moment;

/// The longest that a hook may take, in seconds.
const LONGEST_SECONDS: u64 = 600;

/// `[hooks]`: the hooks of each moment, run one after another in this order.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct Hooks {
    /// Once for each agent.
    pub start: Vec<HookSettings>,
    /// Once for each task that is accepted.
    pub prompt: Vec<HookSettings>,
    /// Before a tool runs.
    pub before_tool: Vec<HookSettings>,
    /// Once for each request to the person.
    pub permission_request: Vec<HookSettings>,
    /// Once for each turn that ended.
    pub stop: Vec<HookSettings>,
}

/// One hook.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HookSettings {
    /// The program and its arguments; no shell reads them.
    pub command: Vec<String>,
    /// How long it may take, in seconds: 1 to 600.
    #[serde(default = "usual")]
    pub seconds: u64,
}

fn usual() -> u64 {
    60
}

impl Hooks {
    /// The hooks of a moment, in the order in which they run.
    pub fn at(&self, moment: Moment) -> &[HookSettings] {
        match moment {
            Moment::Start => &self.start,
            Moment::Prompt => &self.prompt,
            Moment::BeforeTool => &self.before_tool,
            Moment::PermissionRequest => &self.permission_request,
            Moment::Stop => &self.stop,
        }
    }

    pub(super) fn check(&self) -> Result<(), SettingsError> {
        let all =
            [&self.start, &self.prompt, &self.before_tool, &self.permission_request, &self.stop];
        for hook in all.into_iter().flatten() {
            if hook.command.first().is_none_or(String::is_empty) {
                let line = "[hooks]: a hook needs a command: the program and its arguments";
                return Err(SettingsError::Contradiction(line.to_owned()));
            }
            if !(1..=LONGEST_SECONDS).contains(&hook.seconds) {
                return Err(SettingsError::OutOfBounds {
                    key: "hooks.seconds",
                    value: hook.seconds,
                    bounds: "1 to 600",
                });
            }
        }
        Ok(())
    }
}

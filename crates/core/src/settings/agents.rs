//! `[agents.NAME]` and `[models.NAME]`: what can run an agent's turns.

use serde::{Deserialize, Serialize};

use super::SettingsError;

/// How stead speaks with a program that runs an agent's turns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum AgentKind {
    /// The agent client protocol, on the program's standard input and output.
    Acp,
}

/// `[agents.NAME]`
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AgentSettings {
    /// How stead speaks with it.
    pub kind: AgentKind,
    /// The program and its arguments; no shell reads them.
    pub command: AgentProgram,
    /// The names of variables of the client's environment that this program gets besides the usual
    /// ones, such as the one with a provider's key. Values stand in no file.
    #[serde(default)]
    pub environment: Vec<VariableName>,
}

/// A program and its arguments.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub struct AgentProgram(Vec<String>);

impl AgentProgram {
    /// The program and its arguments; never empty once the settings are read.
    pub fn words(&self) -> &[String] {
        &self.0
    }
}

/// The name of an environment variable.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(try_from = "String")]
pub struct VariableName(String);

impl VariableName {
    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for VariableName {
    type Error = String;

    /// Letters, digits and `_`, not beginning with a digit; none of stead's own.
    fn try_from(text: String) -> Result<Self, String> {
        let named = text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        if text.is_empty() || !named || text.starts_with(|c: char| c.is_ascii_digit()) {
            let shown = crate::line::cut(&text, 80);
            return Err(format!(
                "{shown:?} is not the name of a variable; a value does not belong here"
            ));
        }
        if text.starts_with("STEAD_") {
            return Err(format!("{text} is set by stead"));
        }
        Ok(Self(text))
    }
}

impl AgentSettings {
    pub(super) fn check(&self, name: &str) -> Result<(), SettingsError> {
        match self.command.0.first() {
            Some(program)
                if !program.is_empty() && !self.command.0.iter().any(|w| w.contains('\0')) =>
            {
                Ok(())
            }
            _ => Err(SettingsError::Contradiction(format!(
                "[agents.{name}] needs a command: the program and its arguments"
            ))),
        }
    }
}

/// `[models.NAME]`
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelSettings {
    /// The provider's name of the model.
    pub model: String,
    /// How hard it thinks unless a spawn or a role says otherwise, in the provider's word.
    #[serde(default)]
    pub effort: Option<String>,
}

//! Hooks: programs of the person that are told of an agent's life and may object (A18, B8).

use serde::{Deserialize, Serialize};

use crate::id::{SessionId, TurnId};
use crate::layout::AbsoluteDir;
use crate::path::AgentPath;
use crate::permission::Verdict;

/// When a hook runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Moment {
    /// Once for each agent, before anybody sees it.
    Start,
    /// Once for each task that is accepted: the first one and each later wake of an idle agent;
    /// never for mail, nor for words to a running turn.
    Prompt,
    /// Before a tool runs.
    BeforeTool,
    /// Once for each request to the person.
    PermissionRequest,
    /// Exactly once for each turn that ended. It only watches.
    Stop,
}

/// What a hook is told, as JSON on its standard input. An agent and its session have one id, so
/// `session_id` and `agent_id` are always equal (agents_82).
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Payload {
    /// When.
    pub event: Moment,
    session_id: SessionId,
    agent_id: SessionId,
    /// The root session.
    pub root_session_id: SessionId,
    /// The agent's address.
    pub path: AgentPath,
    /// The agent's directory.
    pub cwd: AbsoluteDir,
    /// Always empty: conversations are in stead's log, not in a file.
    transcript_path: &'static str,
    /// The turn; none before the first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turn: Option<TurnId>,
    /// What it is about: the task's text, the tool with its arguments, how the turn ended.
    pub subject: serde_json::Value,
}

impl Payload {
    /// What is told about the agent with this id.
    pub fn new(
        event: Moment,
        root: SessionId,
        agent: SessionId,
        path: AgentPath,
        cwd: AbsoluteDir,
    ) -> Self {
        Self {
            event,
            session_id: agent.clone(),
            agent_id: agent,
            root_session_id: root,
            path,
            cwd,
            transcript_path: "",
            turn: None,
            subject: serde_json::Value::Null,
        }
    }
}

/// What a hook says of a deed. The order is that of their strength.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Opinion {
    /// Nothing.
    #[default]
    None,
    /// A question that would be asked need not be.
    Allow,
    /// The person is to be asked.
    Ask,
    /// Never.
    Deny,
}

/// What a hook answered, as JSON on its standard output; nothing at all is no opinion.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct HookVerdict {
    /// What it says of the deed.
    pub decision: Opinion,
    /// Why.
    pub reason: Option<String>,
    /// What the agent is to hear with its task; never a veto.
    pub context: Option<String>,
}

/// An answer of a hook that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the hook's answer is not one: {0}")]
pub struct BadVerdict(String);

impl HookVerdict {
    /// Reads what a hook wrote.
    pub fn parse(output: &str) -> Result<Self, BadVerdict> {
        if output.trim().is_empty() {
            return Ok(Self::default());
        }
        if !output.trim_start().starts_with('{') {
            return Err(BadVerdict("it is no JSON object".to_owned()));
        }
        serde_json::from_str(output).map_err(|e| BadVerdict(e.to_string()))
    }

    /// This verdict and that of the hook that ran after it: the stronger decision with its reason,
    /// and what both add.
    #[must_use]
    pub fn and(self, next: Self) -> Self {
        let context = match (self.context, next.context) {
            (Some(first), Some(second)) => Some(format!("{first}\n\n{second}")),
            (first, second) => first.or(second),
        };
        let (decision, reason) = if next.decision > self.decision {
            (next.decision, next.reason)
        } else {
            (self.decision, self.reason)
        };
        Self { decision, reason, context }
    }

    /// What is left of the rules' verdict on a deed after a hook was asked before the tool runs. A
    /// denial is final: none. To allow only spares a question that would be asked, and to ask
    /// never lifts what is forbidden (A13.10).
    pub fn on(&self, verdict: Verdict) -> Option<Verdict> {
        match (self.decision, verdict) {
            (Opinion::Deny, _) => None,
            (Opinion::Allow, Verdict::Ask) => Some(Verdict::Allow),
            (Opinion::Ask, Verdict::Allow) => Some(Verdict::Ask),
            (_, verdict) => Some(verdict),
        }
    }

    /// Whether a task must not be given to its agent: only a denial stands against it.
    pub fn blocks(&self) -> bool {
        self.decision == Opinion::Deny
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> HookVerdict {
        HookVerdict::parse(text).unwrap()
    }

    #[test]
    fn session_and_agent_have_one_id() {
        let payload = Payload::new(
            Moment::Stop,
            SessionId::parse("root-1").unwrap(),
            SessionId::parse("agent-1").unwrap(),
            AgentPath::parse("/root/a").unwrap(),
            AbsoluteDir::new("/w").unwrap(),
        );
        let json = serde_json::to_value(payload).unwrap();
        assert_eq!(json["session_id"], json["agent_id"]);
        assert_eq!(json["session_id"], "agent-1");
        assert_eq!((&json["event"], &json["transcript_path"]), (&"stop".into(), &"".into()));
    }

    #[test]
    fn a_hook_spares_a_question_and_lifts_nothing() {
        let on = |decision, verdict: &Verdict| {
            HookVerdict { decision, ..HookVerdict::default() }.on(verdict.clone())
        };
        for verdict in [Verdict::Allow, Verdict::Ask, Verdict::Forbid] {
            assert_eq!(on(Opinion::Deny, &verdict), None);
            assert_eq!(on(Opinion::None, &verdict), Some(verdict));
        }
        assert_eq!(on(Opinion::Allow, &Verdict::Ask), Some(Verdict::Allow));
        assert_eq!(on(Opinion::Allow, &Verdict::Forbid), Some(Verdict::Forbid));
        assert_eq!(on(Opinion::Ask, &Verdict::Allow), Some(Verdict::Ask));
        assert_eq!(on(Opinion::Ask, &Verdict::Forbid), Some(Verdict::Forbid));
    }

    #[test]
    fn the_strongest_decision_wins_and_context_is_never_a_veto() {
        let deny = parse(r#"{"decision": "deny", "reason": "no"}"#);
        let allow = parse(r#"{"decision": "allow", "context": "a"}"#);
        let note = parse(r#"{"context": "b"}"#);
        assert!(!note.blocks() && parse(" \n") == HookVerdict::default());
        for order in [[&deny, &allow, &note], [&note, &allow, &deny], [&allow, &deny, &note]] {
            let all = order.into_iter().cloned().reduce(HookVerdict::and).unwrap();
            assert!(all.blocks());
            assert_eq!(all.reason.as_deref(), Some("no"));
        }
        assert_eq!(allow.and(note).context.as_deref(), Some("a\n\nb"));
        for bad in ["no", "[]", r#"{"decision": "perhaps"}"#, r#"{"desicion": "deny"}"#] {
            assert!(HookVerdict::parse(bad).is_err(), "{bad}");
        }
    }
}

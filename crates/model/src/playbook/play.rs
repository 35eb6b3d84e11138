//! Answers a conversation: plays the current turn's steps over what was said and heard in it.
//!
//! Every answer begins at the turn's first step again. A step that speaks takes the next recorded
//! reply as its own and goes on; the first step without one gives the answer. So the conversation
//! alone decides, also after a restart.

use std::collections::BTreeMap;

use async_trait::async_trait;
use serde_json::json;
use stead_core::path::AgentPath;
use stead_core::usage::Usage;

use super::fill::{fill, fill_value};
use super::heard::{Mail, Round, SoFar};
use super::script::{Action, Agent, Call, Condition, Playbook, Test, Turn, Wait, Wanted};
use crate::message::{Purpose, Reply, Request};
use crate::{Model, ModelError};

#[async_trait]
impl Model for Playbook {
    async fn reply(&self, request: &Request) -> Result<Reply, ModelError> {
        if request.purpose == Purpose::Summary {
            return Ok(self.summary(request));
        }
        let so_far = SoFar::of(&request.messages, request.earlier_turns).ok_or_else(|| {
            ModelError::NoReply(format!("{} has heard nothing yet", request.agent))
        })?;
        let (turn, answers) = self.choose(&request.agent, &so_far)?;
        let mut play = Play {
            agent: &request.agent,
            answers,
            so_far,
            played: 0,
            unused: Vec::new(),
            results: BTreeMap::new(),
            taken: BTreeMap::new(),
        };
        play.hear();
        play.run(turn)
    }
}

impl Playbook {
    /// What stands for a conversation: what the agent's script says, or how much there was.
    fn summary(&self, request: &Request) -> Reply {
        let agent = self.agents.iter().find(|agent| agent.path.is_match(request.agent.as_str()));
        let text = agent.and_then(|agent| agent.summary.clone()).unwrap_or_else(|| {
            format!("The playbook gives no summary of {} messages.", request.messages.len())
        });
        // Nobody was asked.
        let usage = Some(Usage { input: 0, output: 0, cost_micros: Some(0) });
        Reply { text, calls: Vec::new(), usage }
    }

    /// The turn to play, and the message that it answers.
    fn choose<'a>(
        &'a self,
        path: &AgentPath,
        so_far: &SoFar<'a>,
    ) -> Result<(&'a Turn, Mail<'a>), ModelError> {
        let candidates = so_far.candidates();
        let start = || -> String {
            let text = candidates.first().map_or("", |mail| mail.text);
            let start: String = text.chars().take(60).collect();
            if start.len() < text.len() { format!("{start}…") } else { start }
        };
        let matching = |agent: &&Agent| agent.path.is_match(path.as_str());
        let Some(agent) = self.agents.iter().find(matching) else {
            return Err(ModelError::NoReply(format!(
                "no agent of the playbook is for {path}, which heard {:?}; add an [[agent]] with \
                 path = \"{path}\"",
                start()
            )));
        };
        let answer = |turn: &'a Turn| match &turn.when {
            None => candidates.first().map(|mail| (turn, *mail)),
            Some(when) => candidates
                .iter()
                .find(|mail| mail.text.contains(when.as_str()))
                .map(|mail| (turn, *mail)),
        };
        agent.turns.iter().find_map(answer).ok_or_else(|| {
            ModelError::NoReply(format!(
                "no turn of the playbook's agent {:?} answers {path}, which heard {:?}; add a turn \
                 with a fitting `when`, or a last one without",
                agent.pattern,
                start()
            ))
        })
    }
}

/// What a call or a wait came to.
struct Named {
    text: String,
    failed: bool,
}

/// One play of a turn, from its first step to the first answer that is not recorded yet.
struct Play<'a> {
    agent: &'a AgentPath,
    /// The message that the turn answers.
    answers: Mail<'a>,
    so_far: SoFar<'a>,
    /// How many rounds of the conversation were played.
    played: usize,
    /// Mail that was heard and that no wait has used.
    unused: Vec<Mail<'a>>,
    results: BTreeMap<&'a str, Named>,
    /// How often the `goto` of each step was taken.
    taken: BTreeMap<usize, u32>,
}

impl<'a> Play<'a> {
    fn run(mut self, turn: &'a Turn) -> Result<Reply, ModelError> {
        let mut at = 0;
        while let Some(step) = turn.steps.get(at) {
            let this = at;
            at += 1;
            if !step.condition.as_ref().is_none_or(|condition| self.holds(condition)) {
                continue;
            }
            match &step.action {
                // Also when it was said before: mail can come between the last word and the
                // turn's end, and then the same word is asked for again.
                Action::Say(text) => {
                    let (text, calls) = (self.filled(text), Vec::new());
                    return Ok(Reply { text, calls, usage: step.usage });
                }
                Action::Fail(text) => return Err(ModelError::Provider(self.filled(text))),
                Action::Call { say, calls } => match self.hear() {
                    Some(round) => self.name_results(calls, round),
                    None => return self.call(say, calls, step.usage),
                },
                Action::Wait(wait) => {
                    if let Some(reply) = self.wait(wait, step.line)? {
                        return Ok(Reply { usage: step.usage, ..reply });
                    }
                }
                Action::Goto { label, at_most } => {
                    let taken = self.taken.entry(this).or_default();
                    if at_most.is_none_or(|most| *taken < most) {
                        *taken += 1;
                        let target =
                            turn.steps.iter().position(|s| s.label.as_ref() == Some(label));
                        at = target.unwrap_or(at);
                    }
                }
            }
        }
        // A parsed turn ends with a word; this is for the compiler.
        Err(ModelError::NoReply(format!("the steps of {}'s turn ran out", self.agent)))
    }

    /// Goes on to the next recorded round, if there is one, and keeps the mail heard in it.
    fn hear(&mut self) -> Option<Round<'a>> {
        let round = self.so_far.rounds.get(self.played).copied()?;
        self.played += 1;
        self.unused.extend(round.mail().filter(|mail| !mail.is(self.answers)));
        Some(round)
    }

    fn holds(&self, condition: &Condition) -> bool {
        self.results.get(condition.result.as_str()).is_some_and(|result| match &condition.test {
            Test::Contains(part) => result.text.contains(part.as_str()),
            Test::Lacks(part) => !result.text.contains(part.as_str()),
            Test::Failed(failed) => result.failed == *failed,
        })
    }

    fn value(&self, name: &str) -> String {
        match name {
            "message" => self.answers.text.to_owned(),
            "path" => self.agent.to_string(),
            "summary" => self.so_far.summary().to_owned(),
            _ => self.results.get(name).map(|result| result.text.clone()).unwrap_or_default(),
        }
    }

    fn filled(&self, text: &str) -> String {
        fill(text, &|name| self.value(name))
    }

    fn call(&self, say: &str, calls: &[Call], usage: Option<Usage>) -> Result<Reply, ModelError> {
        let calls = calls.iter().map(|call| {
            let arguments = if call.verbatim {
                call.with.clone()
            } else {
                fill_value(&call.with, &|name| self.value(name))
            };
            (call.tool.as_str(), arguments)
        });
        Ok(Reply { text: self.filled(say), calls: self.so_far.number(calls)?, usage })
    }

    /// Keeps the results of a recorded reply. A result that never came is not kept.
    fn name_results(&mut self, calls: &'a [Call], round: Round<'a>) {
        for (at, call) in calls.iter().enumerate() {
            let Some(name) = call.name.as_deref() else { continue };
            match round.result(at) {
                Some(result) => {
                    let named = Named { text: result.text.clone(), failed: result.failed };
                    self.results.insert(name, named);
                }
                None => {
                    self.results.remove(name);
                }
            }
        }
    }

    /// Plays a wait: the call of `wait_agent` to answer, or nothing when enough was heard.
    fn wait(&mut self, wait: &'a Wait, line: usize) -> Result<Option<Reply>, ModelError> {
        let wanted = self.wanted(wait, line)?;
        let mut calls = 0;
        loop {
            if let Some((found, left)) = self.find(wait, &wanted) {
                self.unused = left;
                if let Some(name) = wait.name.as_deref() {
                    let texts: Vec<&str> = found.iter().map(|mail| mail.text).collect();
                    self.results.insert(name, Named { text: texts.join("\n\n"), failed: false });
                }
                return Ok(None);
            }
            if calls == wait.at_most {
                return Err(ModelError::NoReply(format!(
                    "{} called wait_agent {calls} times and has not heard all that the wait in line \
                     {line} of the playbook is for; see with `stead tree` what the others do, or \
                     raise the step's at_most",
                    self.agent
                )));
            }
            calls += 1;
            if self.hear().is_none() {
                let call = [("wait_agent", json!({}))].into_iter();
                let calls = self.so_far.number(call)?;
                return Ok(Some(Reply { calls, ..Reply::default() }));
            }
        }
    }

    /// From whom: one entry for each piece of mail, none for anyone.
    fn wanted(&self, wait: &Wait, line: usize) -> Result<Vec<Option<AgentPath>>, ModelError> {
        match &wait.wanted {
            Wanted::Count(count) => Ok(vec![None; *count]),
            Wanted::Each(paths) => paths
                .iter()
                .map(|written| {
                    let path = self.filled(written);
                    AgentPath::resolve(self.agent, path.trim()).map(Some).map_err(|error| {
                        ModelError::NoReply(format!(
                            "the wait in line {line} of the playbook is for {written:?}, which is \
                             no agent's path here: {error}; see what the call that should have \
                             given it came to"
                        ))
                    })
                })
                .collect(),
        }
    }

    /// The mail that a wait is for, and what is left without it; none when some has not come.
    fn find(
        &self,
        wait: &Wait,
        wanted: &[Option<AgentPath>],
    ) -> Option<(Vec<Mail<'a>>, Vec<Mail<'a>>)> {
        let mut left = self.unused.clone();
        let mut found = Vec::new();
        for from in wanted {
            let fits = |mail: &Mail<'_>| {
                mail.is_for(wait.sort)
                    && from.as_ref().is_none_or(|from| mail.from == from.as_str())
            };
            let at = left.iter().position(fits)?;
            found.push(left.remove(at));
        }
        Some((found, left))
    }
}

//! Whatever stands in a playbook and whatever comes back, it ends and never contradicts itself.

use std::collections::BTreeSet;

use proptest::collection::vec;
use proptest::prelude::*;
use stead_core::event::MailKind;

use super::stage::Stage;
use crate::Playbook;
use crate::message::Message;

/// One step as text; `at` and `all` say where it stands, so that every label exists.
fn step(kind: u8, condition: u8, target: usize, at: usize) -> String {
    let action = match kind % 9 {
        0 => "call = { tool = \"bash\", as = \"a\", with = { x = \"{{a}} {{b}}\" } }".to_owned(),
        1 => "call = [{ tool = \"x\", as = \"b\" }, { tool = \"y\" }], say = \"{{a}}\"".to_owned(),
        2 => "wait = [\"a\", \"{{a}}\"], at_most = 2".to_owned(),
        3 => "wait = 2, as = \"b\", at_most = 3".to_owned(),
        4 => "wait_mail = 1, as = \"a\", at_most = 3".to_owned(),
        5 => format!("goto = \"l{target}\", at_most = 3"),
        6 if target > at => format!("goto = \"l{target}\""),
        7 => "fail = \"{{b}}\"".to_owned(),
        _ => "say = \"{{message}} {{path}} {{a}}\"".to_owned(),
    };
    let condition = match condition % 6 {
        0 => "if = { result = \"a\", contains = \"x\" }, ",
        1 => "if = { result = \"b\", lacks = \"x\" }, ",
        2 => "if = { result = \"a\", failed = true }, ",
        _ => "",
    };
    format!("{{ label = \"l{at}\", {condition}{action} }},\n")
}

/// A turn that parses: both names are there, and it ends with a word.
fn steps() -> impl Strategy<Value = String> {
    vec((any::<u8>(), any::<u8>(), 0_usize..6), 0..6).prop_map(|parts| {
        let last = parts.len();
        let steps: String = parts
            .into_iter()
            .enumerate()
            .map(|(at, (kind, condition, target))| step(kind, condition, target.min(last), at))
            .collect();
        let names = "{ if = { result = \"a\", contains = \"never\" }, call = [{ tool = \"n\", as = \"a\" }, { tool = \"n\", as = \"b\" }] },";
        format!("{names}\n{steps}{{ label = \"l{last}\", say = \"end\" }}")
    })
}

/// What comes in: who, which sort, and whether a call in between is answered.
fn incoming() -> impl Strategy<Value = Vec<(u8, String)>> {
    vec((any::<u8>(), "[x/a-c{}]{0,8}"), 1..12)
}

fn come_in(stage: &mut Stage, kind: u8, text: &str) {
    let from = ["/root/a", "/root/b", "person", "x"][usize::from(kind / 4 % 4)];
    let sort = [MailKind::Mail, MailKind::Result, MailKind::User, MailKind::Execution];
    stage.hear(from, sort[usize::from(kind % 4)], text, kind > 250);
}

proptest! {
    #[test]
    fn every_turn_ends_and_every_answer_stays_the_same(steps in steps(), incoming in incoming()) {
        let mut stage = Stage::of_steps(&steps);
        stage.open("go");
        let mut ids = BTreeSet::new();
        let mut coming = incoming.iter().cycle();
        // At most 8 steps and 3 calls a wait, and 6 steps that lead back 3 times each.
        let most = 8 * 3 * (6 * 3 + 1);
        let mut ended = false;
        for _ in 0..most {
            let reply = stage.ask();
            // The same again, and every recorded reply is still what would be said.
            prop_assert_eq!(format!("{reply:?}"), format!("{:?}", stage.ask()));
            let Ok(reply) = reply else { ended = true; break };
            let calls = reply.calls.clone();
            stage.messages.push(Message::Assistant(reply));
            if calls.is_empty() { ended = true; break }
            for call in &calls {
                prop_assert!(ids.insert(call.id.clone()), "{} was given twice", call.id);
                let (kind, text) = coming.next().unwrap();
                if kind % 3 > 0 { come_in(&mut stage, (*kind).min(250), text) }
                if kind % 5 > 0 { stage.answer(call, text, kind % 7 == 0); }
            }
        }
        prop_assert!(ended, "the turn did not end");
        let whole = stage.messages.clone();
        for (at, message) in whole.iter().enumerate() {
            if let Message::Assistant(said) = message {
                stage.messages.truncate(at);
                prop_assert_eq!(said, &stage.ask().unwrap());
                stage.messages.clone_from(&whole);
            }
        }
    }

    #[test]
    fn any_conversation_is_answered_or_refused(
        steps in steps(),
        incoming in incoming(),
        foreign in vec(any::<u8>(), 0..12),
    ) {
        // Replies and results that this playbook would never have given, in any order.
        let mut stage = Stage::of_steps(&steps);
        let mut other = Stage::of_steps("{ call = [{ tool = \"a\" }, { tool = \"b\" }] }, { say = \"c\" }");
        let reply = other.open("go").say();
        for ((kind, text), foreign) in incoming.iter().zip(foreign.iter().cycle().chain([&0])) {
            come_in(&mut stage, kind.saturating_mul(2), text);
            match foreign % 4 {
                0 => stage.messages.push(Message::Assistant(reply.clone())),
                1 => { stage.answer(&reply.calls[usize::from(kind % 2)], text, false); }
                _ => {}
            }
        }
        if let Ok(answer) = stage.ask() {
            let conversation = format!("{:?}", stage.messages);
            for call in &answer.calls {
                let id = format!("{:?}", call.id);
                prop_assert!(!conversation.contains(&id), "{id} is there already");
            }
        }
    }

    #[test]
    fn parsing_never_panics(text in any::<String>()) {
        let _ = Playbook::parse(&text);
    }

    #[test]
    fn parsing_what_is_almost_a_playbook_never_panics(
        steps in steps(),
        cut in any::<prop::sample::Index>(),
        put in "[\\[\\]{}\"',=#a\n\u{e9}]{0,4}",
    ) {
        let text = format!("[[agent]]\npath = \"/root\"\n[[agent.turn]]\nstep = [\n{steps}\n]");
        let at = text.floor_char_boundary(cut.index(text.len()));
        let (before, after) = text.split_at(at);
        let changed = format!("{before}{put}{after}");
        if let Err(error) = Playbook::parse(&changed) {
            prop_assert!(error.line >= 1 && error.line <= changed.lines().count() + 1);
            prop_assert!(!error.hint.is_empty() && !error.problem.contains('\n'), "{error}");
        }
        let _ = Playbook::parse(before);
    }
}

#[test]
fn what_is_nested_too_deeply_is_refused() {
    let deep = format!("agent = {}{}", "[".repeat(100_000), "]".repeat(100_000));
    assert!(Playbook::parse(&deep).unwrap_err().to_string().contains("not TOML"));
}

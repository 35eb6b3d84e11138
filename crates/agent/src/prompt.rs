//! What stead itself says to a model.

use std::borrow::Cow;
use std::fmt::Write as _;

use stead_core::event::{CallFate, MailKind, Sender};
use stead_core::id::CallId;
use stead_core::layout::Access;
use stead_core::mail::INLINE_RESULT;
use stead_core::profile::Profile;
use stead_model::ToolResult;

use crate::driver::Situation;
use crate::instructions::section;
use crate::tools::display;

/// The most of an agent's own agents that it is told of as its turn begins.
const MOST_CHILDREN: usize = 50;

/// The instructions of an agent in this situation.
pub(crate) fn instructions(situation: &Situation, profile: &Profile) -> String {
    let path = &situation.path;
    let directory = display(situation.directory.as_path());
    let roots = root_map(situation);
    let team = team(situation);
    let role = role(situation, profile);
    let end = match path.parent() {
        Some(parent) => format!("ends your turn and goes to {parent} as your RESULT"),
        None => "ends your turn and is what the person reads".to_owned(),
    };
    let files = section(&situation.instructions);
    format!(
        "You are {path}, an agent of a team that stead runs on a person's machine. You act through \
         your tools only.{role}

Your directory is {directory}. Relative paths and every command start there; a `cd` lasts for its \
         command only.
{roots}
Agents are addressed by path; /root speaks with the person. A target that begins with `/` is a \
         whole path, any other is below you: `x` means {path}/x. Names are never guessed: use the \
         path that `agent` answered or `list_agents` shows. Mail and RESULTs come to you as \
         messages before your next step.
{team}Your last message, the one without a call, {end}. The turn is held until \
         the commands that you started with bash have ended. Checks, builds and servers belong into exec, which gives them ports \
         (STEAD_PORT): a server that it leaves in the background lives on until release.
{files}"
    )
}

/// What the role says, where there is one.
fn role(situation: &Situation, profile: &Profile) -> String {
    let name = situation.role.as_ref().map(|role| format!(" Your role is {role}."));
    let text = profile.instructions.as_ref().map(|text| format!("\n\n{}\n", text.trim_end()));
    name.into_iter().chain(text).collect()
}

/// The agent's own agents (A17), and where its conversation begins.
fn team(situation: &Situation) -> String {
    let mut team = String::new();
    let children = situation.children.iter().take(MOST_CHILDREN);
    let named: Vec<String> = children
        .map(|(path, role)| match role {
            Some(role) => format!("{path} ({role})"),
            None => path.to_string(),
        })
        .collect();
    if !named.is_empty() {
        let more = match situation.children.len().saturating_sub(MOST_CHILDREN) {
            0 => String::new(),
            more => format!(", and {more} more that list_agents shows"),
        };
        let _ = writeln!(team, "Your own agents so far: {}{more}.", named.join(", "));
    }
    if let Some(parent) = situation.path.parent().filter(|_| situation.seeded) {
        let _ = writeln!(
            team,
            "Your conversation begins with a copy of {parent}'s: it is what {parent} knew, and you \
             did none of it. Your assignment is the message after it."
        );
    }
    team
}

/// The root map: what an agent reads before anything else (seed 3).
fn root_map(situation: &Situation) -> String {
    let copies = !situation.originals.is_empty();
    let mut map = String::from(if copies {
        "Your folders are private copies; write nowhere else:\n"
    } else {
        "The working roots:\n"
    });
    let mut originals = situation.originals.iter();
    for (number, root) in situation.roots.iter().enumerate() {
        let access = match root.access {
            Access::Read => "read only",
            Access::Write => "read and write",
        };
        let primary = if copies && number == 0 { "primary, " } else { "" };
        let directory = display(root.directory.as_path());
        let origin = originals
            .next()
            .map(|original| {
                let original = display(original.as_path());
                format!(", a copy of {original}, {}", root.id.uri())
            })
            .unwrap_or_default();
        let _ = writeln!(map, "- {}: {directory} ({primary}{access}){origin}", root.slot);
    }
    if copies {
        map.push_str(
            "The person reviews what you change here and brings it into the originals; never work \
             in an original yourself. If a folder is missing, say so and stop.\n",
        );
    }
    map
}

/// A sender as models see it.
pub(crate) fn sender(from: &Sender) -> String {
    match from {
        Sender::Person => "person".to_owned(),
        Sender::Stead => "stead".to_owned(),
        Sender::Agent(path) => path.to_string(),
    }
}

/// What was heard, as it stands in the conversation. Sender and sort stand beside it; a long RESULT
/// is cut.
pub(crate) fn heard(from: &Sender, sort: MailKind, text: &str) -> String {
    match sort {
        MailKind::Result => {
            let pointer = format!("read_result {{\"target\": \"{}\"}}", sender(from));
            inline(text, INLINE_RESULT, &pointer).into_owned()
        }
        MailKind::Mail | MailKind::User | MailKind::Execution | MailKind::Note => text.to_owned(),
    }
}

/// The summary of the beginning of a conversation, and what no summary may forget.
pub(crate) fn summary(turns: u32, text: &str, standing: &str) -> String {
    format!(
        "A summary stands for the first {turns} turns of this conversation:\n\n{text}\n\n{standing}"
    )
}

/// The text itself, or head and tail of it with the way to the whole, `limit` characters in all.
/// Counted in characters (Unicode scalar values), so no character is broken.
pub fn inline<'a>(text: &'a str, limit: usize, pointer: &str) -> Cow<'a, str> {
    let count = text.chars().count();
    if count <= limit {
        return Cow::Borrowed(text);
    }
    // The number in the note is at most `count`: with it, the note is at its longest.
    let note =
        |left_out| format!("\n[stead: {left_out} characters left out; the whole: {pointer}]\n");
    let room = limit.saturating_sub(note(count).chars().count());
    let head: String = text.chars().take(room.div_ceil(2)).collect();
    let tail: String = text.chars().skip(count.saturating_sub(room / 2)).collect();
    let cut = head + &note(count.saturating_sub(room)) + &tail;
    // A limit below the note's own length leaves the beginning of the note.
    Cow::Owned(cut.chars().take(limit).collect())
}

/// The result of a call that has none: only what is known.
pub(crate) fn unanswered(call: &CallId, fate: CallFate) -> ToolResult {
    let text = match fate {
        CallFate::NotStarted => "this call was not started; safe to call again",
        CallFate::Unknown => {
            "the turn ended during this call: its outcome is unknown; look before you repeat it"
        }
    };
    ToolResult { id: call.clone(), text: text.to_owned(), structured: None, failed: true }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use stead_core::id::RoleName;
    use stead_core::layout::AbsoluteDir;
    use stead_core::path::AgentPath;

    use super::*;

    fn situation(at: &str) -> Situation {
        Situation {
            path: AgentPath::parse(at).unwrap(),
            directory: AbsoluteDir::new("/w").unwrap(),
            roots: Vec::new(),
            originals: Vec::new(),
            instructions: Vec::new(),
            role: None,
            children: Vec::new(),
            seeded: false,
        }
    }

    #[test]
    fn an_agent_is_told_its_role_its_own_agents_and_where_its_conversation_begins() {
        let role = |name: &str| RoleName::parse(name).unwrap();
        let plain = instructions(&situation("/root/a"), &Profile::default());
        for absent in ["Your role", "Your own agents", "a copy of"] {
            assert!(!plain.contains(absent), "{plain}");
        }
        let child = |name: &str| AgentPath::parse(&format!("/root/a/{name}")).unwrap();
        let told = Situation {
            role: Some(role("scout")),
            children: vec![(child("b"), Some(role("reviewer"))), (child("c"), None)],
            seeded: true,
            ..situation("/root/a")
        };
        let text = Some("Read only.\n".to_owned());
        let told = instructions(&told, &Profile { instructions: text, ..Profile::default() });
        assert!(told.contains("Your role is scout.\n\nRead only.\n"), "{told}");
        assert!(
            told.contains("Your own agents so far: /root/a/b (reviewer), /root/a/c."),
            "{told}"
        );
        assert!(told.contains("begins with a copy of /root's"), "{told}");
    }

    #[test]
    fn of_many_agents_only_so_many_are_named() {
        let child = |n: usize| (AgentPath::parse(&format!("/root/c{n}")).unwrap(), None);
        let many = Situation { children: (0..53).map(child).collect(), ..situation("/root") };
        let told = instructions(&many, &Profile::default());
        assert!(told.contains("/root/c49, and 3 more that list_agents shows."), "{told}");
        assert!(!told.contains("/root/c50"), "{told}");
    }

    #[test]
    fn a_long_result_is_cut_in_its_middle_and_points_to_the_whole() {
        let child = Sender::Agent(AgentPath::parse("/root/a").unwrap());
        let long = format!("{}{}", "内".repeat(20_000), "é".repeat(20_000));
        let cut = heard(&child, MailKind::Result, &long);
        assert!((INLINE_RESULT - 1..=INLINE_RESULT).contains(&cut.chars().count()));
        assert!(cut.starts_with("内内") && cut.ends_with("éé"));
        assert!(cut.contains("the whole: read_result {\"target\": \"/root/a\"}]"));
        assert_eq!(heard(&child, MailKind::Mail, &long), long);
        let exact = "内".repeat(INLINE_RESULT);
        assert_eq!(heard(&child, MailKind::Result, &exact), exact);
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..Default::default() })]
        #[test]
        fn field_nam_08_a_cut_at_any_width_breaks_nothing(text in "\\PC{0,300}", limit in 0_usize..400) {
            let cut = inline(&text, limit, "there");
            prop_assert!(cut.chars().count() <= limit);
            if text.chars().count() <= limit {
                prop_assert_eq!(cut.as_ref(), text.as_str());
            }
        }
    }
}

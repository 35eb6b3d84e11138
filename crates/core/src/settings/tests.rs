//! What is read from a settings file, and how what cannot be used is named.

use super::*;
use crate::hook::Moment;
use crate::id::SessionId;

fn error(text: &str) -> String {
    Settings::parse(text).unwrap_err().to_string()
}

#[test]
fn an_unknown_key_names_the_nearest() {
    let error = error("[sessions]\ncapasity = 3\n");
    assert!(error.contains("line 2") && error.ends_with("capacity"), "{error}");
    assert!(Settings::parse("[sessions]\ncapacity = 0\n").is_err());
    let runs = Settings::parse("[runs]\nbound = 5\nreserved = 1\n").unwrap().runs;
    assert_eq!(runs.on(64), Bound { runs: 5, reserved: 1 });
    assert_eq!(Runs::default().on(64), Bound { runs: 16, reserved: 0 });
    assert_eq!(Settings::parse("").unwrap().sessions.capacity, 8);
}

#[test]
fn every_table_is_closed() {
    for (text, near) in [
        ("[session]\n", "expected a sequence"),
        ("[rolls.x]\n", "roles"),
        ("[roles.x]\ninstruction = \"\"\n", "instructions"),
        ("[permissions]\ndenies = []\n", "deny"),
        ("[hooks]\nprompts = []\n", "prompt"),
        ("[[hooks.prompt]]\ncommand = [\"x\"]\nsecond = 3\n", "seconds"),
        ("[sessions.budget]\ntoken = 3\n", "tokens"),
        ("[[session]]\nlabel = \"a\"\nlable = \"a\"\n", "label"),
        ("[agents.x]\nkind = \"acp\"\ncommand = [\"x\"]\nenv = []\n", "environment"),
        ("[models.x]\nmodle = \"m\"\n", "model"),
    ] {
        let error = error(text);
        assert!(error.contains(near), "{text}: {error}");
    }
}

#[test]
fn capacity_goes_from_1_to_1024() {
    let parse = |n: u32| Settings::parse(&format!("[sessions]\ncapacity = {n}\n"));
    assert!(parse(1024).is_ok() && parse(1).is_ok());
    assert!(parse(1025).is_err() && parse(0).is_err());
}

#[test]
fn a_whole_file_is_read() {
    let settings = Settings::parse(
        r#"
        [sessions]
        budget = { tokens = 1000, wall_seconds = 60 }
        agent_budget = { turns = 3 }

        [roles.careful]
        instructions = "Look twice."
        tools = ["read"]
        delegates = false
        effort = "high"
        permissions = { deny = ["command:git push"] }

        [permissions]
        allow = ["command:cargo test", "edit:docs/**"]
        ask = ["edit:Cargo.toml"]
        inaccessible = [".env"]

        [[hooks.prompt]]
        command = ["/usr/bin/check", "--all"]

        [agents.codex]
        kind = "acp"
        command = ["codex-acp"]
        environment = ["CODEX_HOME"]

        [models.big]
        model = "big-1"

        [[session]]
        label = "nightly"
        start = true
        agent = "codex"
        roots = ["/w/app"]
        "#,
    )
    .unwrap();
    assert_eq!(settings.sessions.budget.tokens, Some(1000));
    assert_eq!(settings.permissions.rules().len(), 4);
    let role = settings.roles.values().next().unwrap();
    assert!(!role.delegates && role.permissions.rules().len() == 1);
    assert_eq!(settings.hooks.at(Moment::Prompt).len(), 1);
    assert_eq!(settings.hooks.at(Moment::Prompt)[0].seconds, 60);
    assert!(settings.hooks.at(Moment::Stop).is_empty());
    assert_eq!(settings.agents["codex"].command.words(), ["codex-acp"]);
    assert_eq!(settings.agents["codex"].environment[0].as_str(), "CODEX_HOME");
    assert_eq!(settings.session[0].identity(), Identity::Fresh);
    assert_eq!(settings.session[0].mint("u1").unwrap().as_str(), "nightly-session-u1");
    for bad in [
        "[agents.x]\nkind = \"acp\"\ncommand = []\n",
        "[agents.x]\nkind = \"mcp\"\ncommand = [\"x\"]\n",
        "[agents.x]\nkind = \"acp\"\ncommand = [\"x\"]\nenvironment = [\"KEY=value\"]\n",
        "[agents.x]\nkind = \"acp\"\ncommand = [\"x\"]\nenvironment = [\"STEAD_SOCKET\"]\n",
        "[[hooks.stop]]\ncommand = []\n",
        "[[hooks.stop]]\ncommand = [\"x\"]\nseconds = 0\n",
        "[permissions]\ndeny = [\"git push\"]\n",
        "[roles.\"a b\"]\n",
    ] {
        assert!(Settings::parse(bad).is_err(), "{bad}");
    }
}

#[test]
fn agents_75_two_sessions_of_one_id_are_refused_before_anything_starts() {
    let both = "[[session]]\nlabel = \"a\"\nsession_id = \"s\"\nresume_session_id = \"t\"\n";
    assert!(error(both).contains("a has a session_id and a resume_session_id"));
    for second in ["session_id", "resume_session_id"] {
        let twice = format!(
            "[[session]]\nlabel = \"a\"\nsession_id = \"s\"\n\
             [[session]]\nlabel = \"b\"\n{second} = \"s\"\n"
        );
        assert!(error(&twice).contains("a and b have one id, s"), "{}", error(&twice));
    }
    assert!(error("[[session]]\nlabel = \"a\"\n[[session]]\nlabel = \"a\"\n").contains("twice"));
    assert!(Settings::parse("[[session]]\nlabel = \"a\"\nsession_id = \"\"\n").is_err());
    assert!(Settings::parse("[[session]]\nlabel = \"a\"\nresume_session_id = \"/\"\n").is_err());
}

#[test]
fn which_id_a_configured_session_has() {
    let identity = |keys: &str| {
        let text = format!("[[session]]\nlabel = \"a\"\n{keys}");
        Settings::parse(&text).unwrap().session[0].identity()
    };
    let id = || SessionId::parse("s").unwrap();
    assert_eq!(identity("resume_session_id = \"\"\n"), Identity::Fresh);
    assert_eq!(identity("session_id = \"s\"\nresume_session_id = \"\"\n"), Identity::Exact(id()));
    assert_eq!(identity("resume_session_id = \"s\"\n"), Identity::Resume(id()));
}

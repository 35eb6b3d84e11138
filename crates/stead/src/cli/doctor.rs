//! `stead doctor`: what is held and what is wrong, each with the command that helps. It needs no
//! engine, and what it looks at it does not change.

mod copies;
mod engine;
mod finding;
mod home;
mod places;
mod rests;
mod store;

use clap::Args;
use serde::Serialize;
use stead_engine::BUILD;

use super::program::Json;
use crate::context::Context;
use crate::exit::{Done, Exit};
use crate::output::{answer, document, style, styled};
use finding::{Finding, State};

/// Look at the home: what is held, what is wrong, and what helps
///
/// Works without the engine. Like every command of yours it first makes whole what an apply that was
/// cut short has left half-way, and says so; it changes nothing else. Exits with 1 when something is
/// wrong.
#[derive(Debug, Args)]
pub(crate) struct DoctorArguments {
    #[command(flatten)]
    json: Json,
}

#[derive(Serialize)]
struct Report {
    program: &'static str,
    build: &'static str,
    home: String,
    sound: bool,
    findings: Vec<Finding>,
}

/// Looks and tells.
pub(crate) fn doctor(arguments: &DoctorArguments) -> Done {
    let context = Context::new()?;
    let findings = look(&context);
    let sound = findings.iter().all(|finding| finding.state != State::Fault);
    if arguments.json.json {
        document(&Report {
            program: env!("CARGO_PKG_VERSION"),
            build: BUILD,
            home: context.home.data().to_string_lossy().into_owned(),
            sound,
            findings,
        })?;
    } else {
        answer(text(&findings))?;
    }
    Ok(if sound { Exit::DONE } else { Exit::ERRORED })
}

fn look(context: &Context) -> Vec<Finding> {
    let mut findings =
        vec![Finding::ok("program", format!("stead {}, build {BUILD}", env!("CARGO_PKG_VERSION")))];
    findings.extend(home::home(&context.home));
    findings.extend(home::kinds(&context.home));
    findings.push(home::settings(&context.home));
    let (engine, alive) = engine::engine(&context.home);
    findings.extend(engine);
    findings.extend(engine::runs(&context.home, alive));
    findings.extend(store::store(&context.home, alive));
    findings.extend(copies::copies(context, jiff::Timestamp::now().as_millisecond()));
    findings.extend(places::places(&context.home));
    findings.extend(home::left_over(&context.home));
    findings.extend(home::programs(&context.variables));
    findings
}

fn text(findings: &[Finding]) -> String {
    let widest = findings.iter().map(|finding| finding.what.len()).max().unwrap_or(0);
    let mut text = String::new();
    for finding in findings {
        text.push_str(&finding.text(widest));
    }
    let count = |state| findings.iter().filter(|finding| finding.state == state).count();
    let verdict = match (count(State::Fault), count(State::Warning)) {
        (0, 0) => styled(style::GOOD, "all is well"),
        (0, warnings) => {
            let warnings = crate::render::counted(warnings, "thing", "things");
            styled(style::ASK, format_args!("nothing is wrong; {warnings} to know"))
        }
        (faults, _) => {
            let faults = crate::render::counted(faults, "thing is", "things are");
            styled(style::BAD, format_args!("{faults} wrong"))
        }
    };
    text.push_str(&format!("\n{verdict}\n"));
    if findings.iter().any(|finding| finding.line == store::NOTHING) {
        text.push_str(
            "first: stead demo, or stead run --agent playbook:FILE \"MESSAGE\"  \
             (`stead help run` shows a small playbook)\n",
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use anstream::adapter::strip_str;
    use stead_engine::Home;

    use super::*;

    fn context(folder: &Path) -> Context {
        let variables = [
            ("STEAD_HOME", folder.join("home")),
            ("XDG_CONFIG_HOME", folder.join("config")),
            ("XDG_STATE_HOME", folder.join("state")),
            ("XDG_RUNTIME_DIR", folder.join("run")),
            ("PATH", folder.join("bin")),
        ];
        let variables =
            variables.into_iter().map(|(k, v)| (k.into(), v.into_os_string())).collect();
        let home = Home::derive(&variables, Path::new("/tmp"), 7).unwrap();
        Context { variables, home, cut_short: Vec::new() }
    }

    fn install(folder: &Path) {
        use std::os::unix::fs::OpenOptionsExt as _;
        std::fs::create_dir(folder.join("bin")).unwrap();
        for name in ["bash", "git"] {
            let program = folder.join("bin").join(name);
            std::fs::OpenOptions::new()
                .write(true)
                .create_new(true)
                .mode(0o755)
                .open(program)
                .unwrap();
        }
    }

    fn shown(context: &Context, folder: &Path) -> String {
        let text = text(&look(context));
        strip_str(&text)
            .to_string()
            .replace(folder.to_str().unwrap(), "FOLDER")
            .replace(BUILD, "BUILD")
    }

    #[test]
    fn a_fresh_machine_is_well_and_stays_untouched() {
        let folder = tempfile::tempdir().unwrap();
        let context = context(folder.path());
        install(folder.path());
        insta::assert_snapshot!(shown(&context, folder.path()));
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "only the programs");
    }

    #[test]
    fn a_home_that_others_can_write_and_bad_settings_are_named() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().unwrap();
        let context = context(folder.path());
        std::fs::create_dir_all(context.home.data()).unwrap();
        std::fs::set_permissions(context.home.data(), std::fs::Permissions::from_mode(0o777))
            .unwrap();
        std::fs::create_dir_all(context.home.settings().parent().unwrap()).unwrap();
        std::fs::write(context.home.settings(), "[sessions]\ncapasity = 3\n").unwrap();
        std::fs::write(context.home.database(), "no database").unwrap();
        let findings = look(&context);
        let faults: Vec<&str> =
            findings.iter().filter(|f| f.state == State::Fault).map(|f| f.what).collect();
        assert_eq!(faults, ["home", "settings", "store", "bash", "git"]);
        assert!(findings.iter().filter(|f| f.state == State::Fault).all(|f| f.help.is_some()));
    }
}

//! What of a caller's environment a command may see.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};

/// The variables that pass: who and where one is, and where toolchains live.
pub const ALLOWED: [&str; 46] = [
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "TERM",
    "COLORTERM",
    "TZ",
    "LANG",
    "LANGUAGE",
    "TMPDIR",
    "CARGO_HOME",
    "RUSTUP_HOME",
    "RUSTUP_TOOLCHAIN",
    "GOPATH",
    "GOROOT",
    "GOCACHE",
    "GOMODCACHE",
    "GOTOOLCHAIN",
    "JAVA_HOME",
    "GRADLE_USER_HOME",
    "MAVEN_HOME",
    "M2_HOME",
    "ANDROID_HOME",
    "NVM_DIR",
    "NVM_BIN",
    "VOLTA_HOME",
    "FNM_DIR",
    "PNPM_HOME",
    "BUN_INSTALL",
    "DENO_DIR",
    "NODE_PATH",
    "PYENV_ROOT",
    "VIRTUAL_ENV",
    "CONDA_PREFIX",
    "UV_CACHE_DIR",
    "RBENV_ROOT",
    "GEM_HOME",
    "GEM_PATH",
    "ASDF_DIR",
    "ASDF_DATA_DIR",
    "MISE_DATA_DIR",
    "DOTNET_ROOT",
    "SDKMAN_DIR",
    "XDG_CACHE_HOME",
    "XDG_CONFIG_HOME",
];

/// Git's variables that would lead it to another repository, index, object store or configuration
/// than the one its directory says (`git rev-parse --local-env-vars`, and a few more).
pub const GIT_DISCOVERY: [&str; 23] = [
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_ATTR_SOURCE",
    "GIT_CEILING_DIRECTORIES",
    "GIT_COMMON_DIR",
    "GIT_CONFIG",
    "GIT_CONFIG_COUNT",
    "GIT_CONFIG_GLOBAL",
    "GIT_CONFIG_NOSYSTEM",
    "GIT_CONFIG_PARAMETERS",
    "GIT_CONFIG_SYSTEM",
    "GIT_DEFAULT_HASH",
    "GIT_DIR",
    "GIT_DISCOVERY_ACROSS_FILESYSTEM",
    "GIT_GRAFT_FILE",
    "GIT_IMPLICIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_INTERNAL_SUPER_PREFIX",
    "GIT_NAMESPACE",
    "GIT_NO_REPLACE_OBJECTS",
    "GIT_OBJECT_DIRECTORY",
    "GIT_PREFIX",
    "GIT_QUARANTINE_PATH",
    "GIT_WORK_TREE",
];

/// What is set whatever the caller had, so that nothing asks a person who is not there: Git neither
/// on a terminal nor through a helper window, ssh not through one either.
const SILENT: [(&str, &str); 3] =
    [("GIT_TERMINAL_PROMPT", "0"), ("GIT_ASKPASS", ""), ("SSH_ASKPASS_REQUIRE", "never")];

/// Whether `name` is one of Git's variables that must not leak into a command, the numbered
/// `GIT_CONFIG_KEY_…` and `GIT_CONFIG_VALUE_…` included.
pub fn is_git_discovery(name: &OsStr) -> bool {
    name.to_str().is_some_and(|name| {
        GIT_DISCOVERY.contains(&name)
            || name.starts_with("GIT_CONFIG_KEY_")
            || name.starts_with("GIT_CONFIG_VALUE_")
            || name == "GIT_SHALLOW_FILE"
            || name == "GIT_REPLACE_REF_BASE"
    })
}

/// Removes Git's discovery variables and leaves the rest: for a command that otherwise gets what
/// its caller chose.
pub fn without_git_discovery(environment: &mut BTreeMap<OsString, OsString>) {
    environment.retain(|name, _| !is_git_discovery(name));
}

/// The part of `source` that a command gets: [`ALLOWED`] and every `LC_…`, and the three variables
/// that keep Git and ssh from asking for credentials.
pub fn scrubbed(
    source: impl IntoIterator<Item = (OsString, OsString)>,
) -> BTreeMap<OsString, OsString> {
    let mut kept: BTreeMap<OsString, OsString> = source
        .into_iter()
        .filter(|(name, _)| {
            name.to_str().is_some_and(|name| ALLOWED.contains(&name) || name.starts_with("LC_"))
        })
        .collect();
    silence(&mut kept);
    kept
}

/// Sets the variables that keep Git and ssh from asking for credentials, and removes the askpass
/// program of ssh.
pub fn silence(environment: &mut BTreeMap<OsString, OsString>) {
    environment.remove(OsStr::new("SSH_ASKPASS"));
    environment.extend(SILENT.map(|(name, value)| (name.into(), value.into())));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(names: &[&str]) -> Vec<(OsString, OsString)> {
        names.iter().map(|name| (name.into(), "x".into())).collect()
    }

    #[test]
    fn secrets_and_git_do_not_pass_and_toolchains_do() {
        let kept = scrubbed(pairs(&[
            "PATH",
            "LC_ALL",
            "GOPATH",
            "GIT_DIR",
            "ANTHROPIC_API_KEY",
            "SSH_ASKPASS",
            "GIT_ASKPASS",
        ]));
        let names: Vec<&str> = kept.keys().map(|name| name.to_str().unwrap()).collect();
        let expected = [
            "GIT_ASKPASS",
            "GIT_TERMINAL_PROMPT",
            "GOPATH",
            "LC_ALL",
            "PATH",
            "SSH_ASKPASS_REQUIRE",
        ];
        assert_eq!(names, expected);
        assert_eq!(kept[OsStr::new("GIT_ASKPASS")], "");
    }

    #[test]
    fn what_git_itself_calls_local_is_removed() {
        let said = std::process::Command::new("git")
            .args(["rev-parse", "--local-env-vars"])
            .output()
            .unwrap();
        for name in String::from_utf8(said.stdout).unwrap().lines() {
            assert!(is_git_discovery(OsStr::new(name)), "{name}");
        }
        let mut all: BTreeMap<_, _> =
            pairs(&["GIT_DIR", "GIT_CONFIG_KEY_0", "GIT_CONFIG_VALUE_0", "GIT_AUTHOR_NAME"])
                .into_iter()
                .collect();
        without_git_discovery(&mut all);
        assert_eq!(all.into_keys().collect::<Vec<_>>(), ["GIT_AUTHOR_NAME"]);
    }
}

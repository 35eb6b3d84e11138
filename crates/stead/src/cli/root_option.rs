//! `--root [SLOT=]PATH[:read|:write]`.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

use stead_core::id::SlotName;
use stead_core::layout::{AbsoluteDir, Access};
use stead_core::refusal::Refusal;
use stead_engine::api::RootParams;

use crate::clean;
use crate::exit::usage;

/// A root as it was given.
#[derive(Debug, PartialEq, Eq)]
struct Given {
    slot: Option<SlotName>,
    path: PathBuf,
    access: Access,
    /// Why what stands before the first `=` is no slot, if something does.
    no_slot: Option<String>,
}

/// The roots of a session; without any, the folder `here`.
pub(crate) fn parse(given: &[OsString], here: &Path) -> Result<Vec<RootParams>, Refusal> {
    if given.is_empty() {
        let path = here.to_owned();
        let here = Given { slot: None, path, access: Access::Write, no_slot: None };
        return Ok(vec![admit(here)?]);
    }
    given.iter().map(|text| read(text).and_then(admit)).collect()
}

/// Only `:read` and `:write` at the end are cut off the path; what stands before the first `=` is
/// a slot if it can be one, so `./a=b` is a path and `a=b` is not.
fn read(text: &OsStr) -> Result<Given, Refusal> {
    let bytes = text.as_bytes();
    let (bytes, access) = match (bytes.strip_suffix(b":read"), bytes.strip_suffix(b":write")) {
        (Some(path), _) => (path, Access::Read),
        (_, Some(path)) => (path, Access::Write),
        _ => (bytes, Access::Write),
    };
    let mut parts = bytes.splitn(2, |b| *b == b'=');
    let (first, rest) = (parts.next().unwrap_or_default(), parts.next());
    let name = String::from_utf8_lossy(first);
    let (slot, path, no_slot) = match (SlotName::parse(&name), rest) {
        (Ok(slot), Some(path)) => (Some(slot), path, None),
        (Err(why), Some(_)) if !first.contains(&b'/') => {
            let name = clean::brief(&name, 80);
            (None, bytes, Some(format!("{name} before the `=` can be no slot: {why}")))
        }
        _ => (None, bytes, None),
    };
    if path.is_empty() {
        let shown = clean::brief(&text.to_string_lossy(), 200);
        return Err(usage(format!("--root {shown:?} names no folder"))
            .hint("--root [SLOT=]PATH[:read|:write]"));
    }
    Ok(Given { slot, path: PathBuf::from(OsString::from_vec(path.to_vec())), access, no_slot })
}

/// Makes the folder canonical, so that a wrong one is named before anything is started.
fn admit(given: Given) -> Result<RootParams, Refusal> {
    let shown = clean::path(&given.path);
    let refuse = |why: String| {
        usage(format!("the root {shown} cannot be used: {why}")).hint(
            "--root [SLOT=]PATH[:read|:write]; only those two endings are no part of the path",
        )
    };
    let canonical = given.path.canonicalize().map_err(|error| {
        refuse(
            given.no_slot.clone().map_or_else(|| error.to_string(), |no| format!("{error}; {no}")),
        )
    })?;
    if canonical.to_str().is_none() {
        return Err(usage(format!("the root {shown} cannot be used: its path is not UTF-8"))
            .hint("rename it; what is in it may have any name"));
    }
    if !canonical.is_dir() {
        return Err(refuse("it is not a folder".to_owned()));
    }
    let directory = AbsoluteDir::new(canonical).map_err(|e| refuse(e.to_string()))?;
    Ok(RootParams { directory, slot: given.slot, access: given.access })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn given(text: &str) -> (Option<String>, String, Access) {
        let Given { slot, path, access, .. } = read(OsStr::new(text)).unwrap();
        (slot.map(String::from), path.to_str().unwrap().to_owned(), access)
    }

    #[test]
    fn only_two_endings_and_a_slot_are_cut_off() {
        let slot = |s: &str| Some(s.to_owned());
        assert_eq!(given("/w/app"), (None, "/w/app".into(), Access::Write));
        assert_eq!(given("/w/app:read"), (None, "/w/app".into(), Access::Read));
        assert_eq!(given("/w/app:write"), (None, "/w/app".into(), Access::Write));
        assert_eq!(given("/w/app:rw"), (None, "/w/app:rw".into(), Access::Write));
        assert_eq!(given("/w/a:read:write"), (None, "/w/a:read".into(), Access::Write));
        assert_eq!(given("lib=/w/x:read"), (slot("lib"), "/w/x".into(), Access::Read));
        assert_eq!(given("lib=a=b"), (slot("lib"), "a=b".into(), Access::Write));
        assert_eq!(given("./lib=a"), (None, "./lib=a".into(), Access::Write));
        assert_eq!(given("=a"), (None, "=a".into(), Access::Write));
    }

    #[test]
    fn a_root_without_a_folder_is_refused() {
        for text in ["", ":read", "lib=", "lib=:write"] {
            assert!(read(OsStr::new(text)).is_err(), "{text:?}");
        }
        let here = tempfile::tempdir().unwrap();
        let file = here.path().join("file");
        std::fs::write(&file, "").unwrap();
        for missing in [file.clone().into_os_string(), here.path().join("no").into_os_string()] {
            let refusal = parse(&[missing], here.path()).unwrap_err();
            assert_eq!(crate::exit::Exit::of(refusal.kind).0, 2);
        }
        let roots = parse(&[], here.path()).unwrap();
        assert_eq!(roots[0].directory.as_path(), here.path().canonicalize().unwrap());
    }

    #[test]
    fn a_slot_that_can_be_none_is_named() {
        let here = tempfile::tempdir().unwrap();
        std::fs::create_dir(here.path().join("na")).unwrap();
        for name in ["CON", "ünï", ""] {
            let folder = here.path().join("na");
            let given = format!("{name}={}", folder.display());
            let refusal = parse(&[given.into()], here.path()).unwrap_err();
            assert!(refusal.line.contains("can be no slot"), "{refusal}");
            assert!(refusal.line.contains(name), "{refusal}");
        }
    }

    #[test]
    fn a_root_whose_path_is_no_text_is_refused_as_that() {
        let here = tempfile::tempdir().unwrap();
        let folder = here.path().join(OsString::from_vec(b"x\xff".to_vec()));
        std::fs::create_dir(&folder).unwrap();
        let refusal = parse(&[folder.into_os_string()], here.path()).unwrap_err();
        assert!(refusal.line.contains("not UTF-8"), "{refusal}");
    }

    #[test]
    fn a_path_may_have_any_bytes() {
        let text = OsString::from_vec(b"a=/w/\xff:read".to_vec());
        let read = read(&text).unwrap();
        assert_eq!(read.path.as_os_str().as_bytes(), b"/w/\xff");
        assert_eq!(read.access, Access::Read);
    }
}

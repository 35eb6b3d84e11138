//! The roots that a person gives to a session.

use stead_core::id::RootId;
use stead_core::layout::{AbsoluteDir, Root, RootIdentity, derive_slot};
use stead_core::refusal::{Refusal, RefusalKind};
use stead_files::FileIdentity;

use crate::api::RootParams;

/// Looks at the roots that a person gave and makes them canonical.
pub(crate) fn admit(roots: Vec<RootParams>) -> Result<Vec<Root>, Refusal> {
    let mut admitted: Vec<Root> = Vec::with_capacity(roots.len());
    for RootParams { directory, slot, access } in roots {
        let given = directory.as_path();
        let refuse = |line: String| {
            Refusal::new(RefusalKind::InvalidArgument, line).hint("`--root DIR` names a folder")
        };
        let canonical = given
            .canonicalize()
            .map_err(|e| refuse(format!("the root {} cannot be used: {e}", given.display())))?;
        if !canonical.is_dir() {
            return Err(refuse(format!("the root {} is not a folder", given.display())));
        }
        let identity = FileIdentity::of(&canonical)
            .map_err(|e| refuse(format!("the root {} cannot be used: {e}", given.display())))?;
        let taken: Vec<_> = admitted.iter().map(|r| r.slot.clone()).collect();
        let slot = slot
            .or_else(|| derive_slot(&canonical, &taken))
            .ok_or_else(|| refuse(format!("the root {} needs a slot", given.display())))?;
        admitted.push(Root {
            id: RootId::parse(&uuid::Uuid::now_v7().to_string())
                .map_err(|e| failed(e.to_string()))?,
            slot,
            directory: AbsoluteDir::new(canonical).map_err(|e| refuse(e.to_string()))?,
            access,
            identity: RootIdentity {
                inode: identity.inode,
                birth: identity.birth.map(|b| (b.secs, b.nanos)),
            },
        });
    }
    Ok(admitted)
}

fn failed(line: String) -> Refusal {
    Refusal::new(RefusalKind::Failed, line)
}

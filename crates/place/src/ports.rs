//! Which block of ports a place gets. Pure.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

/// How many ports a block has.
pub const BLOCK: u16 = 16;

/// The ports that blocks are cut from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PortRange {
    first: u16,
    blocks: u16,
}

impl Default for PortRange {
    /// 21000 to 30999: 625 blocks.
    fn default() -> Self {
        Self { first: 21_000, blocks: 625 }
    }
}

impl PortRange {
    /// The range from `first` to `last`, both in it; `None` when not even one block fits, or when
    /// it begins with the port 0.
    pub fn new(first: u16, last: u16) -> Option<Self> {
        let ports = u32::from(last).checked_sub(u32::from(first))?.checked_add(1)?;
        let blocks = u16::try_from(ports / u32::from(BLOCK)).ok()?;
        (first > 0 && blocks > 0).then_some(Self { first, blocks })
    }

    /// The blocks that nobody holds, in the order in which the owner of a registry tries them. Each
    /// `seed` begins somewhere else, far from its neighbours, because a registry does not know what
    /// another one holds.
    pub fn free(self, seed: u32, taken: &BTreeSet<Block>) -> impl Iterator<Item = Block> {
        let count = u32::from(self.blocks);
        // Prime, and no divisor of any usual number of blocks: 151 blocks between two neighbours.
        let begin = seed.wrapping_mul(151).checked_rem(count).unwrap_or(0);
        (0..self.blocks)
            .filter_map(move |step| {
                let index = begin.checked_add(u32::from(step))?.checked_rem(count)?;
                let index = u16::try_from(index).ok()?;
                let first = self.first.checked_add(index.checked_mul(BLOCK)?)?;
                Some(Block { first })
            })
            // A range that was changed may cut blocks that overlap the old ones.
            .filter(|block| !taken.iter().any(|other| other.overlaps(*block)))
    }
}

/// Sixteen ports that belong together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Block {
    first: u16,
}

impl Block {
    /// The first port.
    pub fn first(self) -> u16 {
        self.first
    }

    /// The last port.
    pub fn last(self) -> u16 {
        self.first.saturating_add(BLOCK - 1)
    }

    /// All its ports.
    pub fn ports(self) -> impl Iterator<Item = u16> {
        self.first..=self.last()
    }

    /// Whether the port is one of the block's.
    pub fn has(self, port: u16) -> bool {
        (self.first..=self.last()).contains(&port)
    }

    /// Whether the two have a port in common.
    pub fn overlaps(self, other: Self) -> bool {
        self.first <= other.last() && other.first <= self.last()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_default_range_ends_at_30999() {
        let all: BTreeSet<Block> = PortRange::default().free(1000, &BTreeSet::new()).collect();
        assert_eq!(all.len(), 625);
        assert_eq!(all.first().unwrap().first(), 21_000);
        assert_eq!(all.last().unwrap().last(), 30_999);
        assert_eq!(PortRange::new(21_000, 30_999), Some(PortRange::default()));
        assert_eq!(PortRange::new(0, 100), None);
        assert_eq!(PortRange::new(100, 114), None);
        assert_eq!(PortRange::new(9, 8), None);
        assert!(PortRange::new(65_520, 65_535).unwrap().free(0, &BTreeSet::new()).count() == 1);
    }

    #[test]
    fn neighbouring_seeds_begin_far_apart() {
        let first = |user| PortRange::default().free(user, &BTreeSet::new()).next().unwrap();
        for user in 1000..1004 {
            let apart = i32::from(first(user).first()) - i32::from(first(user + 1).first());
            assert!(apart.unsigned_abs() >= 100 * u32::from(BLOCK), "{user}");
        }
    }

    proptest! {
        /// Against the plainest model: a set of ports in use. No two holds share one, whatever was
        /// taken and released before, and a block is found as long as there is one.
        #[test]
        fn held_blocks_never_share_a_port(
            first in 1u16..60_000,
            blocks in 1u16..12,
            user in any::<u32>(),
            acts in proptest::collection::vec(proptest::option::of(0usize..12), 0..80),
        ) {
            let range = PortRange::new(first, first + blocks * BLOCK - 1).unwrap();
            let mut held: Vec<Block> = Vec::new();
            for act in acts {
                if let Some(at) = act {
                    if at < held.len() {
                        held.swap_remove(at);
                    }
                } else {
                    let taken = held.iter().copied().collect();
                    if let Some(block) = range.free(user, &taken).next() {
                        held.push(block);
                    } else {
                        prop_assert_eq!(held.len(), usize::from(blocks));
                    }
                }
                let ports: Vec<u16> = held.iter().flat_map(|block| block.ports()).collect();
                let distinct: BTreeSet<u16> = ports.iter().copied().collect();
                prop_assert_eq!(ports.len(), distinct.len());
                prop_assert!(ports.iter().all(|p| (first..first + blocks * BLOCK).contains(p)));
            }
        }

        #[test]
        fn a_changed_range_never_overlaps_what_is_held(shift in 0u16..40, user in any::<u32>()) {
            let old = PortRange::new(21_000, 21_160).unwrap();
            let taken: BTreeSet<Block> = old.free(user, &BTreeSet::new()).step_by(2).collect();
            let new = PortRange::new(21_000 + shift, 21_200).unwrap();
            for block in new.free(user, &taken) {
                prop_assert!(block.ports().all(|port| !taken.iter().any(|held| held.has(port))));
            }
        }
    }
}

//! Simulations made elsewhere: proposals that go out, shards that come back, and merging them.

mod calibration;
mod merge;
mod proposal;
mod shard;

pub use merge::Merged;
pub use proposal::{Origin, ProposalFile};
pub use shard::Shard;

//! PyTorch's numbers and rules, by release: the sizes of blocks and segments, which block pool serves which
//! request, when a block is split, the settings and the texts of their errors.
//!
//! All functions take sizes and settings and keep no state. Other crates take PyTorch's numbers from here and
//! have none themselves. Only `replay::rivals` has numbers too: the sizes that other allocators round to.
//!
//! # Example
//!
//! A request of 3 MiB takes a segment of 20 MiB, unless a setting says otherwise:
//!
//! ```
//! use blockyard_rules::{AllocatorConfig, Bytes, PoolKind, Release, size};
//!
//! let config = AllocatorConfig::default();
//! let rounded = size::rounded(Bytes::mib(3), &config);
//! assert_eq!(PoolKind::serving(rounded), PoolKind::Large);
//! assert_eq!(size::segment_size(rounded, &config), Bytes::mib(20));
//!
//! let wider = AllocatorConfig::parse("large_segment_size_mb:32", Release::default())?;
//! assert_eq!(size::segment_size(rounded, &wider), Bytes::mib(32));
//! # Ok::<(), blockyard_rules::ConfigError>(())
//! ```
//!
//! # Reading order
//!
//! `release` (the releases of PyTorch), `dialect` (whose GPUs a build is for), `blas` (workspaces of products
//! of matrices), `size` (thresholds and rounding), `config` (settings and their syntax, as two parsers read
//! them; [`Environment`] is the order of the environment variables), `bytes` (numbers of bytes), `pool_kind`
//! (the two block pools), `backend` (which allocator a setting chooses).

#![forbid(unsafe_code)]

mod backend;
mod blas;
mod bytes;
mod config;
mod dialect;
mod pool_kind;
mod release;
mod schema;
pub mod size;

pub use backend::Backend;
pub use blas::{BlasVariables, BlasWorkspaces};
pub use bytes::Bytes;
pub use config::{
    AddressReserve, AllocatorConfig, ConfigError, Environment, EnvironmentError, PinnedConfig, SETTING_KEYS,
    SettingKey, conf_text, has_setting, known_config, left_out_note, setting_values, shell_line,
    with_setting,
};
pub use dialect::Dialect;
pub use pool_kind::PoolKind;
pub use release::{ExpandableAdvice, Release, ReleaseError};

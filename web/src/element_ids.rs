//! Ids of the elements that keys and links move the focus to.

/// The text of the workload.
pub(crate) const WORKLOAD_TEXT: &str = "workload-text";

/// The filter of the holders.
pub(crate) const HOLDERS_FILTER: &str = "holders-search";

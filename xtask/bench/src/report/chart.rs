//! placeholder
use super::Report;
/// placeholder
#[must_use]
pub fn chart(_report: &Report) -> String {
    String::new()
}

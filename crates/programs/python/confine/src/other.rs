//! Systems on which a process cannot confine itself.

use crate::{ConfineError, Confinement};

pub(crate) fn confine(_confinement: &Confinement) -> Result<(), ConfineError> {
    Err(ConfineError::System)
}

pub(crate) fn check() -> Result<(), ConfineError> {
    Err(ConfineError::System)
}

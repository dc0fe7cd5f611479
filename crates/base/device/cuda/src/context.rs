//! The primary context of a device, which the device and its events share.

use std::sync::{Mutex, PoisonError};

use crate::driver;
use crate::error::DriverError;

/// The resources that a device shares with its events: the primary context, and events that are not in use.
#[derive(Debug)]
pub(crate) struct DeviceContext {
    raw: driver::PrimaryContext,
    pub(crate) device: driver::Device,
    /// Events that are not in use. They are kept, because making an event costs several times as much as
    /// recording an event.
    idle: Mutex<Vec<driver::Event>>,
}

impl DeviceContext {
    pub(crate) fn retain(device: driver::Device) -> Result<Self, DriverError> {
        Ok(Self { raw: driver::PrimaryContext::retain(device)?, device, idle: Mutex::new(Vec::new()) })
    }

    pub(crate) fn enter(&self) -> Result<driver::ContextGuard, DriverError> {
        self.raw.enter()
    }

    pub(crate) fn take_event(&self, current: &driver::ContextGuard) -> Result<driver::Event, DriverError> {
        match self.idle().pop() {
            Some(event) => Ok(event),
            None => driver::Event::create(current),
        }
    }

    pub(crate) fn put_event(&self, event: driver::Event) {
        self.idle().push(event);
    }

    // A list of handles is consistent at any time, also after a thread panicked.
    fn idle(&self) -> std::sync::MutexGuard<'_, Vec<driver::Event>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for DeviceContext {
    fn drop(&mut self) {
        let events = std::mem::take(&mut *self.idle());
        if let Ok(current) = self.raw.enter() {
            for event in events {
                event.destroy(&current);
            }
        }
    }
}

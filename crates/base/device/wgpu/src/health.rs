//! Whether the adapter still works: errors that arrive after the call that caused them.

use std::sync::{Arc, Mutex, PoisonError};

use blockyard_device::DeviceError;

/// The message of the first error of the adapter. Later errors do not replace the message.
#[derive(Clone, Debug, Default)]
pub(crate) struct Health(Arc<Mutex<Option<String>>>);

impl Health {
    /// Listens to the errors that the device reports outside of calls.
    pub(crate) fn of(device: &wgpu::Device) -> Self {
        let health = Self::default();
        let heard = health.clone();
        device.on_uncaptured_error(Arc::new(move |error: wgpu::Error| {
            heard.fail(&first_line(&error.to_string()));
        }));
        let heard = health.clone();
        device.set_device_lost_callback(move |reason, message| {
            let message = first_line(&message);
            // Some drivers report a loss without a reason.
            heard.fail(&if message.is_empty() { format!("{reason:?}") } else { message });
        });
        health
    }

    pub(crate) fn fail(&self, message: &str) {
        // Later failures follow from the first failure and say less.
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert_with(|| message.to_owned());
    }

    pub(crate) fn check(&self) -> Result<(), DeviceError> {
        match &*self.0.lock().unwrap_or_else(PoisonError::into_inner) {
            None => Ok(()),
            Some(message) => Err(DeviceError::Lost { source: message.clone().into() }),
        }
    }
}

/// The first line of a message. A validation error has a page of text, and its first line names the error.
fn first_line(message: &str) -> String {
    message.trim().lines().next().unwrap_or_default().trim_end_matches([':', '.']).to_owned()
}

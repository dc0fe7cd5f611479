//! The devices of a snapshot and host memory, by name and by place.

use std::str::FromStr;

use blockyard_record::Bytes;

use super::{DeviceSnapshot, FieldError, SnapshotError, SnapshotFile};

/// How a caller names a device of a snapshot, or host memory: `0`, `cuda:0`, `host`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryName {
    /// The device with this index.
    Device(u32),
    /// Host (pinned) memory.
    Host,
}

/// The text names neither a device nor host memory.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("\"{0}\" is neither the number of a device nor `host`")]
pub struct MemoryNameError(String);

impl FromStr for MemoryName {
    type Err = MemoryNameError;

    fn from_str(text: &str) -> Result<Self, MemoryNameError> {
        if text == "host" {
            return Ok(Self::Host);
        }
        let index = text.strip_prefix("cuda:").unwrap_or(text).parse();
        index.map(Self::Device).map_err(|_| MemoryNameError(text.to_owned()))
    }
}

impl std::fmt::Display for MemoryName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Device(index) => f.write_str(&memory_name(*index, false)),
            Self::Host => f.write_str(&memory_name(0, true)),
        }
    }
}

impl DeviceSnapshot {
    /// `device 0`, or `host (pinned memory)`.
    #[must_use]
    pub fn name(&self) -> String {
        memory_name(self.index, self.is_host)
    }

    /// The bytes of active blocks when the snapshot was taken.
    #[must_use]
    pub fn active_at_end(&self) -> Bytes {
        let blocks = self.segments.iter().flat_map(|segment| &segment.blocks);
        blocks.filter(|block| block.state.is_active()).map(|block| block.size).sum()
    }
}

/// The name of a device, or of host memory.
#[must_use]
pub fn memory_name(index: u32, is_host: bool) -> String {
    if is_host { "host (pinned memory)".to_owned() } else { format!("device {index}") }
}

impl SnapshotFile {
    /// The devices, then host memory: all that can be drawn, each at its place.
    pub fn memories(&self) -> impl Iterator<Item = &DeviceSnapshot> {
        self.devices.iter().chain(&self.host)
    }

    /// How many entries the trace of the device, or of host memory, at `place` of [`SnapshotFile::memories`]
    /// has; 0 if no such device exists.
    #[must_use]
    pub fn trace_len(&self, place: usize) -> usize {
        self.memory(place).map_or(0, |memory| memory.trace.len())
    }

    /// The device, or host memory, at `place` of [`SnapshotFile::memories`].
    ///
    /// # Errors
    ///
    /// [`SnapshotError::Field`] if no such device exists.
    pub fn memory(&self, place: usize) -> Result<&DeviceSnapshot, SnapshotError> {
        let host = self.host.as_ref().filter(|_| place == self.devices.len());
        self.devices.get(place).or(host).ok_or_else(|| SnapshotError::Field {
            byte: None,
            path: String::new(),
            error: match self.devices.len() {
                0 => FieldError::Empty,
                count => FieldError::NoDevice { count, wanted: place.saturating_add(1) },
            },
        })
    }

    /// The device at `place` of [`SnapshotFile::devices`], whose allocator is known.
    ///
    /// # Errors
    ///
    /// [`SnapshotError::Field`] if no such device exists, and for host memory.
    pub fn device(&self, place: usize) -> Result<&DeviceSnapshot, SnapshotError> {
        let device = self.memory(place)?;
        if device.is_host {
            let path = "host_traces".to_owned();
            return Err(SnapshotError::Field { byte: None, path, error: FieldError::HostMemory });
        }
        Ok(device)
    }

    /// The place of host memory among [`SnapshotFile::memories`], if the file has any.
    #[must_use]
    pub fn host_place(&self) -> Option<usize> {
        self.host.as_ref().map(|_| self.devices.len())
    }

    /// The place of the named device, or of host memory, among [`SnapshotFile::memories`].
    #[must_use]
    pub fn place_of(&self, name: MemoryName) -> Option<usize> {
        match name {
            MemoryName::Device(index) => self.devices.iter().position(|device| device.index == index),
            MemoryName::Host => self.host_place(),
        }
    }

    /// Removes all memory but the named one.
    pub fn retain(&mut self, name: MemoryName) {
        self.devices.retain(|device| name == MemoryName::Device(device.index));
        self.host = self.host.take().filter(|_| name == MemoryName::Host);
    }

    /// The names of all memory that a caller may choose: `0, 1, host`.
    #[must_use]
    pub fn memory_names(&self) -> String {
        let devices = self.devices.iter().map(|device| device.index.to_string());
        devices.chain(self.host.iter().map(|_| "host".to_owned())).collect::<Vec<_>>().join(", ")
    }
}

// How a test steers the stand-in for CUDA's runtime.
#pragma once

#include <cstdint>

extern "C" {
/// Sets how much memory the device has. To be called before the first use of the device.
void standin_set_total(uint64_t bytes);

/// Does all work that the stream has so far: its events are complete.
void standin_advance(void* stream);

/// The same for every stream.
void standin_advance_all();

/// Whether every stream says that it is being captured. Off at first.
void standin_set_capturing(int capturing);

/// Whether work is done as soon as it is queued, so that no event is ever waited for. Off at first.
void standin_set_eager(int eager);
}

// Runs allocations and frees in a loop, through PyTorch's current allocator or through two C functions, and measures them.
// Nothing is linked: the symbols of PyTorch are those of the process that loads this.

#include <c10/cuda/CUDACachingAllocator.h>

#include <chrono>
#include <cstdint>

namespace {

using Malloc = void* (*)(ssize_t, int, void*);
using Free = void (*)(void*, ssize_t, int, void*);

// Operation `i` allocates `sizes[i]` bytes into `slots[i]`, or frees that slot where the size is 0.
template <class Allocate, class Release>
uint64_t run(const int32_t* slots, const uint64_t* sizes, size_t count, void** memory, Allocate allocate, Release release) {
  auto begun = std::chrono::steady_clock::now();
  for (size_t i = 0; i < count; ++i) {
    void*& at = memory[slots[i]];
    if (sizes[i] != 0) {
      at = allocate(sizes[i]);
    } else {
      release(at, sizes[i]);
    }
  }
  auto elapsed = std::chrono::steady_clock::now() - begun;
  return std::chrono::duration_cast<std::chrono::nanoseconds>(elapsed).count();
}

}  // namespace

extern "C" {

// Nanoseconds, or all ones when PyTorch threw an exception.
uint64_t through_pytorch(const int32_t* slots, const uint64_t* sizes, size_t count, void** memory) {
  auto* allocator = c10::cuda::CUDACachingAllocator::get();
  try {
    return run(
        slots, sizes, count, memory, [&](uint64_t size) { return allocator->raw_alloc(size); },
        [&](void* at, uint64_t) { allocator->raw_delete(at); });
  } catch (...) {
    return UINT64_MAX;
  }
}

uint64_t through_functions(
    Malloc allocate, Free release, const int32_t* slots, const uint64_t* sizes, size_t count, void** memory) {
  return run(
      slots, sizes, count, memory, [&](uint64_t size) { return allocate(size, 0, nullptr); },
      [&](void* at, uint64_t size) { release(at, size, 0, nullptr); });
}

// Does nothing, so that what PyTorch's own wrapper costs is seen. Nobody may use the memory that it returns.
void* nothing_malloc(ssize_t size, int, void*) {
  static uintptr_t next = uintptr_t{1} << 40;
  return reinterpret_cast<void*>(next += (static_cast<uintptr_t>(size) + 511) / 512 * 512);
}

void nothing_free(void*, ssize_t, int, void*) {}
}

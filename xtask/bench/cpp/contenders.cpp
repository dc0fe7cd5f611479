// The loop that is timed, the same for every contender, and PyTorch's own library as one of them.

#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAStream.h>
#include <standin.h>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <string>

extern "C" {

// What the loop calls: one allocator behind plain function pointers. The allocator comes first, as in the virtual
// functions of PyTorch's allocator, whose addresses stand in these fields without a wrapper around them.
struct Contender {
  void* self;
  void* (*allocate)(void* self, size_t size, void* stream);
  void (*free)(void* self, void* addr);
  void (*record_stream)(void* self, void* addr, void* stream);
  void (*advance)(void* self, void* stream);
  void (*advance_all)(void* self);
  void (*empty_cache)(void* self);
  void (*reset_stats)(void* self);
  void (*stats)(void* self, int64_t* into);
  // The same as `allocate` for the default stream, which it is not told; null where there is no such function.
  void* (*allocate_on_default)(void* self, size_t size, void*);
};

// `blockyard_bench_trace::Op`.
struct Op {
  uint64_t size;
  uint32_t slot;
  uint16_t stream;
  uint8_t kind;
  uint8_t padding;
};

struct ReplayInput {
  const Op* ops;
  size_t count;
  // The handles of the trace's streams.
  void* const* streams;
  // One for each slot.
  void** slots;
  // The first address that the contender returned for this trace.
  uintptr_t base;
};
}

// The loop.

namespace {

enum Kind : uint8_t { Allocate, Free, RecordStream, Advance, AdvanceAll, EmptyCache };

inline bool replay(const Contender& contender, const ReplayInput& work, uint64_t& folded) {
  void* const self = contender.self;
  const auto allocate = contender.allocate;
  const auto free = contender.free;
  void** const slots = work.slots;
  uint64_t hash = 0;
  bool is_whole = true;
  for (const Op *op = work.ops, *end = op + work.count; op != end; ++op) {
    switch (op->kind) {
      case Allocate: {
        void* addr = allocate(self, op->size, work.streams[op->stream]);
        slots[op->slot] = addr;
        is_whole &= addr != nullptr;
        hash = hash * 0x100000001b3 + (reinterpret_cast<uintptr_t>(addr) - work.base);
        break;
      }
      case Free:
        free(self, slots[op->slot]);
        break;
      case RecordStream:
        contender.record_stream(self, slots[op->slot], work.streams[op->stream]);
        break;
      case Advance:
        contender.advance(self, work.streams[op->stream]);
        break;
      case AdvanceAll:
        contender.advance_all(self);
        break;
      default:
        contender.empty_cache(self);
    }
  }
  folded = hash;
  return is_whole;
}

thread_local std::string last_error;

int guarded(const Contender* contender, const ReplayInput* work, uint32_t times, uint64_t* hash) {
  try {
    bool is_whole = true;
    for (uint32_t round = 0; round < times; ++round) is_whole &= replay(*contender, *work, *hash);
    return is_whole ? 0 : 1;
  } catch (const std::exception& thrown) {
    last_error = thrown.what();
    return 2;
  }
}

}  // namespace

extern "C" {

// What this thread's last replay threw.
const char* replay_error() { return last_error.c_str(); }

// 0 for success, 1 where an allocation failed, 2 where the contender threw. Two names for one loop: a profiler counts inside
// the second one only.

__attribute__((noinline)) int replay_warm(const Contender* contender, const ReplayInput* work, uint32_t times, uint64_t* hash) {
  return guarded(contender, work, times, hash);
}

__attribute__((noinline)) int replay_timed(const Contender* contender, const ReplayInput* work, uint32_t times, uint64_t* hash) {
  asm volatile("");
  return guarded(contender, work, times, hash);
}
}

// PyTorch.

using c10::CachingDeviceAllocator::DeviceStats;
using c10::CachingAllocator::Stat;
using c10::CachingAllocator::StatArray;
using c10::cuda::CUDACachingAllocator::CUDAAllocator;

// Not in a header: who links the rest of PyTorch gets it set.
namespace c10::cuda::_internal {
C10_CUDA_API void setHasPrimaryContext(bool (*func)(DeviceIndex));
}

namespace {

CUDAAllocator* of(void* self) { return static_cast<CUDAAllocator*>(self); }

void record_stream(void* self, void* addr, void* stream) {
  const c10::Device device(c10::DeviceType::CUDA, 0);
  c10::DataPtr data(addr, addr, of(self)->raw_deleter(), device);
  of(self)->recordStream(data, c10::cuda::getStreamFromExternal(static_cast<cudaStream_t>(stream), 0));
  // The block stays the caller's.
  data.release_context();
}

void advance(void*, void* stream) { standin_advance(stream); }

void advance_all(void*) { standin_advance_all(); }

void empty_cache(void* self) { of(self)->emptyCache({0, 0}); }

void reset_stats(void* self) {
  of(self)->resetPeakStats(0);
  of(self)->resetAccumulatedStats(0);
}

int64_t* put(int64_t* into, const Stat& stat) {
  *into++ = stat.current;
  *into++ = stat.peak;
  *into++ = stat.allocated;
  *into++ = stat.freed;
  return into;
}

int64_t* put(int64_t* into, const StatArray& array) {
  for (const Stat& stat : array) into = put(into, stat);
  return into;
}

void stats(void* self, int64_t* into) {
  const DeviceStats stats = of(self)->getDeviceStats(0);
  for (const StatArray* array :
       {&stats.allocation, &stats.segment, &stats.active, &stats.inactive_split, &stats.allocated_bytes,
        &stats.reserved_bytes, &stats.active_bytes, &stats.inactive_split_bytes, &stats.requested_bytes})
    into = put(into, *array);
  into = put(into, stats.oversize_allocations);
  into = put(into, stats.oversize_segments);
  *into++ = stats.num_alloc_retries;
  *into++ = stats.num_ooms;
  *into++ = stats.num_sync_all_streams;
  *into++ = stats.num_device_alloc;
  *into++ = stats.num_device_free;
  *into++ = stats.max_split_size;
}

}  // namespace

// Returns null, or what went wrong.
extern "C" const char* pytorch_contender(Contender* into) {
  static std::string error;
  try {
    c10::cuda::_internal::setHasPrimaryContext([](c10::DeviceIndex) { return true; });
    c10::cuda::CUDACachingAllocator::init(1);
    CUDAAllocator* allocator = c10::cuda::CUDACachingAllocator::get();
    into->self = allocator;
    // GCC's way to the address that a virtual call of this object would take.
    into->allocate = reinterpret_cast<void* (*)(void*, size_t, void*)>(
        (void* (*)(CUDAAllocator*, size_t, cudaStream_t))(allocator->*(&CUDAAllocator::raw_alloc_with_stream)));
    // It takes no stream: the third argument lies in a register that nobody reads.
    into->allocate_on_default = reinterpret_cast<void* (*)(void*, size_t, void*)>(
        (void* (*)(CUDAAllocator*, size_t))(allocator->*(&CUDAAllocator::raw_alloc)));
    into->free =
        reinterpret_cast<void (*)(void*, void*)>((void (*)(CUDAAllocator*, void*))(allocator->*(&CUDAAllocator::raw_delete)));
    into->record_stream = record_stream;
    into->advance = advance;
    into->advance_all = advance_all;
    into->empty_cache = empty_cache;
    into->reset_stats = reset_stats;
    into->stats = stats;
    return nullptr;
  } catch (const std::exception& thrown) {
    error = thrown.what();
    return error.c_str();
  }
}

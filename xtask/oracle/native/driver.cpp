// Runs sequences of operations on PyTorch's own allocator and tells everything that it did.
//
// Settings are read once a process, so this is a server that forks: each request on standard input is served by a
// child in which the library is as good as new. Everything is words of 64 bits in the machine's order, behind the length in words; a
// text is its length in bytes and its bytes, padded. src/wire.rs is the other end.
//
// request:  device's bytes, whether all statistics are wanted, settings (text), texts of operations (count, texts),
//           operations (count, then code and two arguments each)
// response: 0, then an answer for each operation (code, value or text, digest of the statistics or their count and all of them),
//           the trace (count, entries), the segments (count, each with its blocks), how often each path ran;
//           or 1 and the status of a child that died.

// The headers of 2.9 say by this whether segments can expand.
#define PYTORCH_C10_DRIVER_API_SUPPORTED
#include <c10/cuda/CUDAAllocatorConfig.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAStream.h>
#if RELEASE >= 11
#include <c10/cuda/PeerToPeerAccess.h>
#endif
#include <standin.h>

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

// A machine with a driver has a library that tells which processes use its GPUs, and PyTorch would put them into its
// out-of-memory errors. The device here is none of those.
#if RELEASE >= 8
extern "C" void* dlopen(const char*, int) noexcept {
  return nullptr;
}
#else
// These releases open the driver's library themselves, and nothing else of it is asked for.
static char driver;

extern "C" cudaError_t cudaGetDriverEntryPoint(const char*, void**, unsigned long long, int*);

extern "C" void* dlopen(const char* name, int) noexcept {
  return std::strcmp(name, "libcuda.so.1") == 0 ? &driver : nullptr;
}

extern "C" void* dlsym(void*, const char* name) noexcept {
  void* function = nullptr;
  cudaGetDriverEntryPoint(name, &function, 0, nullptr);
  return function;
}
#endif

// Exported, and declared in no header of the wheel: a library that needs all of CUDA sets it otherwise.
namespace c10::cuda::_internal {
void setHasPrimaryContext(bool (*has)(c10::DeviceIndex));
}

namespace {

namespace allocator = c10::cuda::CUDACachingAllocator;
using c10::CachingDeviceAllocator::DeviceStats;

#if RELEASE >= 9
using c10::MempoolId_t;
#else
using c10::cuda::MempoolId_t;
#endif

constexpr c10::DeviceIndex kDevice = 0;
// RELEASE is the minor release of PyTorch 2 whose headers these are; src/library.rs defines it.
static_assert(RELEASE >= 6, "the oldest release that is known");

enum Operation : uint64_t {
  kAllocate,
  kFree,
  kRecordStream,
  kAdvance,
  kAdvanceAll,
  kEmptyCache,
  kSetFraction,
  kResetPeak,
  kResetAccumulated,
  kApplySettings,
  kSnapshot,
  kCreatePool,
  kEnterPool,
  kLeavePool,
  kDestroyPool,
  kReadSettings,
};

enum Answer : uint64_t { kDone, kAddress, kFailed, kSkipped, kText };

class Reader {
 public:
  explicit Reader(const std::vector<uint64_t>& words) : words_(words) {}

  uint64_t word() { return words_.at(at_++); }

  double real() {
    uint64_t bits = word();
    double value;
    std::memcpy(&value, &bits, sizeof value);
    return value;
  }

  std::string text() {
    size_t length = word();
    std::string text(reinterpret_cast<const char*>(words_.data() + at_), length);
    at_ += (length + 7) / 8;
    return text;
  }

 private:
  const std::vector<uint64_t>& words_;
  size_t at_ = 0;
};

class Writer {
 public:
  Writer() { words_.push_back(0); }

  void word(uint64_t word) { words_.push_back(word); }

  void text(const std::string& text) {
    word(text.size());
    size_t start = words_.size();
    words_.resize(start + (text.size() + 7) / 8);
    std::memcpy(words_.data() + start, text.data(), text.size());
  }

  bool send() {
    words_[0] = words_.size() - 1;
    const char* bytes = reinterpret_cast<const char*>(words_.data());
    size_t left = words_.size() * sizeof(uint64_t);
    while (left > 0) {
      ssize_t written = write(STDOUT_FILENO, bytes, left);
      if (written <= 0) return false;
      bytes += written;
      left -= static_cast<size_t>(written);
    }
    return true;
  }

 private:
  std::vector<uint64_t> words_;
};

bool receive(std::vector<uint64_t>& words) {
  auto read_all = [](void* to, size_t length) {
    char* bytes = static_cast<char*>(to);
    while (length > 0) {
      ssize_t got = read(STDIN_FILENO, bytes, length);
      if (got <= 0) return false;
      bytes += got;
      length -= static_cast<size_t>(got);
    }
    return true;
  };
  uint64_t count;
  if (!read_all(&count, sizeof count)) return false;
  words.resize(count);
  return read_all(words.data(), count * sizeof(uint64_t));
}

// The streams of a sequence are numbers; real handles are pointers, of which the library takes the low bits for itself.
cudaStream_t handle_of(uint64_t stream) {
  return reinterpret_cast<cudaStream_t>(stream << 4);
}

uint64_t stream_of(const void* handle) {
  return reinterpret_cast<uintptr_t>(handle) >> 4;
}

c10::cuda::CUDAStream cuda_stream(uint64_t stream) {
  return stream == 0 ? c10::cuda::getDefaultCUDAStream(kDevice)
                     : c10::cuda::getStreamFromExternal(handle_of(stream), kDevice);
}

// Pools of a program are (0, k), pools of captures (k, 0): the lowest bit of the number says which.
MempoolId_t pool_id(uint64_t number) {
  uint64_t k = number >> 1;
  return (number & 1) == 0 ? MempoolId_t{0, k} : MempoolId_t{k, 0};
}

class Run {
 public:
  Run(Reader& request, Writer& response) : request_(request), response_(response) {}

  void perform() {
    standin_set_total(request_.word());
    wants_all_ = request_.word() != 0;
    std::string settings = request_.text();
    if (settings.empty()) {
      unsetenv("PYTORCH_CUDA_ALLOC_CONF");
    } else {
      setenv("PYTORCH_CUDA_ALLOC_CONF", settings.c_str(), 1);
    }
    for (uint64_t left = request_.word(); left > 0; --left) texts_.push_back(request_.text());
    c10::cuda::_internal::setHasPrimaryContext([](c10::DeviceIndex) { return true; });
#if RELEASE >= 11
    c10::cuda::detail::init_p2p_access_cache(1);
#endif
    allocator::init(1);
#if RELEASE >= 11
    allocator::recordHistory(true, nullptr, size_t{1} << 30, allocator::RecordContext::NEVER, false, {});
#elif RELEASE >= 8
    allocator::recordHistory(true, nullptr, size_t{1} << 30, allocator::RecordContext::NEVER, false);
#else
    allocator::recordHistory(true, nullptr, size_t{1} << 30, allocator::RecordContext::NEVER);
#endif
    response_.word(0);
    for (uint64_t left = request_.word(); left > 0; --left) {
      uint64_t code = request_.word();
      uint64_t first = request_.word();
      uint64_t second = request_.word();
      try {
        operate(code, first, second);
      } catch (const c10::Error& error) {
        fail(error.what_without_backtrace());
      } catch (const std::exception& error) {
        fail(error.what());
      }
      tell_stats();
    }
    tell_end();
  }

 private:
  void operate(uint64_t code, uint64_t first, uint64_t second) {
    switch (code) {
      case kAllocate: {
        tensors_.emplace_back();
        c10::cuda::setCurrentCUDAStream(cuda_stream(second));
        tensors_.back() = allocator::get()->allocate(first);
        is_live_.resize(tensors_.size(), false);
        is_live_.back() = true;
        response_.word(kAddress);
        response_.word(reinterpret_cast<uint64_t>(tensors_.back().get()));
        return;
      }
      case kFree:
        if (!is_live(first)) return skip();
        tensors_[first].clear();
        is_live_[first] = false;
        break;
      case kRecordStream:
        if (!is_live(first)) return skip();
        allocator::recordStream(tensors_[first], cuda_stream(second));
        break;
      case kAdvance:
        standin_advance(handle_of(first));
        break;
      case kAdvanceAll:
        standin_advance_all();
        break;
      case kEmptyCache:
        allocator::emptyCache();
        break;
      case kSetFraction: {
        double fraction;
        std::memcpy(&fraction, &first, sizeof fraction);
        allocator::setMemoryFraction(fraction, kDevice);
        break;
      }
      case kResetPeak:
        allocator::resetPeakStats(kDevice);
        break;
      case kResetAccumulated:
        allocator::resetAccumulatedStats(kDevice);
        break;
      case kApplySettings:
        set_settings(texts_.at(first));
        break;
      case kSnapshot:
        snapshot();
        break;
      // What the Python class `MemPool` does: its C++ half is in a library that needs all of CUDA.
      case kCreatePool:
#if RELEASE >= 8
        allocator::createOrIncrefPool(kDevice, pool_id(first));
#else
        mem_pools_[first] = new c10::cuda::MemPool;
        if (mem_pools_[first]->id() != pool_id(first)) throw std::runtime_error("the pool has another number");
#endif
#if RELEASE >= 10
        if ((second & 1) != 0) allocator::setNoSplit(kDevice, pool_id(first));
#endif
        if ((second & 2) != 0) set_use_on_oom(pool_id(first), true);
        break;
      case kEnterPool:
#if RELEASE < 8
        if ((first & 1) == 0) {
          contexts_.push_back(std::make_unique<c10::cuda::MemPoolContext>(mem_pools_.at(first)));
        }
#endif
        allocator::beginAllocateToPool(kDevice, pool_id(first), [second](cudaStream_t stream) {
          return second == UINT64_MAX || stream == handle_of(second);
        });
#if RELEASE >= 13
        // A capture announces itself, and its stream says so; before, each scope counted as one.
        if ((first & 1) != 0) {
          standin_set_capturing(++captures_ > 0);
          allocator::markCaptureBegin(kDevice);
        }
#endif
        break;
      case kLeavePool:
#if RELEASE >= 13
        if ((first & 1) != 0) {
          standin_set_capturing(--captures_ > 0);
          allocator::markCaptureEnd(kDevice);
        }
#endif
        allocator::endAllocateToPool(kDevice, pool_id(first));
        // A capture's use is given up when its graph goes.
        if ((first & 1) == 0) allocator::releasePool(kDevice, pool_id(first));
#if RELEASE < 8
        if ((first & 1) == 0) contexts_.pop_back();
#endif
        break;
      case kDestroyPool:
#if RELEASE < 8
        if ((first & 1) == 0) {
          delete mem_pools_.at(first);
          break;
        }
#endif
        if ((first & 1) == 0) set_use_on_oom(pool_id(first), false);
        allocator::releasePool(kDevice, pool_id(first));
#if RELEASE >= 8
        if ((first & 1) == 0) allocator::emptyCache(pool_id(first));
#endif
        break;
      case kReadSettings:
        response_.word(kText);
        response_.text(settings());
        return;
      default:
        throw std::runtime_error("the driver knows no such operation");
    }
    response_.word(kDone);
  }

  static void set_settings(const std::string& text) {
#if RELEASE >= 10
    c10::CachingAllocator::setAllocatorSettings(text);
#else
    allocator::setAllocatorSettings(text);
#endif
  }

  static void snapshot() {
#if RELEASE >= 11
    allocator::snapshot({0, 0}, false);
#else
    allocator::snapshot();
#endif
  }

  /// Before 2.11 a pool that lends its memory lends it until it is gone.
  static void set_use_on_oom(MempoolId_t pool, bool use) {
#if RELEASE >= 11
    allocator::setUseOnOOM(kDevice, pool, use);
#elif RELEASE >= 8
    if (use) allocator::setUseOnOOM(kDevice, pool);
#else
    (void)pool, (void)use;
#endif
  }

  static uint64_t bits(double real) {
    uint64_t bits;
    std::memcpy(&bits, &real, sizeof bits);
    return bits;
  }

  /// `settings_text` in src/ours.rs writes the same.
  static std::string settings() {
#if RELEASE >= 10
    using Config = c10::CachingAllocator::AcceleratorAllocatorConfig;
    double fraction = allocator::CUDAAllocatorConfig::per_process_memory_fraction();
    bool expandable = Config::use_expandable_segments();
#else
    using Config = allocator::CUDAAllocatorConfig;
    double fraction = 1;
    bool expandable = Config::expandable_segments();
#endif
    std::ostringstream text;
    text << "split " << Config::max_split_size() << " rounding " << Config::max_non_split_rounding_size() << " large "
#if RELEASE >= 11
         << Config::large_segment_size()
#else
         << 20971520
#endif
         << " collection "
         << bits(Config::garbage_collection_threshold()) << " fraction "
         << bits(fraction) << " expandable "
         << expandable << " divisions";
    for (size_t divisions : Config::roundup_power2_divisions()) text << ' ' << divisions;
#if RELEASE >= 12
    text << " throws " << allocator::CUDAAllocatorConfig::throw_on_cudamalloc_oom();
#endif
    text << " last " << Config::last_allocator_settings();
    return text.str();
  }

  bool is_live(uint64_t tensor) const { return tensor < is_live_.size() && is_live_[tensor]; }

  void skip() { response_.word(kSkipped); }

  void fail(const std::string& text) {
    is_live_.resize(tensors_.size(), false);
    response_.word(kFailed);
    response_.text(text);
  }

  /// The statistics in the order of src/stats.rs. They are not plain numbers in every release: each field is read by its name.
  static std::vector<uint64_t> words_of(const DeviceStats& stats) {
    std::vector<uint64_t> words;
    auto put = [&words](int64_t value) { words.push_back(static_cast<uint64_t>(value)); };
    auto put_stat = [&put](const auto& stat) {
      put(stat.current);
      put(stat.peak);
      put(stat.allocated);
      put(stat.freed);
    };
    auto put_array = [&put_stat](const auto& array) {
      for (const auto& stat : array) put_stat(stat);
    };
    put_array(stats.allocation);
    put_array(stats.segment);
    put_array(stats.active);
    put_array(stats.inactive_split);
    put_array(stats.allocated_bytes);
    put_array(stats.reserved_bytes);
    put_array(stats.active_bytes);
    put_array(stats.inactive_split_bytes);
    put_array(stats.requested_bytes);
    put(stats.num_alloc_retries);
    put(stats.num_ooms);
    put_stat(stats.oversize_allocations);
    put_stat(stats.oversize_segments);
    put(stats.num_sync_all_streams);
    put(stats.num_device_alloc);
    put(stats.num_device_free);
    put(stats.max_split_size);
#if RELEASE >= 12
    put(stats.num_oom_rejections);
#endif
#if RELEASE >= 13
    // A hash table: its order says nothing.
    std::vector<MempoolId_t> pools;
    for (const auto& [pool, array] : stats.reserved_bytes_by_private_pools) pools.push_back(pool);
    std::sort(pools.begin(), pools.end());
    for (const auto& pool : pools) {
      put(static_cast<int64_t>(pool.first));
      put(static_cast<int64_t>(pool.second));
      put_array(stats.reserved_bytes_by_private_pools.find(pool)->second);
    }
#endif
    return words;
  }

  void tell_stats() {
    DeviceStats stats = allocator::getDeviceStats(kDevice);
    count_paths(stats);
    std::vector<uint64_t> words = words_of(stats);
    before_ = std::move(stats);
    if (wants_all_) {
      response_.word(words.size());
      for (uint64_t word : words) response_.word(word);
      return;
    }
    // Two lanes, since each step waits for the one before; `digest` in src/stats.rs is the same.
    uint64_t lanes[2] = {1, 2};
    for (size_t i = 0; i < words.size(); ++i) {
      uint64_t& lane = lanes[i % 2];
      lane = (lane ^ words[i]) * 0x9e3779b97f4a7c15;
      lane ^= lane >> 32;
    }
    response_.word(lanes[0] ^ (lanes[1] << 1));
  }

  /// Counters move within an operation and are reset between operations only.
  void count_paths(const DeviceStats& now) {
    auto moved = [](int64_t before, int64_t after) { return static_cast<uint64_t>(after > before ? after - before : 0); };
    uint64_t retries = moved(before_.num_alloc_retries, now.num_alloc_retries);
    uint64_t waits = moved(before_.num_sync_all_streams, now.num_sync_all_streams);
    uint64_t releases = moved(before_.num_device_free, now.num_device_free);
    paths_[0] += retries;
    paths_[1] += moved(before_.num_ooms, now.num_ooms);
    paths_[2] += waits;
    // Garbage collection, or just enough oversize segments: what a full release does waits for the streams first.
    if (waits == 0) paths_[3] += releases;
  }

  void tell_end() {
    auto snapshot = allocator::snapshot();
    const auto& trace = snapshot.device_traces.at(kDevice);
    response_.word(trace.size());
    for (const auto& entry : trace) {
      response_.word(static_cast<uint64_t>(entry.action_));
      response_.word(entry.addr_);
      response_.word(entry.size_);
      response_.word(stream_of(entry.stream_));
    }
    response_.word(snapshot.segments.size());
    for (const auto& segment : snapshot.segments) {
      response_.word(segment.address);
      response_.word(segment.total_size);
      response_.word(stream_of(segment.stream));
      response_.word(segment.owner_private_pool_id.first);
      response_.word(segment.owner_private_pool_id.second);
      response_.word(segment.is_large);
      response_.word(segment.is_expandable);
      response_.word(segment.allocated_size);
      response_.word(segment.active_size);
      response_.word(segment.requested_size);
      response_.word(segment.blocks.size());
      for (const auto& block : segment.blocks) {
        response_.word(block.size);
        response_.word(block.requested_size);
        response_.word(block.allocated ? 2 : block.active ? 1 : 0);
      }
    }
    for (uint64_t path : paths_) response_.word(path);
  }

  static constexpr size_t kPaths = 4;

  Reader& request_;
  Writer& response_;
  DeviceStats before_;
  uint64_t paths_[kPaths] = {};
  bool wants_all_ = false;
  // Open captures.
  int captures_ = 0;
#if RELEASE < 8
  // Pools of the program, whose `MemPool` is in the allocator's library up to 2.7, and their open scopes.
  std::map<uint64_t, c10::cuda::MemPool*> mem_pools_;
  std::vector<std::unique_ptr<c10::cuda::MemPoolContext>> contexts_;
#endif
  std::vector<std::string> texts_;
  // A failed allocation has its place too, so that tensors are numbered as the sequence numbers them.
  std::vector<c10::DataPtr> tensors_;
  std::vector<bool> is_live_;
};

}  // namespace

int main() {
  std::vector<uint64_t> words;
  while (receive(words)) {
    pid_t child = fork();
    if (child == 0) {
      Reader request(words);
      Writer response;
      Run(request, response).perform();
      // Not `exit`: tensors that are still alive must not be freed behind the library's own end.
      _exit(response.send() ? 0 : 1);
    }
    int status = 1;
    if (child < 0 || waitpid(child, &status, 0) < 0 || status != 0) {
      Writer response;
      response.word(1);
      response.word(static_cast<uint64_t>(status));
      if (!response.send()) return 1;
    }
  }
  return 0;
}

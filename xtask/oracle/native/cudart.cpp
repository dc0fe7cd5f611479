// A stand-in for CUDA's runtime library, for running PyTorch's allocator without a GPU.
//
// One device whose memory is numbers. Addresses follow the rule of `VirtualDevice` in crates/base/device: the first segment or
// range starts at 0x7f0000000000, each later one at the next multiple of 2 MiB behind the one before, none is given twice,
// and what does not fit uses no addresses up. Work on a stream is done when the test says so (standin.h) or when it is
// waited for.
//
// For one thread at a time, except for the calls of an allocation that the cache serves: these touch nothing that changes.

#include <cuda_runtime_api.h>
#include <standin.h>

#include <cstring>
#include <unordered_map>

namespace {

constexpr uint64_t kFirstAddress = 0x7f0000000000;
constexpr uint64_t kAlignment = 2ull << 20;
constexpr size_t kStreams = 64;

uint64_t total = 80ull << 30;
uint64_t used = 0;
uint64_t next_address = kFirstAddress;
bool is_eager = false;
bool is_capturing = false;
cudaError_t last_error = cudaSuccess;

std::unordered_map<uint64_t, uint64_t>& segments() {
  static std::unordered_map<uint64_t, uint64_t> map;
  return map;
}

/// The work of a stream: how many events were recorded, and how many of them are complete.
struct Progress {
  uint64_t recorded = 0;
  uint64_t done = 0;
};

Progress streams[kStreams];

/// Stream handles are multiples of 16, as handles of real streams are; a test uses few of them.
Progress& progress_of(const void* stream) {
  return streams[(reinterpret_cast<uintptr_t>(stream) >> 4) % kStreams];
}

uint64_t take_addresses(uint64_t size) {
  uint64_t base = next_address;
  next_address = (base + size + kAlignment - 1) / kAlignment * kAlignment;
  return base;
}

bool fits(uint64_t size) {
  return size <= total - used;
}

cudaError_t refuse(cudaError_t error) {
  last_error = error;
  return error;
}

}  // namespace

struct CUevent_st {
  Progress* stream;
  uint64_t number;
};

extern "C" {

void standin_set_total(uint64_t bytes) {
  total = bytes;
}

void standin_advance(void* stream) {
  Progress& progress = progress_of(stream);
  progress.done = progress.recorded;
}

void standin_advance_all() {
  for (Progress& progress : streams) progress.done = progress.recorded;
}

void standin_set_capturing(int capturing) {
  is_capturing = capturing != 0;
}

void standin_set_eager(int eager) {
  is_eager = eager != 0;
}

// Memory.

cudaError_t cudaMalloc(void** address, size_t size) {
  if (!fits(size)) return refuse(cudaErrorMemoryAllocation);
  uint64_t base = take_addresses(size);
  used += size;
  segments().emplace(base, size);
  *address = reinterpret_cast<void*>(base);
  return cudaSuccess;
}

cudaError_t cudaFree(void* address) {
  auto segment = segments().find(reinterpret_cast<uint64_t>(address));
  if (segment == segments().end()) return refuse(cudaErrorInvalidValue);
  used -= segment->second;
  segments().erase(segment);
  return cudaSuccess;
}

cudaError_t cudaMemGetInfo(size_t* free, size_t* all) {
  *free = total - used;
  *all = total;
  return cudaSuccess;
}

// Streams and events.

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
  *event = new CUevent_st{&streams[0], 0};
  return cudaSuccess;
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  delete event;
  return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  Progress& progress = progress_of(stream);
  event->stream = &progress;
  event->number = ++progress.recorded;
  if (is_eager) progress.done = progress.recorded;
  return cudaSuccess;
}

cudaError_t cudaEventQuery(cudaEvent_t event) {
  return event->number <= event->stream->done ? cudaSuccess : refuse(cudaErrorNotReady);
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  if (event->stream->done < event->number) event->stream->done = event->number;
  return cudaSuccess;
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned, int) {
  static uintptr_t created = 0;
  *stream = reinterpret_cast<cudaStream_t>(++created << 4);
  return cudaSuccess;
}

cudaError_t cudaStreamIsCapturing(cudaStream_t, cudaStreamCaptureStatus* status) {
  *status = is_capturing ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusNone;
  return cudaSuccess;
}

cudaError_t cudaStreamGetCaptureInfo(cudaStream_t, cudaStreamCaptureStatus* status, unsigned long long* id,
                                     cudaGraph_t*, const cudaGraphNode_t**, const void**, size_t*) {
  *status = is_capturing ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusNone;
  if (id != nullptr) *id = is_capturing ? 1 : 0;
  return cudaSuccess;
}

// The same under its name in CUDA 12.
cudaError_t cudaStreamGetCaptureInfo_v2(cudaStream_t stream, cudaStreamCaptureStatus* status, unsigned long long* id,
                                        cudaGraph_t*, const cudaGraphNode_t**, size_t*) {
  return cudaStreamGetCaptureInfo(stream, status, id);
}

cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode*) {
  return cudaSuccess;
}

// The allocator waits for a stream before it takes pages away, but completes no frees because of that.
cudaError_t cudaStreamSynchronize(cudaStream_t) { return cudaSuccess; }
cudaError_t cudaStreamQuery(cudaStream_t) { return cudaSuccess; }
cudaError_t cudaStreamWaitEvent(cudaStream_t, cudaEvent_t, unsigned) { return cudaSuccess; }
cudaError_t cudaDeviceSynchronize() { return cudaSuccess; }

cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  *least = 0;
  *greatest = 0;
  return cudaSuccess;
}

// The device.

cudaError_t cudaGetDevice(int* device) {
  *device = 0;
  return cudaSuccess;
}

cudaError_t cudaSetDevice(int) { return cudaSuccess; }

cudaError_t cudaGetDeviceCount(int* count) {
  *count = 1;
  return cudaSuccess;
}

cudaError_t cudaDriverGetVersion(int* version) {
  *version = 13000;
  return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(void* properties, int) {
  // Behind the name (256 bytes), the UUID (16), the LUID (8) and its node mask (4, padded to 8).
  constexpr size_t kTotalMemory = 288;
  std::memset(properties, 0, kTotalMemory);
  std::memcpy(static_cast<char*>(properties) + kTotalMemory, &total, sizeof total);
  return cudaSuccess;
}

// The same under its name in CUDA 12.
cudaError_t cudaGetDeviceProperties_v2(void* properties, int device) {
  return cudaGetDeviceProperties(properties, device);
}

cudaError_t cudaGetLastError() {
  cudaError_t error = last_error;
  last_error = cudaSuccess;
  return error;
}

const char* cudaGetErrorName(cudaError_t error) {
  switch (error) {
    case cudaErrorInvalidValue: return "the stand-in was given a bad value";
    case cudaErrorMemoryAllocation: return "the stand-in has no memory left";
    case cudaErrorNotReady: return "the stand-in has not done that work";
    case cudaErrorNotSupported: return "the stand-in does not know this function";
    default: return "an error that the stand-in never returns";
  }
}

const char* cudaGetErrorString(cudaError_t error) { return cudaGetErrorName(error); }

// Not used by what is tested here.

cudaError_t cudaMemcpyAsync(void*, const void*, size_t, cudaMemcpyKind, cudaStream_t) {
  return refuse(cudaErrorNotSupported);
}

#define NOT_SUPPORTED(name) \
  cudaError_t name() { return refuse(cudaErrorNotSupported); }

NOT_SUPPORTED(cudaDeviceCanAccessPeer)
NOT_SUPPORTED(cudaDeviceEnablePeerAccess)
NOT_SUPPORTED(cudaDeviceGetDefaultMemPool)
NOT_SUPPORTED(cudaDeviceGetGraphMemAttribute)
NOT_SUPPORTED(cudaDeviceSetGraphMemAttribute)
NOT_SUPPORTED(cudaEventElapsedTime)
NOT_SUPPORTED(cudaFreeAsync)
NOT_SUPPORTED(cudaGraphAddEmptyNode)
NOT_SUPPORTED(cudaGraphNodeGetDependencies)
NOT_SUPPORTED(cudaGraphNodeGetType)
NOT_SUPPORTED(cudaIpcCloseMemHandle)
NOT_SUPPORTED(cudaIpcGetMemHandle)
NOT_SUPPORTED(cudaIpcOpenMemHandle)
NOT_SUPPORTED(cudaMallocAsync)
NOT_SUPPORTED(cudaMemPoolGetAttribute)
NOT_SUPPORTED(cudaMemPoolSetAccess)
NOT_SUPPORTED(cudaMemPoolSetAttribute)
NOT_SUPPORTED(cudaMemPoolTrimTo)
NOT_SUPPORTED(cudaMemcpy)
NOT_SUPPORTED(cudaMemcpyPeerAsync)
NOT_SUPPORTED(cudaStreamUpdateCaptureDependencies)

}  // extern "C"

// Memory that comes page by page: the part of the driver that the library asks the runtime for, by name.

namespace {

constexpr int kDriverSuccess = 0;
constexpr int kDriverOutOfMemory = 2;
constexpr int kDriverNotSupported = 801;

struct Page {
  uint64_t size;
};

int cuDeviceGet(int* device, int) {
  *device = 0;
  return kDriverSuccess;
}

int cuDeviceGetAttribute(int* value, int, int) {
  *value = 0;
  return kDriverSuccess;
}

int cuMemAddressReserve(uint64_t* address, size_t size, size_t, uint64_t, unsigned long long) {
  *address = take_addresses(size);
  return kDriverSuccess;
}

int cuMemCreate(Page** handle, size_t size, const void* properties, unsigned long long) {
  // The second word of the properties names the kind of handles that may leave the process; 8 is for fabrics.
  int handle_kind;
  std::memcpy(&handle_kind, static_cast<const char*>(properties) + sizeof(int), sizeof handle_kind);
  if (handle_kind == 8) return kDriverNotSupported;
  if (!fits(size)) return kDriverOutOfMemory;
  used += size;
  *handle = new Page{size};
  return kDriverSuccess;
}

int cuMemRelease(Page* handle) {
  used -= handle->size;
  delete handle;
  return kDriverSuccess;
}

int cuMemGetAllocationGranularity(size_t* granularity, const void*, int) {
  *granularity = kAlignment;
  return kDriverSuccess;
}

int cuGetErrorString(int, const char** text) {
  *text = "an error of the stand-in";
  return kDriverSuccess;
}

int succeed() { return kDriverSuccess; }
int fail() { return kDriverNotSupported; }

struct EntryPoint {
  const char* name;
  void* function;
};

template <typename Function>
void* erased(Function* function) {
  return reinterpret_cast<void*>(function);
}

const EntryPoint kEntryPoints[] = {
    {"cuDeviceGet", erased(cuDeviceGet)},
    {"cuDeviceGetAttribute", erased(cuDeviceGetAttribute)},
    {"cuMemAddressReserve", erased(cuMemAddressReserve)},
    {"cuMemAddressFree", erased(succeed)},
    {"cuMemCreate", erased(cuMemCreate)},
    {"cuMemRelease", erased(cuMemRelease)},
    {"cuMemMap", erased(succeed)},
    {"cuMemUnmap", erased(succeed)},
    {"cuMemSetAccess", erased(succeed)},
    {"cuMemGetAllocationGranularity", erased(cuMemGetAllocationGranularity)},
    {"cuGetErrorString", erased(cuGetErrorString)},
};

}  // namespace

extern "C" {

// The name in CUDA 12.
cudaError_t cudaGetDriverEntryPoint(const char* name, void** function, unsigned long long, int* result) {
  *function = erased(fail);
  for (const EntryPoint& entry : kEntryPoints) {
    if (std::strcmp(entry.name, name) == 0) *function = entry.function;
  }
  if (result != nullptr) *result = 0;
  return cudaSuccess;
}

cudaError_t cudaGetDriverEntryPointByVersion(const char* name, void** function, unsigned, unsigned long long flags,
                                             int* result) {
  return cudaGetDriverEntryPoint(name, function, flags, result);
}

}  // extern "C"

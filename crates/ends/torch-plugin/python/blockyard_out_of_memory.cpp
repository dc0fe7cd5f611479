// Allocates through Blockyard and throws PyTorch's own exception where there is no memory, which Python sees as
// torch.OutOfMemoryError. blockyard_torch.py compiles this file against the PyTorch that is installed, once.
//
// The exception begins here, after the call into the library has returned: nothing unwinds through Rust.

#include <c10/util/Exception.h>

#include <sys/types.h>

extern "C" {

// The library's: null where there is no memory, and `failure` is then 1 for out of memory, 2 for any other error.
void* blockyard_try_malloc(ssize_t size, int device, void* stream, int* failure);
const char* blockyard_last_error();

}  // extern "C"

namespace {

[[noreturn, gnu::cold, gnu::noinline]] void raise(int failure) {
  const char* text = blockyard_last_error();
  if (failure == 1) {
    TORCH_CHECK_WITH(OutOfMemoryError, false, text);
  }
  TORCH_CHECK(false, text);
  __builtin_unreachable();
}

}  // namespace

extern "C" void* blockyard_malloc_or_throw(ssize_t size, int device, void* stream) {
  int failure = 0;
  void* memory = blockyard_try_malloc(size, device, stream, &failure);
  if (__builtin_expect(failure != 0, 0)) {
    raise(failure);
  }
  return memory;
}

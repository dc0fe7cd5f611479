// Stands in for libc10: calls an allocation function as PyTorch does, and tells which exception came out of it.

#include <c10/util/Exception.h>

#include <sys/types.h>

#include <cstring>

extern "C" int call(void* (*allocate)(ssize_t, int, void*), ssize_t size, void** memory, char* text, size_t length) {
  try {
    *memory = allocate(size, 0, nullptr);
    return 0;
  } catch (const c10::OutOfMemoryError& error) {
    std::strncpy(text, error.what(), length - 1);
    return 1;
  } catch (const c10::Error& error) {
    std::strncpy(text, error.what(), length - 1);
    return 2;
  }
}

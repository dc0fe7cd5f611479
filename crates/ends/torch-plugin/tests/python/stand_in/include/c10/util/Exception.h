// Stands in for PyTorch's header of the same name, as far as Blockyard's C++ function uses it.
#pragma once

#include <stdexcept>
#include <string>

namespace c10 {

class __attribute__((visibility("default"))) Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class __attribute__((visibility("default"))) OutOfMemoryError : public Error {
 public:
  using Error::Error;
};

}  // namespace c10

#define TORCH_CHECK_WITH(error_t, condition, text) \
  if (!(condition)) throw ::c10::error_t(text)
#define TORCH_CHECK(condition, text) TORCH_CHECK_WITH(Error, condition, text)

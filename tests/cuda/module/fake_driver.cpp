// SPDX-License-Identifier: Apache-2.0
// libcuda.so.1 as far as the main program asks for it: answers from the environment.
#include <cstdlib>

namespace {
int number(const char* name, int otherwise) {
  const char* const value = std::getenv(name);
  return value == nullptr ? otherwise : std::atoi(value);
}
}  // namespace

extern "C" {
int cuInit(unsigned) { return number("FAKE_INIT", 0); }
int cuDriverGetVersion(int* version) {
  *version = number("FAKE_VERSION", 99000);
  return 0;
}
int cuDeviceGetCount(int* count) {
  *count = number("FAKE_DEVICES", 1);
  return 0;
}
}

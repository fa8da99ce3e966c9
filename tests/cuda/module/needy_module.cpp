// SPDX-License-Identifier: Apache-2.0
// A libconvoy_cuda.so that can't be opened, since a library that it needs is not found.
extern "C" int absent_function();
extern "C" int convoy_needs() { return absent_function(); }

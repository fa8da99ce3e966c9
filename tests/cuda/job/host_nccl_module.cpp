// SPDX-License-Identifier: Apache-2.0
// libconvoy_nccl.so without NCCL. Its entry is that of the library it needs, the stand-in libconvoy_cuda.so beside it.

# SPDX-License-Identifier: Apache-2.0
# Every kernel on the host, in all orders, in all storages.
convoy_add_cuda_host_test(cuda.kernels
  SOURCES kernels/bench.cpp kernels/norm_test.cpp kernels/backward_test.cpp kernels/pool_test.cpp kernels/convolution_test.cpp kernels/channel_gate_test.cpp kernels/concatenation_test.cpp
          kernels/input_test.cpp kernels/loss_test.cpp kernels/flat_test.cpp kernels/local_response_norm_test.cpp
          kernels/dropout_test.cpp kernels/update_test.cpp
  LINK convoy_reference TIMEOUT 120)

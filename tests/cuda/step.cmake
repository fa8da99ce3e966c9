# SPDX-License-Identifier: Apache-2.0
# Whole steps on the host: the module's code, cuDNN's graphs answered by the double reference.
convoy_add_cuda_host_test(cuda.step SOURCES step/step_test.cpp step/order_test.cpp step/training.cpp LINK convoy_backend_cpu TIMEOUT 120)

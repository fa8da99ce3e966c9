# SPDX-License-Identifier: Apache-2.0
# What a configuration says where parts of CUDA are missing.
convoy_add_script_test(cuda.configure configure/configure_test.py LABEL cuda TIMEOUT 60
  ARGS ${CONVOY_CUDNN_FRONTEND_INCLUDE} ${CONVOY_NVCC} ${CONVOY_CUDNN_INCLUDE})

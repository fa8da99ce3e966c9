# SPDX-License-Identifier: Apache-2.0
# scripts/gpu-exam.sh must work at its first run on a GPU, so this test runs all of its parts, from a bundle.
if(TARGET convoy_cuda)
  convoy_add_script_test(cuda.exam exam/exam_test.py LABEL cuda TIMEOUT 300
    ARGS ${CMAKE_CURRENT_BINARY_DIR}/module/host ${CMAKE_CURRENT_BINARY_DIR}/module/driver)
endif()

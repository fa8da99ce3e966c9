# SPDX-License-Identifier: Apache-2.0
# The tests that all backends share, on the GPU of this machine. scripts/gpu-exam.sh runs the same programs.
foreach(name operations.cpu program.cpu golden)
  string(REPLACE ".cpu" "" short ${name})
  add_test(NAME gpu.${short} COMMAND parity.${name})
  set_tests_properties(gpu.${short} PROPERTIES LABELS "cuda;gpu" TIMEOUT 300 SKIP_RETURN_CODE 77
    ENVIRONMENT "CONVOY_TEST_DEVICE=cuda;CONVOY_MODULE_DIR=$<TARGET_FILE_DIR:convoy_cuda>")
endforeach()
# Fused against unfused, of the network that all forms of joins were made for.
add_test(NAME gpu.fused COMMAND parity.fused)
set_tests_properties(gpu.fused PROPERTIES LABELS "cuda;gpu" TIMEOUT 300 SKIP_RETURN_CODE 77
  ENVIRONMENT "CONVOY_TEST_DEVICE=cuda;CONVOY_MODULE_DIR=$<TARGET_FILE_DIR:convoy_cuda>;CONVOY_FUSED_CASE=resnet50 64 224 20")

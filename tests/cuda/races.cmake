# SPDX-License-Identifier: Apache-2.0
# Events by the thread sanitizer, which needs no lucky order to see that one is missing. Only where no other is used.
if(NOT CONVOY_SANITIZE)
  convoy_add_cuda_host_test(cuda.races SOURCES races/block_test.cpp step/training.cpp SANITIZE thread TIMEOUT 120)
  convoy_add_script_test(cuda.races.forgotten races/races_test.py LABEL cuda TIMEOUT 120 ARGS $<TARGET_FILE:cuda.races>)
endif()

# SPDX-License-Identifier: Apache-2.0
# Every graph of the shipped configurations, built by cuDNN for cards that are only described. Kernels that cuDNN compiles at
# run time want a driver to load them: the toolkit's stub is enough to see that they exist.
if(NOT TARGET convoy_cuda_frontend OR NOT TARGET convoy_cuda_kernels)
  return()
endif()
if(NOT EXISTS ${CONVOY_CUDA_STUBS}/libcuda.so)
  message(STATUS "plan_check: not built, the toolkit has no stub of the driver")
  return()
endif()
set(stubs ${CMAKE_CURRENT_BINARY_DIR}/stubs)
file(MAKE_DIRECTORY ${stubs})
file(CREATE_LINK ${CONVOY_CUDA_STUBS}/libcuda.so ${stubs}/libcuda.so.1 SYMBOLIC)

convoy_add_test(plan_check LABEL cuda TIMEOUT 180
  SOURCES plan/plan_check.cpp plan/expectation.cpp ../support/case_graph.cpp $<TARGET_OBJECTS:convoy_cuda_objects>
          $<TARGET_OBJECTS:convoy_cuda_frontend> $<TARGET_OBJECTS:convoy_cuda_kernels>
  LINK convoy_reference convoy_config convoy_data convoy_backend_lowering convoy_network convoy_cuda_sdk ${CONVOY_CUDNN} ${CONVOY_CUDART} ${CMAKE_DL_LIBS} rt)
target_compile_definitions(plan_check PRIVATE CONVOY_CARDS="${CMAKE_CURRENT_SOURCE_DIR}/plan/cards"
  CONVOY_EXPECTED="${CMAKE_CURRENT_SOURCE_DIR}/plan/expected" CONVOY_CONFIGS="${CMAKE_SOURCE_DIR}/configs")
set_target_properties(plan_check PROPERTIES LINKER_LANGUAGE CXX)
set_tests_properties(plan_check PROPERTIES PROCESSORS 2 ENVIRONMENT "LD_LIBRARY_PATH=${stubs}:$ENV{LD_LIBRARY_PATH}")

convoy_add_script_test(cuda.inspect_plan plan/inspect_test.py LABEL cuda TIMEOUT 240 ARGS ${CMAKE_CURRENT_SOURCE_DIR}/plan/cards)

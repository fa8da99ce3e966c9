# SPDX-License-Identifier: Apache-2.0
# Every kernel on the host, in all orders, in all storages.
set(sources kernels/bench.cpp kernels/norm_test.cpp kernels/backward_test.cpp kernels/pool_test.cpp kernels/convolution_test.cpp kernels/channel_gate_test.cpp kernels/concatenation_test.cpp
            kernels/input_test.cpp kernels/loss_test.cpp kernels/flat_test.cpp kernels/local_response_norm_test.cpp
            kernels/dropout_test.cpp kernels/update_test.cpp kernels/orthogonal_test.cpp kernels/gradients_test.cpp)
convoy_add_cuda_host_test(cuda.kernels SOURCES ${sources} LINK convoy_reference TIMEOUT 120)

# The same tests on a GPU, for its memory checkers too: compute-sanitizer --tool memcheck|racecheck|initcheck|synccheck gpu.kernels
if(TARGET convoy_cuda_frontend AND TARGET convoy_cuda_kernels)
  convoy_add_test(gpu.kernels LABEL cuda TIMEOUT 120
    SOURCES ${sources} $<TARGET_OBJECTS:convoy_cuda_objects> $<TARGET_OBJECTS:convoy_cuda_frontend> $<TARGET_OBJECTS:convoy_cuda_kernels>
    LINK convoy_reference convoy_backend_lowering convoy_network convoy_cuda_sdk ${CONVOY_CUDNN} ${CONVOY_CUDART} ${CMAKE_DL_LIBS} rt)
  target_compile_definitions(gpu.kernels PRIVATE CONVOY_ON_GPU)
  set_target_properties(gpu.kernels PROPERTIES LINKER_LANGUAGE CXX)
  set_tests_properties(gpu.kernels PROPERTIES LABELS "cuda;gpu")
endif()

# SPDX-License-Identifier: Apache-2.0
# The machine code of the kernels, read by cuobjdump: of the toolkit, or of PyPI's wheels (scripts/install-deps.sh).
if(NOT TARGET convoy_cuda_kernels)
  return()
endif()
file(GLOB wheels ${CMAKE_SOURCE_DIR}/.venv/lib/python3*/site-packages/nvidia/*/bin)
get_filename_component(toolkit ${CONVOY_NVCC} REALPATH)
get_filename_component(toolkit ${toolkit} DIRECTORY)
find_program(CONVOY_CUOBJDUMP cuobjdump HINTS ${toolkit} ${wheels})
convoy_add_script_test(cuda.sass sass/sass_test.py LABEL cuda TIMEOUT 240
  ARGS ${CONVOY_CUOBJDUMP} "$<TARGET_OBJECTS:convoy_cuda_kernels>")

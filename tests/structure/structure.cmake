# SPDX-License-Identifier: Apache-2.0
convoy_add_script_test(structure.rules rules_test.py LABEL structure)
convoy_add_script_test(structure.sources sources.py LABEL structure)
convoy_add_script_test(structure.documents documents.py LABEL structure)
convoy_add_script_test(structure.packaging packaging_test.py LABEL structure)
convoy_add_script_test(structure.write_sites write_sites_test.py LABEL structure)

# Headers without a source file of their own name are compiled alone; the others are the first include of their source.
file(GLOB_RECURSE headers CONFIGURE_DEPENDS RELATIVE ${CMAKE_SOURCE_DIR}/src ${CMAKE_SOURCE_DIR}/src/*.hpp)
if(NOT TARGET convoy_cuda_sdk) # without the toolkit they can't be compiled
  list(FILTER headers EXCLUDE REGEX "^(backend/cuda|comm/nccl)/")
endif()
set(lone_sources)
foreach(header ${headers})
  string(REGEX REPLACE "hpp$" "cpp" twin ${header})
  if(NOT EXISTS ${CMAKE_SOURCE_DIR}/src/${twin})
    string(REGEX REPLACE "[/.]" "_" unit ${header})
    file(CONFIGURE OUTPUT headers/${unit}.cpp CONTENT "#include \"${header}\"  // IWYU pragma: keep\n")
    list(APPEND lone_sources ${CMAKE_CURRENT_BINARY_DIR}/headers/${unit}.cpp)
  endif()
endforeach()
add_library(convoy_headers_alone OBJECT ${lone_sources})
# The vector kernels are compiled for one instruction set each; here their ABI is of no matter.
target_compile_options(convoy_headers_alone PRIVATE -O0 -Wno-psabi)
target_link_libraries(convoy_headers_alone PRIVATE convoy_flags convoy_mpi convoy_hdf5 convoy_dnnl OpenMP::OpenMP_CXX)
if(TARGET convoy_cuda_sdk)
  target_link_libraries(convoy_headers_alone PRIVATE convoy_cuda_sdk)
endif()

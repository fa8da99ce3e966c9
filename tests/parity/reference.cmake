# SPDX-License-Identifier: Apache-2.0
# Slow and plain versions of every operation in double: what the backends are measured against.
file(GLOB operations CONFIGURE_DEPENDS ../support/reference/*.cpp)
add_library(convoy_reference STATIC ${operations} ../support/rounding.cpp)
target_include_directories(convoy_reference PUBLIC ${CMAKE_SOURCE_DIR}/tests)
target_link_libraries(convoy_reference PUBLIC convoy_network convoy_flags)

convoy_add_test(parity.reference SOURCES reference_test.cpp LINK convoy_reference LABEL parity)

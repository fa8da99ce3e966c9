# SPDX-License-Identifier: Apache-2.0
add_executable(transport_probe transport/transport_probe.cpp)
target_link_libraries(transport_probe PRIVATE convoy_transport)
foreach(case faulty s3)
  convoy_add_script_test(faults.transport_${case} transport/transport_test.py ARGS $<TARGET_FILE:transport_probe> ${case} LABEL faults)
endforeach()

# SPDX-License-Identifier: Apache-2.0
convoy_add_test(unit.data.loader SOURCES data/loader_test.cpp data/made_images_test.cpp LINK convoy_data)
convoy_add_test(unit.data.loader_allocations SOURCES data/loader_allocations_test.cpp ${CMAKE_SOURCE_DIR}/tests/support/allocations.cpp
  LINK convoy_data)
convoy_add_test(unit.data.evaluation SOURCES data/evaluation_test.cpp data/shapes_test.cpp data/dataset_bytes_test.cpp LINK convoy_data)
# Against Pillow, as torchvision uses it.
add_executable(pipeline_probe data/pipeline_probe.cpp)
target_link_libraries(pipeline_probe PRIVATE convoy_data)
convoy_add_script_test(unit.data.pipeline data/pipeline_test.py ARGS $<TARGET_FILE:pipeline_probe> LABEL unit)

# SPDX-License-Identifier: Apache-2.0
convoy_add_test(unit.image.resize SOURCES image/resize_test.cpp LINK convoy_image)
convoy_repeat_with_avx2(unit.image.resize)
convoy_add_test(unit.image.decode SOURCES image/decode_test.cpp LINK convoy_image)
# Decoding and resizing against Pillow: the probe prints what the program sees.
add_executable(image_probe image/image_probe.cpp)
target_link_libraries(image_probe PRIVATE convoy_image)
convoy_add_script_test(unit.image.pillow image/pillow_test.py ARGS $<TARGET_FILE:image_probe> LABEL unit)

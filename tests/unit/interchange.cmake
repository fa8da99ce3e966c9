# SPDX-License-Identifier: Apache-2.0
convoy_add_test(unit.interchange.files SOURCES interchange/tensor_file_test.cpp LINK convoy_interchange)
convoy_add_test(unit.interchange.fit SOURCES interchange/fit_test.cpp LINK convoy_interchange)
convoy_add_test(unit.interchange.onnx SOURCES interchange/onnx_test.cpp LINK convoy_interchange)
convoy_add_test(unit.interchange.onnx_network SOURCES interchange/onnx_network_test.cpp LINK convoy_config)

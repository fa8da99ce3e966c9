# SPDX-License-Identifier: Apache-2.0
convoy_add_test(unit.backend
  SOURCES backend/activation_test.cpp backend/blend_test.cpp backend/dropout_test.cpp backend/input_test.cpp backend/loss_test.cpp backend/memory_test.cpp backend/moments_test.cpp backend/muon_test.cpp backend/norm_gradients_test.cpp backend/pixel_sums_test.cpp backend/recompute_bits_test.cpp backend/recompute_test.cpp backend/updater_test.cpp
          ../cuda/step/training.cpp ../support/golden.cpp
  LINK convoy_reference convoy_backend_cpu convoy_optim nlohmann_json::nlohmann_json LABEL unit)
target_compile_definitions(unit.backend PRIVATE CONVOY_GOLDEN="${CMAKE_SOURCE_DIR}/tests/golden")

# SPDX-License-Identifier: Apache-2.0
convoy_add_test(unit.config SOURCES config/parse_test.cpp config/errors_test.cpp config/round_trip_test.cpp
  config/hash_test.cpp config/option_test.cpp config/rate_choice_test.cpp config/help_test.cpp config/suggestions_test.cpp config/network_file_test.cpp LINK convoy_config LABEL unit)

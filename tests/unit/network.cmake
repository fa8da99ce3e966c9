# SPDX-License-Identifier: Apache-2.0
convoy_add_test(unit_nearest SOURCES core/nearest_test.cpp LINK convoy_core)
convoy_add_test(unit_network
  SOURCES network/cost_test.cpp network/digest_test.cpp network/freeze_test.cpp network/initialise_test.cpp network/models_test.cpp network/plan_test.cpp
          network/residual_test.cpp network/shapes_test.cpp network/validate_test.cpp network/whitening_test.cpp
  LINK convoy_network)

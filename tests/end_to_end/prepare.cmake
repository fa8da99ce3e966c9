# SPDX-License-Identifier: Apache-2.0
foreach(case pixels identical restart verify errors)
  convoy_add_script_test(end_to_end.prepare_${case} prepare/prepare_test.py ARGS ${case})
endforeach()

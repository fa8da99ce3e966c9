# SPDX-License-Identifier: Apache-2.0
foreach(case throws not_finite stalls usage output partitions)
  convoy_add_script_test(faults.job_${case} job_test.py ARGS ${case} LABEL faults)
endforeach()
convoy_add_script_test(faults.signals signal_test.py LABEL faults)
foreach(case startup evaluation limits programs twice)
  convoy_add_script_test(faults.stop_${case} stop_test.py ARGS ${case} LABEL faults)
endforeach()

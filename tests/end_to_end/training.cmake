# SPDX-License-Identifier: Apache-2.0
foreach(law large_batch local_steps_one one_step_gradient reproducible)
  convoy_add_script_test(end_to_end.law_${law} laws_test.py ARGS ${law})
endforeach()
convoy_add_script_test(end_to_end.resume resume_test.py ARGS 3)
convoy_add_script_test(end_to_end.evaluation evaluation_test.py)
convoy_add_script_test(end_to_end.change change_test.py)
convoy_add_script_test(end_to_end.phases phases_test.py)

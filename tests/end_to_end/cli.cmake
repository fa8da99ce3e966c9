# SPDX-License-Identifier: Apache-2.0
convoy_add_script_test(end_to_end.cli cli_test.py TIMEOUT 180)
convoy_add_script_test(end_to_end.report report_test.py TIMEOUT 240)
convoy_add_script_test(end_to_end.mistakes mistakes_test.py)
convoy_add_script_test(end_to_end.first_day first_day_test.py)
# The README's five commands on drawn photographs; bench/first_run.py measures them on real ones.
convoy_add_script_test(end_to_end.first_run ../../bench/first_run.py ARGS --most-seconds 890 TIMEOUT 900)
convoy_add_script_test(end_to_end.predict_scale predict_scale_test.py TIMEOUT 300)
convoy_add_script_test(end_to_end.tune tune_test.py TIMEOUT 180)

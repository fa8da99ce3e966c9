# SPDX-License-Identifier: Apache-2.0
convoy_add_script_test(end_to_end.bench_images bench/images_bench_test.py ARGS ${CMAKE_BINARY_DIR})
convoy_add_script_test(end_to_end.bench_pipeline bench/pipeline_bench_test.py ARGS ${CMAKE_BINARY_DIR})
convoy_add_script_test(end_to_end.bench_large_job bench/large_job_test.py)
foreach(case bookkeeping options)
  convoy_add_script_test(end_to_end.sync_table_${case} bench/sync_table_test.py ARGS ${case})
endforeach()

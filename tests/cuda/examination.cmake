# SPDX-License-Identifier: Apache-2.0
# scripts/gpu-check.sh has to work when a GPU is at hand for a quarter of an hour.
convoy_add_script_test(cuda.examination examination/examination_test.py LABEL cuda TIMEOUT 300)

# SPDX-License-Identifier: Apache-2.0
# scripts/bundle.sh, and what it makes in a root folder of its own.
convoy_add_script_test(cuda.bundle bundle/bundle_test.sh LABEL cuda TIMEOUT 300)

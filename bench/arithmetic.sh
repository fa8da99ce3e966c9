#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Flips COUNT bits, one per job of three ranks, in results of convolutions, in memory and in sums: --check-arithmetic must find each and
# name its rank and host. Then it checks STEPS steps without a fault, and there must be no alarm. The last part prints what checks
# cost at --check-arithmetic 100. Needs root, to give ranks hosts of their own.
# usage: bench/arithmetic.sh [COUNT [STEPS [SEED]]]
set -euo pipefail
cd "$(dirname "$0")/.."
. bench/environment.sh
.venv/bin/python tests/faults/arithmetic_test.py named "${1:-40}" "${3:-1}"
.venv/bin/python tests/faults/arithmetic_test.py quiet "${2:-2000}"
exec .venv/bin/python tests/faults/arithmetic_test.py cost

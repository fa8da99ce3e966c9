# SPDX-License-Identifier: Apache-2.0
convoy_add_test(parity.cpu_program SOURCES cpu_program_test.cpp ../support/allocations.cpp
  LINK convoy_backend convoy_backend_cpu convoy_network LABEL parity)
# The same with what a CPU without AVX-512 has.
add_test(NAME parity.cpu_program.avx2 COMMAND parity.cpu_program)
set_tests_properties(parity.cpu_program.avx2 PROPERTIES LABELS parity TIMEOUT 180 SKIP_RETURN_CODE 77
  ENVIRONMENT "ONEDNN_MAX_CPU_ISA=AVX2;DNNL_MAX_CPU_ISA=AVX2")

// SPDX-License-Identifier: Apache-2.0
// Stands for a library of CUDA that a module needs and the machine lacks.
extern "C" int absent_function() { return 0; }

# SPDX-License-Identifier: Apache-2.0

add_library(convoy_flags INTERFACE)
target_include_directories(convoy_flags INTERFACE ${CMAKE_SOURCE_DIR}/src)
target_compile_options(convoy_flags INTERFACE
  "$<$<COMPILE_LANGUAGE:CXX>:-Wall;-Wextra;-Wpedantic;-Wconversion;-Wshadow;-Wnon-virtual-dtor;-Werror>"
  # Designated initialisers with defaults are how specs are written.
  "$<$<COMPILE_LANGUAGE:CXX>:-Wno-missing-field-initializers>"
  # nvcc's own code does not pass -Wpedantic. A kernel that spills registers is an error too.
  "$<$<COMPILE_LANGUAGE:CUDA>:SHELL:-Werror all-warnings -Xptxas=-warn-spills,-warn-lmem-usage -Xcompiler=-Wall,-Wextra,-Werror>")
target_link_libraries(convoy_flags INTERFACE fmt::fmt Threads::Threads)
if(CONVOY_SANITIZE)
  # g++ 12 sees uninitialised values in its own <regex> and <functional> once they are instrumented.
  target_compile_options(convoy_flags INTERFACE -Wno-maybe-uninitialized -Wno-tsan -fsanitize=${CONVOY_SANITIZE} -fno-omit-frame-pointer
    -fno-sanitize-recover=undefined)
  target_link_options(convoy_flags INTERFACE -fsanitize=${CONVOY_SANITIZE})
endif()

# convoy_messages(NAME FILE): the protobuf messages of FILE.proto as a library. Generated code is compiled apart: it doesn't meet
# our warnings.
function(convoy_messages name file)
  set(messages ${CMAKE_CURRENT_BINARY_DIR}/${file}.pb)
  add_custom_command(
    OUTPUT ${messages}.cc ${messages}.h
    COMMAND protobuf::protoc --cpp_out=${CMAKE_CURRENT_BINARY_DIR} -I ${CMAKE_CURRENT_SOURCE_DIR} ${file}.proto
    DEPENDS ${file}.proto
    VERBATIM)
  add_library(${name} STATIC ${messages}.cc ${messages}.h)
  target_include_directories(${name} SYSTEM PUBLIC ${CMAKE_CURRENT_BINARY_DIR})
  target_link_libraries(${name} PUBLIC protobuf::libprotobuf-lite)
endfunction()

# convoy_library(NAME SOURCES ... [LINK ...] [PRIVATE ...]): one static library a folder; LINK is what its headers need.
function(convoy_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LINK;PRIVATE" ${ARGN})
  add_library(${name} STATIC ${ARG_SOURCES})
  target_link_libraries(${name} PUBLIC convoy_flags ${ARG_LINK} PRIVATE ${ARG_PRIVATE})
endfunction()

# convoy_table(TYPE SUFFIX TEMPLATE OUTPUT NAME ...): writes OUTPUT from TEMPLATE, whose @declarations@ declare
# `TYPE NAME_SUFFIX();` of every NAME and whose @calls@ call them. A list, since a linker drops what nothing refers to.
function(convoy_table type suffix template output)
  set(declarations)
  set(calls)
  foreach(name ${ARGN})
    string(APPEND declarations "${type} ${name}_${suffix}();\n")
    list(APPEND calls "${name}_${suffix}()")
  endforeach()
  list(JOIN calls ", " calls)
  configure_file(${template} ${output} @ONLY)
endfunction()

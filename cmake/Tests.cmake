include(GoogleTest)

# tests_<label> builds the tests with that label: a slow preset need not build what it does not run.
set(megamoe_test_labels unit model sim multiprocess conformance device cli)
foreach(label IN LISTS megamoe_test_labels)
  add_custom_target(tests_${label})
endforeach()

# megamoe_test(<name> SOURCES <file>... [LIBS <target>...] LABELS <label>... [TIMEOUT <seconds>])
#
# One GoogleTest executable, each of its cases a test of ctest's. TIMEOUT is per case, and is there to end
# what hangs: no test asserts a time.
function(megamoe_test name)
  cmake_parse_arguments(arg "" "TIMEOUT" "SOURCES;LIBS;LABELS" ${ARGN})
  if(NOT arg_SOURCES OR NOT arg_LABELS OR arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "megamoe_test(${name}): needs SOURCES and LABELS, and nothing but LIBS and "
                        "TIMEOUT besides; left over: \"${arg_UNPARSED_ARGUMENTS}\"")
  endif()
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 300)
  endif()
  add_executable(${name} ${arg_SOURCES})
  foreach(label IN LISTS arg_LABELS)
    if(NOT label IN_LIST megamoe_test_labels)
      message(FATAL_ERROR "megamoe_test(${name}): label ${label} is none of ${megamoe_test_labels}")
    endif()
    add_dependencies(tests_${label} ${name})
  endforeach()
  target_link_libraries(${name} PRIVATE ${arg_LIBS} GTest::gtest_main Threads::Threads)
  gtest_discover_tests(
    ${name}
    TEST_PREFIX "${name}/"
    TEST_LIST ${name}_cases
    DISCOVERY_MODE PRE_TEST
    DISCOVERY_TIMEOUT 60
    PROPERTIES TIMEOUT ${arg_TIMEOUT})
  # Its PROPERTIES would take the second label for the next property's name.
  set(labels_file "${CMAKE_CURRENT_BINARY_DIR}/${name}_labels.cmake")
  file(WRITE "${labels_file}" "foreach(case IN LISTS ${name}_cases)
  set_tests_properties(\"\${case}\" PROPERTIES LABELS \"${arg_LABELS}\")
endforeach()
")
  set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES "${labels_file}")
endfunction()

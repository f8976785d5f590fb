# Installs `built` into `work`, builds the examples against that alone, and runs each.
cmake_minimum_required(VERSION 3.25)

function(run)
  execute_process(COMMAND ${ARGV} RESULT_VARIABLE status OUTPUT_VARIABLE said ERROR_VARIABLE said)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "${ARGV}:\n${said}")
  endif()
endfunction()

string(REPLACE ";" " " flags "${sanitizers}")
file(REMOVE_RECURSE "${work}")
run("${CMAKE_COMMAND}" --install "${built}" --component library --prefix "${work}/prefix")
run("${CMAKE_COMMAND}" -S "${examples}" -B "${work}/build" "-DCMAKE_PREFIX_PATH=${work}/prefix"
    "-DCMAKE_CXX_FLAGS=${flags}" "-DCMAKE_C_FLAGS=${flags}")
run("${CMAKE_COMMAND}" --build "${work}/build" --parallel 2)
foreach(example IN ITEMS example_cpp_1_one_rank example_cpp_2_four_ranks example_c_1_one_rank)
  run("${work}/build/${example}")
endforeach()

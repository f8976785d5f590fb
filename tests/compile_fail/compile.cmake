# cmake -DCOMPILER= -DOPTIONS= -DSOURCE= [-DPHRASE=] -P compile.cmake
#
# With a phrase the source must fail to compile, and the compiler's words must match it; without one it must
# compile.
set(ENV{LC_ALL} C)
execute_process(
  COMMAND "${COMPILER}" -std=c++20 -fsyntax-only ${OPTIONS} "${SOURCE}"
  RESULT_VARIABLE result
  OUTPUT_VARIABLE words
  ERROR_VARIABLE words)
if(NOT PHRASE)
  if(NOT result EQUAL 0)
    message(FATAL_ERROR "${SOURCE} does not compile:\n${words}")
  endif()
elseif(result EQUAL 0)
  message(FATAL_ERROR "${SOURCE} compiles, and must not")
elseif(NOT words MATCHES "${PHRASE}")
  message(FATAL_ERROR "${SOURCE} fails, and not for the words /${PHRASE}/:\n${words}")
endif()

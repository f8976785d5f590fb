# What every target of ours is compiled with. Included after the dependencies: directory options reach
# only the targets that are made later.

set(megamoe_warnings -Wall -Wextra -Wpedantic -Wconversion -Wshadow)
if(MEGAMOE_WARNINGS_AS_ERRORS)
  list(APPEND megamoe_warnings -Werror)
endif()
add_compile_options("$<$<COMPILE_LANGUAGE:CXX,C>:${megamoe_warnings}>")

# g++ 12 sees an overlap in every literal + std::string that it inlines (GCC bug 105651, mended in 13).
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-Wno-restrict>)
endif()

# A fused multiply-add rounds once where two operations round twice. Which of them g++ picks depends on
# inlining and on the target; results must not.
add_compile_options("$<$<COMPILE_LANGUAGE:CXX,C>:-ffp-contract=off>")

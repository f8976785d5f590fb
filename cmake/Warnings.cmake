# What every target of ours is compiled with. Included after the dependencies: directory options reach
# only the targets that are made later.

set(megamoe_warnings -Wall -Wextra -Wpedantic -Wconversion -Wshadow)
if(MEGAMOE_WARNINGS_AS_ERRORS)
  list(APPEND megamoe_warnings -Werror)
endif()
add_compile_options("$<$<COMPILE_LANGUAGE:CXX,C>:${megamoe_warnings}>")

# A fused multiply-add rounds once where two operations round twice. Which of them g++ picks depends on
# inlining and on the target; results must not.
add_compile_options("$<$<COMPILE_LANGUAGE:CXX,C>:-ffp-contract=off>")

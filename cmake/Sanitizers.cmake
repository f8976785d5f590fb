# MEGAMOE_SANITIZE, applied to everything that is compiled here, fetched dependencies included: a
# sanitizer that misses half of a program's accesses reports what is not there.

if(MEGAMOE_SANITIZE STREQUAL "address")
  set(megamoe_sanitizers -fsanitize=address,undefined -fno-sanitize-recover=all)
elseif(MEGAMOE_SANITIZE STREQUAL "thread")
  set(megamoe_sanitizers -fsanitize=thread)
elseif(NOT MEGAMOE_SANITIZE STREQUAL "")
  message(FATAL_ERROR "MEGAMOE_SANITIZE is \"${MEGAMOE_SANITIZE}\"; it may be empty, address or thread")
endif()

if(megamoe_sanitizers)
  add_compile_options("$<$<COMPILE_LANGUAGE:CXX,C>:${megamoe_sanitizers};-fno-omit-frame-pointer>")
  add_link_options(${megamoe_sanitizers})
endif()

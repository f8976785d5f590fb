# NCCL, if there is one of 2.28 or later: the target megamoe_nccl has its headers. NCCL_ROOT, as a variable or in the
# environment, may name a folder with include and lib, such as the one in the wheel of PyTorch's. The library itself is
# loaded when a program first needs it, by its soname or from where it was found here.

if(NOT MEGAMOE_NCCL)
  return()
endif()
find_path(
  MEGAMOE_NCCL_INCLUDE nccl.h
  HINTS "${NCCL_ROOT}" "$ENV{NCCL_ROOT}"
  PATH_SUFFIXES include
  DOC "Where nccl.h is")
find_library(
  MEGAMOE_NCCL_LIBRARY
  NAMES libnccl.so.2 nccl
  HINTS "${NCCL_ROOT}" "$ENV{NCCL_ROOT}"
  PATH_SUFFIXES lib lib64
  DOC "NCCL's shared library")
set(MEGAMOE_NCCL_VERSION 0)
if(MEGAMOE_NCCL_INCLUDE)
  file(STRINGS "${MEGAMOE_NCCL_INCLUDE}/nccl.h" MEGAMOE_NCCL_VERSION REGEX "^#define NCCL_VERSION_CODE ")
  string(REGEX REPLACE "[^0-9]" "" MEGAMOE_NCCL_VERSION "${MEGAMOE_NCCL_VERSION}")
endif()
if(NOT MEGAMOE_NCCL_LIBRARY OR MEGAMOE_NCCL_VERSION LESS 22800)
  message(STATUS "No NCCL of 2.28 or later (NCCL_ROOT names its folder): GPU ranks are threads of one process")
  return()
endif()
message(STATUS "NCCL ${MEGAMOE_NCCL_VERSION}: ${MEGAMOE_NCCL_LIBRARY}")
add_library(megamoe_nccl INTERFACE)
target_include_directories(megamoe_nccl SYSTEM INTERFACE "${MEGAMOE_NCCL_INCLUDE}")
target_compile_definitions(
  megamoe_nccl INTERFACE "$<$<COMPILE_LANGUAGE:CXX>:MEGAMOE_NCCL_LIBRARY=\"${MEGAMOE_NCCL_LIBRARY}\">")

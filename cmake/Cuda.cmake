# nvcc under CMake 3.25. Without nvcc the project has one machine and everything else works, so only
# MEGAMOE_CUDA=ON comes here.

if(NOT CMAKE_CUDA_COMPILER AND NOT DEFINED ENV{CUDACXX})
  find_program(MEGAMOE_NVCC nvcc PATHS /usr/local/cuda/bin DOC "The CUDA compiler")
  if(MEGAMOE_NVCC)
    set(CMAKE_CUDA_COMPILER "${MEGAMOE_NVCC}")
  endif()
endif()
set(CMAKE_CUDA_ARCHITECTURES OFF) # each device_library says its own
include(CheckLanguage)
check_language(CUDA)
if(NOT CMAKE_CUDA_COMPILER)
  message(FATAL_ERROR "MEGAMOE_CUDA is ON, and there is no nvcc on the path or in /usr/local/cuda/bin")
endif()
enable_language(CUDA)
if(CMAKE_CUDA_COMPILER_VERSION VERSION_LESS 12.8)
  message(FATAL_ERROR "nvcc is ${CMAKE_CUDA_COMPILER_VERSION}; sm_100a needs at least 12.8")
endif()
if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION) # CMake 3.25 predates it
  set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION "-std=c++20")
  set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION "-std=c++20")
endif()
set(CMAKE_CUDA_STANDARD 20)
set(CMAKE_CUDA_STANDARD_REQUIRED ON)

# All device code; builds with MEGAMOE_CUDA, runs nothing.
add_custom_target(device_code)

# device_library(<name> ARCH 90a|100a SOURCES <file>... [LIBS <target>...] [REGISTERS <most>] [SHARED <most bytes>])
#
# Objects of one architecture. What ptxas reports of each kernel is held (check_ptxas.sh): no spills, no serialized
# wgmma, at most REGISTERS a thread (168: what a launch of 384 threads has) and SHARED bytes of static shared memory
# (none: ours is dynamic). Not -arch=sm_90a: it adds a second pass for plain compute_90, which refuses setmaxnreg.
function(device_library name)
  cmake_parse_arguments(arg "" "ARCH;REGISTERS;SHARED" "SOURCES;LIBS" ${ARGN})
  if(NOT arg_ARCH OR NOT arg_SOURCES OR arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "device_library(${name}): needs ARCH and SOURCES, may have LIBS, REGISTERS and SHARED; "
                        "left over: \"${arg_UNPARSED_ARGUMENTS}\"")
  endif()
  if(NOT DEFINED arg_REGISTERS)
    set(arg_REGISTERS 168)
  endif()
  if(NOT DEFINED arg_SHARED)
    set(arg_SHARED 0)
  endif()
  set(launcher "${PROJECT_SOURCE_DIR}/cmake/check_ptxas.sh" ${arg_REGISTERS} ${arg_SHARED})
  add_library(${name} OBJECT ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE ${arg_LIBS})
  set_target_properties(
    ${name} PROPERTIES CUDA_ARCHITECTURES OFF
                       CUDA_COMPILER_LAUNCHER "${launcher}")
  target_compile_options(
    ${name}
    PRIVATE
      "$<$<COMPILE_LANGUAGE:CUDA>:SHELL:--generate-code=arch=compute_${arg_ARCH},code=sm_${arg_ARCH} \
--expt-relaxed-constexpr -Xptxas=-v,-warn-spills,-Werror -Werror=all-warnings -lineinfo>")
  add_dependencies(device_code ${name})
endfunction()

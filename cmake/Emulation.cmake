# Blackwell kernels that run on a Hopper card: compiled to PTX for sm_100a, rewritten (src/emulation/rewriter),
# assembled for sm_90a. Needs MEGAMOE_CUDA.

find_package(Python3 3.9 REQUIRED COMPONENTS Interpreter)
get_filename_component(megamoe_nvcc_folder "${CMAKE_CUDA_COMPILER}" DIRECTORY)
find_program(MEGAMOE_PTXAS ptxas HINTS "${megamoe_nvcc_folder}" REQUIRED DOC "The assembler of nvcc")

set(megamoe_emulation_rewriter "${PROJECT_SOURCE_DIR}/src/emulation/rewriter")
set(megamoe_emulation_rewriter_files)
foreach(file IN ITEMS elect instructions lints ptx rewrite)
  list(APPEND megamoe_emulation_rewriter_files "${megamoe_emulation_rewriter}/${file}.py")
endforeach()

# ptx_library(<name> ARCH 90a|100a SOURCE <file> LIBS <target>... [OPTIONS <option>...]): one unit as PTX.
function(ptx_library name)
  cmake_parse_arguments(arg "" "ARCH;SOURCE" "LIBS;OPTIONS" ${ARGN})
  add_library(${name} OBJECT EXCLUDE_FROM_ALL "${arg_SOURCE}")
  target_link_libraries(${name} PRIVATE ${arg_LIBS})
  set_target_properties(${name} PROPERTIES CUDA_ARCHITECTURES OFF CUDA_PTX_COMPILATION ON)
  target_compile_options(
    ${name} PRIVATE "SHELL:--generate-code=arch=compute_${arg_ARCH},code=compute_${arg_ARCH}"
                    --expt-relaxed-constexpr -Werror=all-warnings ${arg_OPTIONS})
endfunction()

# emulated_kernel(<name> SOURCE <file.cu> LIBS <target>...)
#
# An object library with the function `megamoe::emulation::Cubin <name>_cubin()`: the one kernel of a unit, for
# megamoe::emulation::Emulator (src/emulation/host). What the rewriter refuses fails the build with its sentence.
function(emulated_kernel name)
  cmake_parse_arguments(arg "" "SOURCE" "LIBS" ${ARGN})
  if(NOT arg_SOURCE OR arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "emulated_kernel(${name}): needs SOURCE, may have LIBS; "
                        "left over: \"${arg_UNPARSED_ARGUMENTS}\"")
  endif()
  ptx_library(${name}_ptx ARCH 100a SOURCE "${arg_SOURCE}" LIBS ${arg_LIBS})
  set(rewritten "${CMAKE_CURRENT_BINARY_DIR}/${name}.sm90.ptx")
  set(cubin "${CMAKE_CURRENT_BINARY_DIR}/${name}.sm90.cubin")
  add_custom_command(
    OUTPUT "${cubin}"
    COMMAND Python3::Interpreter -B "${megamoe_emulation_rewriter}/rewrite.py" $<TARGET_OBJECTS:${name}_ptx>
            $<TARGET_OBJECTS:megamoe_emulation_device> "${rewritten}"
    COMMAND "${MEGAMOE_PTXAS}" -arch=sm_90a -o "${cubin}" "${rewritten}"
    DEPENDS $<TARGET_OBJECTS:${name}_ptx> $<TARGET_OBJECTS:megamoe_emulation_device>
            ${megamoe_emulation_rewriter_files}
    COMMENT "Rewriting ${name} for Hopper"
    VERBATIM)
  set(MEGAMOE_EMULATED_NAME ${name})
  set(MEGAMOE_EMULATED_CUBIN "${cubin}")
  set(unit "${CMAKE_CURRENT_BINARY_DIR}/${name}_cubin.cc")
  configure_file("${PROJECT_SOURCE_DIR}/src/emulation/host/cubin.cc.in" "${unit}" @ONLY)
  set_source_files_properties("${unit}" PROPERTIES OBJECT_DEPENDS "${cubin}")
  add_library(${name} OBJECT EXCLUDE_FROM_ALL "${unit}" "${cubin}")
  target_link_libraries(${name} PRIVATE megamoe_emulation_rules)
  add_dependencies(device_code ${name})
endfunction()

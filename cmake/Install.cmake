# What an engine needs to find_package(megamoe): the library, its headers and a configuration file. A
# static library brings the archives that it is made of.

include(CMakePackageConfigHelpers)

set(megamoe_parts megamoe_runtime megamoe_plan megamoe_machine_cpu megamoe_machine_cpu_tile
                  megamoe_machine_sm90_layout megamoe_machine_sm100_layout)
set(megamoe_needs_cuda OFF)
if(MEGAMOE_CUDA)
  list(INSERT megamoe_parts 1 megamoe_machine_sm90 megamoe_machine_sm100 megamoe_machine_sm100_launch
       megamoe_machine_cuda_launch)
  if(MEGAMOE_EMULATION)
    list(INSERT megamoe_parts 1 megamoe_machine_sm100_emulated megamoe_emulation)
  endif()
  set(megamoe_needs_cuda ON)
endif()
set(megamoe_parts_dir "${CMAKE_INSTALL_LIBDIR}/megamoe")
set(megamoe_config_dir "${CMAKE_INSTALL_LIBDIR}/cmake/megamoe")
get_target_property(megamoe_type megamoe TYPE)
if(megamoe_type STREQUAL "SHARED_LIBRARY")
  set(megamoe_kind SHARED)
  set(megamoe_file libmegamoe.so)
else()
  set(megamoe_kind STATIC)
  set(megamoe_file libmegamoe.a)
  foreach(part IN LISTS megamoe_parts)
    install(FILES "$<TARGET_FILE:${part}>" DESTINATION "${megamoe_parts_dir}" COMPONENT library)
  endforeach()
endif()

configure_package_config_file(
  "${PROJECT_SOURCE_DIR}/cmake/megamoeConfig.cmake.in" "${PROJECT_BINARY_DIR}/megamoeConfig.cmake"
  INSTALL_DESTINATION "${megamoe_config_dir}"
  PATH_VARS CMAKE_INSTALL_LIBDIR CMAKE_INSTALL_INCLUDEDIR megamoe_parts_dir)
write_basic_package_version_file("${PROJECT_BINARY_DIR}/megamoeConfigVersion.cmake"
                                 COMPATIBILITY SameMinorVersion)

install(TARGETS megamoe LIBRARY COMPONENT library ARCHIVE COMPONENT library)
install(DIRECTORY "${PROJECT_SOURCE_DIR}/include/megamoe" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}"
        COMPONENT library FILES_MATCHING PATTERN "*.h" PATTERN "*.hpp")
install(FILES "${PROJECT_BINARY_DIR}/include/megamoe/version.hpp"
        DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/megamoe" COMPONENT library)
install(FILES "${PROJECT_BINARY_DIR}/megamoeConfig.cmake"
              "${PROJECT_BINARY_DIR}/megamoeConfigVersion.cmake"
        DESTINATION "${megamoe_config_dir}" COMPONENT library)

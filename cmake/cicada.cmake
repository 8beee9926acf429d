# cicada_module(<name>): one static library per folder of src/cicada, one test program beside it.
#   sources  every .cc that is not a test or benchmark        -> cicada_<name>
#   tests    every *_test.cc                                  -> cicada_<name>_test (ctest label `unit`, or
#            `kernel` for the kernels module)
include(GoogleTest)
include(${CMAKE_CURRENT_LIST_DIR}/modules.cmake)
include(${CMAKE_CURRENT_LIST_DIR}/isa_flags.cmake)

add_library(cicada_flags INTERFACE)
target_compile_features(cicada_flags INTERFACE cxx_std_20)
target_include_directories(cicada_flags INTERFACE ${PROJECT_SOURCE_DIR}/src)
target_compile_options(
  cicada_flags
  INTERFACE -Wall
            -Wextra
            -Wconversion
            -Wsign-conversion
            -Wshadow
            -Wold-style-cast
            -Wnon-virtual-dtor
            -Wvla
            -Wimplicit-fallthrough
            -Wno-psabi
            # Every field has an initialiser, and designated ones name what differs.
            -Wno-missing-field-initializers
            # False alarms of GCC 12 inside fmt and libstdc++ at -O3.
            $<$<CXX_COMPILER_ID:GNU>:-Wno-stringop-overflow -Wno-restrict>
            -ffp-contract=off
            -fno-math-errno
            $<$<BOOL:${CICADA_WERROR}>:-Werror>)
if(CICADA_SANITIZE)
  target_compile_options(cicada_flags INTERFACE -fsanitize=${CICADA_SANITIZE} -fno-omit-frame-pointer
                                                -fno-sanitize-recover=all)
  target_link_options(cicada_flags INTERFACE -fsanitize=${CICADA_SANITIZE})
endif()
find_program(CICADA_MOLD mold)
if(CICADA_MOLD)
  target_link_options(cicada_flags INTERFACE -fuse-ld=mold)
endif()

function(cicada_module name)
  if(NOT name IN_LIST CICADA_MODULES)
    message(FATAL_ERROR "module ${name} is not declared in cmake/modules.cmake")
  endif()
  set(dir ${PROJECT_SOURCE_DIR}/src/cicada/${name})
  file(GLOB_RECURSE all CONFIGURE_DEPENDS ${dir}/*.cc)
  set(tests ${all})
  list(FILTER tests INCLUDE REGEX "_test\\.cc$")
  # Tests that replace operator new are programs of their own.
  set(alloc_tests ${tests})
  list(FILTER alloc_tests INCLUDE REGEX "_alloc_test\\.cc$")
  list(FILTER tests EXCLUDE REGEX "_alloc_test\\.cc$")
  set(sources ${all})
  list(FILTER sources EXCLUDE REGEX "_(test|bench|fuzz)\\.cc$")
  if(NOT sources)
    return()
  endif()
  cicada_apply_isa_flags(${sources})
  add_library(cicada_${name} STATIC ${sources})
  target_link_libraries(cicada_${name} PUBLIC cicada_flags fmt::fmt)
  foreach(edge IN LISTS CICADA_EDGES_${name})
    if(TARGET cicada_${edge})
      target_link_libraries(cicada_${name} PUBLIC cicada_${edge})
    endif()
  endforeach()
  foreach(source IN LISTS alloc_tests)
    get_filename_component(test ${source} NAME_WE)
    add_executable(cicada_${test} ${source})
    target_link_libraries(cicada_${test} PRIVATE cicada_${name} GTest::gtest_main)
    add_test(NAME ${name}/${test} COMMAND cicada_${test})
    set_tests_properties(${name}/${test} PROPERTIES LABELS unit TIMEOUT 120)
  endforeach()
  if(tests)
    add_executable(cicada_${name}_test ${tests})
    target_link_libraries(cicada_${name}_test PRIVATE cicada_${name} GTest::gtest_main ${ARGN})
    target_compile_definitions(
      cicada_${name}_test PRIVATE CICADA_TESTDATA_DIR="${PROJECT_SOURCE_DIR}/testdata"
                                  CICADA_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
    set(label unit)
    if(name STREQUAL "kernels")
      set(label kernel)
    endif()
    gtest_discover_tests(
      cicada_${name}_test
      DISCOVERY_MODE PRE_TEST
      PROPERTIES LABELS ${label} TIMEOUT 120)
  endif()
endfunction()

# cicada_module(<name>): one static library per folder of src/cicada, one test program beside it.
#   sources  every .cc that is not a test or benchmark        -> cicada_<name>
#   tests    every *_test.cc                                  -> cicada_<name>_test (ctest label `unit`, or
#            `kernel` for the kernels module), but for those that are programs of their own:
#            *_alloc_test.cc, which replace operator new, and *_numerics_test.cc (label `numerics`),
#            which take longer
#   benches  every *_bench.cc                                 -> cicada_<name>_bench, where Google's
#            benchmark library is there; ctest runs none
include(GoogleTest)
find_package(benchmark QUIET)
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
  set(own_tests ${tests})
  list(FILTER own_tests INCLUDE REGEX "_(alloc|numerics)_test\\.cc$")
  list(FILTER tests EXCLUDE REGEX "_(alloc|numerics)_test\\.cc$")
  set(benches ${all})
  list(FILTER benches INCLUDE REGEX "_bench\\.cc$")
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
  foreach(source IN LISTS own_tests)
    get_filename_component(test ${source} NAME_WE)
    set(label unit)
    if(test MATCHES "_numerics_test$")
      set(label numerics)
    endif()
    cicada_test_program(cicada_${test} ${name} ${label} ${source})
  endforeach()
  if(tests)
    set(label unit)
    if(name STREQUAL "kernels")
      set(label kernel)
    endif()
    cicada_test_program(cicada_${name}_test ${name} ${label} ${tests})
    target_link_libraries(cicada_${name}_test PRIVATE ${ARGN})
  endif()
  if(benches AND benchmark_FOUND)
    add_executable(cicada_${name}_bench ${benches})
    target_link_libraries(cicada_${name}_bench PRIVATE cicada_${name} benchmark::benchmark_main)
  endif()
endfunction()

# One GoogleTest program of a module; every test in it is a test of ctest with this label.
function(cicada_test_program target module label)
  add_executable(${target} ${ARGN})
  target_link_libraries(${target} PRIVATE cicada_${module} GTest::gtest_main)
  target_compile_definitions(${target} PRIVATE CICADA_TESTDATA_DIR="${PROJECT_SOURCE_DIR}/testdata"
                                               CICADA_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  # Parameters have names; their values would only show bytes.
  gtest_discover_tests(
    ${target}
    NO_PRETTY_VALUES
    DISCOVERY_MODE PRE_TEST
    PROPERTIES LABELS ${label} TIMEOUT 120)
endfunction()

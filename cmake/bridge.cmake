# The Rust static library (bridge/): minijinja behind a small C header. Cargo does its own caching.
find_program(CICADA_CARGO NAMES cargo cargo-web REQUIRED)
execute_process(
  COMMAND ${CICADA_CARGO} --version
  OUTPUT_VARIABLE CICADA_CARGO_VERSION
  OUTPUT_STRIP_TRAILING_WHITESPACE)
string(REGEX MATCH "[0-9]+\\.[0-9]+(\\.[0-9]+)?" CICADA_CARGO_VERSION "${CICADA_CARGO_VERSION}")
if(CICADA_CARGO_VERSION VERSION_LESS 1.87)
  message(FATAL_ERROR "cargo ${CICADA_CARGO} is version ${CICADA_CARGO_VERSION}, at least 1.87 is "
                      "needed (Debian: packages rustc-web and cargo-web)")
endif()
set(CICADA_BRIDGE_LIB ${PROJECT_BINARY_DIR}/bridge/release/libcicada_bridge.a)
file(GLOB CICADA_BRIDGE_SOURCES CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/bridge/src/*.rs)
add_custom_command(
  OUTPUT ${CICADA_BRIDGE_LIB}
  COMMAND ${CICADA_CARGO} build --release --locked --quiet --manifest-path
          ${PROJECT_SOURCE_DIR}/bridge/Cargo.toml --target-dir ${PROJECT_BINARY_DIR}/bridge
  DEPENDS ${CICADA_BRIDGE_SOURCES} ${PROJECT_SOURCE_DIR}/bridge/Cargo.toml
          ${PROJECT_SOURCE_DIR}/bridge/Cargo.lock
  COMMENT "Building the Rust bridge"
  VERBATIM)
add_custom_target(cicada_bridge_build DEPENDS ${CICADA_BRIDGE_LIB})
add_library(cicada_bridge INTERFACE)
add_dependencies(cicada_bridge cicada_bridge_build)
target_include_directories(cicada_bridge INTERFACE ${PROJECT_SOURCE_DIR}/bridge/include)
target_link_libraries(cicada_bridge INTERFACE ${CICADA_BRIDGE_LIB} Threads::Threads ${CMAKE_DL_LIBS})

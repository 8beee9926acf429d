# The Rust static library (bridge/): minijinja behind a small C header. Cargo does its own caching.
find_program(CICADA_CARGO NAMES cargo cargo-web REQUIRED)
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

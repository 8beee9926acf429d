# The only place where instruction-set flags are set. A file named x86_<level>.cc is compiled with
# the flags of its level; everything else is built for any x86-64 machine.
set(CICADA_ISA_FLAGS_scalar "")
set(CICADA_ISA_FLAGS_avx2 -mavx2 -mfma -mf16c -mbmi2)
set(CICADA_ISA_FLAGS_avxvnni ${CICADA_ISA_FLAGS_avx2} -mavxvnni)
# GCC 12 takes the undefined pass-through operand of its own AVX-512 intrinsics for an uninitialised
# variable, hence the two -Wno-… there.
set(CICADA_ISA_FLAGS_avx512vnni
    -Wno-maybe-uninitialized -Wno-uninitialized -mavx2 -mfma -mf16c -mbmi2 -mavx512f -mavx512bw -mavx512vl -mavx512dq -mavx512cd -mavx512vnni
    -mprefer-vector-width=512)
set(CICADA_ISA_FLAGS_amx_emulated ${CICADA_ISA_FLAGS_avx512vnni} -mavx512bf16)
set(CICADA_ISA_FLAGS_amx ${CICADA_ISA_FLAGS_amx_emulated} -mamx-tile -mamx-int8 -mamx-bf16)
set(CICADA_ISA_LEVELS scalar avx2 avxvnni avx512vnni amx_emulated amx)

function(cicada_apply_isa_flags)
  foreach(source IN LISTS ARGN)
    get_filename_component(name ${source} NAME_WE)
    foreach(level IN LISTS CICADA_ISA_LEVELS)
      if(name STREQUAL "x86_${level}" OR name MATCHES "_x86_${level}$")
        set_property(SOURCE ${source} APPEND PROPERTY COMPILE_OPTIONS ${CICADA_ISA_FLAGS_${level}})
      endif()
    endforeach()
  endforeach()
endfunction()

# The modules of src/cicada and what each may include, in order: a module may name only modules above
# it, so a cycle cannot be written. tools/check_layers.py checks every #include against this table.
# Adding an edge is a reviewed change with its reason.
set(CICADA_MODULES
    base
    json
    platform
    metrics
    messages
    ipc
    catalog
    tensor
    kernels
    formats
    tokenizer
    chat
    kv
    model
    engine
    api
    http
    server
    cli)

set(CICADA_EDGES_base "")
set(CICADA_EDGES_json base)
set(CICADA_EDGES_platform base)
# platform: for its tests alone, which count allocations.
set(CICADA_EDGES_metrics base platform)
# What front and engine say to each other: plain values.
set(CICADA_EDGES_messages base)
set(CICADA_EDGES_ipc base platform messages)
set(CICADA_EDGES_catalog base json platform)
set(CICADA_EDGES_tensor base platform)
set(CICADA_EDGES_kernels base platform tensor)
set(CICADA_EDGES_formats base json platform tensor)
set(CICADA_EDGES_tokenizer base json formats)
# The template, and whether there is one, comes from the model file.
set(CICADA_EDGES_chat base json formats tokenizer)
set(CICADA_EDGES_kv base platform tensor kernels)
set(CICADA_EDGES_model base platform tensor kernels formats kv)
set(CICADA_EDGES_engine base platform messages tensor tokenizer kv model)
set(CICADA_EDGES_api base json messages chat)
# Knows no model and no API.
set(CICADA_EDGES_http base platform metrics)
set(CICADA_EDGES_server base json platform metrics messages ipc formats tokenizer chat api http)
# The commands of the `cicada` program: the only module that may see everything a command shows.
set(CICADA_EDGES_cli base json platform metrics messages ipc catalog tensor kernels formats tokenizer chat kv model engine api http server)

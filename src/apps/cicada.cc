#include "cicada/cli/commands.h"

int main(int argc, char** argv) { return cicada::cli::main(argc, argv); }

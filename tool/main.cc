#include "tool/command.h"

int main(int argc, char** argv) { return gemmtune::run_tool(argc, argv); }

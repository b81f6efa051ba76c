namespace gemmtune {}

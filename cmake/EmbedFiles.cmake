# gemmtune_embed_files(<target> <header stem> <globs>...) compiles text files into <target>.
# Generates <build>/generated/<stem>.{h,cc} with `std::span<const EmbeddedFile> <stem>_files()`, where a stem
# kernel_templates/embedded gives gemmtune::kernel_templates_embedded(). Names are paths relative to the folder.
function(gemmtune_embed_files target stem)
  get_filename_component(folder ${stem} DIRECTORY)
  set(out ${CMAKE_BINARY_DIR}/generated/${stem})
  set(files)
  foreach(glob ${ARGN})
    file(GLOB matched CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/${glob})
    list(APPEND files ${matched})
  endforeach()
  string(REPLACE "/" "_" symbol ${stem})
  add_custom_command(OUTPUT ${out}.cc ${out}.h
    COMMAND ${CMAKE_COMMAND} -DOUT=${out} -DSYMBOL=${symbol} -DBASE=${CMAKE_SOURCE_DIR}/${folder} "-DFILES=${files}"
      -DSTEM=${stem} -P ${CMAKE_SOURCE_DIR}/cmake/embed_script.cmake
    DEPENDS ${files} ${CMAKE_SOURCE_DIR}/cmake/embed_script.cmake VERBATIM)
  target_sources(${target} PRIVATE ${out}.cc)
  target_include_directories(${target} PUBLIC ${CMAKE_BINARY_DIR}/generated)
endfunction()

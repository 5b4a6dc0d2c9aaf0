#pragma once

#include <elf.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <vector>

namespace gpumeter::fake_nvml {

/// Like without_symbols.py, makes a copy of the library in which dlsym does not find these names.
inline void copy_without_symbols(const std::filesystem::path& library, const std::filesystem::path& copy,
                                 const std::vector<std::string>& names) {
  std::ifstream in(library, std::ios::binary);
  std::string elf((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  Elf64_Ehdr header{};
  if (elf.size() < sizeof header) throw std::runtime_error("no ELF file: " + library.string());
  std::memcpy(&header, elf.data(), sizeof header);
  std::vector<Elf64_Shdr> sections(header.e_shnum);
  std::memcpy(sections.data(), elf.data() + header.e_shoff, sections.size() * sizeof sections[0]);
  const auto texts = sections.at(header.e_shstrndx).sh_offset;
  for (const auto& section : sections) {
    if (std::strcmp(elf.data() + texts + section.sh_name, ".dynstr") != 0) continue;
    for (const auto& name : names) {
      const auto at = elf.find('\0' + name + '\0', section.sh_offset);
      if (at >= section.sh_offset + section.sh_size) throw std::runtime_error("the library has no " + name);
      elf[at + 1] = 'x';
    }
  }
  std::ofstream(copy, std::ios::binary) << elf;
}

}  // namespace gpumeter::fake_nvml

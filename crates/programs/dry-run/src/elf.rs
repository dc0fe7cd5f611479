//! Writes a shared library without a compiler: its name, the libraries that it needs, and entry points that
//! report their own names.

use std::ops::Range;

use object::elf;
use object::write::StringId;
use object::write::elf::{FileHeader, ProgramHeader, Rel, Sym, Writer};
use object::{Endianness, pod};

/// A shared library to write.
#[derive(Clone, Debug, Default)]
pub struct Library<'a> {
    /// The name under which others need the library (`DT_SONAME`).
    pub name: &'a str,
    /// The libraries that the library needs.
    pub needed: &'a [&'a str],
    /// Entry points, each of which calls `report` with its own name as a text of C.
    pub entries: &'a [&'a str],
    /// The function that entry points call; one of the needed libraries has the function.
    pub report: &'a str,
}

/// Bytes of a page, in the largest size that systems on the processor use.
const PAGE: usize = 0x1_0000;
/// Bytes from one entry point to the next.
const ENTRY: usize = 16;

/// The machine code of an entry point at address `at`: load the address of its name, jump to the address in
/// the slot.
fn entry(at: u64, name: u64, slot: u64) -> [u8; ENTRY] {
    let from = |target: u64, next: u64| {
        // Both are in one file of less than 2 GiB, so the low half of the difference is the whole difference.
        let [a, b, c, d, ..] = target.wrapping_sub(next).to_le_bytes();
        [a, b, c, d]
    };
    let mut code = [0xcc; ENTRY];
    // lea rdi, [rip + name]; jmp [rip + slot]
    let load = from(name, at.wrapping_add(7));
    let jump = from(slot, at.wrapping_add(13));
    let bytes = [0x48, 0x8d, 0x3d].into_iter().chain(load).chain([0xff, 0x25]).chain(jump);
    for (to, byte) in code.iter_mut().zip(bytes) {
        *to = byte;
    }
    code
}

/// The bytes of the library, for Linux on x86-64.
///
/// # Errors
///
/// An error of the crate `object`.
pub fn write_library(library: &Library<'_>) -> Result<Vec<u8>, object::write::Error> {
    let mut bytes = Vec::new();
    let mut writer = Writer::new(Endianness::Little, true, &mut bytes);
    let own_name = writer.add_dynamic_string(library.name.as_bytes());
    let needed: Vec<_> =
        library.needed.iter().map(|name| writer.add_dynamic_string(name.as_bytes())).collect();
    let has_entries = !library.entries.is_empty();
    let report = has_entries.then(|| writer.add_dynamic_string(library.report.as_bytes()));
    let entries: Vec<_> =
        library.entries.iter().map(|name| writer.add_dynamic_string(name.as_bytes())).collect();
    writer.reserve_null_dynamic_symbol_index();
    let report_symbol = report.map(|name| (writer.reserve_dynamic_symbol_index(), name));
    for _ in &entries {
        writer.reserve_dynamic_symbol_index();
    }
    let symbols = writer.dynamic_symbol_count();
    let buckets = (symbols / 2).max(1);

    // The parts that are only read and run.
    writer.reserve_file_header();
    writer.reserve_program_headers(4);
    let dynstr = writer.reserve_dynstr();
    let dynstr_length = writer.dynstr_len();
    let dynsym = writer.reserve_dynsym();
    let hash = writer.reserve_hash(buckets, symbols);
    let relocations = writer.reserve_relocations(usize::from(has_entries), true);
    let code = writer.reserve(entries.len() * ENTRY, ENTRY);
    let names: Vec<usize> = library.entries.iter().map(|name| writer.reserve(name.len() + 1, 1)).collect();
    let end_of_code = writer.reserved_len();
    // The parts that the loader writes.
    let data = writer.reserve(0, PAGE);
    let dynamics = needed.len() + if has_entries { 10 } else { 7 };
    let dynamic = writer.reserve_dynamic(dynamics);
    let slot = writer.reserve(8, 8);
    let end = writer.reserved_len();

    write_headers(&mut writer, end_of_code, data..end, dynamic..slot)?;
    writer.write_dynstr();
    writer.write_null_dynamic_symbol();
    write_symbols(&mut writer, report_symbol.map(|(_, name)| name), &entries, code);
    let first = u32::from(has_entries) + 1;
    writer.write_hash(buckets, symbols, |index| {
        let place = index.checked_sub(first);
        let name = place.and_then(|place| library.entries.get(place as usize));
        let name = name.or_else(|| (index == 1 && has_entries).then_some(&library.report))?;
        Some(elf::hash(name.as_bytes()))
    });
    writer.write_align_relocation();
    if let Some((index, _)) = report_symbol {
        let r_sym = index.0;
        let r_type = elf::R_X86_64_GLOB_DAT;
        writer.write_relocation(true, &Rel { r_offset: slot as u64, r_sym, r_type, r_addend: 0 });
    }
    writer.pad_until(code);
    for (place, name) in names.iter().enumerate() {
        writer.write(&entry((code + place * ENTRY) as u64, *name as u64, slot as u64));
    }
    for name in library.entries {
        writer.write(name.as_bytes());
        writer.write(&[0]);
    }
    writer.pad_until(data);
    writer.write_align_dynamic();
    writer.write_dynamic_string(elf::DT_SONAME, own_name)?;
    for name in needed {
        writer.write_dynamic_string(elf::DT_NEEDED, name)?;
    }
    writer.write_dynamic(elf::DT_HASH, hash as u64)?;
    writer.write_dynamic(elf::DT_STRTAB, dynstr as u64)?;
    writer.write_dynamic(elf::DT_STRSZ, dynstr_length as u64)?;
    writer.write_dynamic(elf::DT_SYMTAB, dynsym as u64)?;
    writer.write_dynamic(elf::DT_SYMENT, size_of::<elf::Sym64<Endianness>>() as u64)?;
    if has_entries {
        writer.write_dynamic(elf::DT_RELA, relocations as u64)?;
        writer.write_dynamic(elf::DT_RELASZ, size_of::<elf::Rela64<Endianness>>() as u64)?;
        writer.write_dynamic(elf::DT_RELAENT, size_of::<elf::Rela64<Endianness>>() as u64)?;
    }
    writer.write_dynamic(elf::DT_NULL, 0)?;
    writer.pad_until(slot);
    writer.write(pod::bytes_of(&0_u64));
    Ok(bytes)
}
/// The file's header, and the headers of its parts: what is read and run up to `end_of_code`, what the loader
/// writes in `data`, and the dynamic section in `dynamic`; places in bytes from the file's beginning.
fn write_headers(
    writer: &mut Writer<'_>,
    end_of_code: usize,
    data: Range<usize>,
    dynamic: Range<usize>,
) -> Result<(), object::write::Error> {
    writer.write_file_header(&FileHeader {
        os_abi: elf::ELFOSABI_NONE,
        abi_version: 0,
        e_type: elf::ET_DYN,
        e_machine: elf::EM_X86_64,
        e_entry: 0,
        e_flags: 0,
    })?;
    writer.write_align_program_headers();
    let mut segment = |p_type, p_flags, place: Range<usize>, align: usize| {
        writer.write_program_header(&ProgramHeader {
            p_type,
            p_flags,
            p_offset: place.start as u64,
            p_vaddr: place.start as u64,
            p_paddr: place.start as u64,
            p_filesz: place.len() as u64,
            p_memsz: place.len() as u64,
            p_align: align as u64,
        });
    };
    segment(elf::PT_LOAD, elf::PF_R | elf::PF_X, 0..end_of_code, PAGE);
    segment(elf::PT_LOAD, elf::PF_R | elf::PF_W, data, PAGE);
    segment(elf::PT_DYNAMIC, elf::PF_R | elf::PF_W, dynamic, 8);
    segment(elf::PT_GNU_STACK, elf::PF_R | elf::PF_W, 0..0, 16);
    Ok(())
}

/// The symbol of the function that reports calls, where the library has entries, and one for each entry; the
/// first is at `code`.
fn write_symbols(writer: &mut Writer<'_>, report: Option<StringId>, entries: &[StringId], code: usize) {
    let symbol = |name, st_shndx, st_value: usize| Sym {
        name: Some(name),
        section: None,
        st_info: elf::STB_GLOBAL << 4 | elf::STT_FUNC,
        st_other: 0,
        st_shndx,
        st_value: st_value as u64,
        st_size: if st_shndx == 0 { 0 } else { ENTRY as u64 },
    };
    if let Some(name) = report {
        writer.write_dynamic_symbol(&symbol(name, elf::SHN_UNDEF, 0));
    }
    for (place, name) in entries.iter().enumerate() {
        // The file has no sections; any number but 0 says that this library defines the symbol.
        writer.write_dynamic_symbol(&symbol(*name, 1, code + place * ENTRY));
    }
}

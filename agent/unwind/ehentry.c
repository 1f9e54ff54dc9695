// SPDX-License-Identifier: Apache-2.0
/*
 * Supported: versions 1, 3 and 4, 32- and 64-bit lengths, the augmentations of compilers (z with R,
 * P, L, S, B, G, and the "eh" of old GCCs). Unsupported: relocatable files (their addresses are not
 * final), and addresses relative to anything but themselves.
 */
#include "unwind/ehentry.h"

#include <elf.h>
#include <string.h>

#define LENGTH_64	0xffffffffu /* a length of 64 bits follows */
#define LENGTH_RESERVED 0xfffffff0u

#define PE_OMIT 0xff

/* ---------------------------------------------------------------- the head */

bool ehentry_parse(struct cursor *c, uint64_t size, uint64_t pos, struct ehentry *ret)
{
	uint32_t u32 = 0;
	uint64_t length, left;

	*ret = (struct ehentry){.pos = pos};
	if (!cursor_u32(c, &u32))
		return false;
	length = u32;
	ret->wide = u32 == LENGTH_64;
	if (ret->wide && !cursor_u64(c, &length))
		return false;
	if (!ret->wide && u32 >= LENGTH_RESERVED)
		return false;
	ret->id_pos = pos + cursor_pos(c);
	left = size - ret->id_pos;
	if (length > left)
		return false;
	ret->end = ret->id_pos + length;
	if (!length)
		return true;
	if (ret->wide ? length < 8 : length < 4)
		return false;
	if (ret->wide)
		return cursor_u64(c, &ret->id);
	if (!cursor_u32(c, &u32))
		return false;
	ret->id = u32;
	return true;
}

bool ehentry_is_cie(const struct ehentry *e, bool is_eh)
{
	if (is_eh)
		return e->id == 0;
	return e->id == (e->wide ? UINT64_MAX : UINT32_MAX);
}

bool ehentry_cie(const struct ehentry *fde, bool is_eh, uint64_t size, uint64_t *ret)
{
	*ret = is_eh ? fde->id_pos - fde->id : fde->id;
	return *ret < size && (!is_eh || fde->id <= fde->id_pos);
}

uint64_t ehentry_body(const struct ehentry *e)
{
	return e->id_pos + (e->wide ? 8 : 4);
}

/* ---------------------------------------------------------------- CIEs and FDEs */

/* Parses the data of augmentation "z...", letter by letter; an unknown letter ends the parse. */
static bool parse_augmentation(const char *letters, struct cursor data, struct ehcie *cie)
{
	uint8_t encoding;
	uint64_t address;

	for (; *letters; letters++) {
		switch (*letters) {
		case 'R':
			if (!cursor_u8(&data, &cie->encoding))
				return false;
			break;
		case 'L': /* of pointers that only exceptions need */
			if (!cursor_u8(&data, &encoding))
				return false;
			break;
		case 'P': /* the handler of exceptions: only the size of its address matters */
			if (!cursor_u8(&data, &encoding))
				return false;
			if (encoding != PE_OMIT &&
			    !cfi_address(&data, encoding & 0x0f, 0, &address))
				return false;
			break;
		case 'S':
			cie->common.signal = true;
			break;
		case 'B': /* AArch64: return addresses signed with the other key */
		case 'G': /* AArch64: tagged stack */
			break;
		default:
			return true;
		}
	}
	return true;
}

/* From the augmentation string on. Returns as struct cie's skip. */
static int parse_augmented(struct cursor *c, uint8_t version, const char *letters,
			   struct ehcie *cie)
{
	struct cfi_common *common = &cie->common;
	struct cursor data;
	uint64_t n;
	uint8_t u8 = 0;

	if (strcmp(letters, "eh") == 0) { /* GCC 2: an address of its exception table */
		if (!cursor_skip(c, 8))
			return EHFRAME_SKIP_TRUNCATED;
		letters += 2;
	}
	if (!cursor_uleb(c, &common->code_align) || !cursor_sleb(c, &common->data_align))
		return EHFRAME_SKIP_TRUNCATED;
	if (version == 1 ? !cursor_u8(c, &u8) : !cursor_uleb(c, &common->ra_reg))
		return EHFRAME_SKIP_TRUNCATED;
	if (version == 1)
		common->ra_reg = u8;
	if (!*letters)
		return -1;
	if (*letters != 'z')
		return EHFRAME_SKIP_CIE_AUGMENTATION;
	cie->has_augmentation_length = true;
	if (!cursor_uleb(c, &n) || !cursor_sub(c, n, &data))
		return EHFRAME_SKIP_TRUNCATED;
	return parse_augmentation(letters + 1, data, cie) ? -1 : EHFRAME_SKIP_CIE_AUGMENTATION;
}

static int parse_cie(struct cursor *c, struct ehcie *cie)
{
	uint8_t version, address_size, segment_size;
	const char *letters;
	int skip, outcome;

	if (!cursor_u8(c, &version))
		return EHFRAME_SKIP_TRUNCATED;
	if (version != 1 && version != 3 && version != 4)
		return EHFRAME_SKIP_CIE_VERSION;
	if (!cursor_cstr(c, &letters))
		return EHFRAME_SKIP_TRUNCATED;
	if (version == 4) {
		if (!cursor_u8(c, &address_size) || !cursor_u8(c, &segment_size))
			return EHFRAME_SKIP_TRUNCATED;
		if (address_size != 8 || segment_size != 0)
			return EHFRAME_SKIP_CIE_VERSION;
	}
	skip = parse_augmented(c, version, letters, cie);
	if (skip >= 0)
		return skip;
	cie->common.pointer_encoding = cie->encoding;
	outcome = cfi_run_initial(&cie->common, *c);
	return outcome ? EHFRAME_SKIP_CFI + outcome : -1;
}

void ehcie_parse(struct cursor *c, enum cfi_machine machine, struct ehcie *ret)
{
	*ret = (struct ehcie){.common.machine = machine};
	ret->skip = parse_cie(c, ret);
}

int ehfde_parse(const struct ehcie *cie, uint64_t vaddr, struct cursor *c, struct ehrange *ret)
{
	uint64_t size, n;

	if (!cfi_address(c, cie->encoding, vaddr, &ret->start) ||
	    !cfi_address(c, cie->encoding & 0x0f, 0, &size))
		return EHFRAME_SKIP_ENCODING;
	if (cie->has_augmentation_length && (!cursor_uleb(c, &n) || !cursor_skip(c, n)))
		return EHFRAME_SKIP_TRUNCATED;
	/* linkers write 0 for the address of discarded code */
	if (!size || !ret->start)
		return EHFRAME_SKIP_NO_CODE;
	if (__builtin_add_overflow(ret->start, size, &ret->end))
		return EHFRAME_SKIP_OUTSIDE;
	return -1;
}

/* ---------------------------------------------------------------- the section */

int ehentry_machine(const struct elffile *file, enum cfi_machine *ret)
{
	uint16_t machine = elffile_machine(file);

	*ret = machine == EM_AARCH64 ? CFI_ARM64 : CFI_X86_64;
	return machine == EM_X86_64 || machine == EM_AARCH64 ? 0 : ELFFILE_UNSUPPORTED;
}

/* Finds .eh_frame by the index's header: version 1, three encodings, the address of .eh_frame. Its
 * end is at most its segment's end. */
static int find_by_index(const struct elffile *file, struct elffile_section *ret)
{
	const struct elffile_segment *segments;
	struct elffile_segment hdr;
	uint8_t bytes[12];
	struct cursor c;
	uint64_t vaddr;
	size_t n;

	if (elffile_eh_frame_hdr(file, &hdr) || hdr.filesz < sizeof(bytes) ||
	    elffile_read(file, hdr.off, bytes, sizeof(bytes)) || bytes[0] != 1)
		return ELFFILE_ABSENT;
	cursor_init(&c, bytes, sizeof(bytes));
	if (!cursor_skip(&c, 4) || !cfi_address(&c, bytes[1], hdr.vaddr + 4, &vaddr))
		return ELFFILE_ABSENT;
	segments = elffile_segments(file, &n);
	for (size_t i = 0; i < n; i++) {
		const struct elffile_segment *s = &segments[i];

		if (vaddr < s->vaddr || vaddr - s->vaddr >= s->filesz)
			continue;
		*ret = (struct elffile_section){.vaddr = vaddr,
						.off = s->off + (vaddr - s->vaddr),
						.size = s->filesz - (vaddr - s->vaddr)};
		return 0;
	}
	return ELFFILE_ABSENT;
}

int eh_frame_section(const struct elffile *file, struct elffile_section *ret, bool *ret_sized)
{
	*ret_sized = elffile_section(file, ".eh_frame", ret) == 0;
	if (!*ret_sized)
		return find_by_index(file, ret);
	/* a file of debug information has the header, but no bytes */
	return ret->type == SHT_NOBITS ? ELFFILE_ABSENT : 0;
}

const char *ehframe_skip_name(unsigned int skip)
{
	static const char *const names[EHFRAME_SKIP_CFI] = {
		[EHFRAME_SKIP_TRUNCATED] = "truncated",
		[EHFRAME_SKIP_TOO_LARGE] = "too_large",
		[EHFRAME_SKIP_CIE_POINTER] = "cie_pointer",
		[EHFRAME_SKIP_CIE_VERSION] = "cie_version",
		[EHFRAME_SKIP_CIE_AUGMENTATION] = "cie_augmentation",
		[EHFRAME_SKIP_ENCODING] = "encoding",
		[EHFRAME_SKIP_NO_CODE] = "no_code",
		[EHFRAME_SKIP_OUTSIDE] = "outside",
		[EHFRAME_SKIP_COMPRESSED] = "compressed",
	};

	if (skip < EHFRAME_SKIP_CFI)
		return names[skip];
	return skip < EHFRAME_SKIP_MAX ? cfi_outcome_name((int)skip - EHFRAME_SKIP_CFI) : "error";
}

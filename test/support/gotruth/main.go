// SPDX-License-Identifier: Apache-2.0

// gotruth prints what Go's own debug/gosym finds in the line table of a file:
//
//	gotruth FILE [STEP]
//
// It asks for each STEP-th byte of each function (1) and for the last one, and prints a line for
// each stretch of equal answers,
//
//	FIRST LAST TAB FUNCTION TAB FILE TAB LINE TAB 0
//
// with the function that the code was compiled into, and the place that is innermost; that is "*" for
// functions without a package, such as those in C, since debug/gosym reads another one's table where
// they have none. The last line is "end". debug/gosym knows the tables up to the release it comes with.
package main

import (
	"bufio"
	"debug/elf"
	"debug/gosym"
	"encoding/binary"
	"fmt"
	"os"
	"strconv"
	"strings"
)

const (
	magic116 = 0xfffffffa
	magic120 = 0xfffffff1

	moduledataText = 176
)

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "gotruth:", err)
		os.Exit(1)
	}
}

// symbols are the addresses of the few that are of use; none in a stripped file.
func symbols(file *elf.File) map[string]uint64 {
	found := make(map[string]uint64)
	all, _ := file.Symbols()
	for _, s := range all {
		if strings.HasPrefix(s.Name, "runtime.") {
			found[s.Name] = s.Value
		}
	}
	return found
}

// tableOf is the line table. Where it has no section it lies in one with other data, and the symbols
// tell where.
func tableOf(file *elf.File, symbols map[string]uint64) []byte {
	for _, name := range []string{".gopclntab", ".data.rel.ro.gopclntab"} {
		if s := file.Section(name); s != nil {
			data, err := s.Data()
			check(err)
			return data
		}
	}
	start, end := symbols["runtime.pclntab"], symbols["runtime.epclntab"]
	for _, s := range file.Sections {
		if start >= s.Addr && end > start && end <= s.Addr+s.Size && s.Type == elf.SHT_PROGBITS {
			data, err := s.Data()
			check(err)
			return data[start-s.Addr : end-s.Addr]
		}
	}
	check(fmt.Errorf("no line table"))
	return nil
}

// textOf is the address that functions' offsets count from.
func textOf(file *elf.File, symbols map[string]uint64, table []byte) uint64 {
	if text := symbols["runtime.text"]; text != 0 {
		return text
	}
	if binary.LittleEndian.Uint32(table) != magic116 {
		if text := binary.LittleEndian.Uint64(table[24:]); text != 0 {
			return text
		}
	}
	if s := file.Section(".go.module"); s != nil {
		data, err := s.Data()
		check(err)
		return binary.LittleEndian.Uint64(data[moduledataText:])
	}
	return file.Section(".text").Addr
}

// printed is a function's name as the runtime of its release would print it.
func printed(name string, magic uint32) string {
	open, end := strings.IndexByte(name, '['), strings.LastIndexByte(name, ']')
	if magic != magic120 || open < 0 || end < open {
		return name
	}
	return name[:open] + "[...]" + name[end+1:]
}

type answer struct {
	file string
	line int
}

// isGo is false for names without a package, and for parts that the C compiler split off a function.
func isGo(name string) bool {
	for _, part := range []string{".cold", ".part.", ".isra.", ".constprop."} {
		if strings.Contains(name, part) {
			return false
		}
	}
	return strings.Contains(name, ".")
}

func ask(table *gosym.Table, f *gosym.Func, pc uint64) answer {
	if !isGo(f.Sym.Name) {
		return answer{"*", 0}
	}
	file, line, _ := table.PCToLine(pc)
	if line <= 0 || file == "" || file == "?" {
		return answer{"?", 0}
	}
	return answer{file, line}
}

func printFunc(w *bufio.Writer, table *gosym.Table, f *gosym.Func, name string, step uint64) {
	first, last := f.Entry, f.Entry
	before := ask(table, f, first)
	flush := func() {
		fmt.Fprintf(w, "%x %x\t%s\t%s\t%d\t0\n", first, last, name, before.file, before.line)
	}
	for pc := f.Entry + step; last < f.End-1; pc += step {
		if pc >= f.End {
			pc = f.End - 1
		}
		if now := ask(table, f, pc); now != before {
			flush()
			first, before = pc, now
		}
		last = pc
	}
	flush()
}

func main() {
	if len(os.Args) < 2 {
		check(fmt.Errorf("usage: gotruth FILE [STEP]"))
	}
	step := uint64(1)
	if len(os.Args) > 2 {
		n, err := strconv.ParseUint(os.Args[2], 10, 32)
		check(err)
		step = n
	}
	file, err := elf.Open(os.Args[1])
	check(err)
	symbols := symbols(file)
	data := tableOf(file, symbols)
	table, err := gosym.NewTable(nil, gosym.NewLineTable(data, textOf(file, symbols, data)))
	check(err)
	w := bufio.NewWriterSize(os.Stdout, 1<<20)
	for i := range table.Funcs {
		f := &table.Funcs[i]
		if f.End > f.Entry { // without code an address has another function's name
			printFunc(w, table, f, printed(f.Sym.Name, binary.LittleEndian.Uint32(data)), step)
		}
	}
	fmt.Fprintln(w, "end")
	check(w.Flush())
}

package procmem

import (
	"bufio"
	"io"
	"slices"
	"strconv"
	"strings"
)

// A mapping is a range of addresses of this process.
type mapping struct {
	start, end uint64
	resident   int64 // bytes
}

// releasable parses /proc/PID/smaps and returns the mappings of the file program whose pages can be
// mapped again from it: read-only, private, and without a page that differs from the file. A mapping
// whose entry is incomplete is left out.
func releasable(smaps io.Reader, program string) (found []mapping, err error) {
	var current mapping
	candidate := false
	lines := bufio.NewScanner(smaps)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) == 0 {
			continue
		}
		if m, ok := parseHeader(fields); ok {
			current, candidate = m, ofProgram(fields, program)
			continue
		}
		if !candidate || len(fields) != 3 || fields[2] != "kB" {
			continue
		}
		kib, err := strconv.ParseUint(fields[1], 10, 40)
		if err != nil {
			candidate = false
			continue
		}
		switch fields[0] { // Rss is before Anonymous
		case "Rss:":
			current.resident = int64(kib) << 10
		case "Anonymous:":
			if candidate = false; kib == 0 && current.resident > 0 {
				found = append(found, current)
			}
		}
	}
	return found, lines.Err()
}

// parseHeader parses the first line of an entry, and reports whether it is one.
func parseHeader(fields []string) (m mapping, ok bool) {
	first, last, ok := strings.Cut(fields[0], "-")
	if !ok || len(fields) < 5 {
		return m, false
	}
	var err, errEnd error
	m.start, err = strconv.ParseUint(first, 16, 64)
	m.end, errEnd = strconv.ParseUint(last, 16, 64)
	return m, err == nil && errEnd == nil && m.end > m.start
}

// ofProgram reports whether the first line of an entry is that of a read-only private mapping of the
// file program.
func ofProgram(header []string, program string) bool {
	readOnly := header[1] == "r-xp" || header[1] == "r--p"
	return readOnly && strings.HasPrefix(program, "/") && slices.Equal(header[5:], strings.Fields(program))
}

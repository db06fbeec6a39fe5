package fakecri

import (
	"time"

	"github.com/kubeparts/kubeparts/internal/crilog"
)

// appendLogEntries appends a line in the CRI's log format. A line longer than one entry is split
// into several.
func appendLogEntries(dst []byte, t time.Time, stderr bool, line string) []byte {
	stream := crilog.Stdout
	if stderr {
		stream = crilog.Stderr
	}
	for len(line) > crilog.MaxEntry {
		dst, line = crilog.AppendEntry(dst, t, stream, line[:crilog.MaxEntry], false), line[crilog.MaxEntry:]
	}
	return crilog.AppendEntry(dst, t, stream, line, true)
}

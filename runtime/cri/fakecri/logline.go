package fakecri

import (
	"strconv"
	"strings"
	"time"

	"github.com/kubeparts/kubeparts/runtime/fake"
)

// maxLogEntry is the maximum length in bytes of the text of one log entry, containerd's
// default.
const maxLogEntry = 16 << 10

// logTime is RFC3339Nano with all nine digits, so that entries sort as text.
const logTime = "2006-01-02T15:04:05.000000000Z07:00"

// appendLogEntries appends a line in the CRI's log format:
//
//	2026-01-02T03:04:05.000000006Z stdout F the line
//
// A line longer than one entry is split into several; all but the last have the tag P
// (partial).
func appendLogEntries(dst []byte, t time.Time, stderr bool, line string) []byte {
	for {
		text, kind := line, " F "
		if len(text) > maxLogEntry {
			text, kind = text[:maxLogEntry], " P "
		}
		dst = t.UTC().AppendFormat(dst, logTime)
		if stderr {
			dst = append(dst, " stderr"...)
		} else {
			dst = append(dst, " stdout"...)
		}
		dst = append(dst, kind...)
		dst = append(dst, text...)
		dst = append(dst, '\n')
		if line = line[len(text):]; line == "" {
			return dst
		}
	}
}

// A printer iterates over the output of a container. It is only a position, so that there can
// be several: one for the log, and one for each attached client.
type printer struct {
	lines []fake.LogLine
	at    time.Duration // of the line that was printed last, since the start
	n     int           // how often the first of lines was printed
}

// next returns the time since the start of the next line, and false if there is none.
func (p *printer) next() (time.Duration, bool) {
	switch {
	case len(p.lines) == 0:
		return 0, false
	case p.n == 0:
		return p.at + p.lines[0].After, true
	}
	return p.at + p.lines[0].Every, true
}

// print returns that line and advances to the next one.
func (p *printer) print() (text string, stderr bool) {
	p.at, _ = p.next()
	p.n++
	l := p.lines[0]
	text = strings.ReplaceAll(l.Text, "%d", strconv.Itoa(p.n))
	if !l.Endless() && p.n >= l.Times {
		p.lines, p.n = p.lines[1:], 0
	}
	return text, l.Err
}

// skip advances past the lines printed until now.
func (p *printer) skip(now time.Duration) {
	for {
		at, ok := p.next()
		if !ok || at > now {
			return
		}
		if l := p.lines[0]; p.n > 0 && l.Every > 0 {
			// In one step, because it may have run for years.
			many := int((now - p.at) / l.Every)
			if !l.Endless() {
				many = min(many, l.Times-p.n)
			}
			p.at, p.n = p.at+time.Duration(many)*l.Every, p.n+many
			if !l.Endless() && p.n >= l.Times {
				p.lines, p.n = p.lines[1:], 0
			}
			continue
		}
		p.print()
	}
}

package logread

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// A Stream is an output stream of a container.
type Stream uint8

// The streams. All, the zero value, is valid only in a Request.
const (
	All Stream = iota
	Stdout
	Stderr
)

func (s Stream) String() string {
	switch s {
	case All:
		return "all"
	case Stdout:
		return "stdout"
	case Stderr:
		return "stderr"
	}
	return fmt.Sprintf("Stream(%d)", uint8(s))
}

// A Line is one line of a log file. An output line that was too long for the runtime
// is written as several lines, all but the last of them partial.
type Line struct {
	// Stamp is the time at which the runtime read the line, in RFC 3339.
	Stamp []byte

	Stream  Stream
	Partial bool

	// Content is the output of the container without the newline.
	Content []byte
}

// Time returns the stamp as a time.
func (l Line) Time() (time.Time, error) { return time.Parse(time.RFC3339Nano, string(l.Stamp)) }

// ErrFormat is returned for a line that is neither in the CRI's nor in Docker's
// format.
var ErrFormat = errors.New("not a container log line")

// Preallocated, because a file may contain many invalid lines.
var (
	errTime   = fmt.Errorf("%w: no timestamp", ErrFormat)
	errStream = fmt.Errorf("%w: no stream after the timestamp", ErrFormat)
	errTags   = fmt.Errorf("%w: no tags after the stream", ErrFormat)
)

// Parse parses a line without its newline, in the CRI's format or as a JSON object
// of Docker's. In the CRI's format the result shares memory with text. It returns
// ErrFormat for other lines.
func Parse(text []byte) (Line, error) {
	var p parser
	var l Line
	if err := p.parse(&l, text); err != nil {
		return Line{}, err
	}
	return l, nil
}

// A parser parses consecutive lines. It caches the seconds of the last timestamp.
type parser struct {
	seconds [len("2006-01-02T15:04:05")]byte // of the last valid stamp
}

// parse parses text into *l.
func (p *parser) parse(l *Line, text []byte) error {
	if len(text) > 0 && text[0] == '{' {
		return p.docker(l, text)
	}
	return p.cri(l, text)
}

// cri parses "<RFC3339Nano> <stdout|stderr> <tags, ':' between them> <content>".
func (p *parser) cri(l *Line, text []byte) error {
	at := bytes.IndexByte(text[:min(len(text), 40)], ' ')
	if at < 0 || !p.isStamp(text[:at]) {
		return errTime
	}
	l.Stamp, text = text[:at], text[at+1:]
	if len(text) < len("stdout ") || text[6] != ' ' {
		return errStream
	}
	switch string(text[:6]) {
	case "stdout":
		l.Stream = Stdout
	case "stderr":
		l.Stream = Stderr
	default:
		return errStream
	}
	text = text[7:]
	if len(text) >= 2 && text[1] == ' ' { // the usual case
		l.Partial, l.Content = text[0] == 'P', text[2:]
		return nil
	}
	at = bytes.IndexByte(text, ' ')
	if at < 0 {
		return errTags
	}
	tag, _, _ := bytes.Cut(text[:at], []byte(":"))
	l.Partial, l.Content = string(tag) == "P", text[at+1:]
	return nil
}

// docker parses {"log":"…\n","stream":"stdout","time":"…"}.
func (p *parser) docker(l *Line, text []byte) error {
	var entry struct {
		Log    string `json:"log"`
		Stream string `json:"stream"`
		Time   string `json:"time"`
	}
	if err := json.Unmarshal(text, &entry); err != nil {
		return fmt.Errorf("%w: %w", ErrFormat, err)
	}
	l.Stamp, l.Content = []byte(entry.Time), []byte(entry.Log)
	if !p.isStamp(l.Stamp) {
		return fmt.Errorf("%w: no timestamp", ErrFormat)
	}
	switch entry.Stream {
	case "stdout":
		l.Stream = Stdout
	case "stderr":
		l.Stream = Stderr
	default:
		return fmt.Errorf("%w: stream %q", ErrFormat, entry.Stream)
	}
	var whole bool
	l.Content, whole = bytes.CutSuffix(l.Content, []byte("\n"))
	l.Partial = !whole
	return nil
}

// isStamp reports whether time.Parse accepts b as RFC 3339, using the cached seconds
// if possible.
func (p *parser) isStamp(b []byte) bool {
	n := len(p.seconds)
	if len(b) > n+2 && b[0] != 0 && string(b[:n]) == string(p.seconds[:]) && b[n] == '.' && b[len(b)-1] == 'Z' {
		digits := true
		for _, c := range b[n+1 : len(b)-1] {
			digits = digits && c-'0' <= 9
		}
		if digits {
			return true
		}
	}
	if len(b) < n || b[4] != '-' { // time.Parse is slower to reject it
		return false
	}
	if _, err := time.Parse(time.RFC3339Nano, string(b)); err != nil {
		return false
	}
	if len(b) > n {
		copy(p.seconds[:], b)
	}
	return true
}

package replay

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"

	"github.com/kubeparts/kubeparts/sim/record"
)

// maxLine is the largest frame in JSON, as in a file.
const maxLine = 16 << 20

// ReadJSON reads frames as lines of JSON, as examples/recording --json prints them. Empty
// lines are ignored. Errors are those of [Read] and of in.
func ReadJSON(in io.Reader) (*Recording, error) {
	return Read(func(yield func(record.Frame, error) bool) {
		lines := bufio.NewScanner(in)
		lines.Buffer(nil, maxLine)
		for n := 1; lines.Scan(); n++ {
			if len(lines.Bytes()) == 0 {
				continue
			}
			var f record.Frame
			if err := json.Unmarshal(lines.Bytes(), &f); err != nil {
				yield(record.Frame{}, fmt.Errorf("line %d: %w", n, err))
				return
			}
			if !yield(f, nil) {
				return
			}
		}
		if err := lines.Err(); err != nil {
			yield(record.Frame{}, err)
		}
	})
}

// Frames returns the frames of the recording, which must not be changed.
func (r *Recording) Frames() iter.Seq[record.Frame] { return slices.Values(r.frames) }

// Write writes the recording as one file, which [Open] and [record.Read] read. It returns the error of out, or that of
// [record.Write].
func (r *Recording) Write(out io.Writer) error {
	return record.Write(out, slices.Values(single(r.frames)))
}

// single returns the frames of a recording of one file: with one header, without the sets
// that later files repeat, and with one end.
func single(frames []record.Frame) (out []record.Frame) {
	for i, f := range frames {
		if f.Header != nil && i > 0 || f.End != nil || f.Pods != nil && f.Pods.Complete {
			continue
		}
		out = append(out, f)
	}
	var last record.Frame
	for _, f := range frames {
		last.At = max(last.At, f.At)
	}
	last.End = &record.End{}
	return append(out, last)
}

// newRecording returns a recording of frames.
func newRecording(frames []record.Frame) (*Recording, error) {
	return Read(func(yield func(record.Frame, error) bool) {
		for _, f := range frames {
			if !yield(f, nil) {
				return
			}
		}
	})
}

// asJSON returns a frame as a line of JSON of printable ASCII without backquotes, so that
// it can be in a raw string of Go.
func asJSON(f record.Frame) (string, error) {
	t, err := frameTree(f)
	if err != nil {
		return "", err
	}
	text, err := marshal(t)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	for _, c := range strings.ToValidUTF8(string(text), "\ufffd") {
		switch {
		case c == '`' || c > '~' && c <= 0xffff || c < ' ':
			fmt.Fprintf(&b, `\u%04x`, c)
		case c > 0xffff:
			c -= 0x10000
			fmt.Fprintf(&b, `\u%04x\u%04x`, 0xd800+c>>10, 0xdc00+c&0x3ff)
		default:
			b.WriteRune(c)
		}
	}
	return b.String(), nil
}

// marshal returns JSON without escaped HTML.
func marshal(v any) ([]byte, error) {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return []byte(strings.TrimSuffix(b.String(), "\n")), nil
}

// frameTree returns the JSON of a frame, without null and empty objects.
func frameTree(f record.Frame) (map[string]any, error) {
	if f.Call != nil {
		c := *f.Call
		c.Slot, c.Same = 0, 0
		f.Call = &c
	}
	text, err := marshal(f)
	if err != nil {
		return nil, err
	}
	t, _ := tree(text).(map[string]any)
	prune(t)
	if h, ok := t["header"].(map[string]any); ok {
		if f.Header.Wall.IsZero() {
			delete(h, "wall")
		}
		if f.Header.File == 0 {
			delete(h, "file")
		}
	}
	return t, nil
}

// prune removes null and empty objects and lists from the objects in v, and reports whether v is empty.
func prune(v any) bool {
	switch v := v.(type) {
	case nil:
		return true
	case map[string]any:
		for key, value := range v {
			if prune(value) && key != "end" && key != "header" {
				delete(v, key)
			}
		}
		return len(v) == 0
	case []any:
		for _, value := range v {
			prune(value)
		}
		return len(v) == 0
	}
	return false
}

// fromTree is the inverse of frameTree.
func fromTree(t map[string]any) (f record.Frame, err error) {
	text, err := marshal(t)
	if err != nil {
		return f, err
	}
	err = json.Unmarshal(text, &f)
	return f, err
}

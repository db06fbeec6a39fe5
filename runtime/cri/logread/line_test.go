package logread_test

import (
	"bytes"
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubeparts/kubeparts/runtime/cri/logread"
)

func TestALineIsParsed(t *testing.T) { // la-6
	type line struct {
		stream  logread.Stream
		partial bool
		content string
	}
	for name, c := range map[string]struct {
		text string
		want line
	}{
		"CRI, whole":            {"2026-11-21T10:00:00.123456789Z stdout F hello  world ", line{logread.Stdout, false, "hello  world "}},
		"CRI, partial":          {"2026-11-21T10:00:00.1Z stderr P hel", line{logread.Stderr, true, "hel"}},
		"CRI, more tags":        {"2026-11-21T10:00:00Z stdout P:X:Y hel", line{logread.Stdout, true, "hel"}},
		"CRI, unknown tag":      {"2026-11-21T10:00:00Z stdout Q hel", line{logread.Stdout, false, "hel"}},
		"CRI, an offset":        {"2026-11-21T10:00:00.5+01:00 stdout F x", line{logread.Stdout, false, "x"}},
		"CRI, empty":            {"2026-11-21T10:00:00Z stdout F ", line{logread.Stdout, false, ""}},
		"CRI, binary":           {"2026-11-21T10:00:00Z stdout F \x00\xff\r", line{logread.Stdout, false, "\x00\xff\r"}},
		"Docker, whole":         {`{"log":"hello\n","stream":"stdout","time":"2026-11-21T10:00:00.1Z"}`, line{logread.Stdout, false, "hello"}},
		"Docker, partial":       {`{"log":"hel","stream":"stderr","time":"2026-11-21T10:00:00.1Z"}`, line{logread.Stderr, true, "hel"}},
		"Docker, other members": {`{"log":"\u0000\n","stream":"stderr","attrs":{"a":"b"},"time":"2026-11-21T10:00:00.1Z"}`, line{logread.Stderr, false, "\x00"}},
	} {
		t.Run(name, func(t *testing.T) {
			l, err := logread.Parse([]byte(c.text))
			require.NoError(t, err)
			assert.Equal(t, c.want, line{l.Stream, l.Partial, string(l.Content)})
			_, err = l.Time()
			assert.NoError(t, err)
		})
	}
	for name, text := range map[string]string{
		"empty":                 "",
		"text":                  "hello world",
		"a time alone":          "2026-11-21T10:00:00Z",
		"no such time":          "2026-13-21T10:00:00Z stdout F x",
		"an empty time":         "\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00.5Z stdout F x",
		"no such stream":        "2026-11-21T10:00:00Z stdxxx F x",
		"no stream":             "2026-11-21T10:00:00Z F x",
		"no tag":                "2026-11-21T10:00:00Z stdout ",
		"a tag alone":           "2026-11-21T10:00:00Z stdout F",
		"no JSON":               `{"log":"hel`,
		"JSON without time":     `{"log":"x\n","stream":"stdout"}`,
		"JSON without a stream": `{"log":"x\n","stream":"","time":"2026-11-21T10:00:00.1Z"}`,
		"JSON of wrong type":    `{"log":1,"stream":"stdout","time":"2026-11-21T10:00:00.1Z"}`,
	} {
		t.Run(name, func(t *testing.T) {
			_, err := logread.Parse([]byte(text))
			assert.ErrorIs(t, err, logread.ErrFormat)
		})
	}
}

func TestAStreamHasAName(t *testing.T) {
	assert.Equal(t, []string{"all", "stdout", "stderr", "Stream(9)"},
		[]string{logread.All.String(), logread.Stdout.String(), logread.Stderr.String(), logread.Stream(9).String()})
}

func FuzzParse(f *testing.F) {
	f.Add([]byte("2026-11-21T10:00:00.123456789Z stdout F hello"))
	f.Add([]byte("2026-11-21T10:00:00.1+02:00 stderr P:x hello"))
	f.Add([]byte(`{"log":"hello\n","stream":"stdout","time":"2026-11-21T10:00:00.1Z"}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		l, err := logread.Parse(text)
		if err != nil {
			require.ErrorIs(t, err, logread.ErrFormat)
			return
		}
		_, err = l.Time()
		require.NoError(t, err, "a line has a time")
		require.Contains(t, []logread.Stream{logread.Stdout, logread.Stderr}, l.Stream)
		if text[0] != '{' {
			require.True(t, bytes.HasSuffix(text, l.Content))
			return
		}
		var entry map[string]any
		require.NoError(t, json.Unmarshal(text, &entry))
	})
}

// Whatever the files contain, reading them succeeds or fails with ErrFormat, and the
// tail is not longer than the whole log.
func FuzzRead(f *testing.F) {
	f.Add([]byte(entry(0, "stdout", "F", "a")), []byte(entry(1, "stderr", "P", "b")), int64(1))
	f.Add([]byte("\n\n"), []byte("{}\n"), int64(0))
	f.Fuzz(func(t *testing.T, old, live []byte, tail int64) {
		l := newLog(t)
		l.file("0.log.20260101-000000.gz", old)
		l.file("0.log.20260102-000000", old)
		l.file("0.log", live)
		for _, physical := range []bool{false, true} {
			r, err := logread.New(logread.Config{PhysicalLines: physical})
			require.NoError(t, err)
			var all, some bytes.Buffer
			err = r.Read(t.Context(), logread.Request{Path: l.path}, &all)
			if err != nil {
				require.ErrorIs(t, err, logread.ErrFormat)
			}
			tail = max(tail, 0)
			err = r.Read(t.Context(), logread.Request{Path: l.path, Tail: &tail, Since: time.Time{}.Add(1)}, &some)
			if err != nil {
				require.ErrorIs(t, err, logread.ErrFormat)
			}
			require.LessOrEqual(t, some.Len(), all.Len())
		}
	})
}

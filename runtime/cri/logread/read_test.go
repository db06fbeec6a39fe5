package logread_test

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubeparts/kubeparts/runtime/cri/logread"
)

func TestRequestsOfAFile(t *testing.T) {
	lines := []string{
		entry(0, "stdout", "F", "zero"),
		entry(1, "stderr", "F", "one"),
		entry(2, "stdout", "P", "two "),
		entry(3, "stdout", "P", "three "),
		entry(4, "stdout", "F", "four"),
		entry(5, "stderr", "F", "five"),
	}
	zone := strings.ReplaceAll(entry(6, "stdout", "F", "six"), "10:00:06Z", "11:00:06.25+01:00")
	for name, c := range map[string]struct {
		lines    []string
		req      logread.Request
		physical bool
		want     string
	}{
		"la-6: partial lines are joined":                                        {req: logread.Request{}, want: "zero\none\ntwo three four\nfive\n"},
		"la-7: older lines are omitted":                                         {req: logread.Request{Since: epoch.Add(5 * time.Second)}, want: "five\n"},
		"la-7: a line of that time is not":                                      {req: logread.Request{Since: epoch.Add(1 * time.Second)}, want: "one\ntwo three four\nfive\n"},
		"la-7: a part of a second counts":                                       {lines: []string{zone}, req: logread.Request{Since: epoch.Add(6300 * time.Millisecond)}, want: ""},
		"la-7: whatever the zone":                                               {lines: []string{zone}, req: logread.Request{Since: epoch.Add(6200 * time.Millisecond).In(time.FixedZone("", -7200))}, want: "six\n"},
		"la-7: the age of a line is that of its first entry":                    {req: logread.Request{Since: epoch.Add(3 * time.Second)}, want: "five\n"},
		"la-7: entries have their own age":                                      {req: logread.Request{Since: epoch.Add(3 * time.Second)}, physical: true, want: "three four\nfive\n"},
		"la-8: the time precedes the line":                                      {req: logread.Request{Timestamps: true, Stream: logread.Stdout}, want: "2026-11-21T10:00:00.000000000Z zero\n2026-11-21T10:00:02.000000000Z two three four\n"},
		"la-8: the time keeps its zone":                                         {lines: []string{zone}, req: logread.Request{Timestamps: true}, want: "2026-11-21T11:00:06.250000000+01:00 six\n"},
		"la-9: the limit cuts a line":                                           {req: logread.Request{Limit: new(int64(7))}, want: "zero\non"},
		"la-9: the time counts as well":                                         {req: logread.Request{Limit: new(int64(34)), Timestamps: true}, want: "2026-11-21T10:00:00.000000000Z zer"},
		"la-9: a limit of 0":                                                    {req: logread.Request{Limit: new(int64(0))}, want: ""},
		"la-9: a limit above the size":                                          {req: logread.Request{Limit: new(int64(1000))}, want: "zero\none\ntwo three four\nfive\n"},
		"la-10: pieces are lines":                                               {req: logread.Request{Tail: new(int64(3))}, physical: true, want: "three four\nfive\n"},
		"pieces are not lines":                                                  {req: logread.Request{Tail: new(int64(3))}, want: "one\ntwo three four\nfive\n"},
		"of the requested stream":                                               {req: logread.Request{Tail: new(int64(1)), Stream: logread.Stdout}, want: "two three four\n"},
		"no line":                                                               {req: logread.Request{Tail: new(int64(0))}, want: ""},
		"more lines than there are":                                             {req: logread.Request{Tail: new(int64(100))}, want: "zero\none\ntwo three four\nfive\n"},
		"la-11: lines that are too old count in the tail":                       {req: logread.Request{Tail: new(int64(2)), Since: epoch.Add(3 * time.Second)}, want: "five\n"},
		"la-13: a last line without an end":                                     {lines: []string{lines[0], strings.TrimSuffix(lines[1], "\n")}, want: "zero\none"},
		"la-13: and it counts in the tail":                                      {lines: []string{lines[0], strings.TrimSuffix(lines[1], "\n")}, req: logread.Request{Tail: new(int64(1))}, want: "one"},
		"la-6: an invalid line is skipped":                                      {lines: []string{"hello\n", lines[0], "\n", "\x00\x00\n", lines[5]}, want: "zero\nfive\n"},
		"la-6: an invalid line does not count in the tail":                      {lines: []string{lines[0], lines[5], "\n", "\x00\x00\n"}, req: logread.Request{Tail: new(int64(1))}, want: "five\n"},
		"la-10: an invalid line counts in the tail":                             {lines: []string{lines[0], lines[5], "\x00\x00\n"}, req: logread.Request{Tail: new(int64(2))}, physical: true, want: "five\n"},
		"the other stream in a line":                                            {lines: []string{lines[2], lines[5], lines[4]}, req: logread.Request{Tail: new(int64(1))}, want: "two four\n"},
		"Docker's format":                                                       {lines: []string{`{"log":"a","stream":"stdout","time":"2026-11-21T10:00:00.1Z"}` + "\n", `{"log":"b\n","stream":"stdout","time":"2026-11-21T10:00:00.1Z"}` + "\n"}, want: "ab\n"},
		"an empty log":                                                          {lines: []string{""}, want: ""},
		"the last piece of a line is missing, which is a line as long as it is": {lines: []string{lines[0], lines[2]}, req: logread.Request{Tail: new(int64(1))}, want: "two "},
	} {
		t.Run(name, func(t *testing.T) {
			if c.lines == nil {
				c.lines = lines
			}
			assert.Equal(t, c.want, newLog(t, c.lines...).must(logread.Config{PhysicalLines: c.physical}, c.req))
		})
	}
}

func TestInvalidRequests(t *testing.T) {
	_, err := logread.New(logread.Config{Recheck: -1})
	assert.EqualError(t, err, "logread: Config.Recheck (-1ns) or Config.Settle (0s) is negative")
	r, err := logread.New(logread.Config{})
	require.NoError(t, err)
	for want, req := range map[string]logread.Request{
		"logread: Request.Path is empty":       {},
		"logread: Request.Stream is Stream(3)": {Path: "x", Stream: 3},
		"logread: Request.Tail is -1":          {Path: "x", Tail: new(int64(-1))},
		"logread: Request.Limit is -1":         {Path: "x", Limit: new(int64(-1))},
	} {
		assert.EqualError(t, r.Read(t.Context(), req, new(bytes.Buffer)), want)
	}
}

func TestAMissingLog(t *testing.T) {
	l := newLog(t)
	_, err := l.read(logread.Config{}, logread.Request{})
	assert.ErrorIs(t, err, fs.ErrNotExist)
	assert.ErrorContains(t, err, l.path)
	l.path = filepath.Join(l.path, "neither", "its", "directory.log")
	_, err = l.read(logread.Config{}, logread.Request{Follow: true})
	assert.ErrorIs(t, err, fs.ErrNotExist)
}

func TestALogMayBeALink(t *testing.T) {
	l := newLog(t, entry(0, "stdout", "F", "new"))
	l.file("0.log.20260101-000000", []byte(entry(0, "stdout", "F", "old")))
	link := filepath.Join(t.TempDir(), "elsewhere.log")
	if err := os.Symlink(l.path, link); err != nil {
		t.Skip(err)
	}
	l.path = link
	assert.Equal(t, "old\nnew\n", l.must(logread.Config{}, logread.Request{}))
}

// A failing writer fails after a number of bytes.
type failing struct {
	left int
	err  error
}

func (f *failing) Write(b []byte) (int, error) {
	if len(b) > f.left {
		return f.left, f.err
	}
	f.left -= len(b)
	return len(b), nil
}

func TestAReaderThatGoesAwayEndsTheReading(t *testing.T) {
	l := newLog(t, string(entries(0, 100_000)))
	gone := errors.New("gone")
	r, err := logread.New(logread.Config{})
	require.NoError(t, err)
	assert.ErrorIs(t, r.Read(t.Context(), logread.Request{Path: l.path}, &failing{100_000, gone}), gone)
}

func TestAReadIsReported(t *testing.T) {
	l := newLog(t, entry(0, "stdout", "F", "one"), "x\n", entry(1, "stderr", "F", "two"))
	var reported []logread.ReadInfo
	l.must(logread.Config{Hooks: logread.Hooks{Read: func(i logread.ReadInfo) { reported = append(reported, i) }}}, logread.Request{Stream: logread.Stderr})
	require.Len(t, reported, 1)
	assert.Positive(t, reported[0].Took)
	reported[0].Took = 0
	assert.Equal(t, logread.ReadInfo{Path: l.path, Bytes: 4, Lines: 2, Skipped: 1}, reported[0])
}

package logread_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubeparts/kubeparts/internal/seedrun"
	"github.com/kubeparts/kubeparts/runtime/cri/logread"
)

// rotatedLog returns a log of nine lines, in files of three.
func rotatedLog(t *testing.T) *log {
	l := newLog(t, string(entries(6, 9)))
	l.file("0.log.20261121-100000.gz", entries(0, 3))
	l.file("0.log.20261121-100001", entries(3, 6))
	l.file("0.log.20261121-100001.tmp", []byte("half of one"))
	l.file("0.log.other", entries(100, 101))
	l.file("0.log.20261121-1000x1", entries(100, 101))
	l.file("10.log.20261121-100001", entries(100, 101))
	l.file("1.log", entries(100, 101))
	return l
}

func TestAllFilesOfALogAreOneStream(t *testing.T) {
	for name, c := range map[string]struct {
		cfg  logread.Config
		req  logread.Request
		want string
	}{
		"all":                                 {want: numbered(0, 9)},
		"the last":                            {req: logread.Request{Tail: new(int64(2))}, want: numbered(7, 9)},
		"all of the live one":                 {req: logread.Request{Tail: new(int64(3))}, want: numbered(6, 9)},
		"part of a rotated one":               {req: logread.Request{Tail: new(int64(5))}, want: numbered(4, 9)},
		"part of a compressed one":            {req: logread.Request{Tail: new(int64(8))}, want: numbered(1, 9)},
		"more than there are":                 {req: logread.Request{Tail: new(int64(10))}, want: numbered(0, 9)},
		"since":                               {req: logread.Request{Since: epoch.Add(2 * time.Second)}, want: numbered(2, 9)},
		"a limit":                             {req: logread.Request{Limit: new(int64(8))}, want: "line 0\nl"},
		"la-14: the live one as is":           {cfg: logread.Config{LiveOnly: true}, want: numbered(6, 9)},
		"la-14: its last":                     {cfg: logread.Config{LiveOnly: true}, req: logread.Request{Tail: new(int64(8))}, want: numbered(6, 9)},
		"pieces as lines":                     {cfg: logread.Config{PhysicalLines: true}, req: logread.Request{Tail: new(int64(8))}, want: numbered(1, 9)},
		"one stream, which has no line":       {req: logread.Request{Tail: new(int64(8)), Stream: logread.Stderr}, want: ""},
		"tail and since":                      {req: logread.Request{Tail: new(int64(5)), Since: epoch.Add(8 * time.Second)}, want: numbered(8, 9)},
		"no line of the tail since that time": {req: logread.Request{Tail: new(int64(5)), Since: epoch.Add(time.Hour)}, want: ""},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, c.want, rotatedLog(t).must(c.cfg, c.req))
		})
	}
}

func TestAFileThatIsBeingCompressedIsReadOnce(t *testing.T) {
	l := rotatedLog(t)
	l.file("0.log.20261121-100001.gz", entries(3, 6)) // complete, and its source not removed yet
	assert.Equal(t, numbered(0, 9), l.must(logread.Config{}, logread.Request{}))
}

// The log of a container that ended between two steps of a rotation has no live file.
func TestALogWithoutItsLiveFile(t *testing.T) {
	l := rotatedLog(t)
	require.NoError(t, os.Remove(l.path))
	assert.Equal(t, numbered(0, 6), l.must(logread.Config{}, logread.Request{}))
	assert.Equal(t, numbered(2, 6), l.must(logread.Config{}, logread.Request{Tail: new(int64(4))}))
	running := func(context.Context) (bool, error) { return false, nil }
	assert.Equal(t, numbered(0, 6), l.must(logread.Config{}, logread.Request{Follow: true, Running: running}))
	require.NoError(t, os.Remove(filepath.Join(filepath.Dir(l.path), "0.log.20261121-100001")))
	assert.Equal(t, numbered(1, 3), l.must(logread.Config{}, logread.Request{Tail: new(int64(2))}))
}

func TestFilesThatAreTooOldAreNotOpened(t *testing.T) {
	l := rotatedLog(t)
	name := filepath.Join(filepath.Dir(l.path), "0.log.20261121-100000.gz")
	require.NoError(t, os.WriteFile(name, []byte("damaged"), 0o640))
	require.NoError(t, os.Chtimes(name, epoch, epoch))
	gap := func(err error) { assert.Fail(t, "it was read", err) }
	assert.Empty(t, l.must(logread.Config{}, logread.Request{Since: epoch.Add(time.Hour), Gap: gap}))
}

// A model is a log as a list of entries, with the expected results of reading it.
type model []modelLine

type modelLine struct {
	second  int
	stream  string
	partial bool
	content string
}

func (m model) file() []byte {
	var s strings.Builder
	for _, l := range m {
		tag := "F"
		if l.partial {
			tag = "P"
		}
		s.WriteString(entry(l.second, l.stream, tag, l.content))
	}
	return []byte(s.String())
}

// tail returns the last n lines, those of one stream or of all.
func (m model) tail(n int, stream string) string {
	kept := make([]bool, len(m))
	inside := map[string]bool{} // streams whose previous entries belong to a kept line
	for i, l := range slices.Backward(m) {
		if stream != "" && l.stream != stream {
			continue
		}
		if !l.partial || !inside[l.stream] && !slices.ContainsFunc(m[i+1:], func(o modelLine) bool { return o.stream == l.stream }) {
			inside[l.stream] = n > 0
			n = max(n-1, 0)
		}
		kept[i] = inside[l.stream]
	}
	var s strings.Builder
	for i, l := range m {
		if kept[i] {
			s.WriteString(l.content)
			if !l.partial {
				s.WriteString("\n")
			}
		}
	}
	return s.String()
}

func TestTailOfRandomLogs(t *testing.T) {
	rnd := seedrun.Rand(t)
	for round := range 10 {
		var all model
		var layout []string
		l := newLog(t)
		files := 1 + rnd.IntN(4)
		for f := range files {
			var m model
			for range rnd.IntN(10) {
				i := len(all) + len(m)
				m = append(m, modelLine{i, []string{"stdout", "stderr"}[rnd.IntN(2)], rnd.IntN(3) == 0, fmt.Sprintf("<%d>%s", i, strings.Repeat("x", rnd.IntN(20)))})
			}
			all = append(all, m...)
			layout = append(layout, fmt.Sprint(len(all)))
			switch name := fmt.Sprintf("0.log.20261121-10000%d", f); {
			case f == files-1:
				l.file("0.log", m.file())
			case rnd.IntN(2) == 0:
				l.file(name, m.file())
			default:
				layout[f] += " compressed"
				l.file(name+".gz", m.file())
			}
		}
		for n := range len(all) + 2 {
			for stream, name := range map[logread.Stream]string{logread.All: "", logread.Stdout: "stdout", logread.Stderr: "stderr"} {
				got := l.must(logread.Config{}, logread.Request{Tail: new(int64(n)), Stream: stream})
				require.Equal(t, all.tail(n, name), got, "round %d, tail %d, stream %q of files up to %q\n%s", round, n, name, layout, all.file())
			}
		}
	}
}

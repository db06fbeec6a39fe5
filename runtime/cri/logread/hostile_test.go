package logread_test

import (
	"bufio"
	"bytes"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubeparts/kubeparts/runtime/cri/logread"
)

// A counter counts the bytes and newlines that are written to it.
type counter struct{ n, newlines int64 }

func (c *counter) Write(b []byte) (int, error) {
	c.n += int64(len(b))
	c.newlines += int64(bytes.Count(b, []byte("\n")))
	return len(b), nil
}

// allocated returns the total number of bytes that f allocates.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

const much = 3 << 20

func TestHugeLinesNeedNoMemory(t *testing.T) {
	long := func(head, tail string) []byte {
		b := bytes.Repeat([]byte("x"), much)
		return append(append([]byte(head), b...), tail...)
	}
	const head = "2026-11-21T10:00:00.1Z stdout F "
	for name, c := range map[string]struct {
		file []byte
		want counter
	}{
		"a line":                  {long(head, "\n"), counter{much + 1, 1}},
		"a line without an end":   {long(head, ""), counter{much, 0}},
		"one of Docker's":         {long(`{"log":"`, "\n"+head+"x\n"), counter{2, 1}},
		"no valid line":           {long("", "\n"+head+"x\n"), counter{2, 1}},
		"empty lines":             {append(bytes.Repeat([]byte("\n"), much/32), head+"x\n"...), counter{2, 1}},
		"lines, but no newline":   {append(bytes.Repeat([]byte("\x00"), much), "\n"+head+"x\n"...), counter{2, 1}},
		"nothing in a short line": {append(bytes.Repeat([]byte(head+"\n"), 1000), head+"x\n"...), counter{1002, 1001}},
	} {
		t.Run(name, func(t *testing.T) {
			for _, file := range []string{"0.log", "0.log.20261121-100000.gz"} {
				l := newLog(t, "")
				l.file(file, c.file)
				r, err := logread.New(logread.Config{})
				require.NoError(t, err)
				for _, tail := range []*int64{nil, new(int64(1 << 40))} {
					var got counter
					bytes := allocated(func() { err = r.Read(t.Context(), logread.Request{Path: l.path, Tail: tail}, &got) })
					assert.NoError(t, err)
					want := c.want
					if file != "0.log" && want.newlines == 0 {
						want = counter{want.n + 1, 1} // the line cannot go on in another file
					}
					assert.Equal(t, want, got, file)
					assert.Less(t, bytes, uint64(2<<20), file)
				}
			}
		})
	}
}

func TestNoiseIsNotALog(t *testing.T) {
	noise := make([]byte, 1<<20)
	_, _ = io.ReadFull(rand.NewChaCha8([32]byte{}), noise)
	l := newLog(t)
	l.file("0.log", noise)
	for _, req := range []logread.Request{{}, {Tail: new(int64(10))}, {Timestamps: true}} {
		_, err := l.read(logread.Config{}, req)
		assert.ErrorIs(t, err, logread.ErrFormat)
		assert.ErrorContains(t, err, l.path)
	}
}

func TestInvalidTimes(t *testing.T) {
	l := newLog(t, strings.Repeat("9", 30)+" stdout F x\n", "2026-99-99T10:00:00Z stdout F x\n", entry(0, "stdout", "F", "good"), "2026-11-21T10:00:00.Z stdout F x\n")
	assert.Equal(t, "good\n", l.must(logread.Config{}, logread.Request{Since: epoch, Timestamps: false}))
}

func TestCompressedFilesThatAreDamaged(t *testing.T) {
	whole := zipped(t, entries(0, 1000))
	for name, c := range map[string]struct {
		data []byte
		some bool // lines can be had
	}{
		"cut":          {whole[:len(whole)/2], true},
		"no trailer":   {whole[:len(whole)-8], true},
		"wrong sum":    {append(whole[:len(whole)-8:len(whole)-8], 1, 2, 3, 4, 5, 6, 7, 8), true},
		"empty":        {nil, false},
		"uncompressed": {entries(0, 10), false},
		"a head only":  {whole[:10], false},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLog(t, entry(0, "stdout", "F", "live"))
			require.NoError(t, os.WriteFile(filepath.Join(filepath.Dir(l.path), "0.log.20261121-100000.gz"), c.data, 0o640))
			var gaps []error
			out := l.must(logread.Config{}, logread.Request{Gap: func(err error) { gaps = append(gaps, err) }})
			require.Len(t, gaps, 1)
			assert.ErrorIs(t, gaps[0], logread.ErrDamaged)
			rest, ok := strings.CutSuffix(out, "live\n")
			require.True(t, ok)
			assert.Equal(t, c.some, rest != "")
			lines := bufio.NewScanner(strings.NewReader(rest))
			for n := 0; lines.Scan(); n++ {
				require.True(t, strings.HasPrefix("line ", lines.Text()) || strings.HasPrefix(lines.Text(), "line "), lines.Text())
			}
			assert.Equal(t, "live\n", l.must(logread.Config{}, logread.Request{Tail: new(int64(1))}))
		})
	}
}

func TestALogThatIsNotAFile(t *testing.T) {
	l := newLog(t)
	require.NoError(t, os.Mkdir(l.path, 0o755))
	_, err := l.read(logread.Config{}, logread.Request{})
	assert.ErrorContains(t, err, "not a regular file")
}

func TestARotatedFileThatIsNotOneIsLeftOut(t *testing.T) {
	l := newLog(t, string(entries(0, 1)))
	require.NoError(t, os.Mkdir(l.path+".20261121-100000", 0o755))
	assert.Equal(t, numbered(0, 1), l.must(logread.Config{}, logread.Request{}))
	assert.Equal(t, numbered(0, 1), l.must(logread.Config{}, logread.Request{Tail: new(int64(5))}))
}

// The cost of reading the end of a log does not depend on its size, which the container determines.
func TestTheEndOfAHugeLogCostsLittle(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("truncating allocates the space there")
	}
	l := newLog(t)
	f, err := os.Create(l.path)
	require.NoError(t, err)
	_, err = f.WriteAt(append([]byte("\n"), entries(0, 10)...), 10<<30)
	require.NoError(t, err)
	require.NoError(t, f.Close())
	assert.Less(t, allocated(func() {
		assert.Equal(t, numbered(7, 10), l.must(logread.Config{}, logread.Request{Tail: new(int64(3))}))
	}), uint64(4<<20), "bytes")
}

func TestALogAmongTooManyFilesIsAnError(t *testing.T) {
	l := newLog(t, string(entries(0, 1)))
	for i := range 10_001 {
		require.NoError(t, os.Symlink("nowhere", l.path+"."+strconv.Itoa(i)))
	}
	_, err := l.read(logread.Config{}, logread.Request{})
	assert.ErrorContains(t, err, "more than 10000 entries")
}

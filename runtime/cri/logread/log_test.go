package logread_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kubeparts/kubeparts/runtime/cri/logread"
)

// epoch is the time of the first line.
var epoch = time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)

// entry returns a line of a file, written the given number of seconds after epoch.
func entry(second int, stream, tag, content string) string {
	return epoch.Add(time.Duration(second)*time.Second).Format(time.RFC3339Nano) + " " + stream + " " + tag + " " + content + "\n"
}

// A log is the set of files of one log.
type log struct {
	t    testing.TB
	path string
}

func newLog(t testing.TB, live ...string) *log {
	l := &log{t, filepath.Join(t.TempDir(), "0.log")}
	if live != nil {
		l.file("0.log", []byte(strings.Join(live, "")))
	}
	return l
}

// file writes a file, compressed if its name ends in .gz.
func (l *log) file(name string, data []byte) {
	l.t.Helper()
	if strings.HasSuffix(name, ".gz") {
		data = zipped(l.t, data)
	}
	require.NoError(l.t, os.WriteFile(filepath.Join(filepath.Dir(l.path), name), data, 0o640))
}

func zipped(t testing.TB, data []byte) []byte {
	var buf bytes.Buffer
	zip := gzip.NewWriter(&buf)
	_, err := zip.Write(data)
	require.NoError(t, err)
	require.NoError(t, zip.Close())
	return buf.Bytes()
}

// read returns the output for req.
func (l *log) read(cfg logread.Config, req logread.Request) (string, error) {
	l.t.Helper()
	r, err := logread.New(cfg)
	require.NoError(l.t, err)
	req.Path = l.path
	var out bytes.Buffer
	err = r.Read(l.t.Context(), req, &out)
	return out.String(), err
}

func (l *log) must(cfg logread.Config, req logread.Request) string {
	l.t.Helper()
	out, err := l.read(cfg, req)
	require.NoError(l.t, err)
	return out
}

// numbered returns the lines with the numbers from a to b-1.
func numbered(a, b int) string {
	var s strings.Builder
	for i := a; i < b; i++ {
		fmt.Fprintf(&s, "line %d\n", i)
	}
	return s.String()
}

// entries returns a file with the lines numbered from a to b-1.
func entries(a, b int) []byte {
	var s strings.Builder
	for i := a; i < b; i++ {
		s.WriteString(entry(i, "stdout", "F", fmt.Sprintf("line %d", i)))
	}
	return []byte(s.String())
}

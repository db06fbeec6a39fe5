package logread_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/kubeparts/kubeparts/runtime/cri/logread"
)

// big writes a log of 64 MiB, of lines of 100 bytes.
func big(b *testing.B) *log {
	line := strings.Repeat("x", 100)
	var s strings.Builder
	for i := 0; s.Len() < 64<<20; i++ {
		s.WriteString(epoch.Add(time.Duration(i)*time.Millisecond+123456).Format(time.RFC3339Nano) + " stdout F " + line + "\n")
	}
	return newLog(b, s.String())
}

// BenchmarkThroughput compares reading a container's log with copying the file's bytes,
// and with scanning its lines without parsing them. The ratios are of the same run.
func BenchmarkThroughput(b *testing.B) {
	l := big(b)
	info, err := os.Stat(l.path)
	if err != nil {
		b.Fatal(err)
	}
	copied := func(f *os.File) error {
		_, err := io.Copy(struct{ io.Writer }{io.Discard}, struct{ io.Reader }{f})
		return err
	}
	scanned := func(f *os.File) error {
		lines := bufio.NewScanner(f)
		out := bufio.NewWriter(io.Discard)
		for lines.Scan() {
			_, _ = out.Write(lines.Bytes())
			_ = out.WriteByte('\n')
		}
		return lines.Err()
	}
	direct := func(b *testing.B, read func(*os.File) error) time.Duration {
		f, err := os.Open(l.path)
		if err != nil {
			b.Fatal(err)
		}
		defer f.Close()
		began := time.Now()
		if err := read(f); err != nil {
			b.Fatal(err)
		}
		return time.Since(began)
	}
	r, err := logread.New(logread.Config{})
	if err != nil {
		b.Fatal(err)
	}
	ended := func(context.Context) (bool, error) { return false, nil }
	for name, req := range map[string]logread.Request{
		"follow":     {Follow: true, Running: ended},
		"read":       {},
		"timestamps": {Timestamps: true, Follow: true, Running: ended},
		"since":      {Since: epoch, Follow: true, Running: ended},
	} {
		b.Run(name, func(b *testing.B) {
			req.Path = l.path
			b.SetBytes(info.Size())
			b.ReportAllocs()
			var ours, copies, scans time.Duration
			for b.Loop() {
				b.StopTimer()
				copies += direct(b, copied)
				scans += direct(b, scanned)
				b.StartTimer()
				began := time.Now()
				if err := r.Read(b.Context(), req, io.Discard); err != nil {
					b.Fatal(err)
				}
				ours += time.Since(began)
			}
			b.ReportMetric(100*copies.Seconds()/ours.Seconds(), "%ofcopy")
			b.ReportMetric(100*scans.Seconds()/ours.Seconds(), "%ofscan")
		})
	}
}

// BenchmarkTail reads the last lines of a log of 64 MiB.
func BenchmarkTail(b *testing.B) {
	l := big(b)
	r, err := logread.New(logread.Config{})
	if err != nil {
		b.Fatal(err)
	}
	for _, n := range []int64{10, 10_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			for b.Loop() {
				if err := r.Read(b.Context(), logread.Request{Path: l.path, Tail: &n}, io.Discard); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

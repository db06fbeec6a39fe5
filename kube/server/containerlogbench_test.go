package server_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/kubeparts/kubeparts/runtime"
)

// A follow of a log of 64 MiB over HTTP, to its end, compared with serving the same
// file unprocessed, from the same process in the same run.
func BenchmarkFollow(b *testing.B) {
	s, l := newLogged(b, nil)
	l.set(runtime.ContainerExited, nil)
	line := "2026-11-21T10:00:00.123456789Z stdout F " + strings.Repeat("x", 100) + "\n"
	if err := os.WriteFile(l.path, []byte(strings.Repeat(line, 64<<20/len(line))), 0o640); err != nil {
		b.Fatal(err)
	}
	info, err := os.Stat(l.path)
	if err != nil {
		b.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle("/", s)
	mux.HandleFunc("/file", func(w http.ResponseWriter, _ *http.Request) { // as a handler writes, not by sendfile
		f, err := os.Open(l.path)
		if err != nil {
			b.Error(err)
			return
		}
		defer func() { _ = f.Close() }()
		_, _ = io.CopyBuffer(struct{ io.Writer }{w}, struct{ io.Reader }{f}, make([]byte, 64<<10))
	})
	h := httptest.NewServer(mux)
	defer h.Close()
	get := func(path string) time.Duration {
		began := time.Now()
		resp, err := http.Get(h.URL + path)
		if err != nil {
			b.Fatal(err)
		}
		defer func() { _ = resp.Body.Close() }()
		if _, err := io.CopyBuffer(struct{ io.Writer }{io.Discard}, resp.Body, make([]byte, 64<<10)); err != nil || resp.StatusCode != 200 {
			b.Fatal(resp.Status, err)
		}
		return time.Since(began)
	}
	b.SetBytes(info.Size())
	var ours, theirs time.Duration
	for b.Loop() {
		ours += get("/containerLogs/ns/speaker/c?follow=true")
		b.StopTimer()
		theirs += get("/file")
		b.StartTimer()
	}
	b.ReportMetric(100*theirs.Seconds()/ours.Seconds(), "%offile")
}

package logread_test

import (
	"context"
	"fmt"
	stdlog "log"
	"os"
	"path/filepath"

	"github.com/kubeparts/kubeparts/runtime/cri/logread"
)

func Example() {
	dir, err := os.MkdirTemp("", "logs")
	if err != nil {
		stdlog.Fatal(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "0.log") // as returned by runtime.LogReader
	for name, text := range map[string]string{
		"0.log.20261121-100000": "2026-11-21T09:59:59.5Z stdout F one\n2026-11-21T09:59:59.7Z stderr F two\n",
		"0.log":                 "2026-11-21T10:00:00.1Z stdout P thr\n2026-11-21T10:00:00.2Z stdout F ee\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o640); err != nil {
			stdlog.Fatal(err)
		}
	}
	reader, err := logread.New(logread.Config{})
	if err != nil {
		stdlog.Fatal(err)
	}
	fmt.Println(reader.Read(context.Background(), logread.Request{Path: path, Tail: new(int64(2)), Timestamps: true}, os.Stdout))
	// Output:
	// 2026-11-21T09:59:59.700000000Z two
	// 2026-11-21T10:00:00.100000000Z three
	// <nil>
}

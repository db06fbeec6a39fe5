package main

import (
	"os"
	"path/filepath"
	"testing"
)

func TestADirectoryWithoutFilesIsNoState(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "containerd", "fifo", "0")
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	if hasFiles(dir) || hasFiles(filepath.Join(dir, "gone")) {
		t.Error("there is no file yet")
	}
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if !hasFiles(dir) || !hasFiles(file) {
		t.Error("there is a file")
	}
}

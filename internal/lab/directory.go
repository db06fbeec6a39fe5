package lab

import (
	"fmt"
	"os"
	"testing"
)

// Directory creates a directory for the test. When the test ends, it is removed together
// with all mounts in it and all processes that have it in their arguments; if the test is
// killed, at the next use of the lab.
func Directory(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", fmt.Sprintf("%s%d-", dirPrefix, os.Getpid()))
	if err != nil {
		t.Fatalf("lab: make a directory: %v", err)
	}
	t.Cleanup(func() {
		if err := sweep(dir); err != nil {
			t.Errorf("lab: clean up: %v", err)
		}
	})
	return dir
}

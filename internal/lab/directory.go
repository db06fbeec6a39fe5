package lab

import (
	"fmt"
	"os"
	"testing"
)

// Directory makes a directory of the test's own, which goes with all that is
// mounted in it, and all processes that have it in their arguments, when the test
// ends; or, if the test is killed, when the lab is used again.
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

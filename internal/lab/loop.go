package lab

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// LoopDevice creates a block device from a new file with a size in bytes. It is detached
// when the test ends. It requires root.
func LoopDevice(t testing.TB, file string, size int64) string {
	t.Helper()
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatalf("lab: loop device: %v", err)
	}
	if err := os.Truncate(file, size); err != nil {
		t.Fatalf("lab: loop device: %v", err)
	}
	out, err := exec.Command("losetup", "--find", "--show", file).CombinedOutput()
	if err != nil {
		t.Fatalf("lab: loop device: %v: %s", err, out)
	}
	device := strings.TrimSpace(string(out))
	t.Cleanup(func() {
		if out, err := exec.Command("losetup", "--detach", device).CombinedOutput(); err != nil {
			t.Errorf("lab: detach %s: %v: %s", device, err, out)
		}
	})
	return device
}

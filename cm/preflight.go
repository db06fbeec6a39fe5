package cm

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/kubeparts/kubeparts/cm/cgroups"
)

// A Tunable is a kernel parameter; Name is its file below /proc/sys.
type Tunable struct{ Name, Value string }

// Tunables returns the kernel parameters of Kubernetes nodes (rule cm-29): memory
// overcommit is allowed, the OOM killer acts instead of a panic, the kernel reboots 10
// seconds after a panic and panics on an oops, and key quotas suffice for many pods.
func Tunables() []Tunable {
	return []Tunable{
		{"vm/overcommit_memory", "1"},
		{"vm/panic_on_oom", "0"},
		{"kernel/panic", "10"},
		{"kernel/panic_on_oops", "1"},
		{"kernel/keys/root_maxkeys", "1000000"},
		{"kernel/keys/root_maxbytes", "25000000"},
	}
}

// CheckTunables compares the kernel parameters with desired and calls set for those that
// differ; with protect it returns an error for them instead (protectKernelDefaults).
// Parameters that the kernel does not have are ignored. root is os.DirFS("/").
func CheckTunables(root fs.FS, desired []Tunable, protect bool, set func(Tunable) error) error {
	var errs []error
	for _, t := range desired {
		has, err := read(root, "proc/sys/"+t.Name)
		switch {
		case err != nil:
			errs = append(errs, err)
		case has == "" || has == t.Value:
		case protect:
			errs = append(errs, fmt.Errorf("cm: invalid kernel flag: %s, expected value: %s, actual value: %s", t.Name, t.Value, has))
		default:
			if err := set(t); err != nil {
				errs = append(errs, fmt.Errorf("cm: set kernel flag %s to %s: %w", t.Name, t.Value, err))
			}
		}
	}
	return errors.Join(errs...)
}

// ErrSwapOn is the error for a machine with swap and failSwapOn.
var ErrSwapOn = errors.New("running with swap on is not supported, please disable swap or set --fail-swap-on flag to false")

// SwapOn reports whether /proc/swaps lists a device or file. The header and tmpfs do not
// count.
func SwapOn(swaps []byte) bool {
	lines := slices.Collect(bytes.Lines(swaps))
	return slices.ContainsFunc(lines, func(line []byte) bool {
		fields := strings.Fields(string(line))
		return len(fields) > 1 && fields[0] != "Filename" && fields[1] != "tmpfs"
	})
}

// errCgroupV1 is the error for a machine with cgroup v1 and failCgroupV1.
var errCgroupV1 = errors.New("cm: this machine runs cgroup v1, which failCgroupV1 forbids; use cgroup v2, or set failCgroupV1 to false")

// CheckVersion returns an error for cgroup v1 if failV1 is true.
func CheckVersion(f cgroups.Facts, failV1 bool) error {
	if failV1 && f.Version == 1 {
		return errCgroupV1
	}
	return nil
}

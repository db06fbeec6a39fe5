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

// A Tunable is a parameter of the kernel, by its file below /proc/sys.
type Tunable struct{ Name, Value string }

// Tunables are what nodes of Kubernetes run with (cm-29): memory is promised
// freely, the OOM killer decides, a kernel that has lost its way starts anew, keys
// last for many pods.
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

// CheckTunables compares the kernel's parameters with wanted, and sets those that
// differ by calling set, or with protect reports them as an error
// (protectKernelDefaults). Those that a kernel has not got are left out. root is
// the machine's, os.DirFS("/").
func CheckTunables(root fs.FS, wanted []Tunable, protect bool, set func(Tunable) error) error {
	var errs []error
	for _, t := range wanted {
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

// ErrSwapOn says that the machine swaps, which it should not (cm-30).
var ErrSwapOn = errors.New("running with swap on is not supported, please disable swap or set --fail-swap-on flag to false")

// SwapOn reports whether a /proc/swaps lists anything that is swapped to: a disk,
// a file. The header is no such line, nor is a tmpfs (cm-30).
func SwapOn(swaps []byte) bool {
	lines := slices.Collect(bytes.Lines(swaps))
	return slices.ContainsFunc(lines, func(line []byte) bool {
		fields := strings.Fields(string(line))
		return len(fields) > 1 && fields[0] != "Filename" && fields[1] != "tmpfs"
	})
}

// errCgroupV1 says that the machine runs cgroup v1, which it should not (cm-31).
var errCgroupV1 = errors.New("cm: this machine runs cgroup v1, which failCgroupV1 forbids; use cgroup v2, or set failCgroupV1 to false")

// CheckVersion returns errCgroupV1 on cgroup v1 with failV1 (cm-31).
func CheckVersion(f cgroups.Facts, failV1 bool) error {
	if failV1 && f.Version == 1 {
		return errCgroupV1
	}
	return nil
}

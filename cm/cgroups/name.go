package cgroups

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
)

// A Driver creates the cgroups of a machine and determines how they are named.
type Driver string

// The drivers, with the values of --cgroup-driver.
const (
	Cgroupfs Driver = "cgroupfs"
	Systemd  Driver = "systemd"
)

// ParseDriver returns the driver with the name. The empty name is an error.
func ParseDriver(name string) (Driver, error) {
	switch d := Driver(name); d {
	case Cgroupfs, Systemd:
		return d, nil
	}
	return "", fmt.Errorf("cgroups: unknown driver %q; valid drivers are cgroupfs and systemd", name)
}

// A Name is the path of a cgroup, independent of the driver: "kubepods", "burstable",
// "pod1234". The empty name is the root. Names are immutable.
type Name []string

// ErrBadName is returned for a name that would be ambiguous.
var ErrBadName = errors.New("bad cgroup name")

// Check returns ErrBadName if a part of the name is empty, "." or "..", or contains "/",
// which separates parts, or "_", which the systemd driver substitutes for "-".
func (n Name) Check() error {
	for _, part := range n {
		if part == "" || part == "." || part == ".." || strings.ContainsAny(part, "/_\x00\n") {
			return fmt.Errorf("cgroups: %w %q: part %q", ErrBadName, n.String(), part)
		}
	}
	return nil
}

// ParseRoot returns the name for a value of --cgroup-root: "/" and "" are the root.
func ParseRoot(text string) (Name, error) {
	var n Name
	for part := range strings.SplitSeq(path.Clean("/"+text), "/") {
		if part != "" {
			n = append(n, part)
		}
	}
	return n, n.Check()
}

// Child returns the name of a descendant of n.
func (n Name) Child(parts ...string) Name { return slices.Concat(n, parts) }

// Parent returns the name of the parent of n. The parent of the root is the root.
func (n Name) Parent() Name {
	if len(n) == 0 {
		return n
	}
	return n[: len(n)-1 : len(n)-1]
}

// Base returns the last part of the name; "" for the root.
func (n Name) Base() string {
	if len(n) == 0 {
		return ""
	}
	return n[len(n)-1]
}

// String returns the name in the notation of cgroupfs.
func (n Name) String() string { return "/" + strings.Join(n, "/") }

// Path returns the path of the cgroup below the mount of a controller, with a leading
// slash: "/kubepods/burstable", or with systemd
// "/kubepods.slice/kubepods-burstable.slice". CRI runtimes accept it as cgroup parent.
func (n Name) Path(d Driver) string {
	if d != Systemd || len(n) == 0 {
		return n.String()
	}
	var b strings.Builder
	for i := range n {
		b.WriteString("/" + n[:i+1].Slice())
	}
	return b.String()
}

// Slice returns the name of the systemd unit of the cgroup: "kubepods-burstable.slice";
// "-.slice" for the root.
func (n Name) Slice() string {
	if len(n) == 0 {
		return "-.slice"
	}
	parts := make([]string, len(n))
	for i, part := range n {
		parts[i] = strings.ReplaceAll(part, "-", "_")
	}
	return strings.Join(parts, "-") + ".slice"
}

// ParsePath is the inverse of Path. With systemd it considers only the last part of the
// path.
func ParsePath(p string, d Driver) Name {
	if d != Systemd {
		return Name(strings.FieldsFunc(p, func(r rune) bool { return r == '/' }))
	}
	base, ok := strings.CutSuffix(path.Base(p), ".slice")
	if !ok || base == "-" {
		return nil
	}
	parts := strings.Split(base, "-")
	for i := range parts {
		parts[i] = strings.ReplaceAll(parts[i], "_", "-")
	}
	return Name(parts)
}

// podPrefix is the prefix of the last part of the name of a pod's cgroup.
const podPrefix = "pod"

// PodPart returns the last part of the name of the pod's cgroup.
func PodPart(uid string) string { return podPrefix + uid }

// PodUID returns the UID of the pod that the cgroup belongs to; "" if it is not the
// cgroup of a pod. As in the kubelet, a name that contains "pod" twice is not (rule
// cm-8).
func (n Name) PodUID() string {
	uid, ok := strings.CutPrefix(n.Base(), podPrefix)
	if !ok || strings.Contains(uid, podPrefix) {
		return ""
	}
	return uid
}

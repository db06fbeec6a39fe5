package cgroups

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
)

// A Driver is who makes the cgroups of a machine, and hence how they are called.
type Driver string

// The drivers, as --cgroup-driver has them.
const (
	Cgroupfs Driver = "cgroupfs"
	Systemd  Driver = "systemd"
)

// ParseDriver returns the driver of that name.
func ParseDriver(name string) (Driver, error) {
	switch d := Driver(name); d {
	case Cgroupfs, Systemd:
		return d, nil
	}
	return "", fmt.Errorf("cgroups: no driver %q; there are cgroupfs and systemd", name)
}

// A Name is a cgroup by what it and those above it are called: "kubepods",
// "burstable", "pod1234". The empty one is the root. Names are not changed once
// they are made.
type Name []string

// ErrBadName says that a name could not be told from another one.
var ErrBadName = errors.New("bad cgroup name")

// Check returns an error if a part of the name is empty, or has a "/", which would
// be two parts, or a "_", which systemd's names have for "-" (cm-6).
func (n Name) Check() error {
	for _, part := range n {
		if part == "" || part == "." || part == ".." || strings.ContainsAny(part, "/_\x00\n") {
			return fmt.Errorf("cgroups: %w %q: part %q", ErrBadName, n.String(), part)
		}
	}
	return nil
}

// ParseRoot returns the name that a --cgroup-root gives: "/" and "" are the root.
func ParseRoot(text string) (Name, error) {
	var n Name
	for part := range strings.SplitSeq(path.Clean("/"+text), "/") {
		if part != "" {
			n = append(n, part)
		}
	}
	return n, n.Check()
}

// Child returns the name of a cgroup below n.
func (n Name) Child(parts ...string) Name { return slices.Concat(n, parts) }

// Parent returns the name of the cgroup that n is in; that of the root is itself.
func (n Name) Parent() Name {
	if len(n) == 0 {
		return n
	}
	return n[: len(n)-1 : len(n)-1]
}

// Base is the last part of the name; "" of the root.
func (n Name) Base() string {
	if len(n) == 0 {
		return ""
	}
	return n[len(n)-1]
}

// String returns the name as cgroupfs spells it.
func (n Name) String() string { return "/" + strings.Join(n, "/") }

// Path returns the cgroup's path below the mount of a controller, with a slash in
// front: "/kubepods/burstable", or of systemd
// "/kubepods.slice/kubepods-burstable.slice" (cm-7). A CRI runtime takes it as a
// cgroup parent.
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

// Slice returns what systemd calls the cgroup's unit: "kubepods-burstable.slice"; of
// the root "-.slice" (cm-7).
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

// ParsePath is the reverse of Path. Of systemd's the last part alone counts.
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

// podPrefix begins the last part of a pod's name.
const podPrefix = "pod"

// PodPart returns the last part of the name of the pod's cgroup.
func PodPart(uid string) string { return podPrefix + uid }

// PodUID returns which pod's cgroup that is; "" if it is no pod's. What has "pod"
// in it twice is none (cm-8).
func (n Name) PodUID() string {
	uid, ok := strings.CutPrefix(n.Base(), podPrefix)
	if !ok || strings.Contains(uid, podPrefix) {
		return ""
	}
	return uid
}

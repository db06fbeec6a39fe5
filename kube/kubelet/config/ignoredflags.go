package config

import (
	"fmt"
	"strconv"
)

// An IgnoredFlag is a flag of the kubelet without a field in a KubeletConfiguration that
// has no effect in package kubelet. A command accepts it, so that a kubelet's command
// line works unchanged.
type IgnoredFlag struct {
	Name    string
	Bool    bool   // its value is true or false, and may be omitted
	Refused bool   // it is an error instead of a warning
	Reason  string // it has no effect
}

// Check returns a warning, or an error if the flag is Refused, for a flag with this
// value. Empty values and false cause neither.
func (f IgnoredFlag) Check(value string) (warning string, err error) {
	on, err := strconv.ParseBool(value)
	if f.Bool && value != "" && err != nil {
		return "", fmt.Errorf("--%s=%s: want true or false", f.Name, value)
	}
	switch {
	case value == "" || f.Bool && !on:
		return "", nil
	case f.Refused:
		return "", fmt.Errorf("--%s: %s", f.Name, f.Reason)
	}
	return fmt.Sprintf("--%s has no effect: %s", f.Name, f.Reason), nil
}

// IgnoredFlags returns the flags of kubelet 1.36 that have no effect.
func IgnoredFlags() []IgnoredFlag {
	const (
		newestOnly = "terminated containers are removed with their pod, except the newest"
		noCadvisor = "there is no cAdvisor; cgroups are read directly"
		noBuffer   = "lines are written immediately"
		oneStream  = "logs are written to stderr"
		lockedRoot = "the root directory is locked instead"
	)
	flags := []IgnoredFlag{
		{Name: "runtime-cgroups", Reason: "the cgroup of the runtime is not reported"},
		{Name: "minimum-container-ttl-duration", Reason: newestOnly},
		{Name: "maximum-dead-containers-per-container", Reason: newestOnly},
		{Name: "maximum-dead-containers", Reason: newestOnly},
		{Name: "vmodule", Reason: "--v applies to all packages"},
		{Name: "log-flush-frequency", Reason: noBuffer},
		{Name: "log-text-info-buffer-size", Reason: noBuffer},
		{Name: "log-json-info-buffer-size", Reason: noBuffer},
		{Name: "log-text-split-stream", Bool: true, Reason: oneStream},
		{Name: "log-json-split-stream", Bool: true, Reason: oneStream},
		{Name: "cloud-provider", Refused: true, Reason: "a node is not initialized by a cloud provider"},
		{Name: "lock-file", Refused: true, Reason: lockedRoot},
		{Name: "exit-on-lock-contention", Bool: true, Refused: true, Reason: lockedRoot},
		{Name: "experimental-mounter-path", Refused: true, Reason: "volumes are mounted by system calls"},
		{Name: "experimental-allocatable-ignore-eviction", Bool: true, Refused: true, Reason: "resources that evictionHard reserves are never allocatable"},
	}
	for _, name := range []string{
		"housekeeping-interval", "global-housekeeping-interval", "application-metrics-count-limit", "boot-id-file", "machine-id-file",
		"container-hints", "containerd", "containerd-namespace", "event-storage-age-limit", "event-storage-event-limit",
		"storage-driver-user", "storage-driver-password", "storage-driver-host", "storage-driver-db", "storage-driver-table", "storage-driver-buffer-duration",
	} {
		flags = append(flags, IgnoredFlag{Name: name, Reason: noCadvisor})
	}
	for _, name := range []string{"enable-load-reader", "log-cadvisor-usage", "storage-driver-secure"} {
		flags = append(flags, IgnoredFlag{Name: name, Bool: true, Reason: noCadvisor})
	}
	return flags
}

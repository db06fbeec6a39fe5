package config

import (
	"fmt"
	"strconv"
)

// An ignoredFlag is a flag of the kubelet without a field in a KubeletConfiguration that
// has no effect. It is accepted, so that a kubelet's command line works unchanged.
type ignoredFlag struct {
	name    string
	boolean bool   // its value is true or false, and may be omitted
	refused bool   // it is an error instead of a warning
	reason  string // it has no effect
}

// check returns a warning, or an error if the flag is refused, for a flag with this
// value. Empty values and false cause neither.
func (f ignoredFlag) check(value string) (warning string, err error) {
	on, err := strconv.ParseBool(value)
	if f.boolean && value != "" && err != nil {
		return "", fmt.Errorf("--%s=%s: want true or false", f.name, value)
	}
	switch {
	case value == "" || f.boolean && !on:
		return "", nil
	case f.refused:
		return "", fmt.Errorf("--%s: %s", f.name, f.reason)
	}
	return fmt.Sprintf("--%s has no effect: %s", f.name, f.reason), nil
}

// ignoredFlags returns the flags of kubelet 1.36 that have no effect.
func ignoredFlags() []ignoredFlag {
	const (
		newestOnly = "terminated containers are removed with their pod, except the newest"
		noCadvisor = "there is no cAdvisor; cgroups are read directly"
		noBuffer   = "lines are written immediately"
		oneStream  = "logs are written to stderr"
		lockedRoot = "the root directory is locked instead"
	)
	flags := []ignoredFlag{
		{name: "runtime-cgroups", reason: "the cgroup of the runtime is not reported"},
		{name: "minimum-container-ttl-duration", reason: newestOnly},
		{name: "maximum-dead-containers-per-container", reason: newestOnly},
		{name: "maximum-dead-containers", reason: newestOnly},
		{name: "vmodule", reason: "--v applies to all packages"},
		{name: "log-flush-frequency", reason: noBuffer},
		{name: "log-text-info-buffer-size", reason: noBuffer},
		{name: "log-json-info-buffer-size", reason: noBuffer},
		{name: "log-text-split-stream", boolean: true, reason: oneStream},
		{name: "log-json-split-stream", boolean: true, reason: oneStream},
		{name: "cloud-provider", refused: true, reason: "a node is not initialized by a cloud provider"},
		{name: "lock-file", refused: true, reason: lockedRoot},
		{name: "exit-on-lock-contention", boolean: true, refused: true, reason: lockedRoot},
		{name: "experimental-mounter-path", refused: true, reason: "volumes are mounted by system calls"},
		{name: "experimental-allocatable-ignore-eviction", boolean: true, refused: true, reason: "resources that evictionHard reserves are never allocatable"},
	}
	for _, name := range []string{
		"housekeeping-interval", "global-housekeeping-interval", "application-metrics-count-limit", "boot-id-file", "machine-id-file",
		"container-hints", "containerd", "containerd-namespace", "event-storage-age-limit", "event-storage-event-limit",
		"storage-driver-user", "storage-driver-password", "storage-driver-host", "storage-driver-db", "storage-driver-table", "storage-driver-buffer-duration",
	} {
		flags = append(flags, ignoredFlag{name: name, reason: noCadvisor})
	}
	for _, name := range []string{"enable-load-reader", "log-cadvisor-usage", "storage-driver-secure"} {
		flags = append(flags, ignoredFlag{name: name, boolean: true, reason: noCadvisor})
	}
	return flags
}

//go:build !linux

package volume

import v1 "k8s.io/api/core/v1"

// HostSELinuxLabel returns nil: only Linux has SELinux.
func HostSELinuxLabel() (func(*v1.SELinuxOptions) (string, error), error) { return nil, nil }

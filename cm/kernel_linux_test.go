package cm_test

import (
	"testing"

	"github.com/kubeparts/kubeparts/internal/lab"
)

// The tests of real cgroups, on a kernel with version 2 only.
func TestIntegrationOnCgroupV2(t *testing.T) {
	lab.Kernel(t, "github.com/kubeparts/kubeparts/cm/cgroups/host", "github.com/kubeparts/kubeparts/test/integration/oom", "github.com/kubeparts/kubeparts/cm")
}

// The same on a machine whose cgroups are managed by systemd, and the tests that need
// systemd: the last one stops the machine.
func TestIntegrationOnSystemd(t *testing.T) {
	lab.Systemd(t, "Integration|TestSystemd", "github.com/kubeparts/kubeparts/cm/cgroups/host", "github.com/kubeparts/kubeparts/cm", "github.com/kubeparts/kubeparts/shutdown/logind")
}

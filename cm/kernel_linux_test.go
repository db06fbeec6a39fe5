package cm_test

import (
	"testing"

	"github.com/kubeparts/kubeparts/internal/lab"
)

// The tests of real cgroups, on a kernel that has version 2 alone.
func TestIntegrationOnCgroupV2(t *testing.T) {
	lab.Kernel(t, "github.com/kubeparts/kubeparts/cm/cgroups/host", "github.com/kubeparts/kubeparts/cm/oom", "github.com/kubeparts/kubeparts/cm")
}

package notify_test

import (
	"testing"

	"github.com/kubeparts/kubeparts/internal/lab"
)

// The tests of cgroup v2, on a kernel with cgroup v2 only.
func TestIntegrationOnCgroupV2(t *testing.T) {
	lab.Kernel(t, "github.com/kubeparts/kubeparts/test/integration/notify")
}

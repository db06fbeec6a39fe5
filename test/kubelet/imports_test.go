package kubelet

// The packages of examples/kubelet, which the tests build and run: with them in the test program
// the go command runs the tests again when one of them has changed.
import (
	_ "github.com/kubeparts/kubeparts/agent/statuspage"
	_ "github.com/kubeparts/kubeparts/cm/cgroups"
	_ "github.com/kubeparts/kubeparts/kube/kubelet"
	_ "github.com/kubeparts/kubeparts/kube/kubelet/config"
	_ "github.com/kubeparts/kubeparts/runtime/cri"
	_ "github.com/kubeparts/kubeparts/runtime/process"
	_ "github.com/kubeparts/kubeparts/shutdown"
	_ "github.com/kubeparts/kubeparts/sim/record"
	_ "github.com/kubeparts/kubeparts/status/printer"
	_ "github.com/kubeparts/kubeparts/volume"
)

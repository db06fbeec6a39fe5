package options_test

import (
	"fmt"

	"github.com/kubeparts/kubeparts/compose"
	"github.com/kubeparts/kubeparts/kube/kubelet/options"
	"github.com/kubeparts/kubeparts/podworker"
)

// Functions of Adjust are called in order, after the connections of the node were made.
func ExampleConfig() {
	cfg := options.Config{NodeName: "edge-1"}
	cfg.Adjust = append(cfg.Adjust, compose.Adjust(func(c *podworker.Config) { c.Parallel = 50 }))
	for _, a := range cfg.Adjust {
		fmt.Println(cfg.NodeName, a.Config())
	}
	// Output:
	// edge-1 podworker.Config
}

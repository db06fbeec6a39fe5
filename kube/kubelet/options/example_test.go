package options_test

import (
	"fmt"

	"github.com/kubeparts/kubeparts/kube/kubelet/options"
	"github.com/kubeparts/kubeparts/podworker"
)

// Functions of Adjust are called in order, after the connections of the node were made.
func ExampleAdjust() {
	cfg := options.Config{NodeName: "edge-1"}
	cfg.Adjust = append(cfg.Adjust, options.Adjust{})
	workers := podworker.Config{Parallel: 50}
	fmt.Println(cfg.NodeName, len(cfg.Adjust), workers.Parallel)
	// Output:
	// edge-1 1 50
}

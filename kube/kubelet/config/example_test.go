package config_test

import (
	"fmt"

	"github.com/spf13/pflag"

	"github.com/kubeparts/kubeparts/kube/kubelet/config"
)

func Example() {
	cfg, warnings, err := config.Decode([]byte(`
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
maxPods: 50
hairpinMode: none
`))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(cfg.MaxPods, "pods,", cfg.SyncFrequency.Duration)
	fmt.Println(warnings[0])
	// Output:
	// 50 pods, 1m0s
	// hairpinMode has no effect: the CNI plugin decides whether a pod can reach itself through its service (bridge: hairpinMode)
}

func ExampleAddFlags() {
	args := []string{"--hostname_override=n1", "--max-pods=50", "--v", "4", "--housekeeping-interval=10s"}
	cfg, _, _ := config.Read("", "")
	var flags config.Flags
	fs := pflag.NewFlagSet("kubelet", pflag.ContinueOnError)
	check := config.AddFlags(fs, cfg, &flags)
	if err := fs.Parse(args); err != nil {
		fmt.Println(err)
	}
	warnings, err := check()
	fmt.Println(flags.NodeName, cfg.MaxPods, cfg.Logging.Verbosity, err)
	fmt.Println(warnings[0])
	// Output:
	// n1 50 4 <nil>
	// --housekeeping-interval has no effect: there is no cAdvisor; cgroups are read directly
}

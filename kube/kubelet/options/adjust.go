package options

import (
	"github.com/kubeparts/kubeparts/agent"
	"github.com/kubeparts/kubeparts/allocation"
	"github.com/kubeparts/kubeparts/cm"
	"github.com/kubeparts/kubeparts/cm/stats"
	"github.com/kubeparts/kubeparts/eviction"
	"github.com/kubeparts/kubeparts/imagegc"
	"github.com/kubeparts/kubeparts/kube/node"
	"github.com/kubeparts/kubeparts/kube/server"
	"github.com/kubeparts/kubeparts/runtime/cri"
	"github.com/kubeparts/kubeparts/runtime/cri/logrotate"
	"github.com/kubeparts/kubeparts/shutdown"
	"github.com/kubeparts/kubeparts/volume"
)

// Adjust has, for each subsystem, an optional function that kubelet.Open calls with the
// configuration of the subsystem before it constructs it. The configuration is complete,
// except that its Hooks are empty: those that a function sets are called after the
// kubelet's. A function may replace a default or wrap it: the runtime's image credentials,
// the plugins of volumes, the order of eviction, the admitters of the agent, routes of the
// server. kubelet.Open returns the error of a function, and an error if it sets a function or an
// interface to nil.
type Adjust struct {
	CRI        func(*cri.Config) error
	Volumes    func(*volume.Config) error
	Cgroups    func(*cm.Config) error // not called without cgroups
	Allocation func(*allocation.Config) error
	Images     func(*imagegc.Config) error // not called for plain processes
	Stats      func(*stats.Config) error
	Eviction   func(*eviction.Config) error
	Shutdown   func(*shutdown.Config) error
	Logs       func(*logrotate.Config) error
	Agent      func(*agent.Config) error  // the functions of its Adjust are called after the kubelet's
	Node       func(*node.Config) error   // not called without a cluster
	Server     func(*server.Config) error // not called without a listener
}

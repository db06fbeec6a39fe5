package options

import (
	"reflect"

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

// Adjustable returns the types of the configurations that Config.Adjust can change: cri.Config,
// volume.Config, cm.Config, allocation.Config, imagegc.Config, stats.Config, eviction.Config,
// shutdown.Config, logrotate.Config, agent.Config, node.Config, server.Config, and those of
// agent.Adjustable. A part that the node does not have is not adjusted: cm without cgroups, imagegc for
// plain processes, node without a cluster, and server without a listener.
func Adjustable() []reflect.Type {
	return append(agent.Adjustable(),
		reflect.TypeFor[cri.Config](), reflect.TypeFor[volume.Config](), reflect.TypeFor[cm.Config](),
		reflect.TypeFor[allocation.Config](), reflect.TypeFor[imagegc.Config](), reflect.TypeFor[stats.Config](),
		reflect.TypeFor[eviction.Config](), reflect.TypeFor[shutdown.Config](), reflect.TypeFor[logrotate.Config](),
		reflect.TypeFor[agent.Config](), reflect.TypeFor[node.Config](), reflect.TypeFor[server.Config](),
	)
}

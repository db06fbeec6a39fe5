package kubelet

import (
	"reflect"

	internalapi "k8s.io/cri-api/pkg/apis"
	mount "k8s.io/mount-utils"

	"github.com/kubeparts/kubeparts/allocation"
	"github.com/kubeparts/kubeparts/cm"
	"github.com/kubeparts/kubeparts/eviction"
	"github.com/kubeparts/kubeparts/kube/auth"
	"github.com/kubeparts/kubeparts/kube/node"
	"github.com/kubeparts/kubeparts/kube/server"
	"github.com/kubeparts/kubeparts/podsource"
	"github.com/kubeparts/kubeparts/podworker"
	"github.com/kubeparts/kubeparts/podworker/pipeline"
	"github.com/kubeparts/kubeparts/prober"
	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/cri"
	"github.com/kubeparts/kubeparts/runtime/cri/credentials"
	"github.com/kubeparts/kubeparts/runtime/cri/logrotate"
	"github.com/kubeparts/kubeparts/shutdown"
	"github.com/kubeparts/kubeparts/status"
	"github.com/kubeparts/kubeparts/volume"

	cmstats "github.com/kubeparts/kubeparts/cm/stats"
)

// serverPods can be embedded: it has another name than its method.
type serverPods = server.Pods

// unwrap is embedded by wrappers whose optional interfaces are found.
type unwrap struct{ part any }

func (u unwrap) Unwrap() any { return u.part }

// A wrapper wraps the parts of one interface in a type that only forwards its methods. With
// unwrap the wrapper has the method Unwrap, too.
type wrapper func(part reflect.Value, unwrap bool) reflect.Value

func wrapperOf[I any](hide func(I) I, wrap func(I, unwrap) I) (reflect.Type, wrapper) {
	return reflect.TypeFor[I](), func(v reflect.Value, unwraps bool) reflect.Value {
		part := v.Interface().(I)
		if unwraps {
			return reflect.ValueOf(wrap(part, unwrap{part}))
		}
		return reflect.ValueOf(hide(part))
	}
}

// wrappers has a wrapper for each interface of a part that Adjust can wrap.
func wrappers() map[reflect.Type]wrapper {
	all := map[reflect.Type]wrapper{}
	add := func(required reflect.Type, w wrapper) { all[required] = w }
	add(wrapperOf(func(p runtime.Runtime) runtime.Runtime { return struct{ runtime.Runtime }{p} },
		func(p runtime.Runtime, u unwrap) runtime.Runtime {
			return struct {
				runtime.Runtime
				unwrap
			}{p, u}
		}))
	add(wrapperOf(func(p runtime.Lister) runtime.Lister { return struct{ runtime.Lister }{p} },
		func(p runtime.Lister, u unwrap) runtime.Lister {
			return struct {
				runtime.Lister
				unwrap
			}{p, u}
		}))
	add(wrapperOf(func(p runtime.GarbageCollector) runtime.GarbageCollector {
		return struct{ runtime.GarbageCollector }{p}
	},
		func(p runtime.GarbageCollector, u unwrap) runtime.GarbageCollector {
			return struct {
				runtime.GarbageCollector
				unwrap
			}{p, u}
		}))
	add(wrapperOf(func(p runtime.ImageStore) runtime.ImageStore { return struct{ runtime.ImageStore }{p} },
		func(p runtime.ImageStore, u unwrap) runtime.ImageStore {
			return struct {
				runtime.ImageStore
				unwrap
			}{p, u}
		}))
	add(wrapperOf(func(p status.Sink) status.Sink { return struct{ status.Sink }{p} },
		func(p status.Sink, u unwrap) status.Sink {
			return struct {
				status.Sink
				unwrap
			}{p, u}
		}))
	add(wrapperOf(func(p podsource.PodSource) podsource.PodSource { return struct{ podsource.PodSource }{p} },
		func(p podsource.PodSource, u unwrap) podsource.PodSource {
			return struct {
				podsource.PodSource
				unwrap
			}{p, u}
		}))
	add(wrapperOf(func(p podsource.Sink) podsource.Sink { return struct{ podsource.Sink }{p} },
		func(p podsource.Sink, u unwrap) podsource.Sink {
			return struct {
				podsource.Sink
				unwrap
			}{p, u}
		}))
	add(wrapperOf(func(p pipeline.Admitter) pipeline.Admitter { return struct{ pipeline.Admitter }{p} },
		func(p pipeline.Admitter, u unwrap) pipeline.Admitter {
			return struct {
				pipeline.Admitter
				unwrap
			}{p, u}
		}))
	add(wrapperOf(func(p pipeline.Volumes) pipeline.Volumes { return struct{ pipeline.Volumes }{p} },
		func(p pipeline.Volumes, u unwrap) pipeline.Volumes {
			return struct {
				pipeline.Volumes
				unwrap
			}{p, u}
		}))
	add(wrapperOf(func(p pipeline.Allocation) pipeline.Allocation { return struct{ pipeline.Allocation }{p} },
		func(p pipeline.Allocation, u unwrap) pipeline.Allocation {
			return struct {
				pipeline.Allocation
				unwrap
			}{p, u}
		}))
	add(wrapperOf(func(p pipeline.Probes) pipeline.Probes { return struct{ pipeline.Probes }{p} },
		func(p pipeline.Probes, u unwrap) pipeline.Probes {
			return struct {
				pipeline.Probes
				unwrap
			}{p, u}
		}))
	add(wrapperOf(func(p pipeline.Relister) pipeline.Relister { return struct{ pipeline.Relister }{p} },
		func(p pipeline.Relister, u unwrap) pipeline.Relister {
			return struct {
				pipeline.Relister
				unwrap
			}{p, u}
		}))
	add(wrapperOf(func(p pipeline.Reporter) pipeline.Reporter { return struct{ pipeline.Reporter }{p} },
		func(p pipeline.Reporter, u unwrap) pipeline.Reporter {
			return struct {
				pipeline.Reporter
				unwrap
			}{p, u}
		}))
	add(wrapperOf(func(p pipeline.Claims) pipeline.Claims { return struct{ pipeline.Claims }{p} },
		func(p pipeline.Claims, u unwrap) pipeline.Claims {
			return struct {
				pipeline.Claims
				unwrap
			}{p, u}
		}))
	add(wrapperOf(func(p pipeline.Objects) pipeline.Objects { return struct{ pipeline.Objects }{p} },
		func(p pipeline.Objects, u unwrap) pipeline.Objects {
			return struct {
				pipeline.Objects
				unwrap
			}{p, u}
		}))
	add(wrapperOf(func(p pipeline.Images) pipeline.Images { return struct{ pipeline.Images }{p} },
		func(p pipeline.Images, u unwrap) pipeline.Images {
			return struct {
				pipeline.Images
				unwrap
			}{p, u}
		}))
	add(wrapperOf(func(p podworker.Retainer) podworker.Retainer { return struct{ podworker.Retainer }{p} },
		func(p podworker.Retainer, u unwrap) podworker.Retainer {
			return struct {
				podworker.Retainer
				unwrap
			}{p, u}
		}))
	add(wrapperOf(func(p podworker.Handler) podworker.Handler { return struct{ podworker.Handler }{p} },
		func(p podworker.Handler, u unwrap) podworker.Handler {
			return struct {
				podworker.Handler
				unwrap
			}{p, u}
		}))
	add(wrapperOf(func(p podworker.StatusCache) podworker.StatusCache { return struct{ podworker.StatusCache }{p} },
		func(p podworker.StatusCache, u unwrap) podworker.StatusCache {
			return struct {
				podworker.StatusCache
				unwrap
			}{p, u}
		}))
	add(wrapperOf(func(p prober.Handler) prober.Handler { return struct{ prober.Handler }{p} },
		func(p prober.Handler, u unwrap) prober.Handler {
			return struct {
				prober.Handler
				unwrap
			}{p, u}
		}))
	add(wrapperOf(func(p allocation.Pods) allocation.Pods { return struct{ allocation.Pods }{p} },
		func(p allocation.Pods, u unwrap) allocation.Pods {
			return struct {
				allocation.Pods
				unwrap
			}{p, u}
		}))
	add(wrapperOf(func(p eviction.Pods) eviction.Pods { return struct{ eviction.Pods }{p} },
		func(p eviction.Pods, u unwrap) eviction.Pods {
			return struct {
				eviction.Pods
				unwrap
			}{p, u}
		}))
	add(wrapperOf(func(p eviction.Disks) eviction.Disks { return struct{ eviction.Disks }{p} },
		func(p eviction.Disks, u unwrap) eviction.Disks {
			return struct {
				eviction.Disks
				unwrap
			}{p, u}
		}))
	add(wrapperOf(func(p shutdown.Pods) shutdown.Pods { return struct{ shutdown.Pods }{p} },
		func(p shutdown.Pods, u unwrap) shutdown.Pods {
			return struct {
				shutdown.Pods
				unwrap
			}{p, u}
		}))
	add(wrapperOf(func(p shutdown.Statuses) shutdown.Statuses { return struct{ shutdown.Statuses }{p} },
		func(p shutdown.Statuses, u unwrap) shutdown.Statuses {
			return struct {
				shutdown.Statuses
				unwrap
			}{p, u}
		}))
	add(wrapperOf(func(p internalapi.RuntimeService) internalapi.RuntimeService {
		return struct{ internalapi.RuntimeService }{p}
	},
		func(p internalapi.RuntimeService, u unwrap) internalapi.RuntimeService {
			return struct {
				internalapi.RuntimeService
				unwrap
			}{p, u}
		}))
	add(wrapperOf(func(p internalapi.ImageManagerService) internalapi.ImageManagerService {
		return struct {
			internalapi.ImageManagerService
		}{p}
	},
		func(p internalapi.ImageManagerService, u unwrap) internalapi.ImageManagerService {
			return struct {
				internalapi.ImageManagerService
				unwrap
			}{p, u}
		}))
	add(wrapperOf(func(p cri.Streamer) cri.Streamer { return struct{ cri.Streamer }{p} },
		func(p cri.Streamer, u unwrap) cri.Streamer {
			return struct {
				cri.Streamer
				unwrap
			}{p, u}
		}))
	add(wrapperOf(func(p cri.Volumes) cri.Volumes { return struct{ cri.Volumes }{p} },
		func(p cri.Volumes, u unwrap) cri.Volumes {
			return struct {
				cri.Volumes
				unwrap
			}{p, u}
		}))
	add(wrapperOf(func(p credentials.Keyring) credentials.Keyring { return struct{ credentials.Keyring }{p} },
		func(p credentials.Keyring, u unwrap) credentials.Keyring {
			return struct {
				credentials.Keyring
				unwrap
			}{p, u}
		}))
	add(wrapperOf(func(p logrotate.Runtime) logrotate.Runtime { return struct{ logrotate.Runtime }{p} },
		func(p logrotate.Runtime, u unwrap) logrotate.Runtime {
			return struct {
				logrotate.Runtime
				unwrap
			}{p, u}
		}))
	add(wrapperOf(func(p cmstats.Pods) cmstats.Pods { return struct{ cmstats.Pods }{p} },
		func(p cmstats.Pods, u unwrap) cmstats.Pods {
			return struct {
				cmstats.Pods
				unwrap
			}{p, u}
		}))
	add(wrapperOf(func(p cmstats.Runtime) cmstats.Runtime { return struct{ cmstats.Runtime }{p} },
		func(p cmstats.Runtime, u unwrap) cmstats.Runtime {
			return struct {
				cmstats.Runtime
				unwrap
			}{p, u}
		}))
	add(wrapperOf(func(p mount.Interface) mount.Interface { return struct{ mount.Interface }{p} },
		func(p mount.Interface, u unwrap) mount.Interface {
			return struct {
				mount.Interface
				unwrap
			}{p, u}
		}))
	add(wrapperOf(func(p volume.Plugin) volume.Plugin { return struct{ volume.Plugin }{p} },
		func(p volume.Plugin, u unwrap) volume.Plugin {
			return struct {
				volume.Plugin
				unwrap
			}{p, u}
		}))
	add(wrapperOf(func(p auth.Authenticator) auth.Authenticator { return struct{ auth.Authenticator }{p} },
		func(p auth.Authenticator, u unwrap) auth.Authenticator {
			return struct {
				auth.Authenticator
				unwrap
			}{p, u}
		}))
	add(wrapperOf(func(p auth.Authorizer) auth.Authorizer { return struct{ auth.Authorizer }{p} },
		func(p auth.Authorizer, u unwrap) auth.Authorizer {
			return struct {
				auth.Authorizer
				unwrap
			}{p, u}
		}))
	add(wrapperOf(func(p serverPods) serverPods { return struct{ serverPods }{p} },
		func(p serverPods, u unwrap) serverPods {
			return struct {
				serverPods
				unwrap
			}{p, u}
		}))
	add(wrapperOf(func(p server.Stats) server.Stats { return struct{ server.Stats }{p} },
		func(p server.Stats, u unwrap) server.Stats {
			return struct {
				server.Stats
				unwrap
			}{p, u}
		}))
	add(wrapperOf(func(p node.Nodes) node.Nodes { return struct{ node.Nodes }{p} },
		func(p node.Nodes, u unwrap) node.Nodes {
			return struct {
				node.Nodes
				unwrap
			}{p, u}
		}))
	add(wrapperOf(func(p node.Leases) node.Leases { return struct{ node.Leases }{p} },
		func(p node.Leases, u unwrap) node.Leases {
			return struct {
				node.Leases
				unwrap
			}{p, u}
		}))
	add(wrapperOf(func(p cri.Managers) cri.Managers { return struct{ cri.Managers }{p} },
		func(p cri.Managers, u unwrap) cri.Managers {
			return struct {
				cri.Managers
				unwrap
			}{p, u}
		}))
	add(wrapperOf(func(p cri.Objects) cri.Objects { return struct{ cri.Objects }{p} },
		func(p cri.Objects, u unwrap) cri.Objects {
			return struct {
				cri.Objects
				unwrap
			}{p, u}
		}))
	add(wrapperOf(func(p pipeline.Cgroups) pipeline.Cgroups { return struct{ pipeline.Cgroups }{p} },
		func(p pipeline.Cgroups, u unwrap) pipeline.Cgroups {
			return struct {
				pipeline.Cgroups
				unwrap
			}{p, u}
		}))
	add(wrapperOf(func(p cm.Tree) cm.Tree { return struct{ cm.Tree }{p} },
		func(p cm.Tree, u unwrap) cm.Tree {
			return struct {
				cm.Tree
				unwrap
			}{p, u}
		}))
	add(wrapperOf(func(p cri.UserNamespaces) cri.UserNamespaces { return struct{ cri.UserNamespaces }{p} },
		func(p cri.UserNamespaces, u unwrap) cri.UserNamespaces {
			return struct {
				cri.UserNamespaces
				unwrap
			}{p, u}
		}))
	add(wrapperOf(func(p volume.Claims) volume.Claims { return struct{ volume.Claims }{p} },
		func(p volume.Claims, u unwrap) volume.Claims {
			return struct {
				volume.Claims
				unwrap
			}{p, u}
		}))
	add(wrapperOf(func(p volume.Node) volume.Node { return struct{ volume.Node }{p} },
		func(p volume.Node, u unwrap) volume.Node {
			return struct {
				volume.Node
				unwrap
			}{p, u}
		}))
	add(wrapperOf(func(p podworker.Mirrors) podworker.Mirrors { return struct{ podworker.Mirrors }{p} },
		func(p podworker.Mirrors, u unwrap) podworker.Mirrors {
			return struct {
				podworker.Mirrors
				unwrap
			}{p, u}
		}))
	return all
}

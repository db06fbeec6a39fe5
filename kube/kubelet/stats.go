package kubelet

import (
	"os"
	"path/filepath"

	"k8s.io/apimachinery/pkg/types"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/kubeparts/kubeparts/cm/cgroups"
	"github.com/kubeparts/kubeparts/cm/stats"
	"github.com/kubeparts/kubeparts/compose"
	"github.com/kubeparts/kubeparts/volume"
)

// newStats constructs the collector of the usage of the node and its pods.
func newStats(b base, rt podRuntime, groups podCgroups, vols *volumes) (*stats.Collector, error) {
	cfg := stats.Config{
		NodeName: b.cfg.NodeName, Runtime: listed{rt, b.pods.Table}, Root: os.DirFS("/"), NodeDir: b.cfg.RootDir, Logger: b.logger,
		Pods: podFacts{vols.Manager, b, groups},
	}
	if groups.groups != nil {
		cfg.Cgroups = groups.tree
		cfg.System = map[string]cgroups.Name{statsapi.SystemContainerPods: groups.groups.PodsRoot()}
		for name, path := range map[string]string{
			statsapi.SystemContainerKubelet: b.k.KubeletCgroups, statsapi.SystemContainerRuntime: b.cfg.Host.RuntimeCgroup, statsapi.SystemContainerMisc: b.k.SystemCgroups,
		} {
			if group := cgroups.ParsePath(path, groups.tree.Facts().Driver); len(group) > 0 { // a service of systemd is not reported
				cfg.System[name] = group
			}
		}
	}
	if err := compose.Apply(b.cfg.Adjust, "Stats", &cfg); err != nil {
		return nil, err
	}
	return stats.New(cfg)
}

// podFacts implements stats.Pods.
type podFacts struct {
	*volume.Manager
	b      base
	groups podCgroups
}

// Cgroup returns the cgroup of a desired pod.
func (p podFacts) Cgroup(uid types.UID) (cgroups.Name, bool) {
	if p.groups.groups == nil {
		return nil, false
	}
	if pod := p.b.pods.desiredPod(uid); pod != nil {
		return p.groups.groups.PodName(pod), true
	}
	return nil, false
}

func (p podFacts) HostNetwork(uid types.UID) bool {
	pod := p.b.pods.desiredPod(uid)
	return pod != nil && pod.Spec.HostNetwork
}

func (p podFacts) Paths(namespace, name string, uid types.UID) stats.Paths {
	dir := filepath.Join(p.b.cfg.RootDir, "pods", string(uid))
	return stats.Paths{Logs: podLogDir(p.b, namespace, name, uid), Hosts: filepath.Join(dir, "etc-hosts"), Messages: filepath.Join(dir, "containers")}
}

package kubelet

import (
	"os"
	"path/filepath"
	"slices"

	"k8s.io/apimachinery/pkg/types"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/kubeparts/kubeparts/cm/cgroups"
	"github.com/kubeparts/kubeparts/cm/stats"
)

// newStats constructs the collector of the usage of the node and its pods.
func newStats(b base, rt podRuntime, groups podCgroups, vols *volumes) (*stats.Collector, error) {
	podDir := func(uid types.UID, name string) string {
		return filepath.Join(b.cfg.RootDir, "pods", string(uid), name)
	}
	cfg := stats.Config{
		NodeName: b.cfg.NodeName, Runtime: listed{rt, b.pods}, Root: os.DirFS("/"), NodeDir: b.cfg.RootDir, Logger: b.logger,
		Pods: stats.PodFacts{
			Volumes: func(uid types.UID) []statsapi.VolumeStats {
				ephemeral, persistent := vols.VolumeStats(uid)
				return append(ephemeral, persistent...)
			},
			Ephemeral: func(uid types.UID, volume string) bool { // rule st-10
				ephemeral, _ := vols.VolumeStats(uid)
				return slices.ContainsFunc(ephemeral, func(v statsapi.VolumeStats) bool { return v.Name == volume })
			},
			LogDir:      func(namespace, name string, uid types.UID) string { return podLogDir(b, namespace, name, uid) },
			HostsFile:   func(uid types.UID) string { return podDir(uid, "etc-hosts") },
			MessagesDir: func(uid types.UID) string { return podDir(uid, "containers") },
			HostNetwork: func(uid types.UID) bool {
				pod := b.pods.pod(uid)
				return pod != nil && pod.Spec.HostNetwork
			},
		},
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
		cfg.Pods.Cgroup = podCgroup(b, groups)
	}
	if err := adjust("Stats", b.cfg.Adjust.Stats, &cfg); err != nil {
		return nil, err
	}
	return stats.New(cfg)
}

// podCgroup returns the cgroup of a desired pod.
func podCgroup(b base, groups podCgroups) func(types.UID) (cgroups.Name, bool) {
	return func(uid types.UID) (cgroups.Name, bool) {
		if pod := b.pods.pod(uid); pod != nil {
			return groups.groups.PodName(pod), true
		}
		return nil, false
	}
}

package stores

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/kubeparts/kubeparts/kube/kubelet/options"
)

// runtimeKey is the key of the label and the taint of a node whose runtime
// Config.Runtime.New returns.
const runtimeKey = "kubeparts.io/runtime"

// HostContainers reports whether containers run in a CRI runtime of this machine, and have cgroups,
// namespaces and devices.
func HostContainers(c options.Config) bool { return !c.Runtime.Processes && c.Runtime.New == nil }

// checkGiven returns the errors of the fields of a Config that concern Runtime.New.
func checkGiven(c options.Config) error {
	k, r := c.Configuration, c.Runtime
	switch policies := strings.ToLower(k.CPUManagerPolicy + k.MemoryManagerPolicy); {
	case r.New == nil:
		return errors.New("Config.Runtime.Node requires Config.Runtime.New")
	case r.Service != nil || r.Images != nil || r.Processes || r.PauseImage != "":
		return errors.New("Config.Runtime.New excludes Service, Images, Processes and PauseImage")
	case r.Name == "":
		return errors.New("Config.Runtime has no Name")
	case strings.Contains(policies, "static"):
		return errors.New("cpuManagerPolicy, memoryManagerPolicy: pods of Config.Runtime.New cannot have exclusive CPUs or memory")
	}
	if wrong := validation.IsValidLabelValue(r.Name); len(wrong) > 0 {
		return fmt.Errorf("Config.Runtime.Name %q is not the value of a label: %s", r.Name, wrong[0])
	}
	if r.Node == nil {
		return nil
	}
	for field, thresholds := range map[string]map[string]string{"evictionHard": k.EvictionHard, "evictionSoft": k.EvictionSoft} {
		for _, signal := range slices.Sorted(maps.Keys(thresholds)) {
			if !OfDisk(signal) {
				return fmt.Errorf("%s: %s: pods do not run on this machine (Config.Runtime.Node)", field, signal)
			}
		}
	}
	return nil
}

// OfDisk reports whether an eviction signal concerns a file system of this machine, where logs and
// volumes are, also of pods that run elsewhere.
func OfDisk(signal string) bool { return strings.Contains(signal, "fs.") }

// markNode adds the label and the taint of a node whose runtime Config.Runtime.New returns.
func markNode(c *options.Config) {
	c.Cluster.NodeLabels = maps.Clone(c.Cluster.NodeLabels)
	if c.Cluster.NodeLabels == nil {
		c.Cluster.NodeLabels = map[string]string{}
	}
	c.Cluster.NodeLabels[runtimeKey] = cmp.Or(c.Cluster.NodeLabels[runtimeKey], c.Runtime.Name)
	if c.Configuration.RegisterWithTaints == nil {
		c.Configuration.RegisterWithTaints = []v1.Taint{{Key: runtimeKey, Value: c.Runtime.Name, Effect: v1.TaintEffectNoSchedule}}
	}
}

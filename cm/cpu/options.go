package cpu

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/kubeparts/kubeparts/cm/topology"
)

// A Policy determines how CPUs are allocated.
type Policy string

// The policies, with the values of KubeletConfiguration.cpuManagerPolicy.
const (
	None   Policy = "none"   // no exclusive CPUs
	Static Policy = "static" // exclusive CPUs for whole requests of Guaranteed pods
)

// Options modify the static policy.
type Options struct {
	FullPCPUsOnly        bool // allocate only whole physical cores
	DistributeAcrossNUMA bool // distribute evenly over NUMA nodes if one is not sufficient
	AlignBySocket        bool // align to sockets instead of NUMA nodes
	DistributeAcrossCore bool // one thread per core while there are idle cores
	StrictReservation    bool // exclude reserved CPUs from the shared pool
	AlignByUncoreCache   bool // use as few last level caches as possible

	// PodLevel determines the CPUs of Guaranteed pods with pod-level resources (KEP-5526): with
	// ContainerScope, containers with equal requests and limits have exclusive CPUs, and the
	// others run in the shared pool; with PodScope the pod has as many CPUs as it requests,
	// of which the others share what these containers leave. If empty, such pods have no
	// exclusive CPUs. It must be the scope of the topology manager, ContainerScope if that has the
	// policy none. ParseOptions does not set it: a kubelet has a feature gate instead.
	PodLevel topology.Scope
}

// The names of the options in KubeletConfiguration.cpuManagerPolicyOptions.
const (
	fullPCPUsOnlyOption        = "full-pcpus-only"
	distributeAcrossNUMAOption = "distribute-cpus-across-numa"
	alignBySocketOption        = "align-by-socket"
	distributeAcrossCoreOption = "distribute-cpus-across-cores"
	strictReservationOption    = "strict-cpu-reservation"
	alignByUncoreCacheOption   = "prefer-align-cpus-by-uncorecache"
)

// parsePolicy returns the policy with the name; "" is none.
func parsePolicy(name string) (Policy, error) {
	switch p := Policy(name); p {
	case "":
		return None, nil
	case None, Static:
		return p, nil
	default:
		return "", fmt.Errorf("cpu: unknown policy: %q", name)
	}
}

// ParseOptions parses KubeletConfiguration.cpuManagerPolicyOptions. An error names the
// option that is unknown, has an invalid value, or excludes another, in the kubelet's words.
func ParseOptions(options map[string]string) (Options, error) {
	var o Options
	fields := map[string]*bool{
		fullPCPUsOnlyOption: &o.FullPCPUsOnly, distributeAcrossNUMAOption: &o.DistributeAcrossNUMA,
		alignBySocketOption: &o.AlignBySocket, distributeAcrossCoreOption: &o.DistributeAcrossCore,
		strictReservationOption: &o.StrictReservation, alignByUncoreCacheOption: &o.AlignByUncoreCache,
	}
	for _, name := range slices.Sorted(maps.Keys(options)) {
		field := fields[name]
		if field == nil {
			return Options{}, fmt.Errorf("unknown CPU Manager Policy option: %q", name)
		}
		value, err := strconv.ParseBool(options[name])
		if err != nil {
			return Options{}, fmt.Errorf("bad value for option %q: %w", name, err)
		}
		*field = value
	}
	return o, o.consistent()
}

// consistent returns an error if two options exclude each other.
func (o Options) consistent() error {
	for _, pair := range []struct {
		a, b         bool
		nameA, nameB string
	}{
		{o.FullPCPUsOnly, o.DistributeAcrossCore, fullPCPUsOnlyOption, distributeAcrossCoreOption},
		{o.DistributeAcrossNUMA, o.DistributeAcrossCore, distributeAcrossNUMAOption, distributeAcrossCoreOption},
		{o.AlignByUncoreCache, o.DistributeAcrossCore, alignByUncoreCacheOption, distributeAcrossCoreOption},
		{o.AlignByUncoreCache, o.DistributeAcrossNUMA, alignByUncoreCacheOption, distributeAcrossNUMAOption},
	} {
		if pair.a && pair.b {
			return fmt.Errorf("static policy options %s and %s can not be used at the same time", pair.nameA, pair.nameB)
		}
	}
	return nil
}

// fit returns an error if the options are incompatible with the machine or with the
// policy of the topology manager.
func (o Options) fit(m *topology.Machine, p topology.Policy) error {
	switch {
	case o.AlignBySocket && p == topology.SingleNUMANode:
		return fmt.Errorf("cpu: topology manager policy %s is incompatible with option %s", p, alignBySocketOption)
	case o.AlignBySocket && m.Sockets() > len(m.Nodes):
		return fmt.Errorf("cpu: option %s is not compatible with a machine of %d sockets in %d NUMA nodes", alignBySocketOption, m.Sockets(), len(m.Nodes))
	}
	return nil
}

package cpu

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/kubeparts/kubeparts/cm/topology"
)

// A Policy is how CPUs are given out.
type Policy string

// The policies, by the names of KubeletConfiguration.cpuManagerPolicy (cpu-1).
const (
	None   Policy = "none"   // everybody runs everywhere
	Static Policy = "static" // Guaranteed pods get whole CPUs of their own
)

// Options change the static policy (cpu-6).
type Options struct {
	FullPCPUsOnly        bool // only whole cores
	DistributeAcrossNUMA bool // evenly over NUMA nodes, if one is not enough
	AlignBySocket        bool // close together is in one socket, not in one NUMA node
	DistributeAcrossCore bool // one thread per core, as long as there are cores
	StrictReservation    bool // reserved CPUs are not in the shared pool
	AlignByUncoreCache   bool // within as few last level caches as possible
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

// parsePolicy returns the policy of that name; "" is none.
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

// ParseOptions reads the options of KubeletConfiguration. An error names the one
// that is unknown, has a value it can't have, or goes against another.
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
			return Options{}, fmt.Errorf("cpu: unsupported option: %q", name)
		}
		value, err := strconv.ParseBool(options[name])
		if err != nil {
			return Options{}, fmt.Errorf("cpu: bad value for option %q: %w", name, err)
		}
		*field = value
	}
	return o, o.consistent()
}

// consistent names two options that exclude each other.
func (o Options) consistent() error {
	for _, pair := range []struct {
		a, b         bool
		nameA, nameB string
	}{
		{o.FullPCPUsOnly, o.DistributeAcrossCore, fullPCPUsOnlyOption, distributeAcrossCoreOption},
		{o.AlignByUncoreCache, o.DistributeAcrossCore, alignByUncoreCacheOption, distributeAcrossCoreOption},
		{o.AlignByUncoreCache, o.DistributeAcrossNUMA, alignByUncoreCacheOption, distributeAcrossNUMAOption},
	} {
		if pair.a && pair.b {
			return fmt.Errorf("cpu: static policy options %s and %s can not be used at the same time", pair.nameA, pair.nameB)
		}
	}
	return nil
}

// fit says whether the options can be honoured on this machine, and together with
// how the topology manager works.
func (o Options) fit(m *topology.Machine, p topology.Policy) error {
	switch {
	case o.AlignBySocket && p == topology.SingleNUMANode:
		return fmt.Errorf("cpu: topology manager policy %s is incompatible with option %s", p, alignBySocketOption)
	case o.AlignBySocket && m.Sockets() > len(m.Nodes):
		return fmt.Errorf("cpu: option %s is not compatible with a machine of %d sockets in %d NUMA nodes", alignBySocketOption, m.Sockets(), len(m.Nodes))
	}
	return nil
}

package topology

import (
	"fmt"
	"strconv"
)

// A Policy determines how strictly the resources of a container are aligned to NUMA
// nodes.
type Policy string

// The policies, with the values of KubeletConfiguration.topologyManagerPolicy.
const (
	None           Policy = "none"             // not aligned; hints are not queried
	BestEffort     Policy = "best-effort"      // aligned if possible
	Restricted     Policy = "restricted"       // rejected unless aligned as on an idle machine
	SingleNUMANode Policy = "single-numa-node" // rejected unless aligned to one node
)

// A Scope is the unit of alignment.
type Scope string

// The scopes, with the values of KubeletConfiguration.topologyManagerScope.
const (
	ContainerScope Scope = "container" // each container
	PodScope       Scope = "pod"       // all containers of a pod
)

// An Assignment is how a container uses CPUs or memory that were allocated for it. The values are
// those of the label assignment_type of the kubelet's metrics.
type Assignment string

// The assignments.
const (
	NodeExclusive Assignment = "node_exclusive" // no other container uses them
	PodExclusive  Assignment = "pod_exclusive"  // no other container uses them; they are a part of those of its pod
	PodShared     Assignment = "pod_shared"     // other containers of its pod use them as well
)

// Options modify a policy.
type Options struct {
	// PreferClosest selects, among sets with the same number of nodes, the one with the
	// smallest distances.
	PreferClosest bool

	// MaxNodes is the maximum number of NUMA nodes of the machine; zero means 8. Each
	// additional node doubles the number of sets to consider.
	MaxNodes int
}

// The names of the options in KubeletConfiguration.topologyManagerPolicyOptions.
const (
	preferClosestOption = "prefer-closest-numa-nodes"
	maxNodesOption      = "max-allowable-numa-nodes"
)

// defaultMaxNodes is the kubelet's limit.
const defaultMaxNodes = 8

// parsePolicy returns the policy with the name; "" is none.
func parsePolicy(name string) (Policy, error) {
	switch p := Policy(name); p {
	case "":
		return None, nil
	case None, BestEffort, Restricted, SingleNUMANode:
		return p, nil
	default:
		return "", fmt.Errorf("topology: unknown policy: %q", name)
	}
}

// parseScope returns the scope of that name; "" is container.
func parseScope(name string) (Scope, error) {
	switch s := Scope(name); s {
	case "":
		return ContainerScope, nil
	case ContainerScope, PodScope:
		return s, nil
	default:
		return "", fmt.Errorf("topology: unknown scope: %q", name)
	}
}

// ParseOptions parses KubeletConfiguration.topologyManagerPolicyOptions. An error names
// the option that is unknown or has an invalid value.
func ParseOptions(options map[string]string) (Options, error) {
	var o Options
	for name, value := range options {
		var err error
		switch name {
		case preferClosestOption:
			o.PreferClosest, err = strconv.ParseBool(value)
		case maxNodesOption:
			o.MaxNodes, err = strconv.Atoi(value)
			switch {
			case err != nil:
				return o, fmt.Errorf("unable to convert policy option to integer %q: %w", name, err)
			case o.MaxNodes < defaultMaxNodes:
				return o, fmt.Errorf("the minimum value of %q should not be less than %v", name, defaultMaxNodes)
			case o.MaxNodes > MaxNodes: // the kubelet only logs a warning
				err = fmt.Errorf("must be from %d to %d", defaultMaxNodes, MaxNodes)
			}
		default:
			return o, fmt.Errorf("unknown Topology Manager Policy option: %q", name)
		}
		if err != nil {
			return o, fmt.Errorf("bad value for option %q: %w", name, err)
		}
	}
	return o, nil
}

// check returns an error if the machine has more NUMA nodes than the options allow.
func (o Options) check(m *Machine) error {
	limit := o.MaxNodes
	if limit == 0 {
		limit = defaultMaxNodes
	}
	if n := len(m.Nodes); n > limit {
		return fmt.Errorf("topology: unsupported on machines with more than %d NUMA Nodes: this one has %d", limit, n)
	}
	return nil
}

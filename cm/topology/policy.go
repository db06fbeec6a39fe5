package topology

import (
	"fmt"
	"strconv"
)

// A Policy is how much it matters that all that a container gets is close to each
// other (top-1).
type Policy string

// The policies, by the names that KubeletConfiguration.topologyManagerPolicy has
// for them.
const (
	None           Policy = "none"             // it doesn't: hints are not even asked for
	BestEffort     Policy = "best-effort"      // as close as it gets; the pod runs anyway
	Restricted     Policy = "restricted"       // only as close as it could get on an empty machine
	SingleNUMANode Policy = "single-numa-node" // only from one node
)

// A Scope is what is kept together.
type Scope string

// The scopes, by the names of KubeletConfiguration.topologyManagerScope.
const (
	ContainerScope Scope = "container" // each container
	PodScope       Scope = "pod"       // all containers of a pod
)

// Options change a policy.
type Options struct {
	// PreferClosest takes, among sets with as many nodes, the one whose nodes are
	// closest to each other.
	PreferClosest bool

	// MaxNodes is how many NUMA nodes a machine may have; 0 is 8. Every set of
	// them is looked at, and each node more doubles their number.
	MaxNodes int
}

// The names of the options in KubeletConfiguration.topologyManagerPolicyOptions.
const (
	preferClosestOption = "prefer-closest-numa-nodes"
	maxNodesOption      = "max-allowable-numa-nodes"
)

// defaultMaxNodes is the kubelet's limit.
const defaultMaxNodes = 8

// parsePolicy returns the policy of that name; "" is none.
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

// ParseOptions reads the options of KubeletConfiguration. An error names the one
// that is unknown or has a value it can't have.
func ParseOptions(options map[string]string) (Options, error) {
	var o Options
	for name, value := range options {
		var err error
		switch name {
		case preferClosestOption:
			o.PreferClosest, err = strconv.ParseBool(value)
		case maxNodesOption:
			o.MaxNodes, err = strconv.Atoi(value)
			if err == nil && (o.MaxNodes < defaultMaxNodes || o.MaxNodes > MaxNodes) {
				err = fmt.Errorf("it has to be %d to %d", defaultMaxNodes, MaxNodes)
			}
		default:
			return o, fmt.Errorf("topology: unknown policy option: %q", name)
		}
		if err != nil {
			return o, fmt.Errorf("topology: bad value for option %q: %w", name, err)
		}
	}
	return o, nil
}

// check says whether a machine is within what the options allow (top-1).
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

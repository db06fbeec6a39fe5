package host

import "github.com/kubeparts/kubeparts/cm/cgroups"

// Config says how the tree is used.
type Config struct {
	// Driver makes the cgroups. Empty: cgroupfs.
	Driver cgroups.Driver

	// Root is the path below the mount that all names lie in: that of a subtree
	// that was delegated ([Delegate]). Empty: the whole tree.
	Root string

	// Weight turns CPU shares into weights. Zero: as runc does since 1.3.2; use
	// Linear with older ones.
	Weight cgroups.WeightFormula
}

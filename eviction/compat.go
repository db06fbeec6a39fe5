package eviction

// Compat brings back ways of the kubelet's that are known to be wrong, for who
// has to show the same. The zero value has none of them.
type Compat struct {
	// RandomSignal: of several signals of one kind that are low, nodefs and
	// imagefs, any may come first (nq-4). Otherwise it is the one that lacks
	// most of what it has, by its capacity.
	RandomSignal bool

	// AnyThreshold: a pod is evicted though the chosen signal has recovered
	// when any other configured threshold is met, if only softly and for a
	// moment (nq-5). Otherwise those count that are met for as long as their
	// grace period, of the same file system.
	AnyThreshold bool

	// InodesLessBytes: of the inodes that a pod uses, the bytes of
	// ephemeral-storage that it requests are subtracted (nq-6).
	InodesLessBytes bool

	// BlindImageUsage: where images have a file system of their own, no pod is
	// taken to use any of it (nq-6), whatever [Inputs.ImageBytes] says.
	BlindImageUsage bool

	// FailedKillCounts: a pod whose kill failed counts as evicted, and none is
	// tried in its place (nq-7).
	FailedKillCounts bool

	// AllSteps: all that can be done before pods are evicted is done, images
	// are deleted though removing dead containers was enough (ev-35).
	AllSteps bool

	// NoSplitFS: a pass fails on a node whose images have a file system of their
	// own (ev-12).
	NoSplitFS bool
}

// KubeletCompat returns all of the kubelet's ways at once. NoSplitFS is left out:
// there it depends on a feature gate.
func KubeletCompat() Compat {
	return Compat{
		RandomSignal: true, AnyThreshold: true, InodesLessBytes: true, BlindImageUsage: true, FailedKillCounts: true, AllSteps: true,
	}
}

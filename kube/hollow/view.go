package hollow

import (
	"hash/fnv"
	"slices"
	"strings"
)

// A view is the sorted identities of the processes that share the nodes. Each node is run by
// one of them, which depends on the view and on the name of the node only: when a process
// joins or leaves, only the nodes that it runs change hands (rendezvous hashing).
type view []string

// text returns the view as it is published.
func (v view) text() string { return strings.Join(v, ",") }

// owner returns the process that runs a node; "" without processes.
func (v view) owner(node string) string {
	var owner string
	var most uint64
	for _, member := range v {
		h := fnv.New64a()
		_, _ = h.Write([]byte(member + "/" + node)) // returns no error
		if score := mix(h.Sum64()); owner == "" || score > most {
			owner, most = member, score
		}
	}
	return owner
}

// mix distributes the differences of similar names over all bits (the finalizer of
// MurmurHash3), which FNV does not.
func mix(h uint64) uint64 {
	h ^= h >> 33
	h *= 0xff51afd7ed558ccd
	h ^= h >> 33
	h *= 0xc4ceb9fe1a85ec53
	return h ^ h>>33
}

func (v view) equal(other view) bool { return slices.Equal(v, other) }

package podworker

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"
)

// turns orders the static pods that share a full name: one at a time, in the
// order of their arrival (pw-29 … pw-32). A changed manifest is a new UID with
// the old name, so this is what keeps the old and the new pod apart.
type turns map[string][]types.UID

// join puts uid at the end of the queue for name, once.
func (t turns) join(name string, uid types.UID) {
	if !slices.Contains(t[name], uid) {
		t[name] = append(t[name], uid)
	}
}

// has reports whether it is uid's turn.
func (t turns) has(name string, uid types.UID) bool {
	return len(t[name]) > 0 && t[name][0] == uid
}

// first returns whose turn it is ("" for nobody's).
func (t turns) first(name string) types.UID {
	if len(t[name]) == 0 {
		return ""
	}
	return t[name][0]
}

// leave takes uid out of the queue, and returns whose turn it is now ("" for
// nobody's).
func (t turns) leave(name string, uid types.UID) types.UID {
	queue := slices.DeleteFunc(t[name], func(u types.UID) bool { return u == uid })
	if len(queue) == 0 {
		delete(t, name)
		return ""
	}
	t[name] = queue
	return queue[0]
}

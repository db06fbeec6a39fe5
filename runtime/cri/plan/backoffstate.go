package plan

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// A BackoffEntry is what a [Backoff] knows of one container, in a form that can
// be kept.
type BackoffEntry struct {
	Pod       types.UID `json:"pod"`
	Container string    `json:"container"` // "": all of the pod; only Forgiven is set then

	// Key is what the container was when it was last started (rt-89), as a
	// hash that means nothing to others; "" if it was not.
	Key string `json:"key,omitzero"`

	// Delay follows the exit of the instance that was last started, at
	// Started. In JSON it is in nanoseconds.
	Delay   time.Duration `json:"delay,omitzero"`
	Started time.Time     `json:"started,omitzero"`

	// Forgiven is when the container, or the pod, was last reset.
	Forgiven time.Time `json:"forgiven,omitzero"`
}

// Export returns all that the table knows, by pod and container.
func (b *Backoff) Export() []BackoffEntry {
	if b == nil {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	var all []BackoffEntry
	for uid, pod := range b.pods {
		for name, c := range pod {
			all = append(all, BackoffEntry{
				Pod: uid, Container: name, Key: c.key, Delay: c.delay, Started: c.started, Forgiven: c.forgiven,
			})
		}
	}
	slices.SortFunc(all, func(a, b BackoffEntry) int {
		return cmp.Or(cmp.Compare(a.Pod, b.Pod), cmp.Compare(a.Container, b.Container))
	})
	return all
}

// Import adds entries to the table, in place of those it has of the same
// containers. It is an error, and nothing is added, if one of them is not what
// Export could have returned.
func (b *Backoff) Import(entries []BackoffEntry) error {
	for _, e := range entries {
		switch {
		case e.Pod == "":
			return fmt.Errorf("plan: a back-off entry of container %q has no pod", e.Container)
		case e.Delay < 0:
			return fmt.Errorf("plan: the back-off entry of container %q of pod %s has a negative delay: %v", e.Container, e.Pod, e.Delay)
		case e.Container == "" && e.Key != "":
			return fmt.Errorf("plan: a back-off entry of pod %s has no container", e.Pod)
		}
	}
	if b == nil {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, e := range entries {
		b.put(e.Pod, e.Container, crashes{key: e.Key, delay: e.Delay, started: e.Started, forgiven: e.Forgiven})
	}
	return nil
}

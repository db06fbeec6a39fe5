package podsource

import (
	"log/slog"
	"slices"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
)

// A problemTracker has the current problems of a source of manifests.
type problemTracker struct {
	logger *slog.Logger
	hooks  ManifestHooks

	mu       sync.Mutex
	problems []Problem // guarded by mu; replaced, never changed in place
}

// list returns the current problems. Safe for concurrent use.
func (b *problemTracker) list() []Problem {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.problems)
}

// publish selects the pods of manifests and replaces the problems; root is a problem of the source as
// a whole, or nil. It logs the changes of the problems, calls the hooks, and returns the pods.
func (b *problemTracker) publish(manifests []manifestState, now time.Time, root *Problem) (pods []*v1.Pod) {
	old := b.list()
	pods, problems := selectPods(manifests, old, now)
	if root != nil {
		root.Since = now
		if i := problemOf(old, root.Path); i >= 0 {
			root.Since = old[i].Since
		}
		problems = slices.Insert(slices.DeleteFunc(problems, func(p Problem) bool { return p.Path == root.Path }), 0, *root)
	}
	b.mu.Lock()
	b.problems = problems
	b.mu.Unlock()

	changed, resolved := problemChanges(old, problems)
	for _, p := range changed {
		b.logger.Warn("Failed to use manifest; its last valid version, if any, stays in effect", "path", p.Path, "err", p.Err, "lastGood", p.LastGood)
		if b.hooks.Problem != nil {
			b.hooks.Problem(p)
		}
	}
	for _, path := range resolved {
		b.logger.Info("Manifest is valid again or was removed", "path", path)
		if b.hooks.Resolved != nil {
			b.hooks.Resolved(path)
		}
	}
	return pods
}

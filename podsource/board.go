package podsource

import (
	"log/slog"
	"slices"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
)

// A board is where a source of manifests shows what it cannot use.
type problemTracker struct {
	logger *slog.Logger
	hooks  ManifestHooks

	mu       sync.Mutex
	problems []Problem // guarded by mu; replaced, never changed
}

// list returns what is wrong at present, and may be called at any time.
func (b *problemTracker) list() []Problem {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.problems)
}

// publish works out what is in force of manifests and what is wrong, root being
// wrong with the source as a whole, tells what is new, and returns the pods.
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

	changed, mended := problemChanges(old, problems)
	for _, p := range changed {
		b.logger.Warn("manifest cannot be used", "path", p.Path, "err", p.Err, "lastGood", p.LastGood)
		if b.hooks.Problem != nil {
			b.hooks.Problem(p)
		}
	}
	for _, path := range mended {
		b.logger.Info("manifest mended or gone", "path", path)
		if b.hooks.Resolved != nil {
			b.hooks.Resolved(path)
		}
	}
	return pods
}
